"""Resources of a PBS job: ``nodes=2:ppn=4+1:ppn=8``, ``select=5:ncpus=13``, ``exec_host``, ``exec_vnode``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from clustermodel.workload.log_values import kib, whole


class Resources(NamedTuple):
    """What a job was given and what it asked for; 0 where the record does not say, memory in KiB."""

    hosts: list[str]
    """The different hosts that it was given."""
    nodes: int
    cores: int
    asked_nodes: int
    asked_cores: int
    gpus: int
    memory: int


class _Amounts(NamedTuple):
    """Sums over the chunks of a specification."""

    chunks: int
    cores: int
    gpus: int
    memory: int


def resources_of(values: Mapping[str, str]) -> Resources:
    """Return the resources in the values of a record."""
    hosts = _hosts(values)
    vnodes = _vnodes(values.get("exec_vnode", ""))
    # The value of nodect is a number, but some sites write a whole specification there.
    spec = _chunks(values.get("Resource_List.nodes", "") or values.get("Resource_List.nodect", ""), 1)
    select = _chunks(values.get("Resource_List.select", ""))
    cores = _whole(values, "Resource_List.ncpus")
    nodect = whole(values.get("Resource_List.nodect", "").partition(":")[0])
    return Resources(
        hosts=hosts,
        nodes=len(hosts),
        cores=vnodes.cores or _slots(values.get("exec_host", "")),
        asked_nodes=nodect or spec.chunks or select.chunks or min(cores, 1),  # ncpus alone are cores of one node
        asked_cores=spec.cores if "Resource_List.nodes" in values else cores or select.cores or spec.cores,
        gpus=_gpus(values, vnodes, spec, select),
        memory=_memory(values, vnodes, select, cores or spec.cores),
    )


def _hosts(values: Mapping[str, str]) -> list[str]:
    """Return the different hosts of a job, from ``exec_host`` or else ``exec_vnode``."""
    hosts = values.get("exec_host", "")
    if hosts:
        return list(dict.fromkeys(part.partition("/")[0] for part in hosts.split("+") if part))
    chunks = re.sub(r"[()]", "", values.get("exec_vnode", "")).split("+")
    return list(dict.fromkeys(re.sub(r"\[\d+\]$", "", chunk.partition(":")[0]) for chunk in chunks if chunk))


def _slots(hosts: str) -> int:
    """Return the slots of ``a/0+a/1``, ``a/0*13+b/0*13``, ``a/0-3+b/0,2,4-7``; of PBS Professional ``a/0*0`` is none."""
    total = 0
    for part in hosts.split("+"):
        _, slash, slots = part.partition("/")
        if not slash:
            total += bool(part)
            continue
        _, star, count = slots.partition("*")
        if star:
            total += whole(count)
            continue
        for one in slots.split(","):
            low, dash, high = one.partition("-")
            total += max(0, whole(high) - whole(low)) + 1 if dash else 1
    return total


def _vnodes(text: str) -> _Amounts:
    """Return the sums over the chunks of ``(a[0]:ncpus=24:mem=8gb:ngpus=2+a[1]:ncpus=24)``."""
    return _Amounts(
        chunks=text.count("+") + 1 if text else 0,
        cores=sum(map(whole, re.findall(r"\bncpus=(\d+)", text))),
        gpus=sum(map(whole, re.findall(r"\bngpus=(\d+)", text))) if "gpus" in text else 0,
        memory=sum(kib(amount, "b") or 0 for amount in re.findall(r"\bmem=(\w+)", text)),
    )


@lru_cache(maxsize=16_384)
def _chunks(text: str, default_cores: int = 0) -> _Amounts:
    """Return the sums over chunks such as ``2:ppn=4:gpus=1+host7:ppn=8``, which begin with a number or a name.

    Args:
        text: the specification.
        default_cores: cores of a chunk that names none.
    """
    chunks = cores = gpus = memory = 0
    for chunk in text.partition("#")[0].split("+"):
        if not chunk:
            continue
        first, *rest = chunk.split(":")
        times = whole(first) if first.isdecimal() else 1
        given = dict(part.split("=", 1) for part in (first, *rest) if "=" in part)
        chunks += times
        cores += times * (whole(given.get("ppn", "")) or whole(given.get("ncpus", "")) or default_cores)
        gpus += times * next((whole(given[name]) for name in ("ngpus", "gpus", "gpu") if name in given), 0)
        memory += times * (kib(given.get("mem", ""), "b") or 0)
    return _Amounts(chunks, cores, gpus, memory)


def _gpus(values: Mapping[str, str], vnodes: _Amounts, spec: _Amounts, select: _Amounts) -> int:
    listed = next(
        (_whole(values, f"Resource_List.{name}") for name in ("ngpus", "gpus", "gpu") if f"Resource_List.{name}" in values), 0
    )
    held = values.get("exec_gpus", "")
    return vnodes.gpus or (held.count("+") + 1 if held else 0) or listed or spec.gpus or select.gpus


def _memory(values: Mapping[str, str], vnodes: _Amounts, select: _Amounts, cores: int) -> int:
    each = kib(values.get("Resource_List.pmem", ""), "b") or 0
    return kib(values.get("Resource_List.mem", ""), "b") or vnodes.memory or select.memory or each * max(cores, 1)


def _whole(values: Mapping[str, str], name: str) -> int:
    return whole(values.get(name, ""))
