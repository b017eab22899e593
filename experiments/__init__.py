"""Composes the stages: runner, tables, figures, claims."""
