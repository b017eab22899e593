"""Precision, recall and decisions against a truth; thresholds without labels."""
