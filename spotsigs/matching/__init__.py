"""From vectors to pairs: the exact matchers and their bounds."""
