"""Comparisons of cases on the jobs of one log: other machines, loads, rules of a site and policies, each with the first one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, counted
from clustermodel.experiment.result import Result
from clustermodel.measure.answers import Answer, answer_of_log, answer_of_resamples
from clustermodel.validation import LARGEST_WHOLE
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import Unit, whole_blocks

NO_RULES: Final = "none"
"""The site of a case without rules."""
WAIT: Final = "mean wait"
RESPONSE: Final = "mean response time"


class Case(NamedTuple):
    """One machine, load, site and policy."""

    nodes: int
    load: float
    """How many times as densely the jobs of the log are submitted."""
    site: str
    policy: str

    def label(self, sizes: Collection[int], loads: Collection[float]) -> str:
        """Return what tells the case from others, of so many sizes and loads."""
        parts = [self.policy]
        if self.site != NO_RULES:
            parts.append(self.site)
        if len(sizes) > 1:
            parts.append(counted(self.nodes, "node"))
        if len(loads) > 1:
            parts.append(f"load x {self.load:g}")
        return ", ".join(parts)


class JobTimes(NamedTuple):
    """Times of the jobs of a log in a case, seconds, in the order of the log; ``nan``: the job has not completed."""

    wait: FloatArray
    response: FloatArray
    preempts: bool
    """Whether jobs shared nodes in time, or were preempted: then waits end early by construction."""


Times = Mapping[Case, JobTimes]


class Comparison(NamedTuple):
    """Two cases that differ in one thing."""

    before: Case
    after: Case
    question: str
    change: str
    """The beginning of a sentence about the change."""

    def of_resamples(self, log: Answer, resamples: Sequence[Times], blocks: int, what: str) -> Answer:
        """Return the answer of resamples of the log, which has so many different weeks, users or blocks to draw from."""
        means = np.array([_means(*self.compared(each, log.measure)) for each in resamples])
        return answer_of_resamples(log, means[:, 0], means[:, 1], blocks, what)

    def compared(self, times: Times, measure: str) -> tuple[FloatArray, FloatArray]:
        """Return the times of the jobs before and after."""
        before, after = times[self.before], times[self.after]
        return (before.response, after.response) if measure == RESPONSE else (before.wait, after.wait)


def answers_of(comparisons: Sequence[Comparison], times: Times, log_s: float) -> list[Answer]:
    """Return the answers of a log that is so long, all of one measure: response times if waits end early by construction."""
    early = any(times[case].preempts for each in comparisons for case in (each.before, each.after))
    measure = RESPONSE if early else WAIT
    return [
        answer_of_log(each.question, each.change, *each.compared(times, measure), log_s, measure=measure)
        for each in comparisons
    ]


def _means(before: FloatArray, after: FloatArray) -> tuple[float, float]:
    both = ~(np.isnan(before) | np.isnan(after))
    return (float(before[both].mean()), float(after[both].mean())) if both.any() else (np.nan, np.nan)


def comparisons_of(cases: Collection[Case], policies: Collection[str]) -> Iterator[Comparison]:
    """Yield what is compared: each size, load and site with the first one, under each of the policies, then these themselves.

    Rules hold in all cases that differ in something else, those of the last site.
    """
    sizes, loads, sites, _ = ([*dict.fromkeys(values)] for values in zip(*cases, strict=True))
    asked = [policy for policy in dict.fromkeys(case.policy for case in cases) if policy in {*policies}] or [
        next(iter(cases)).policy
    ]
    last = sites[-1]
    first = Case(sizes[0], loads[0], last, asked[0])
    for policy in asked:
        under = f" under {policy}" if len(asked) > 1 else ""
        own = first._replace(policy=policy)
        for nodes in sizes[1:]:
            question = f"What do {counted(nodes, 'node')} change, instead of {sizes[0]:,}{under}?"
            yield Comparison(own, own._replace(nodes=nodes), question, f"With {counted(nodes, 'node')}{under}")
        for load in loads[1:]:
            question = f"What does {load:g} times the load change{under}?"
            yield Comparison(own, own._replace(load=load), question, f"At {load:g} times the load{under}")
        rules = [site for site in sites if site != NO_RULES]
        for site in rules[1:]:
            question = f"What does {site} change, instead of {rules[0]}{under}?"
            yield Comparison(own._replace(site=rules[0]), own._replace(site=site), question, f"With {site}{under}")
    for policy in asked[1:]:
        question = f"What does {policy} change, instead of {asked[0]}?"
        yield Comparison(first, first._replace(policy=policy), question, f"With {policy} instead of {asked[0]}")


def times_of(ids: IntArray, result: Result) -> JobTimes:
    """Return the times of jobs with these numbers in a run, in the same order."""
    records = result.records
    known, submit = records.column("id"), records.seconds("submit")
    order = np.argsort(known, kind="stable")
    places = np.searchsorted(known[order], ids)
    places[places == len(known)] = 0
    there = known[order][places] == ids if len(known) else np.zeros(len(ids), dtype=bool)

    def of_jobs(values: FloatArray) -> FloatArray:
        return np.where(there, values[order][places], np.nan) if len(known) else np.full(len(ids), np.nan)

    preempts = result.slices is not None or result.summary().preempted > 0
    return JobTimes(of_jobs(records.seconds("start") - submit), of_jobs(records.seconds("end") - submit), preempts)


def resampled(workload: Workload, of: Unit, seed: int, number: int) -> Iterator[Workload]:
    """Yield resamples of a log (:meth:`Workload.resampled`), with seeds from ``seed`` on."""
    for draw in range(number):
        yield workload.resampled(of, seed=seed + draw)


def blocks_of(workload: Workload, of: Unit) -> tuple[int, str]:
    """Return how many different weeks, users or blocks of seconds a log has to draw from, and what they are called."""
    if of == "users":
        return len(np.unique(workload.column("user"))), "user"
    _, _, blocks = whole_blocks(workload.column("submit"), of, workload.provenance.header)
    return blocks, "week" if of == "weeks" else f"block of {of:g} s"


Size = int | tuple[float]
"""A number of nodes, or by how many per cent there are more."""


def sizes_of(text: str) -> tuple[Size, ...]:
    """Return the sizes of ``"64,76"`` or ``"+20%"``; a text that is none is a ``ValueError``."""
    sizes: list[Size] = []
    for part in text.split(","):
        share = part.strip()
        try:
            if share.endswith("%") and share[0] in "+-":
                percent = float(share[:-1])
                if not -100 < percent <= 10_000:
                    raise ValueError
                sizes.append((percent,))
            else:
                nodes = int(share)
                if not 1 <= nodes <= LARGEST_WHOLE:
                    raise ValueError
                sizes.append(nodes)
        except (ValueError, IndexError):
            raise ValueError(f"{part!r} is not a number of nodes from 1 on, as 64, or so many more, as +20%") from None
    return tuple(sizes)


def machine_sizes(nodes: int, sizes: Sequence[Size]) -> tuple[int, ...]:
    """Return the sizes to compare, of which the first is ``nodes``, the least first change at least one node."""
    wanted = [size if isinstance(size, int) else _changed(nodes, size[0]) for size in sizes]
    return tuple(dict.fromkeys((nodes, *wanted)))


def _changed(nodes: int, percent: float) -> int:
    changed = max(1, round(nodes * (1 + percent / 100)))
    if changed == nodes:
        raise SpecificationError(f"--nodes: {percent:+g}% is not allowed; it is less than a node of {nodes:,}")
    return changed


def loads_of(text: str) -> tuple[float, ...]:
    """Return the loads of ``"1.1,1.2"``; a text that is none is a ``ValueError``."""
    try:
        loads = tuple(float(part) for part in text.split(","))
    except ValueError:
        loads = (0.0,)
    if not all(0.01 <= load <= 100 for load in loads):
        raise ValueError(f"{text!r} is not LOAD,LOAD,..., multiples of the recorded load from 0.01 to 100")
    return loads
