"""Every table and figure of the five papers beside ours, in one command.

    python scenarios/papers.py

makes the pictures and the page ``docs/papers.md`` from the runs that are stored beside the documentation, and from simulations
of a handful of jobs, in about a minute.  Nothing long is run; the page says with which command each study is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure
from paper_entries import DOCS, PICTURES, Entry, page_of
from papers_backfilling import ENTRIES_003
from papers_gang import ENTRIES_002
from papers_pv_easy import ENTRIES_004
from papers_slack import ENTRIES_000, ENTRIES_001
from PIL import Image
from reporting import write_into

ENTRIES: Final = {"000": ENTRIES_000, "001": ENTRIES_001, "002": ENTRIES_002, "003": ENTRIES_003, "004": ENTRIES_004}
"""By paper, figures first, in the order of their numbers."""
DOTS_PER_INCH: Final = 90
COLOURS: Final = 128
"""Of a picture: enough for bands over each other, and a third of the size."""


def save(picture: Figure, path: Path) -> None:
    """Write a picture as a small PNG."""
    drawn = BytesIO()
    picture.savefig(drawn, dpi=DOTS_PER_INCH, format="png")
    Image.open(drawn).convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT).save(path, optimize=True)


def draw(entries: Sequence[Entry], folder: Path) -> None:
    """Write the pictures of a paper."""
    for entry in entries:
        if entry.picture:
            save(entry.picture(), folder / f"{entry.name}.png")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--papers", nargs="+", choices=ENTRIES, default=list(ENTRIES), metavar="NUMBER", help="which papers (default: all)")
    add("--pictures", type=Path, default=PICTURES, metavar="FOLDER", help="where the pictures go (default: %(default)s)")
    add("--no-pictures", action="store_true", help="only the page")
    add("--into", type=Path, default=DOCS / "papers.md", metavar="PATH", help="the page (default: %(default)s)")
    options = parser.parse_args(argv)
    for paper in options.papers:
        if not options.no_pictures:
            options.pictures.mkdir(parents=True, exist_ok=True)
            draw(ENTRIES[paper], options.pictures)
        write_into(options.into, f"papers {paper}", page_of(ENTRIES[paper]))
        print(f"{paper}: {len(ENTRIES[paper])} tables and figures")


if __name__ == "__main__":
    main()
