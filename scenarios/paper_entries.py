"""What a table or figure of a paper becomes on the page of the papers beside ours: what it says, ours, and the difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from matplotlib.figure import Figure
from reporting import Grid, Runs, markdown, read

DOCS: Final = Path(__file__).parents[1] / "docs"
STORED: Final = DOCS / "figures"
PICTURES: Final = STORED / "papers"
CTC: Final = "--trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430"
KTH: Final = "--trace KTH-SP2-1996-2.2.swf.gz"
BLUE: Final = "--trace SDSC-BLUE-2000-4.2-cln.swf.gz --nodes 1152"


class Entry(NamedTuple):
    """One table or figure of a paper."""

    paper: str
    """The number that its file's name begins with."""
    kind: str
    """``"table"`` or ``"figure"``."""
    number: int
    title: str
    says: str
    """What the paper says or shows, in a few words; its numbers where its text has them."""
    ours: str = ""
    """What is seen in ours, in a few words."""
    grid: Callable[[], Grid | list[Grid]] | None = None
    """Makes the numbers to show, a table or several."""
    picture: Callable[[], Figure] | None = None
    alt: str = ""
    """What can be seen in the picture."""
    differs: str = ""
    """Where ours differ, and why."""
    more: str = ""
    """The page and the heading that has the details."""
    rerun: str = ""
    """The command, or commands, that run it again from the beginning; empty if :mod:`papers` itself does."""
    with_picture_of: int = 0
    """The figure with which this one shares a picture, if it has none of its own."""
    impossible: str = ""
    """Why there is nothing of ours."""

    @property
    def name(self) -> str:
        """The name of the picture's file, without its suffix."""
        return f"{self.paper}_{self.kind}_{self.number:02d}"


@cache
def stored(name: str) -> Runs:
    """Return a stored table of runs."""
    return read(STORED / f"{name}.json")


def rows_of(grid: Grid, *labels: str) -> Grid:
    """Return a table with those of its rows that begin with these cells."""
    return grid._replace(rows=[row for row in grid.rows if row[0] in labels])


def as_markdown(entry: Entry) -> str:
    """Return the section of an entry."""
    parts = [f"### {entry.paper}, {entry.kind} {entry.number}: {entry.title}", f"**The paper.**  {entry.says}"]
    if entry.impossible:
        parts.append(f"**Not made.**  {entry.impossible}")
    else:
        link = f"  [Details]({entry.more})." if entry.more else ""
        parts.append(f"**Ours.**  {entry.ours}{link}")
    if entry.picture:
        parts.append(f"![{entry.alt}](figures/papers/{entry.name}.png)")
    if entry.grid:
        shown = entry.grid()
        parts.append(markdown([shown] if isinstance(shown, Grid) else shown).rstrip())
    if entry.differs:
        parts.append(f"**Where we differ.**  {entry.differs}")
    if entry.rerun:
        parts.append(f"```console\n$ {entry.rerun}\n```")
    return "\n\n".join(parts)


def page_of(entries: Sequence[Entry]) -> str:
    """Return the sections of a paper."""
    return "\n\n".join(map(as_markdown, entries)) + "\n"
