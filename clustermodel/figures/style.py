"""The style of figures: colours, line styles, markers and hatches of policies, safe for colour-blind readers; labels; files.

Policies that the papers do not compare share a colour, and differ in line style and marker in a common figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import count, product
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple

from clustermodel.errors import OutputError, SpecificationError
from clustermodel.errors import visible as written_out
from clustermodel.measure.metrics import quantity
from clustermodel.measure.quantities import column_heading
from clustermodel.policies.registry import NAMES_OF_PAPERS
from clustermodel.text.files import replacing

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
VERMILLION, YELLOW, SKY, BLACK = "#D55E00", "#F0E442", "#56B4E9", "#000000"
PALETTE: Final = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, BLACK)
"""M. Okabe and K. Ito, Color Universal Design (2008), without the yellow, which is too light for lines."""

LineStyle = str | tuple[int, tuple[float, ...]]  # a name, or an offset and the lengths of dashes and gaps, in points


class Style(NamedTuple):
    """The look of a policy; the hatch is that of its bars."""

    colour: str
    line: LineStyle = "-"
    marker: str = "o"
    hatch: str = ""


_PATTERNS: Final[tuple[tuple[LineStyle, str], ...]] = (
    ("-", ""), ((0, (4, 1.5)), "///"), ((0, (1, 1.5)), "..."), ((0, (5, 1.5, 1, 1.5)), "xxx"),
)  # fmt: skip
_MARKERS: Final = ("h", "<", ">", "p", "*", "8", "d")  # of policies that have no style of their own
_POLICIES: Final = {
    "fcfs": Style(BLACK, marker="x"), "easy": Style(BLUE), "conservative": Style(ORANGE, marker="s"),
    "slack": Style(GREEN, marker="^"), "pv-easy": Style(VERMILLION, marker="v"), "ss": Style(SKY, marker="H"),
    "server-filling": Style(GREEN, marker="D"), "cheap-hours": Style(GREEN, marker="X"),
    "easy:predictor=last": Style(PURPLE, marker="P"),
    "easy:backfill_order=shortest": Style(SKY, marker="X"),
    # Zhang et al. 2003
    "bf": Style(ORANGE, marker="D"), "gs": Style(PURPLE), "bgs": Style(GREEN), "mgs": Style(VERMILLION), "mbgs": Style(SKY),
    "adaptive": Style(BLUE, marker="D"),
    # Preemptive schedulers of GPU clusters
    "srtf": Style(BLUE, marker="v"), "srsf": Style(SKY, marker="<"), "las": Style(VERMILLION, marker="s"),
    "fifo-preempt": Style(BLACK, marker="D"), "max-min": Style(GREEN, marker="s"),
    "finish-time-fair": Style(PURPLE, marker="D"),
    # Malleable jobs
    "equipartition": Style(GREEN, marker="P"), "shrink-to-admit": Style(VERMILLION, marker="X"),
    "expand": Style(PURPLE, marker="^"),
    # Perkovic & Keleher 2000; D is conservative backfilling
    "D": Style(ORANGE, marker="s"), "P": Style(SKY, marker="P"), "R": Style(BLUE, marker="X"),
    "1/L": Style(BLACK, marker="^"), "P/L": Style(PURPLE, marker="v"), "R/L": Style(VERMILLION, marker="D"),
}  # fmt: skip
_LEVEL: Final = re.compile(r"(m?b?gs)(?:-|:mpl=)(\d+)", re.IGNORECASE)  # a multiprogramming level: bgs:mpl=2, BGS-2
_PATTERN_OF_LEVEL: Final = {2: 2, 3: 1, 4: 3}  # others are solid, as 5, with which Zhang et al. 2003 have their best results

HATCHES: Final = {
    "replica": ("////", "replica in another row"), "saved": ("..", "work saved"), "lost": ("xx", "work discarded"),
    "failed": ("---", "ended by the failure of a node"),
    "partly": ("oo", "executed for part of this time; the log does not show when"),
}  # fmt: skip
"""Hatches of kinds of placements, and what they say."""


def hatch_of(kind: str) -> str | None:
    """Return the hatch of a kind of placements, ``None`` without one."""
    return HATCHES[kind][0] if kind in HATCHES else None


def _own(label: str) -> Style | None:
    """Return the style of a label in every figure, ``None`` if it has no style of its own."""
    policy, comma, _ = label.partition(", ")
    if comma:
        return _own(policy)
    if match := _LEVEL.fullmatch(label):
        line, hatch = _PATTERNS[_PATTERN_OF_LEVEL.get(int(match[2]), 0)]
        return _POLICIES[match[1].lower()]._replace(line=line, hatch=hatch)
    if label.endswith("-NG"):  # Perkovic & Keleher 2000: no guarantees
        criterion = _POLICIES.get(label.removesuffix("-NG"))
        return criterion and criterion._replace(line=_PATTERNS[1][0], hatch=_PATTERNS[1][1])
    lower = label.lower()
    return _POLICIES.get(label) or _POLICIES.get(NAMES_OF_PAPERS.get(lower, lower))


def _family(label: str) -> str:
    """Return what policies of one colour have in common: the policy without its level, guarantees and class of jobs."""
    label = label.partition(", ")[0]
    if match := _LEVEL.fullmatch(label):
        return match[1].lower()
    lower = label.removesuffix("-NG").lower()
    return NAMES_OF_PAPERS.get(lower, lower)


def policy_styles(labels: Sequence[str], *, distinct: bool = False, separate: bool = False) -> dict[str, Style]:
    """Return the styles of the policies of one figure, by label, which may be any text.

    The package's policies have the same colour and marker in every figure, also under the papers' names (``"EASY-Last"``).
    Multiprogramming levels and ``-NG`` have line styles; ``"BGS-2, large jobs"`` looks like ``"BGS-2"``.  Other policies take
    the remaining colours.  Of two policies with the same colour the later one has another line style and hatch.

    In a ``distinct`` figure, a colour has one meaning: of two different policies with the same colour, the later one takes a
    colour that is left over, if there is one.  With ``separate``, levels of one policy do so too, and their lines are solid.
    """
    known = {label: _own(label) for label in labels}
    left = [colour for colour in PALETTE if colour not in {own.colour for own in known.values() if own}]
    first: dict[str, str] = {}  # what a colour means
    for label, own in known.items():
        meaning = label if separate else _family(label)
        if own and (distinct or separate) and first.setdefault(own.colour, meaning) != meaning and left:
            first[left[0]] = meaning
            known[label] = own._replace(colour=left.pop(0))
    if separate:
        known = {label: own and own._replace(line="-", hatch="") for label, own in known.items()}
    others = product(_PATTERNS, left or PALETTE)
    styles: dict[str, Style] = {}
    for number, (label, own) in enumerate(known.items()):
        style = own
        if style is None:
            (line, hatch), colour = next(others, (_PATTERNS[0], (*left, *PALETTE)[0]))
            style = Style(colour, line, _MARKERS[number % len(_MARKERS)], hatch)
        used = {earlier.line for earlier in styles.values() if earlier.colour == style.colour}
        if style.line in used:
            line, hatch = next((pattern for pattern in _PATTERNS if pattern[0] not in used), (style.line, style.hatch))
            style = style._replace(line=line, hatch=hatch)
        styles[label] = style
    return styles


def policy_colour(label: str) -> str:
    """Return the colour of a policy in every figure; the first of the palette for a policy without a style of its own."""
    return policy_styles([label])[label].colour


def job_colour(job: int) -> tuple[float, float, float]:
    """Return the colour of a job, which depends on its id alone: its hue in a Gantt chart, in one of three shades."""
    red, green, blue = to_rgb(PALETTE[job % 6])
    kept, white = ((1.0, 0.0), (0.6, 0.0), (0.6, 0.4))[job // 6 % 3]
    return kept * red + white, kept * green + white, kept * blue + white


def ink(colour: Any) -> str:
    """Return the colour of text on a colour."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "black"


def short(text: object, longest: int = 48) -> str:
    """Return text on one line: spaces and line ends become single spaces, and a long text loses its middle."""
    shown = " ".join(str(text).split())
    half = longest // 2
    return shown if len(shown) <= longest else f"{shown[:half]} … {shown[-half + 3 :]}"


def plain(text: object, longest: int = 48) -> str:
    """Return short text that matplotlib draws literally: dollars start no formula, no underscore hides a legend entry."""
    shown = short(text, longest).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def visible(text: object) -> str:
    """Return text for a page, with invisible characters written out; line ends and joiners stay."""
    return written_out(str(text), keep="\n\u200c\u200d")  # zero-width joiners, of some scripts and of emoji


def distinct(texts: Sequence[str]) -> list[str]:
    """Return texts with numbers on those that are equal, so that all differ."""
    made: list[str] = []
    for text in texts:
        numbered = (f"{text} ({number})" for number in count(1))
        made.append(text if texts.count(text) == 1 else next(name for name in numbered if name not in (*texts, *made)))
    return made


def legend_labels(texts: Sequence[object], longest: int = 48) -> list[str]:
    """Return texts as :func:`plain` shows them, with numbers on those that would look the same."""
    return distinct([plain(text, longest) for text in texts])


def legend_below(figure: Figure, handles: Mapping[str, Any], *, title: str = "", longest: int = 48) -> None:
    """Add a legend of artists by name below a figure, which becomes taller by it; a tuple of artists has one entry."""
    labels = legend_labels(list(handles), longest)
    fit = int(10 * figure.get_figwidth()) // (max(map(len, labels)) + 5)  # ten characters an inch
    columns = max(1, min(fit, len(labels)))
    height = 0.15 + 0.22 * (-(-len(labels) // columns) + bool(title))
    figure.set_figheight(figure.get_figheight() + height)
    look: Any = {"loc": "outside lower center", "handler_map": {tuple: HandlerTuple(ndivide=1, pad=0)}}
    figure.legend(list(handles.values()), labels, title=title or None, ncols=columns, **look)
    if isinstance(figure, NotebookFigure):
        figure.entries, figure.legend_height = dict(handles), height


def add_to_legend(figure: Figure, handles: Mapping[str, Any]) -> None:
    """Add entries to the legend below a figure, for what has been drawn in addition, such as published curves."""
    assert isinstance(figure, NotebookFigure)
    (legend,) = figure.legends
    title = legend.get_title().get_text()
    legend.remove()
    figure.set_figheight(figure.get_figheight() - figure.legend_height)
    legend_below(figure, {**figure.entries, **handles}, title=title)


def axis_label(column: str) -> str:
    """Return the axis label of a measure: its name and unit."""
    return plain(quantity(column).label(), longest=90)


def factor_label(name: str) -> str:
    """Return the axis label of a factor: its name and the unit that the name ends in, also if a measure has the same name."""
    return plain(column_heading(name), longest=90)


def title_of(run: Result) -> str:
    """Return policy and workload of a run for a title."""
    return f"{plain(run.scenario.label)} on {plain(run.scenario.workload_name)}"


def require_drawable(run: Result, figure: str) -> None:
    """Refuse a run in which no job ran."""
    if not run.records.finished.any():
        raise SpecificationError(f"{figure}: no job ran; there is nothing to draw")


class NotebookFigure(Figure):
    """A figure that a notebook shows once, as the value of a cell: pyplot, which would keep all figures, is not used."""

    entries: Mapping[str, Any]
    """Of the legend below the figure."""
    legend_height: float
    """In inches."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure, its size in inches, and its axes; options are those of ``Figure.subplots``."""
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write ``figure`` to ``path``; the suffix chooses the format.  Raises an ``OutputError``."""
    suffix = Path(path).suffix
    known = sorted(figure.canvas.get_supported_filetypes())
    if suffix[1:].lower() not in known:
        raise OutputError(f"{path}: format {suffix!r} is unknown; known are {', '.join(known)}")
    with replacing(path) as file:
        figure.savefig(file, format=suffix[1:].lower(), dpi=150)
