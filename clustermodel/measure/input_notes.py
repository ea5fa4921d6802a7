"""Notes on what looks wrong: jobs killed or rejected, work discarded at failures, unused costs, too much load, and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from math import ceil, isnan
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import counted, shown
from clustermodel.job import UNSET
from clustermodel.machine import Machine
from clustermodel.measure.event_log import switch_count
from clustermodel.measure.metrics import Summary
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, PolicyFunction, dependencies_of
from clustermodel.policies.preemptive import PreemptiveScheduler
from clustermodel.policies.registry import make_policy
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from clustermodel.speedup import LINEAR, Speedup
from clustermodel.ticks import to_seconds

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result


KILLED_SHARE: Final = 0.05
"""Share of jobs killed at the wall-time limit above which a note says so."""
CUT_SHARE: Final = 0.1
"""Share of context switches that start over at scheduling events above which a note says so."""
DISCARDED_SHARE: Final = 0.1
"""Share of the executed work that is discarded, where nodes fail, above which a note says so."""
_MINUTE: Final = 60
_MOST_OVERESTIMATED: Final = 10
"""Ratio of estimates in minutes to run times up to which most run times are still longer than the estimates."""
_NAMED: Final = 3
_LOAD_TO_TRY: Final = 0.9


class Note(NamedTuple):
    """What looks wrong in the input of runs, and what to do about it."""

    fact: str
    """With the value."""
    advice: str
    option: str = ""
    """The option of ``clustermodel run`` that does it."""

    def __str__(self) -> str:
        return f"{self.fact}; {self.advice}"

    def with_option(self) -> str:
        """Return the note for a reader of the command line."""
        return f"{self} ({self.option})" if self.option else str(self)


class Counts(NamedTuple):
    """The numbers of a run that the notes look at: fields of its :class:`~clustermodel.measure.metrics.Summary`."""

    policy: str
    nodes: int
    jobs: int
    killed: int
    rejected: int
    load: float

    @classmethod
    def of(cls, summary: Summary) -> Counts:
        """Return the numbers of a summary."""
        return cls(*(getattr(summary, name) for name in cls._fields))


def run_notes(runs: Sequence[Result]) -> list[Note]:
    """Return what looks wrong in the input of runs that are compared; of streamed runs only what their summaries show."""
    if any(run.streamed for run in runs):
        counts = [Counts.of(run.summary()) for run in runs]
        return [*count_notes(counts, _unit_of(runs), with_memory=True), *_without_effect(runs, counts)]
    refused = [_needing_too_much(run) for run in runs]
    counts = [
        (of_run := Counts.of(run.summary()))._replace(rejected=of_run.rejected - number)
        for run, number in zip(runs, refused, strict=True)
    ]
    ratios = [ratio for run in runs if (ratio := _estimates_in_minutes(run.records)) is not None]
    return [
        *map(_in_minutes, ratios[:1]),
        *count_notes(counts, _unit_of(runs)),
        *_memory_notes(runs, refused),
        *_discarded_work(runs, counts),
        *_cut_switches(runs, counts),
        *_without_effect(runs, counts),
        *_same_schedule(runs, counts),
    ]


def _unit_of(runs: Sequence[Result]) -> str:
    units = {run.scenario.unit for run in runs}
    return units.pop() if len(units) == 1 else "processor"


def _needing_too_much(run: Result) -> int:
    """Return how many jobs are rejected although they are not too large: they need more memory than a node has."""
    nodes, memory, ended_as = (run.records.column(name) for name in ("nodes", "memory", "ended_as"))
    limit = run.machine.node_memory
    fits = (nodes > 0) & (nodes <= run.machine.nodes)
    return 0 if limit is None else int(((ended_as == Status.REJECTED) & fits & (memory > limit)).sum())


def _memory_notes(runs: Sequence[Result], refused: Sequence[int]) -> Iterator[Note]:
    """Yield notes on jobs that need more memory than a node has, and on jobs whose memory is unknown."""
    limited = [(run, number) for run, number in zip(runs, refused, strict=True) if run.machine.node_memory_gib is not None]
    if not limited:
        return
    run, most = max(limited, key=lambda pair: pair[1])
    if most:
        because = "is rejected because it needs" if most == 1 else "are rejected because they need"
        fact = f"{counted(most, 'job')} {because} more memory than the {run.machine.node_memory_gib:g} GiB of a node"
        yield Note(fact, "give nodes more memory", "--node-memory")
    memory = limited[0][0].records.column("memory")
    if unknown := int((memory == UNSET).sum()):
        fact = f"the memory of {unknown:,} of {counted(len(memory), 'job')} is unknown: they count as needing none"
        yield Note(fact, "give such jobs a default", "--default-memory")


def _discarded_work(runs: Sequence[Result], counts: Sequence[Counts]) -> Iterator[Note]:
    """Yield a note if much of the work is discarded because nodes fail before jobs complete."""
    shares = [_discarded_share(run) for run in runs]
    many = [count for share, count in zip(shares, counts, strict=True) if share > DISCARDED_SHARE]
    if many:
        run = runs[shares.index(max(shares))]
        fact = f"{100 * max(shares):.0f} % of the executed work is discarded under {_names(many, counts)}, because nodes fail"
        yield Note(f"{fact} before jobs complete{_most_often(run)}", _against_failures(run.machine), "--checkpoint-interval")


def _discarded_share(run: Result) -> float:
    """Return the share of the executed work that is discarded, 0 if no failure has stopped a run attempt."""
    lost, useful = (sum(run.ledger.amount(account)) for account in (Account.LOST, Account.USEFUL))
    return lost / (lost + useful) if lost and run.machine.failures is not None and run.summary().failed_attempts else 0.0


def _most_often(run: Result) -> str:
    """Return which job failures have stopped most often, as the end of a sentence."""
    stopped = run.records.stopped_runs
    times = np.bincount(stopped.job[stopped.ended_as == Status.FAILED], minlength=len(run.records))
    job = int(times.argmax())
    number, run_time = (int(run.records.column(name)[job]) for name in ("id", "run"))
    return f": job {number} ({to_seconds(run_time):g} s) is stopped {counted(int(times[job]), 'time')}"


def _against_failures(machine: Machine) -> str:
    if machine.checkpointing.interval_s is None:
        return "give periodic checkpoints, or leave jobs longer than the times between failures out"
    return "checkpoint more often, or leave jobs longer than the times between failures out"


def _without_effect(runs: Sequence[Result], counts: Sequence[Counts]) -> Iterator[Note]:
    """Yield notes on costs that were given and that no policy uses, unless no job ran."""
    if not any(count.jobs for count in counts):
        return
    for unused in unused_costs(runs):
        fact = f"{unused.given}: no effect under {_names(counts, counts)}"
        yield Note(fact, f"leave it out, or {unused.needed}", unused.options)


def _cut_switches(runs: Sequence[Result], counts: Sequence[Counts]) -> Iterator[Note]:
    """Yield a note if events cut many context switches short, which then start over."""
    shares = [(_cut_share(run), count) for run, count in zip(runs, counts, strict=True)]
    many = [count for share, count in shares if share > CUT_SHARE]
    if many:
        percent, names = 100 * max(share for share, _ in shares), _names(many, counts)
        fact = f"{percent:.0f} % of the context switches under {names} start over, as jobs arrive or end meanwhile"
        yield Note(fact, "let events keep the running slice, if the machine's do", "--at-events keep")


def _cut_share(run: Result) -> float:
    machine = run.machine
    if run.slices is None or not machine.switch_ticks or machine.time_slicing.at_events != "cut":
        return 0.0
    begun, cut = switch_count(run.slices, machine.time_slicing.quantum, machine.switch_ticks)
    return cut / begun if begun else 0.0


def _in_minutes(ratio: float) -> Note:
    return Note(
        f"most jobs run longer than their estimates, at the median {ratio:.3g} times as long: the estimates look like minutes, "
        "the run times like seconds",
        "multiply the estimates by 60, or do without them",
        "--estimates run-time",
    )


def count_notes(runs: Sequence[Counts], unit: str = "processor", *, with_memory: bool = False) -> list[Note]:
    """Return notes on jobs that were killed or rejected and on loads above 1, the worst run of each.

    Args:
        runs: their numbers.
        unit: what the machines have, in the singular.
        with_memory: whether jobs that need more memory than a node has may be among the rejected ones.
    """
    if not runs:
        return []
    notes = []
    killed = [run for run in runs if run.killed > KILLED_SHARE * run.jobs]
    if killed:
        worst = max(killed, key=lambda run: run.killed / run.jobs)
        share = 100 * worst.killed / worst.jobs
        fact = (
            f"{worst.killed:,} of {worst.jobs:,} jobs ({share:.0f} %) are killed at their wall-time limit "
            f"under {_names(killed, runs)}"
        )
        notes.append(Note(fact, "check the estimates, or let jobs run on", "--no-kill-at-estimate"))
    most = max(runs, key=lambda run: run.rejected)
    if most.rejected:
        other = "of none, or in need of more memory than a node has" if with_memory else "or of none"
        fact = (
            f"{counted(most.rejected, 'job')} {'is' if most.rejected == 1 else 'are'} rejected: larger than the machine of "
            f"{counted(most.nodes, unit)}, {other}"
        )
        notes.append(Note(fact, "give a larger machine, or leave such jobs out", f"--nodes, --size 1:{most.nodes}"))
    heaviest = max(runs, key=lambda run: 0.0 if isnan(run.load) else run.load)
    if heaviest.load > 1:
        fact = (
            f"the offered load is {heaviest.load:.3g}: more work arrives than {counted(heaviest.nodes, unit)} can do, and "
            "waits grow as long as jobs arrive"
        )
        stretch = ceil(10 * heaviest.load / _LOAD_TO_TRY) / 10
        notes.append(Note(fact, "give more nodes, or more time between arrivals", f"--nodes, --scale-interarrival {stretch:g}"))
    return notes


def _estimates_in_minutes(records: JobRecords) -> float | None:
    """Return the median ratio of run time to estimate where estimates look like minutes, else ``None``."""
    run, estimate = (records.column(name) for name in ("run", "estimate"))
    known = (estimate > 0) & (run > 0)
    if not known.any():
        return None
    ratios = run[known] / estimate[known]
    typical = float(np.median(ratios))
    beyond_minutes = float((ratios > 1.05 * _MINUTE).mean())
    return typical if typical >= _MINUTE / _MOST_OVERESTIMATED and beyond_minutes < KILLED_SHARE else None


def _same_schedule(runs: Sequence[Result], counts: Sequence[Counts]) -> list[Note]:
    """Return a note if several runs have the same starts and ends of all jobs."""
    if len(runs) < 2:
        return []
    first, *others = [_schedule(run.records) for run in runs]
    if not all(np.array_equal(first, other) for other in others):
        return []
    waits = bool(runs[0].summary().mean_wait_s > 0)
    return [same_results(len(runs), counts[0].load, waits=waits)]


def same_results(policies: int, load: float, *, waits: bool) -> Note:
    """Return the note on policies that make no difference."""
    fact = f"all {policies} policies give the same results"
    if waits:
        return Note(fact, "compare policies whose rules differ on these jobs, or other jobs")
    return Note(
        f"{fact}, because no job waits at an offered load of {load:.2g}",
        "raise the load for a comparison",
        "--scale-interarrival 0.5 doubles it",
    )


def _schedule(records: JobRecords) -> IntArray:
    """Return id, start and end of each job, shape ``(3, jobs)``."""
    return np.array([records.column(name) for name in ("id", "start", "end")])


def _names(some: Sequence[Counts], runs: Sequence[Counts]) -> str:
    names = list(dict.fromkeys(run.policy for run in some))
    if len(names) > 1 and len(names) == len({run.policy for run in runs}):
        return "each policy" if len(names) <= _NAMED else f"each of {len(names)} policies"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(shown, names[:_NAMED])) + more


# Costs and limits given for a machine that no compared policy uses.


class Unused(NamedTuple):
    """Costs that change nothing in any run."""

    given: str
    """In words, with their values."""
    needed: str
    """What to do so that they are used."""
    options: str
    """The options of ``clustermodel run`` that give them."""


class _Run(NamedTuple):
    """A run, with what its policy uses."""

    machine: Machine
    uses: frozenset[str]
    in_time: bool
    """Whether gangs shared their nodes in time."""
    saved: bool
    """Whether checkpoints took time."""
    restarted: bool
    """Whether restarts took time."""
    stopped: bool
    """Whether run attempts ended before their jobs did."""
    reshaped: bool
    """Whether a job ran on another number of nodes than it asks for."""
    in_rounds: bool
    """Whether the policy may decide in rounds."""
    speedup: Speedup

    @property
    def saves(self) -> bool:
        """Whether the policy may save gangs at the checkpoint store, or migrate them."""
        return "checkpointing" in self.uses and self.machine.checkpointing.max_tasks_per_slice != 0

    @property
    def transfers(self) -> bool:
        """Whether gangs may be written to the checkpoint store or read from it."""
        return "checkpointing" in self.uses or self.saved or self.restarted

    @property
    def switches(self) -> bool:
        """Whether context switches may cost a share of the quantum."""
        return "context_switch" in self.uses and bool(self.machine.context_switch.fraction)


class _Cost(NamedTuple):
    """A cost or a limit of the machine, and what uses it."""

    option: str
    """Of ``clustermodel run``."""
    value: Callable[[Machine], object]
    words: str
    """A format string for a value that is given."""
    needed: str
    """What to do so that it is used."""
    is_used: Callable[[_Run], bool]


_SHARE: Final = "compare policies that share nodes in time, such as bgs"
_SAVE: Final = "compare policies that save or migrate gangs, such as mbgs or pv-easy:mode=checkpoint"
_of: Final = attrgetter
_COSTS: Final = (
    _Cost("--quantum", _of("time_slicing.quantum_s"), "a quantum of {:g} s", _SHARE, lambda run: run.in_time or run.switches),
    _Cost("--mpl", _of("time_slicing.mpl"), "a multiprogramming level of {}", _SHARE, lambda run: run.in_time),
    _Cost("--at-events", _of("time_slicing.at_events"), "at_events={}", _SHARE, lambda run: run.in_time),
    _Cost(
        "--charge", _of("context_switch.charge"), "charge={}", _SHARE, lambda run: run.in_time and run.machine.switch_ticks > 0
    ),
    _Cost(
        "--context-switch",
        lambda machine: to_seconds(machine.switch_ticks),
        "a context switch of {:g} s",
        "compare policies that share nodes in time or suspend jobs, such as bgs or ss",
        lambda run: "context_switch" in run.uses,
    ),
    _Cost(
        "--suspended-per-node",
        _of("suspended_per_node"),
        "a limit of {} suspended tasks per node",
        "compare policies that suspend jobs, such as ss",
        lambda run: "suspended_per_node" in run.uses,
    ),
    _Cost(
        "--checkpoint", _of("checkpointing.checkpoint_s"), "checkpoints of {:g} s", _SAVE, lambda run: run.saves or run.saved
    ),
    _Cost("--restart", _of("checkpointing.restart_s"), "restarts of {:g} s", _SAVE, lambda run: run.saves or run.restarted),
    _Cost(
        "--store-bandwidth", _of("checkpointing.store"), "a checkpoint store with a bandwidth", _SAVE, lambda run: run.transfers
    ),
    _Cost("--restart-charge", _of("checkpointing.restart_charge"), "restart_charge={}", _SAVE, lambda run: run.restarted),
    _Cost(
        "--max-migrating-tasks",
        _of("checkpointing.max_tasks_per_slice"),
        "the limit Q = {} of migrating tasks",
        _SAVE,
        lambda run: run.transfers,
    ),
    _Cost(
        "--count-migrating",
        _of("checkpointing.counts"),
        "counts={}",
        "compare policies that migrate gangs in rows, such as mbgs, with a limit Q",
        lambda run: run.in_time and run.saves and run.machine.checkpointing.max_tasks_per_slice is not None,
    ),
    _Cost(
        "--checkpoint-interval",
        _of("checkpointing.interval_s"),
        "periodic checkpoints without a cost (interval_s={})",
        "let nodes fail",
        lambda run: run.machine.failures is not None or run.stopped or run.saved,
    ),
    _Cost(
        "--round",
        _of("round_s"),
        "rounds of {:g} s",
        "compare policies that decide in rounds, such as srtf",
        lambda run: run.in_rounds or (run.machine.checkpointing.restart_charge == "every-round" and run.restarted),
    ),
    _Cost(
        "--allocation",
        lambda machine: machine.allocation == "consolidate",
        "allocation=consolidate",
        "give nodes several processors",
        lambda run: run.machine.gpus_per_node > 1,
    ),
)
"""Costs and limits of the machine; those that the same runs use stand together."""
_NOT_GIVEN: Final = Machine(nodes=1)


def unused_costs(runs: Sequence[Result]) -> Iterator[Unused]:
    """Yield the costs and limits that were given and change nothing in any of the compared runs, by what would use them.

    A policy that does not declare what it uses (:class:`~clustermodel.policies.interface.Dependent`) may use everything.
    """
    looked_at = [_looked_at(run) for run in runs]
    for needed, costs in groupby(_COSTS, key=attrgetter("needed")):
        words: list[str] = []
        options: list[str] = []
        for cost in costs:
            given = [run for run in looked_at if cost.value(run.machine) != cost.value(_NOT_GIVEN)]
            if given and not any(_may_use_all(run) or cost.is_used(run) for run in given):
                words += dict.fromkeys(cost.words.format(cost.value(run.machine)) for run in given)
                options.append(cost.option)
        if words:
            yield Unused(_listed(words), needed, ", ".join(options))
    models = [run for run in looked_at if run.speedup != LINEAR]
    if models and not any(run.reshaped for run in models):
        yield Unused("a speedup model", "compare policies that choose sizes, such as R/L:width=half", "--speedup")


def _may_use_all(run: _Run) -> bool:
    return run.uses.issuperset((*PARTS, RANDOM_NUMBERS))


def _looked_at(run: Result) -> _Run:
    policy = make_policy(run.scenario.policy)
    saved, restarted = (sum(run.ledger.amount(account)) > 0 for account in (Account.CHECKPOINT, Account.RESTART))
    stopped = reshaped = True
    if not run.streamed:
        stopped = len(run.records.stopped_runs.job) > 0
        allocated = run.records.allocated
        reshaped = bool((allocated != run.records.column("nodes"))[allocated > 0].any())
    shipped = type(policy).__module__.startswith("clustermodel.") and not isinstance(policy, PolicyFunction)
    in_rounds = isinstance(policy, PreemptiveScheduler) or not shipped
    in_time = run.slices is not None
    return _Run(
        run.machine, dependencies_of(policy), in_time, saved, restarted, stopped, reshaped, in_rounds, run.scenario.speedup
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
