"""Sphinx configuration: neither ``sphinx-build -W --keep-going -b html docs OUT`` nor its pages need a network."""

import inspect
from collections import defaultdict
from contextlib import suppress
from importlib.metadata import version as installed_version
from pathlib import Path
from pkgutil import walk_packages
from typing import Any
from urllib.request import urlopen

import numpy.typing as npt
from docutils import nodes
from docutils.nodes import Element
from latex2mathml.converter import convert
from sphinx.addnodes import desc_annotation, toctree
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import stringify_annotation
from sphinx.writers.html5 import HTML5Translator

import clustermodel
from clustermodel.workload.distributions import Distribution

project = "clustermodel"
author = "The clustermodel developers"
copyright = "The clustermodel developers"
release = version = installed_version("clustermodel")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build", "_templates", "examples", "joss"]

PUBLIC = {
    f"{value.__module__}.{name}": name
    for name in clustermodel.__all__
    if inspect.isclass(value := getattr(clustermodel, name)) or inspect.isfunction(value)
}
"""Public classes and functions by their full names: they are documented as names of the package, on the pages of docs/api."""
public_in = defaultdict(list)
for path, name in PUBLIC.items():
    public_in[path.rpartition(".")[0]].append(name)

templates_path = ["_templates"]
autosummary_context = {  # for the template of a module's page; docs/api/modules.md asks for that of the whole package
    "packages": ["clustermodel"]
    + [name for _, name, is_package in walk_packages(clustermodel.__path__, "clustermodel.") if is_package],
    "left_out": ["clustermodel.__main__", "clustermodel.cli.main"],  # the latter is a function, too
    "public_in": public_in,
}

html_theme = "furo"
html_title = f"clustermodel {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("_static") / "scorer.js")

myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"  # which browsers lay out themselves: MathJax would have to be fetched or shipped

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True  # what an example prints is not copied
copybutton_line_continuation_character = "\\"

OTHER_PROJECTS = {
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "python": "https://docs.python.org/3/",
    "simpy": "https://simpy.readthedocs.io/en/latest/",
}
"""Whose classes and functions our signatures link to."""


def reachable_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the inventories of other projects that are in a folder or can be fetched.

    Sphinx warns of an inventory that it cannot fetch, and a warning is an error here: without a network there are no links.
    """
    found = {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, site in OTHER_PROJECTS.items():
        inventory = folder / f"{name}.inv"
        if not inventory.exists():
            with suppress(OSError), urlopen(f"{site}objects.inv", timeout=5) as answer:
                inventory.write_bytes(answer.read())
        if inventory.exists():
            found[name] = (site, str(inventory))
        elif not found:
            break  # no network: the others need not be tried
    return found


intersphinx_mapping = reachable_inventories(Path(__file__).parent / "_build" / "inventories")

nitpicky = True
nitpick_ignore_regex = [  # types in signatures that have no page of ours; what a docstring refers to must exist
    (
        r"py:.*",
        r"(bokeh|click|collections|concurrent|contextlib|dask|datetime|distributed|inspect|matplotlib|np|npt|numpy|os|pandas|pathlib"
        r"|pd|rich|simpy|typing|xr)\..*",
    ),
    (r"py:class", r"[A-Z]\w*"),  # imported for types only, which autodoc does not see
    (r"py:.*", r"(_\w+|.*\._\w+)"),
    (r"py:(class|obj)", r"clustermodel\.([a-z_]+\.)+(Block|Conclusion|Function|Job|Layout|LogJobs|Origin|Phase|Place|T|Value)"),
    (r"py:data", r"(JOBS|UNSET)"),
    (r"py:class", r"(dict|tuple)\[str"),  # napoleon cuts a type at its comma
]
# Several classes have one name, of which a signature names one that is imported for types only.
suppress_warnings = ["ref.python"]

# The navigation of every page, of each page of source too, would carry thousands of classes and functions: minutes of copying.
toc_object_entries = False

autodoc_default_options = {"exclude-members": "set"}  # which matplotlib gives to each subclass of its figures
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


LONGEST_VALUE = 100
"""Characters of a constant's value; tables that are longer are shown as `...`."""


def _shorten(_: Sphinx, page: nodes.document) -> None:
    for part in page.findall(desc_annotation):
        if part.astext().startswith(" = ") and len(part.astext()) > LONGEST_VALUE:
            part.children = [nodes.Text(" = ...")]


ALIASES = {"ArrayLike": npt.ArrayLike, "Distribution": Distribution}
"""Types that signatures name, although autodoc writes out what they stand for."""


def _name_aliases(*event: Any) -> tuple[str | None, str | None] | None:
    *_, signature, returned = event
    if signature is None:
        return None
    for name, stands_for in ALIASES.items():
        for mode in ("smart", "fully-qualified-except-typing"):
            signature = signature.replace(stringify_annotation(stands_for, mode), name)
    return signature, returned


class PublicNames(SphinxDirective):
    """A table of public classes and functions, then what each is: ``public-names``, with the names as its content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the table and the descriptions."""
        names = " ".join(self.content).split()
        lines = ["```{eval-rst}", ".. currentmodule:: clustermodel"]
        if len(names) > 1:
            lines += ["", ".. autosummary::", "", *(f"   {name}" for name in names)]
        for name in names:
            if inspect.isclass(getattr(clustermodel, name)):
                lines += ["", f".. autoclass:: {name}", "   :members:"]
            else:
                lines += ["", f".. autofunction:: {name}"]
        return self.parse_text_to_nodes("\n".join([*lines, "```"]))


def _is_on_its_own_page(*event: Any) -> bool | None:
    """Leave public names out of the pages of their modules."""
    _, what, name, value, _, _ = event
    is_public = what == "module" and PUBLIC.get(f"{getattr(value, '__module__', '')}.{name}") == name
    return True if is_public else None


def _without_navigation(app: Sphinx, page: nodes.document) -> None:
    """Keep the pages of modules out of the navigation, which every page has."""
    if app.env.docname.startswith("api/modules"):
        for part in list(page.findall(toctree)):
            part.parent.remove(part)


def _documented_as(app: Sphinx, env: BuildEnvironment, reference: Element, text: Element) -> Element | None:
    """Link the name that a public class or function, or a member of it, has in its module."""
    target, python = reference.get("reftarget", ""), env.domains.python_domain
    if (path := f"{reference.get('py:module')}.{target}") in PUBLIC:
        target = path
    full = next((path for path in PUBLIC if target == path or target.startswith(f"{path}.")), None)
    if full is not None:
        targets = [f"clustermodel.{PUBLIC[full]}{target.removeprefix(full)}"]
    else:  # a name of the module in which the public name is defined
        targets = [name for name, entry in python.objects.items() if name.endswith(f".{target}") and entry.objtype != "module"]
    if len(targets) != 1:
        return None
    return python.resolve_xref(env, reference["refdoc"], app.builder, "obj", targets[0], reference, text)


def _inline_formula(page: HTML5Translator, node: Element) -> None:
    page.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _displayed_formula(page: HTML5Translator, node: Element) -> None:
    page.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Change six things that Sphinx does by default.

    - formulas become MathML;
    - the pages of modules are found by links and by the search, not in the navigation;
    - napoleon (priority 500) must not take the words before a colon in an attribute's docstring for its type;
    - the empty line at the end of an example is there for doctest only;
    - type aliases and the values of long constants fill screens;
    - public names are documented as names of the package.
    """
    app.add_html_math_renderer("mathml", (_inline_formula, None), (_displayed_formula, None))
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-skip-member", _is_on_its_own_page)
    app.connect("doctree-read", _without_navigation, priority=100)  # before the navigation is collected
    app.connect("missing-reference", _documented_as)
    app.connect("autodoc-process-docstring", _remember, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)
    app.connect("autodoc-process-signature", _name_aliases)
    app.connect("doctree-read", _trim)
    app.connect("doctree-read", _shorten)
