"""Sphinx configuration: ``sphinx-build -W --keep-going -b html docs OUT`` needs no network."""

from importlib.metadata import version as installed_version

project = "clustermodel"
author = "The clustermodel developers"
copyright = "The clustermodel developers"
release = version = installed_version("clustermodel")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"clustermodel {release}"

myst_enable_extensions = ["dollarmath"]
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
plot_pre_code = """
from matplotlib import pyplot as plt

def show(figure):
    plt.figure().canvas.manager.canvas.figure = figure
"""
