"""From the bytes of a page to tokens."""
