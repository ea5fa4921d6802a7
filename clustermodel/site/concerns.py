"""Which limits of a site concern a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from clustermodel.site.limits import BITS, EACH, SUBJECTS
from clustermodel.site.site import Site

Facts: TypeAlias = Mapping[str, Mapping[int, str]]
"""What jobs have by the names of :data:`SUBJECTS`, then by job number."""


class Concern(NamedTuple):
    """A limit that concerns a job."""

    number: int
    """Of the limit."""
    key: tuple[str, ...]
    """With whose jobs it counts this one."""
    applies: int
    """:data:`BITS`: which of its amounts hold for the job; it is counted with jobs for which the others do."""


class Concerns:
    """Which limits of a site concern jobs, and which of these hold for them.

    Of a limit that both the QOS of the partition and that of the job have, the first one's holds; limits that yield to QOS
    hold where these have none of the kind (Slurm: Resource Limits, Hierarchy).
    """

    def __init__(self, site: Site, facts: Facts, default_partition: str | None = None) -> None:
        self._limits, self._facts, self._default_partition = site.limits, facts, default_partition
        self._qos_of = {partition: each.name for each in site.qos for partition in each.partitions}
        self._comes_first = frozenset(each.name for each in site.qos if each.over_partition_qos)
        self._known: dict[tuple[str | None, ...], list[Concern]] = {}  # by the facts of jobs

    def of(self, job: int) -> list[Concern]:
        """Return the limits that concern a job, by its number, and which of their amounts hold for it."""
        facts = tuple([names.get(job) for names in self._facts.values()])
        if (concerns := self._known.get(facts)) is None:
            concerns = self._known[facts] = self._of(dict(zip(self._facts, facts, strict=True)))
        return concerns

    def _of(self, facts: Mapping[str, str | None]) -> list[Concern]:
        """Return the same for jobs with these names."""
        partitions = (facts.get("partition") or self._default_partition or "").split(",")
        of_partitions = {self._qos_of.get(name.strip()) for name in partitions}
        order = [of_partitions.pop() if len(of_partitions) == 1 else None, facts.get("qos")]
        if order[1] in self._comes_first:
            order.reverse()
        keys = [self._key(number, facts, order) for number in range(len(self._limits))]
        concerns = [(number, *key) for number, key in enumerate(keys) if key is not None]
        first: dict[tuple[object, ...], int] = {}  # the QOS that sets a limit
        set_by_qos = set[tuple[str, str]]()
        for number, _, rank in concerns:
            if rank is not None:
                for name in self._limits[number].given:
                    what = self._what(number, name)
                    first[what] = min(first.get(what, rank), rank)
                    set_by_qos.add((name, self._limits[number].kind_of(name)))
        made = []
        for number, key_of, rank in concerns:
            limit, applies = self._limits[number], 0
            for name in limit.given:
                yields = limit.yields_to_qos is not None and (name, limit.yields_to_qos) in set_by_qos
                if not yields and (rank is None or first[self._what(number, name)] == rank):
                    applies |= BITS[name]
            made.append(Concern(number, key_of, applies))
        return made

    def _key(
        self, number: int, facts: Mapping[str, str | None], order: list[str | None]
    ) -> tuple[tuple[str, ...], int | None] | None:
        """Return with whose jobs a limit counts jobs, and where the QOS that it names stands in ``order``, if it names any.

        ``None``: the limit does not concern them.
        """
        limit, key = self._limits[number], list[str]()
        rank: int | None = None
        for name in SUBJECTS:
            if not (wanted := limit.names(name)):
                continue
            value = facts[name]
            if name == "qos":
                if wanted != (EACH,):
                    value = next((each for each in order if each is not None and each in wanted), None)
                rank = None if value is None else order.index(value)
            if value is None or (value not in wanted and wanted != (EACH,)):
                return None
            key.append(value if wanted == (EACH,) else "")
        return tuple(key), rank

    def _what(self, number: int, name: str) -> tuple[object, ...]:
        """Return what a limit limits, whatever its QOS."""
        limit = self._limits[number]
        return (name, *(getattr(limit, subject) for subject in SUBJECTS if subject != "qos"))
