"""Fitting a workload model to a trace: a hyper-Erlang distribution for each time (Zhang et al. 2003, section 2.1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, counted
from clustermodel.validation import require_whole
from clustermodel.workload.hyper_erlang import HyperErlang
from clustermodel.workload.model import SizeClass, WorkloadModel, class_label
from clustermodel.workload.table import Workload


def fit_model(workload: Workload, *, nodes: int | None = None) -> WorkloadModel:
    """Return a model of ``workload``, with a hyper-Erlang distribution of smallest order for each time (section 2.1).

    The workload is treated as periodic: the time from the last job of a class, across the end of the period, to its first
    job is an interarrival time too.  So a class of k jobs has k interarrival times whose mean is the period over k, and every
    class, even of a single job, arrives at its rate in the trace.

    If three moments admit no fit (equal times, for instance), the mean and the variance are kept, or the mean alone if there
    is a single time: see ``HyperErlang.from_mean``.  ``notes`` lists these cases, and the jobs that were left out.

    Args:
        workload: the jobs.  Their estimates and users are not modelled.
        nodes: size of the machine; that of the workload by default.  Jobs that need more are left out.

    Raises:
        SpecificationError: the machine's size is not known, fewer than two jobs fit it, or all are submitted at the same time.
    """
    size = workload.machine_nodes if nodes is None else nodes
    if size is None:
        raise SpecificationError(f"nodes: {workload.name} does not say how large its machine is; give the machine's size")
    size = require_whole("nodes", size, at_least=1)
    fits = (workload.column("nodes") >= 1) & (workload.column("nodes") <= size)
    submit, run = workload.seconds("submit")[fits], workload.seconds("run")[fits]
    needed = workload.column("nodes")[fits]
    if len(submit) < 2 or submit[0] == submit[-1]:
        raise SpecificationError(
            f"{workload.name}: {counted(len(submit), 'job')} of 1 to {size} nodes, submitted at one instant, "
            "give no interarrival time to fit a model to"
        )
    notes = []
    if len(submit) < len(workload):
        notes.append(f"{counted(len(workload) - len(submit), 'job')} left out: not of 1 to {size} nodes")
    period = (submit[-1] - submit[0]) * len(submit) / (len(submit) - 1)
    upper = 1 << np.frexp(needed - 1)[1].astype(np.int64)
    classes = []
    for largest in np.unique(upper):
        mine = upper == largest
        sizes, counts = np.unique(needed[mine], return_counts=True)
        arrivals = submit[mine]
        gaps = np.append(np.diff(arrivals), arrivals[0] + period - arrivals[-1])
        fitted = {}
        for field, times in (("interarrival", gaps), ("run_time", run[mine])):
            fitted[field], note = _fitted(times)
            if note:
                notes.append(f"class {class_label(int(largest))} {field.replace('_', ' ')}: {note}")
        classes.append(SizeClass(largest=int(largest), sizes=tuple(sizes.tolist()), weights=tuple(counts.tolist()), **fitted))
    return WorkloadModel(
        name=workload.name,
        source=f"fitted to {counted(len(submit), 'job')} of {Path(workload.provenance.source).name}",
        nodes=size,
        classes=tuple(classes),
        notes=tuple(notes),
    )


def _fitted(times_s: FloatArray) -> tuple[HyperErlang, str]:
    """Return the fit to ``times_s``, shape ``(n,)``, and a note if another distribution had to be used, else an empty note."""
    m1, m2, m3 = (float(np.mean(times_s**k)) for k in (1, 2, 3))
    try:
        return HyperErlang.fit(m1, m2, m3), ""
    except SpecificationError as problem:
        why = str(problem).removeprefix("HyperErlang.fit: ")
    if len(times_s) == 1:
        return HyperErlang.from_mean(m1, 1.0), f"a single time of {m1:g} s; exponential with that mean used instead"
    cv = max(0.0, m2 / m1 / m1 - 1) ** 0.5
    instead = HyperErlang.from_mean(m1, cv)
    shape = "hyper-exponential" if instead.p < 1 else f"Erlang of order {instead.order}" if instead.order > 1 else "exponential"
    return instead, f"{why}; {shape} with that mean and a CV of {instead.cv:.3g} (trace: {cv:.3g}) used instead"
