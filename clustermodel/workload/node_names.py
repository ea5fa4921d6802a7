"""Node names of accounting logs: Slurm's ``cn[01-03,07],login1`` and the hosts of PBS."""

from __future__ import annotations

import re
from typing import Final

_MOST_NODES: Final = 100_000
_RANGE: Final = re.compile(r"(\d{1,9})-(\d{1,9})")


def node_names(text: str) -> list[str]:
    """Return the names of Slurm's node list; a list that cannot be read, or is longer than 100,000 names, gives none."""
    names: list[str] = []
    for part in _parts(text):
        expanded = _expanded(part)
        if len(names) + len(expanded) > _MOST_NODES:
            return []
        names += expanded
    return names


def _parts(text: str) -> list[str]:
    """Split a node list at the commas outside brackets."""
    if "[" not in text:
        return [name for name in text.split(",") if name]
    return [part for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text) if part]


def _expanded(part: str) -> list[str]:
    """Return the names of ``rack[1-2]node[01-10,15]``."""
    prefixes = [""]
    for literal, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
        if literal:
            prefixes = [prefix + literal for prefix in prefixes]
            continue
        numbers = [number for one in ranges.split(",") for number in _numbers(one)]
        if len(prefixes) * len(numbers) > _MOST_NODES:
            return []
        prefixes = [prefix + number for prefix in prefixes for number in numbers]
    return prefixes


def _numbers(text: str) -> list[str]:
    found = _RANGE.fullmatch(text.strip())
    if not found:
        return [text.strip()]
    low, high = int(found[1]), int(found[2])
    if not low <= high <= low + _MOST_NODES:
        return []
    return [str(number).zfill(len(found[1])) for number in range(low, high + 1)]
