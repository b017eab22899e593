"""Sphinx configuration: Markdown pages, reference from the docstrings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import spotsigs

project = "SpotSigs"
author = "The SpotSigs reproduction's authors"
copyright = "2026, " + author  # noqa: A001
version = release = spotsigs.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks: set[str] = set()
autodoc_typehints = "signature"
