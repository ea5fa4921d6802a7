"""What the page's plots share: size, tools, line styles, colours that read on light and dark pages, and the page's scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bokeh.models import CustomJS
from bokeh.plotting import figure

from clustermodel.figures.style import BLACK, Style, policy_styles

PAGE: Final = Path(__file__).with_name("page")
"""Folder of the page's template, style sheet and scripts."""
INK: Final = "ink"
"""Tag of glyphs whose lines are black on a light page and white on a dark one."""
GROUND: Final = "ground"
"""Tag of plots with a background of their own."""
LEGEND_ITEM: Final = 24
"""Height of an entry of a legend, pixels."""
_GREY: Final = "#808080"
"""Instead of black, which a dark page hides."""
_DASHES: Final = {"-": "solid", (4, 1.5): "dashed", (1, 1.5): "dotted", (5, 1.5, 1, 1.5): "dashdot"}
_MARKERS: Final = {
    "o": "circle",
    "s": "square",
    "^": "triangle",
    "v": "inverted_triangle",
    "D": "diamond",
    "x": "x",
    "X": "cross",
}


def new_plot(name: str, height: int, **options: Any) -> Any:
    """Return an empty plot as wide as its place on the page, with the page's background.

    Args:
        name: by which scripts and tests find it.
        height: pixels.
        options: of Bokeh's ``figure``.
    """
    return figure(
        name=name,
        height=height,
        sizing_mode="stretch_width",
        background_fill_color=None,
        border_fill_color=None,
        min_border_left=45,
        **options,
    )


def script(name: str, arguments: Any) -> CustomJS:
    """Return a script of the page as a callback.

    Args:
        name: of its file.
        arguments: a dictionary of models and data, described by a ``TypedDict`` beside the caller.
    """
    return CustomJS(args=dict(arguments), code=(PAGE / name).read_text(encoding="utf-8"), module=True)


def page_styles(labels: list[str]) -> dict[str, Style]:
    """Return the styles of levels, those of policies as in all figures."""
    styles = policy_styles(labels)
    return {label: style._replace(colour=_GREY) if style.colour == BLACK else style for label, style in styles.items()}


def dash(style: Style) -> str:
    """Return Bokeh's name of a line style."""
    return _DASHES[style.line if isinstance(style.line, str) else style.line[1]]


def marker(style: Style) -> str:
    """Return Bokeh's name of a marker."""
    return _MARKERS.get(style.marker, "circle")
