"""Nodes as specifications name them: a text as ``"0-59,62"``, shares of a machine, or a sequence of numbers."""

import re
from collections.abc import Sequence
from typing import Final

import clustermodel.validation as check
from clustermodel.machine.node_set import from_members, text, union
from clustermodel.validation import require


def bounds_of(field: str, nodes: object) -> tuple[int, ...]:
    """Return nodes as ranges, (first, after the last, ...)."""
    allowed = "they must be a text as '0-59,62', 'all' or '0%-80%', or numbers from 0 on"
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
    """Return the same nodes as a text, ``"0-59,62"``; shares stay as they are until the machine is known."""
    if isinstance(nodes, str) and (shares := _shares(nodes)):
        return ",".join("all" if share == _ALL else "{:g}%-{:g}%".format(*share) for share in shares)
    return text(bounds_of(field, nodes)).replace(" ", ",")


def of_machine(field: str, nodes: str, machine_nodes: int) -> str:
    """Return shares of a machine of so many nodes as a text of its nodes, ``"0-47"`` of ``"0%-80%"``; other nodes as they are.

    A share ends before the node that the next one, with the same number as its beginning, begins with.
    """
    if not (shares := _shares(nodes)):
        return nodes
    bounds: tuple[int, ...] = ()
    for low, high in shares:
        first, end = (int(machine_nodes * share / 100 + 0.5) for share in (low, high))
        must = f"each share must be at least one of {machine_nodes:,} nodes"
        require(first < end, field, nodes, must)
        bounds = union(bounds, (first, end))
    return text(bounds).replace(" ", ",")


_ALL: Final = (0.0, 100.0)
_SHARE: Final = re.compile(r"\s*(?:all|(\d{1,3}(?:\.\d{1,9})?)%\s*-\s*(\d{1,3}(?:\.\d{1,9})?)%)\s*", re.ASCII)


def _shares(nodes: str) -> list[tuple[float, float]]:
    """Return the shares of a machine that a text names, in per cent; nothing if it does not name shares alone."""
    found = [_SHARE.fullmatch(part) for part in nodes.split(",")]
    shares = [_ALL if match[1] is None else (float(match[1]), float(match[2])) for match in found if match is not None]
    return shares if len(shares) == len(found) and all(0 <= low < high <= 100 for low, high in shares) else []
