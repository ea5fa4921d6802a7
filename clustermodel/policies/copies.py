"""Copies of policies: one that has run is copied, pickled and identified as one that has not.

A run has no use for what an earlier one has left.  That may hold compiled objects, which cannot be copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dis import get_instructions
from functools import cache


class CopiedWithoutRun:
    """Base class of policies whose copies, pickles and run keys leave out what ``begin`` alone sets.

    Which attributes those are is read from the code of ``begin``: a list beside it would be forgotten.
    """

    def __getstate__(self) -> dict[str, object]:
        """Return the attributes without those of a run."""
        kind: type = type(self)
        of_a_run = _set_by_begin(kind)
        return {name: value for name, value in vars(self).items() if name not in of_a_run}


@cache
def _set_by_begin(kind: type) -> frozenset[str]:
    return frozenset(_set_by("begin", kind)) - frozenset(_set_by("__init__", kind))


def _set_by(method: str, kind: type) -> Iterator[str]:
    """Yield the names of the attributes that a method sets, those of its base classes included."""
    for base in kind.__mro__:
        if (code := getattr(vars(base).get(method), "__code__", None)) is not None:
            yield from (instruction.argval for instruction in get_instructions(code) if instruction.opname == "STORE_ATTR")
