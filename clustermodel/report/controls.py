"""Lists from which a reader of the page chooses, as plain HTML: they follow the page's colours, and keys work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Control(NamedTuple):
    """A list of options with a label."""

    name: str
    """Of the element."""
    title: str
    options: Sequence[tuple[str, str]]
    """Value and text of each option."""
    value: str
    """The option that is chosen first."""
