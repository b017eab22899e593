"""Sphinx configuration: Markdown pages, reference from the docstrings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import spotsigs

project = "SpotSigs"
author = "The SpotSigs reproduction's authors"
copyright = "2026, " + author  # noqa: A001
version = release = spotsigs.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
napoleon_google_docstring = False
napoleon_custom_sections = ["Deviations"]
napoleon_use_ivar = True
autodoc_typehints = "signature"
