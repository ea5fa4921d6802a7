"""Nodes as specifications name them: a text as ``"0-59,62"``, or a sequence of numbers."""

import re
from collections.abc import Sequence

import clustermodel.validation as check
from clustermodel.machine.node_set import from_members, text, union
from clustermodel.validation import require


def bounds_of(field: str, nodes: object) -> tuple[int, ...]:
    """Return nodes as ranges, (first, after the last, ...)."""
    allowed = "they must be a text as '0-59,62', or numbers from 0 on"
    if not isinstance(nodes, str):
        require(isinstance(nodes, Sequence), field, nodes, allowed)
        assert isinstance(nodes, Sequence)
        require(len(nodes), field, nodes, allowed)
        return from_members([check.require_whole(field, number, at_least=0) for number in nodes])
    bounds: tuple[int, ...] = ()
    for part in nodes.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part, re.ASCII)
        require(match, field, nodes, allowed)
        assert match is not None
        low, last = int(match[1]), int(match[2] or match[1])
        bounds = union(bounds, (low, last + 1) if low <= last else ())
    require(bounds, field, nodes, allowed)
    return bounds


def ranges_of(field: str, nodes: object) -> str:
    """Return the same nodes as a text, ``"0-59,62"``."""
    return text(bounds_of(field, nodes)).replace(" ", ",")
