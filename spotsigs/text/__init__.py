"""Decode pages, extract their text and cut it into tokens."""
