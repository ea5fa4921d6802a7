"""How policies look in figures: one place for colours, line styles, markers and hatches, safe for colour-blind eyes.

There are more policies than colours that all eyes can tell apart, so policies that are not compared with each other in the
papers share some; line styles and markers tell them apart where they do meet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple

from clustermodel.errors import visible as written_out

BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
VERMILLION: Final = "#D55E00"
SKY: Final = "#56B4E9"
BLACK: Final = "#000000"
PALETTE: Final = (BLUE, ORANGE, GREEN, PURPLE, VERMILLION, SKY, BLACK)
"""M. Okabe and K. Ito, Color Universal Design (2008), without the yellow, which is too light for lines."""

LineStyle = str | tuple[int, tuple[float, ...]]
"""As matplotlib has it: a name, or an offset and lengths of dashes and gaps in points."""


class Style(NamedTuple):
    """How a policy is drawn."""

    colour: str
    line: LineStyle = "-"
    marker: str = "o"
    hatch: str = ""
    """Of bars."""


_DASHED: Final[LineStyle] = (0, (4, 1.5))
_DOTTED: Final[LineStyle] = (0, (1, 1.5))
_DASH_DOT: Final[LineStyle] = (0, (5, 1.5, 1, 1.5))
_PATTERNS: Final[tuple[tuple[LineStyle, str], ...]] = (("-", ""), (_DASHED, "///"), (_DOTTED, "..."), (_DASH_DOT, "xxx"))
"""Line style and hatch that go together."""
_MARKERS: Final = ("h", "<", ">", "p", "*", "8", "d")
"""Of policies that have no style of their own."""

_POLICIES: Final = {
    "fcfs": Style(BLACK, marker="x"),
    "easy": Style(BLUE),
    "conservative": Style(ORANGE, marker="s"),
    "slack": Style(GREEN, marker="^"),
    "pv-easy": Style(VERMILLION, marker="v"),
    "ss": Style(SKY, marker="H"),
    "easy:predictor=last": Style(PURPLE, marker="P"),
    "easy:backfill_order=shortest": Style(SKY, marker="X"),
    # 002
    "bf": Style(ORANGE, marker="D"),
    "gs": Style(PURPLE),
    "bgs": Style(GREEN),
    "mgs": Style(VERMILLION),
    "mbgs": Style(SKY),
    "adaptive": Style(BLUE, marker="D"),
    # 003: D is conservative backfilling
    "D": Style(ORANGE, marker="s"),
    "P": Style(SKY, marker="P"),
    "R": Style(BLUE, marker="X"),
    "1/L": Style(BLACK, marker="^"),
    "P/L": Style(PURPLE, marker="v"),
    "R/L": Style(VERMILLION, marker="D"),
}
_NO_GUARANTEES: Final = "-NG"
_PAPERS_NAMES: Final = {"easy-last": "easy:predictor=last", "sjf-easy": "easy:backfill_order=shortest", "fcfs-easy": "easy"}
_LEVEL: Final = re.compile(r"(m?b?gs)(?:-|:mpl=)(\d+)", re.IGNORECASE)
"""A gang scheduler with its multiprogramming level, in our words or as in 002: ``bgs:mpl=2``, ``BGS-2``."""
_PATTERN_OF_LEVEL: Final = {2: 2, 3: 1, 4: 3}
"""Which of the patterns; solid for other levels, among them 5, with which 002 has its best results."""


def _own(label: str) -> Style | None:
    """Return the style that a label has in every figure, if there is one."""
    policy, comma, _ = label.partition(", ")
    if comma:
        return _own(policy)
    if found := _LEVEL.fullmatch(label):
        base = _POLICIES[found[1].lower()]
        line, hatch = _PATTERNS[_PATTERN_OF_LEVEL.get(int(found[2]), 0)]
        return base._replace(line=line, hatch=hatch)
    if label.endswith(_NO_GUARANTEES):
        criterion = _POLICIES.get(label.removesuffix(_NO_GUARANTEES))
        return criterion and criterion._replace(line=_PATTERNS[1][0], hatch=_PATTERNS[1][1])
    lower = label.lower()
    return _POLICIES.get(label) or _POLICIES.get(_PAPERS_NAMES.get(lower, lower))


def policy_styles(labels: Sequence[str]) -> dict[str, Style]:
    """Return how the policies of one figure are drawn, by label.

    Our policies have the same colour and marker in every figure, also under the papers' names (``"BGS-2"``, ``"EASY-Last"``);
    a multiprogramming level and 003's ``-NG`` have line styles, and ``"BGS-2, large jobs"`` looks like ``"BGS-2"``.  Others,
    and ours with other parameters, take the colours that are left over, in the order of ``labels``.  Where two policies of one
    figure have the same colour, the later one has another line style and hatch.

    Args:
        labels: of the policies, as :attr:`Scenario.label` has them; any other text will do.
    """
    known = {label: _own(label) for label in labels}
    taken = [one.colour for one in known.values() if one]
    free = [colour for colour in PALETTE if colour not in taken] or list(PALETTE)
    others = product(_PATTERNS, free)
    styles: dict[str, Style] = {}
    for number, (label, own) in enumerate(known.items()):
        style = own
        if style is None:
            (line, hatch), colour = next(others, (_PATTERNS[0], free[0]))
            style = Style(colour, line, _MARKERS[number % len(_MARKERS)], hatch)
        used = {one.line for one in styles.values() if one.colour == style.colour}
        if style.line in used:
            line, hatch = next((pattern for pattern in _PATTERNS if pattern[0] not in used), (style.line, style.hatch))
            style = style._replace(line=line, hatch=hatch)
        styles[label] = style
    return styles


def policy_colour(label: str) -> str:
    """Return the colour of a policy in every figure, or the palette's first where it has none of its own."""
    return policy_styles([label])[label].colour


def job_colour(job: int) -> tuple[float, float, float]:
    """Return the colour of a job: always the same for an id, the hue that it has in a Gantt chart, in one of three shades."""
    red, green, blue = to_rgb(job_hue(job))
    kept, white = ((1.0, 0.0), (0.6, 0.0), (0.6, 0.4))[job // 6 % 3]
    return kept * red + white, kept * green + white, kept * blue + white


def job_hue(job: int) -> str:
    """Return the hue of a job, one of six."""
    return PALETTE[job % 6]


# Text that is shown as it is.


_LONGEST: Final = 48
"""Characters of a label that are shown."""
_JOINS: Final = "\n\u200c\u200d"
"""Line ends, and what joins or parts letters where they are written so, and pictures."""


def short(text: object, longest: int = _LONGEST) -> str:
    """Return text on one line: spaces and line ends become single spaces, and of a long text the middle is left out."""
    shown = " ".join(str(text).split())
    if len(shown) > longest:
        half = longest // 2
        shown = f"{shown[:half]} … {shown[-half + 3 :]}"
    return shown


def plain(text: object, longest: int = _LONGEST) -> str:
    """Return text that matplotlib shows as it is: no mathematics between dollars, nothing hidden for its first character.

    It is on one line, and the middle of a text of more than ``longest`` characters is left out, see :func:`short`.
    """
    shown = short(text, longest).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def visible(text: object) -> str:
    """Return text for a page: what is not seen, or acts on other letters, is written out; line ends and joiners stay."""
    return written_out(str(text), keep=_JOINS)


def legend_labels(texts: Sequence[object]) -> list[str]:
    """Return texts as :func:`plain` shows them, numbered where they would look the same."""
    shown = [plain(text) for text in texts]
    return [f"{text} ({shown[: place + 1].count(text)})" if shown.count(text) > 1 else text for place, text in enumerate(shown)]


_PER_INCH: Final = 10
"""Characters of a legend."""


def legend_below(figure: Figure, handles: Mapping[str, Any], *, title: str = "") -> None:
    """Add a legend under a figure, which becomes as much taller.

    Args:
        figure: with a constrained layout.
        handles: what stands for each name; several artists where a tuple does.
        title: of the legend.
    """
    labels = legend_labels(list(handles))
    fit = int(_PER_INCH * figure.get_figwidth()) // (max(map(len, labels)) + 5)
    columns = max(1, min(fit, len(labels)))
    figure.set_figheight(figure.get_figheight() + 0.15 + 0.22 * (-(-len(labels) // columns) + bool(title)))
    figure.legend(
        list(handles.values()),
        labels,
        title=title or None,
        loc="outside lower center",
        ncols=columns,
        handler_map={tuple: HandlerTuple(ndivide=1, pad=0)},
    )
