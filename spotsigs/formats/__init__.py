"""Readers and writers, one module a file format."""
