"""Figures as files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from matplotlib.figure import Figure

from clustermodel.errors import OutputError
from clustermodel.output_files import replacing


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Write ``figure`` to ``path``; the suffix chooses the format.

    Raises:
        OutputError: the file cannot be written, or the format is unknown.
    """
    suffix = Path(path).suffix
    known = sorted(figure.canvas.get_supported_filetypes())
    if suffix[1:].lower() not in known:
        raise OutputError(f"{path}: format {suffix!r} is unknown; known are {', '.join(known)}")
    with replacing(path) as file:
        figure.savefig(file, format=suffix[1:].lower(), dpi=150)
