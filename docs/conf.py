"""Sphinx configuration: neither ``sphinx-build -W --keep-going -b html docs OUT`` nor its pages need a network."""

from importlib.metadata import version as installed_version
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

project = "clustermodel"
author = "The clustermodel developers"
copyright = "The clustermodel developers"
release = version = installed_version("clustermodel")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build", "examples", "joss"]

html_theme = "furo"
html_title = f"clustermodel {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

plot_formats = [("png", 150)]
plot_html_show_formats = False
plot_html_show_source_link = False
# Figures of this package are made without pyplot; ``show`` hands one to the plot directive, which looks for pyplot's.
# The directive numbers figures within one eval-rst block, so a page has one such block, or none.
plot_pre_code = """
from matplotlib import pyplot as plt

def show(figure):
    plt.figure().canvas.manager.canvas.figure = figure
"""


_plain_docstrings: dict[str, list[str]] = {}


def _remember(*event: Any) -> None:
    _, what, name, _, _, lines = event
    if what in {"attribute", "data", "property"}:
        _plain_docstrings[name] = ["" if line.startswith("Alias for field number") else line for line in lines]


def _restore(*event: Any) -> None:
    _, _, name, _, _, lines = event
    if name in _plain_docstrings:
        lines[:] = _plain_docstrings.pop(name)


def _trim(_: Sphinx, page: nodes.document) -> None:
    for block in page.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip("\n")
        block.children = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> None:
    """Keep napoleon (priority 500) from taking the words before a colon in an attribute's docstring for its type, and from
    each example the empty line at its end, which is there for doctest only.
    """
    app.connect("autodoc-process-docstring", _remember, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)
    app.connect("doctree-read", _trim)
