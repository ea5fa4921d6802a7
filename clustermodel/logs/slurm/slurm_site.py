"""A site from Slurm's own words: slurm.conf, ``scontrol show partition|node|config|reservation``, ``sacctmgr show qos|assoc``.

The fields are described in slurm.conf(5), scontrol(1) and sacctmgr(1) of Slurm 20 to 24; docs/site has what becomes of which.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clustermodel.errors import SpecificationError
from clustermodel.logs import values as log_values
from clustermodel.logs.slurm.account_limits import limits_of
from clustermodel.logs.slurm.associations import choose_cluster
from clustermodel.logs.slurm.configuration import NOTHING, SETTING, UNITS, Configuration
from clustermodel.logs.slurm.node_records import node_types_of, numbers_of_nodes
from clustermodel.logs.slurm.partition_records import partitions_of
from clustermodel.logs.slurm.priorities import order_of
from clustermodel.logs.slurm.reservation_records import reservations_of
from clustermodel.site.site import Site
from clustermodel.validation import choice


@dataclass(frozen=True, kw_only=True)
class SlurmSite:
    """What files of Slurm say about a site."""

    site: Site
    """Partitions, limits, and the order of the queue."""
    node_names: tuple[str, ...]
    """The nodes, in the order in which the model numbers them."""
    nodes: int
    """Size of the machine in the unit that was asked for; 0 where no file names nodes."""
    read: tuple[str, ...]
    """The contents found in each file, a line each."""
    left_out: tuple[str, ...]
    """Settings that the model has no rule for, each with the reason."""


def read_slurm_site(
    *paths: str | os.PathLike[str], unit: str = "nodes", start: str | None = None, timezone: str | None = None
) -> SlurmSite:
    """Return the site that Slurm describes, as far as the model has rules for it.

    Args:
        paths: a ``slurm.conf``, the output of ``scontrol show partition``, ``show node`` (with ``-o`` or without) and ``show
            config`` and ``show reservation``, of ``sacctmgr show qos -P`` and ``show assoc tree -P``; what a file is, its
            content tells.
        unit: what a node of the model stands for, as of :func:`~clustermodel.logs.sacct.read_sacct`: ``"nodes"``, ``"cores"``
            or ``"gpus"``; nodes and limits are counted in it.
        start: when the clock of the jobs begins, as ``"2025-01-01T00:00:00"``: reservations are left out without it.
        timezone: that of the times of reservations, if the log was read with it; ``start`` is then in UTC, as the log's
            ``StartTime``.  Windows that recur keep the local time at which the log begins when clocks change.

    Raises:
        TraceError: a file cannot be read, or is none of these; the message starts with ``file:line:``.
        SpecificationError: the unit, the start or the time zone is not allowed.
    """
    choice("unit", unit, UNITS)
    clock = log_values.Clock(timezone)
    try:
        begin = None if start is None else log_values.Clock().seconds(start)
    except ValueError as problem:
        raise SpecificationError(f"start: {problem}; write it as 2025-01-01T00:00:00") from None
    slurm = Configuration(unit, begin, clock)
    for path in paths:
        slurm.read_file(Path(path))
    return site_of(slurm)


def site_of(slurm: Configuration) -> SlurmSite:
    """Return the site of all that was read."""
    choose_cluster(slurm)
    of_nodes = numbers_of_nodes(slurm)
    partitions, node_types = partitions_of(slurm, of_nodes), node_types_of(slurm, of_nodes)
    reservations = reservations_of(slurm, of_nodes)
    limits, qos = limits_of(slurm, of_nodes)
    order = order_of(slurm)
    for name, record in slurm.settings.items():
        if name in SETTING and record.fields[name].strip().lower() not in NOTHING:
            slurm.leave(slurm.spelled(name), SETTING[name], "")
    left_out = []
    for (setting, reason), whose in slurm.left_out.items():
        left_out.append(f"{setting}{f' of {_listed(whose)}' if any(whose) else ''}: {reason}")
    return SlurmSite(
        site=Site(partitions=partitions, node_types=node_types, reservations=reservations, limits=limits, qos=qos, order=order),
        node_names=tuple(of_nodes),
        nodes=sum(map(len, of_nodes.values())),
        read=tuple(slurm.read),
        left_out=tuple(left_out),
    )


def _listed(names: Iterable[str]) -> str:
    """Return the first of some names, as ``partition debug, gpu and 2 more``."""
    every = list(filter(None, names))
    kind = every[0].partition(" ")[0]
    shown = [every[0], *(name.removeprefix(f"{kind} ") for name in every[1:4])]
    return ", ".join(shown) + (f" and {len(every) - 4:,} more" if len(every) > 4 else "")
