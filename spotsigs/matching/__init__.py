"""Exact matchers, from vectors to pairs, and their bounds."""
