"""Figures that notebooks show."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure that a notebook shows once, as the value of a cell.

    The figures of this package are made without pyplot, which would keep all of them in memory.  So pyplot does not show them
    at the end of a cell, and without it a notebook would print only their size.  Where ``%matplotlib inline`` is active, its
    own rule for figures applies, also once.
    """

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, in the size and the resolution for which it was made."""
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()
