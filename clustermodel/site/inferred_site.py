"""The rules of a site that a log shows, as far as it does, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from clustermodel.site.inferred_limits import CLASSES, limits_of_each_job, limits_together
from clustermodel.site.inferred_priorities import priorities
from clustermodel.site.inferred_windows import Window, idle_windows
from clustermodel.site.limits import Limits
from clustermodel.site.order import Multifactor
from clustermodel.site.recorded_schedule import InferredRule, RecordedSchedule
from clustermodel.site.site import Site
from clustermodel.workload.table import Workload

MOST_LINES: Final = 10
PRIORITY: Final = "priority"


class InferredSite(NamedTuple):
    """What a log shows of the site that made it."""

    rules: list[InferredRule]
    """Limits and priorities."""
    windows: list[Window]
    """Times in which nothing starts; whether they are reservations, a log does not tell."""

    @property
    def site(self) -> Site:
        """The rules as those of a site."""
        limits = []
        for rule in self.rules:
            if rule.kind != PRIORITY:
                fields: Any = {rule.of: rule.who, rule.kind: rule.limit}
                limits.append(Limits(**fields))
        return Site(limits=limits, order=self._order())

    def _order(self) -> Multifactor | None:
        """Return an order in which age never outweighs a class that comes first."""
        values = {rule.who: rule.limit for rule in self.rules if rule.kind == PRIORITY}
        if not values:
            return None
        (field,) = {rule.of for rule in self.rules if rule.kind == PRIORITY}
        weight = float(len(set(values.values())) - 1)  # values are equally far apart: a step weighs as much as the greatest age
        tables: Any = {{"partition": "partitions", "qos": "qos_values", "queue": "queues"}[field]: values, field: weight}
        return Multifactor(age=1.0, **tables)

    def lines(self) -> Iterator[str]:
        """Yield what the log shows, a line for each rule and window, and how much it is left out."""
        every = [rule.words for rule in self.rules if rule.words] + [str(window) for window in self.windows]
        yield from every[:MOST_LINES]
        if len(every) > MOST_LINES:
            yield f"and {len(every) - MOST_LINES:,} more (--json)"


def inferred_site(workload: Workload, nodes: int) -> InferredSite:
    """Return the rules that a log with recorded waits shows, on a machine of so many nodes.

    A log without waits is a ``SpecificationError``.
    """
    log = RecordedSchedule(workload, nodes)
    together, held = limits_together(log)
    rules = [*together, *limits_of_each_job(log, together), *priorities(log, CLASSES, held)]
    return InferredSite(rules, idle_windows(log, held))
