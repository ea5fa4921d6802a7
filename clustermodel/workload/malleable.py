"""Which jobs of a workload are malleable, between which numbers of nodes, and what a resize costs them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

import numpy as np

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.errors import refused
from clustermodel.text.key_values import values_by_field
from clustermodel.ticks import to_ticks
from clustermodel.validation import LARGEST_WHOLE, require, require_whole, seconds_fields, share, whole_fields
from clustermodel.workload.job import LEAST, MALLEABLE, MOST, RESIZE
from clustermodel.workload.transforms import JobFilter

_MULTIPLE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)x")
_SHORT: Final = {"min": LEAST, "max": MOST}
"""Names of fields in a text."""
_INTERVALS: Final = ("window_s", "nodes")


@dataclass(frozen=True, kw_only=True, slots=True)
class Malleable(JobFilter):
    """Malleable jobs: which jobs, their smallest and largest sizes, and the cost of a resize; by default all jobs.

    >>> from clustermodel import Malleable
    >>> rule = Malleable(share=0.3, users=["ann"], min_nodes="0.5x", max_nodes="2x")
    >>> rule == Malleable.from_text("0.3,users=ann,min=0.5x,max=2x")
    True

    The fields of :class:`~clustermodel.workload.transforms.JobFilter` say of which jobs the ``share`` is malleable: of those of
    some users, of those that ask for 4 to 64 nodes (``nodes=(4, 64)``).  Whether a job belongs to the share depends only on the
    seed and the job's number, so every job that is malleable at a share of 0.3 is malleable at 0.6 too.

    A number of nodes is a whole number, or a multiple of those that each job asks for, as ``"0.5x"``, rounded to the nearest of
    at least 1.  The least number of a job is at most the nodes that it asks for, the largest at least these.
    """

    share: float = 1.0
    """Expected share of these jobs that is malleable."""
    seed: int = 1
    """Which jobs these are; another seed draws other jobs."""
    min_nodes: int | str | None = None
    """Least number of nodes; by default 1."""
    max_nodes: int | str | None = None
    """Largest number of nodes; by default as many as the machine has."""
    resize_s: float | None = None
    """Time of a resize, seconds; ``None``: the machine's."""

    def __post_init__(self) -> None:
        JobFilter.__post_init__(self)
        share("Malleable.share", self.share)
        whole_fields(self, "Malleable.", seed=0)
        seconds_fields(self, "Malleable.", "resize_s")
        for name, limit in ((LEAST, "at most"), (MOST, "at least")):
            value = getattr(self, name)
            if isinstance(value, str):
                multiple = _multiple(value)
                holds = multiple is not None and (0 < multiple <= 1 if name == LEAST else multiple >= 1)
                must = f"it must be a whole number, or a multiple of {limit} 1, as '{'0.5' if name == LEAST else '2'}x'"
                require(holds, f"Malleable.{name}", value, must)
            elif value is not None:
                object.__setattr__(self, name, require_whole(f"Malleable.{name}", value, at_least=1))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the rule of a text: ``"0.3,min=0.5x,max=64,seed=2,users=ann,bob,nodes=4-64,resize_s=60"``.

        What stands before the fields is the share; several users, accounts and so on are separated by commas too.
        """
        known = _SHORT | {name: name for name in cls.__dataclass_fields__ if name != "share"}
        several = known.keys() - {"seed", LEAST, MOST, "resize_s", *_INTERVALS}
        form = "write SHARE,key=value,key=value"
        fields = values_by_field("malleable", text, known, several, first="share", form=form)
        return cls(**{key: _value(key, values or [""]) for key, values in fields.items()})

    def belong(self, ids: IntArray) -> BoolArray:
        """Return which jobs, given by number, belong to the share; shape ``(jobs,)``."""
        if self.share in (0, 1):
            return np.full(len(ids), self.share == 1)
        key = self.seed.to_bytes(8, "big")
        drawn = (blake2b(job.to_bytes(8, "big", signed=True), digest_size=8, key=key).digest() for job in ids.tolist())
        belong: BoolArray = (np.frombuffer(b"".join(drawn), dtype=">u8") >> 11) * 2.0**-53 < self.share
        return belong

    def columns(self, nodes: IntArray) -> dict[str, IntArray]:
        """Return the columns of malleable jobs that ask for these numbers of nodes, those that this rule gives."""
        columns = {MALLEABLE: np.ones_like(nodes)}
        for name, of_both in ((LEAST, np.minimum), (MOST, np.maximum)):
            value = getattr(self, name)
            if value is not None:
                multiple = _multiple(value) if isinstance(value, str) else None
                wanted = value if multiple is None else np.maximum(1, np.rint(nodes * multiple))
                columns[name] = of_both(nodes, np.minimum(wanted, LARGEST_WHOLE)).astype(np.int64)
        if self.resize_s is not None:
            columns[RESIZE] = np.full_like(nodes, to_ticks(self.resize_s))
        return columns


def _multiple(text: str) -> float | None:
    match = _MULTIPLE.fullmatch(text)
    return None if match is None else float(match[1])


def _value(key: str, values: list[str]) -> Any:
    """Return a field of a rule that texts describe."""
    try:
        if key in _INTERVALS:
            low, _, high = values[0].partition("-")
            number = int if key == "nodes" else float
            return number(low), number(high or low)
        if key == "statuses":
            return [int(value) for value in values]
        if key in ("share", "resize_s"):
            return float(values[0])
        if key == "seed" or (key in (LEAST, MOST) and _multiple(values[0]) is None):
            return int(values[0])
    except ValueError:
        allowed = {
            "nodes": "LOW-HIGH, as 4-64",
            "window_s": "LOW-HIGH, seconds",
            LEAST: "a whole number, or a multiple as 0.5x",
        }
        allowed |= {MOST: "a whole number, or a multiple as 2x", "seed": "a whole number", "statuses": "whole numbers"}
        raise refused(f"malleable: {key}", ",".join(values), f"it must be {allowed.get(key, 'a number')}") from None
    return values[0] if key in (LEAST, MOST) else values
