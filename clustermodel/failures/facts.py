"""Facts of outages: failures, unavailability, times between failures, repair times, causes."""

from __future__ import annotations

import numpy as np

from clustermodel.failures.outages import Outages


def outage_facts(outages: Outages) -> dict[str, object]:
    """Return the facts of a machine's outages as values for JSON; times in seconds, times between failures ``None`` for one.

    Failures and repair times are those recorded.  Unavailability is the node time in which nodes were down over all node time
    from second 0 to the last repair; time in which outages of one node overlap counts once.  ``mtbf_s`` is the mean time
    between consecutive failures of the machine, ``node_mtbf_s`` the mean time for which a node is up between two failures: the
    ``mtbf_s`` of :class:`~clustermodel.failures.node_failures.NodeFailures` for ``per="machine"`` and ``per="node"``.
    """
    merged = outages.merged()
    repair = outages.repair_s
    between = outages.times_between_failures_s
    node_s = outages.nodes * outages.span_s
    down_s = float(merged.repair_s.sum())
    return {
        "name": outages.name,
        "source": outages.source,
        "origin": outages.origin or None,
        "nodes": outages.nodes,
        "nodes_that_failed": len(np.unique(outages.node)),
        "failures": len(outages),
        "failures_of_nodes_already_down": len(outages) - len(merged),
        "span_s": outages.span_s,
        "unavailability": down_s / node_s if node_s else None,
        "mtbf_s": float(between.mean()) if len(between) else None,
        "node_mtbf_s": (node_s - down_s) / len(merged),
        "simultaneous_failures": int((between == 0).sum()),
        "mean_repair_s": float(repair.mean()),
        "median_repair_s": float(np.median(repair)),
        "causes": {cause: _of_cause(outages, cause) for cause in _by_frequency(outages.cause)},
        "dropped": dict(sorted(outages.dropped.items())),
        "adjusted": dict(sorted(outages.adjusted.items())),
    }


def _by_frequency(causes: tuple[str, ...]) -> list[str]:
    return sorted(set(causes), key=lambda cause: (-causes.count(cause), cause))


def _of_cause(outages: Outages, cause: str) -> dict[str, float]:
    repair = outages.repair_s[np.array(outages.cause) == cause]
    return {
        "failures": len(repair),
        "share": len(repair) / len(outages),
        "down_node_s": float(repair.sum()),
        "mean_repair_s": float(repair.mean()),
        "median_repair_s": float(np.median(repair)),
    }
