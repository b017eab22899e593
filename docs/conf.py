"""Sphinx configuration: Markdown pages, reference from the docstrings, nothing from the network."""

import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parents[1]))

import spotsigs

project = "SpotSigs"
author = "The SpotSigs reproduction's authors"
copyright = "2026, " + author  # noqa: A001
version = release = spotsigs.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_math_renderer = "mathml"
napoleon_google_docstring = False
napoleon_custom_sections = ["Deviations"]
napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "special-members": "__call__", "show-inheritance": True}


def setup(app):
    """Write formulas as MathML, which browsers show by themselves; MathJax would come from a server."""

    def inline(writer, node):
        writer.body.append(tex2mathml(node.astext(), as_block=False))
        raise nodes.SkipNode

    def block(writer, node):
        writer.body.append(f'<div class="math">{tex2mathml(node.astext().strip(), as_block=True)}</div>\n')
        raise nodes.SkipNode

    app.add_html_math_renderer("mathml", (inline, None), (block, None))
