"""Notes on what looks wrong: jobs killed or rejected, work discarded at failures, unused costs, too much load, and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil, isnan
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import counted, shown
from clustermodel.machine.machine import Machine
from clustermodel.measure.job_table import node_ticks
from clustermodel.measure.metrics import Summary
from clustermodel.measure.site_notes import cap_note, notes_on_rules
from clustermodel.measure.timeline import switch_count
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, PolicyFunction, dependencies_of
from clustermodel.policies.registry import make_policy, may_resize
from clustermodel.recording.job_records import in_seconds
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from clustermodel.text.formatting import four_digits
from clustermodel.ticks import to_seconds
from clustermodel.validation import to_gib
from clustermodel.workload.job import UNSET
from clustermodel.workload.speedup import LINEAR, Speedup

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result
    from clustermodel.experiment.specification import Specification

# Shares above which a note says so:
KILLED_SHARE: Final = 0.05  # of jobs killed at the wall-time limit
CUT_SHARE: Final = 0.1  # of context switches that start over at scheduling events
DISCARDED_SHARE: Final = 0.1  # of the executed work that is discarded, where nodes fail
TAIL_SHARE: Final = 0.5  # of the offered load; below it, work per capacity says little of the policy
_MINUTE: Final = 60
_MOST_OVERESTIMATED: Final = 10  # estimate in minutes over run time up to which most run times exceed the estimates
_NAMED: Final = 3
_LOAD_TO_TRY: Final = 0.9


class Note(NamedTuple):
    """What looks wrong in the input of runs, and what to do about it."""

    fact: str  # with the value
    advice: str  # may be empty
    option: str = ""  # of ``clustermodel run`` that does it

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.fact, self.advice)))

    def with_option(self) -> str:
        """Return the note with the option of the command line."""
        return f"{self} ({self.option})" if self.option else str(self)


def run_notes(runs: Sequence[Result]) -> list[Note]:
    """Return what looks wrong in the input of runs that are compared; of streamed runs only what their summaries show."""
    counts = [run.summary() for run in runs]
    units = {run.scenario.unit for run in runs}
    unit = units.pop() if len(units) == 1 else "processor"
    unused = unused_costs([Costs.of_run(run) for run in runs]) if any(count.jobs for count in counts) else []
    if any(run.streamed for run in runs):
        return [*count_notes(counts, unit, with_memory=True), *_long_tail(counts), *unused]
    refused = [_needing_too_much(run) for run in runs]
    limited = [_beyond_limits(run, number) for run, number in zip(runs, refused, strict=True)]
    counts = [
        replace(count, rejected=count.rejected - memory - limit)
        for count, memory, limit in zip(counts, refused, limited, strict=True)
    ]
    return [
        *_estimates_in_minutes(runs),
        *count_notes(counts, unit),
        *_long_tail(counts),
        *_memory_notes(runs, refused),
        *_site_notes(runs, limited),
        *_discarded_work(runs),
        *_cut_switches(runs),
        *_without_price(runs),
        *unused,
        *_replaced_costs(runs),
        *_same_schedule(runs, counts),
    ]


def rule_notes(runs: Sequence[Result]) -> list[Note]:
    """Return what looks wrong in the rules of the site of runs, which is the same for all."""
    limited = [_beyond_limits(run, _needing_too_much(run)) for run in runs]
    return [*_site_notes(runs, limited), *_unused_malleable([Costs.of_run(run) for run in runs])]


def _needing_too_much(run: Result) -> int:
    """Return how many jobs are rejected only because they need more memory than a node has."""
    nodes, memory, ended_as = (run.records.column(name) for name in ("nodes", "memory", "ended_as"))
    limit = run.machine.node_memory
    fits = (nodes > 0) & (nodes <= run.machine.processors)
    return 0 if limit is None else int(((ended_as == Status.REJECTED) & fits & (memory > limit)).sum())


def _memory_notes(runs: Sequence[Result], refused: Sequence[int]) -> Iterator[Note]:
    limited = [(run, number) for run, number in zip(runs, refused, strict=True) if run.machine.node_memory is not None]
    if not limited:
        return
    run, most = max(limited, key=lambda pair: pair[1])
    if most:
        yield _too_much_memory(most, run.machine)
    memory = limited[0][0].records.column("memory")
    if unknown := int((memory == UNSET).sum()):
        fact = f"the memory of {unknown:,} of {counted(len(memory), 'job')} is unknown: they count as needing none"
        yield Note(fact, "give such jobs a default", "--default-memory")


def _too_much_memory(jobs: int, machine: Machine) -> Note:
    because = "is rejected because it needs" if jobs == 1 else "are rejected because they need"
    fact = f"{counted(jobs, 'job')} {because} more memory than the {to_gib(machine.node_memory or 0):g} GiB of a node"
    return Note(fact, "give nodes more memory", "--node-memory")


def _beyond_limits(run: Result, needing_too_much: int) -> int:
    """Return how many jobs are rejected though they would fit the empty machine: rules, or other jobs, never let them run."""
    nodes, ended_as = run.records.column("nodes"), run.records.column("ended_as")
    fits = (nodes > 0) & (nodes <= run.machine.processors)
    return int(((ended_as == Status.REJECTED) & fits).sum()) - needing_too_much


def _site_notes(runs: Sequence[Result], limited: Sequence[int]) -> Iterator[Note]:
    worst = max(range(len(runs)), key=limited.__getitem__)
    yield from (Note(*words) for words in notes_on_rules(runs[worst], limited[worst]))
    ordered = [run for run in runs if run.scenario.used_site is not None and run.scenario.used_site.order is not None]
    if own := [run.scenario.label for run in ordered if not getattr(make_policy(run.scenario.policy), "takes_order", True)]:
        names = _names(own, [run.scenario.label for run in runs])
        fact = f"the order of the site breaks at most ties under {names}, which has one of its own"
        yield Note(fact, "choose another policy", "--policy")
    if capped := [run for run in runs if run.machine.power_cap_w is not None]:
        yield Note(*cap_note(max(capped, key=lambda run: int(run.records.column("cap_wait").sum()))))
    for run in (run for run in runs if run.scenario.used_site is not None):
        ran = run.records.finished
        held_s = in_seconds(run.records.column("eligible") - run.records.column("submit"))
        if (jobs := int((held_s > 0).sum())) and ran.any():
            of_wait = f"{four_digits(float(held_s[ran].mean()))} s of the mean wait"
            who = [*["rules of the site"] * _holds(run), *["dependencies"] * run.scenario.streams.has_dependencies]
            yield Note(f"{' and '.join(who)} hold {counted(jobs, 'job')} under {run.scenario.label}, {of_wait}", "")
        return


def _holds(run: Result) -> bool:
    """Return whether rules of a site may hold jobs of a run, beside jobs on which they depend."""
    site = run.scenario.used_site
    return site is not None and bool(site.limits or (site.array_limits and run.scenario.streams.array_limits()))


def _discarded_work(runs: Sequence[Result]) -> list[Note]:
    shares = []
    for run in runs:
        failing = run.machine.failures is not None and run.summary().failed_attempts
        lost, useful = (sum(run.ledger.amount(account)) for account in (Account.LOST, Account.USEFUL))
        stopped = run.records.stopped_runs
        at_failures = node_ticks(stopped.nodes, stopped.lost)[stopped.ended_as == Status.FAILED].sum()
        shares.append(int(at_failures) / (lost + useful) if failing and lost else 0.0)
    if max(shares, default=0.0) <= DISCARDED_SHARE:
        return []
    run = runs[shares.index(max(shares))]
    stopped = run.records.stopped_runs
    times = np.bincount(stopped.job[stopped.ended_as == Status.FAILED], minlength=len(run.records))
    job = int(times.argmax())
    number, run_time = (int(run.records.column(name)[job]) for name in ("id", "run"))
    most_often = f": job {number} ({to_seconds(run_time):g} s) is stopped {counted(int(times[job]), 'time')}"
    periodic = run.machine.checkpointing.interval_s is not None
    return [discarded_work(shares, [run.scenario.label for run in runs], most_often, periodic=periodic)]


def discarded_work(shares: Sequence[float], policies: Sequence[str], most_often: str = "", *, periodic: bool = False) -> Note:
    """Return the note on much discarded work, where nodes fail, perhaps with the job that failures stop most often."""
    percent, names = _above(DISCARDED_SHARE, shares, policies)
    cause = "because nodes fail before jobs complete" if most_often else "on machines whose nodes fail"  # a study has only sums
    fact = f"{percent} of the executed work is discarded under {names}, {cause}{most_often}"
    advice = "checkpoint more often" if periodic else "give periodic checkpoints"
    return Note(fact, f"{advice}, or leave jobs longer than the times between failures out", "--checkpoint-interval")


def _cut_switches(runs: Sequence[Result]) -> list[Note]:
    shares = []
    for run in runs:
        begun, cut, machine = 0, 0, run.machine
        switch = machine.uniform_switch
        if run.slices is not None and switch and machine.time_slicing.at_events == "cut":
            begun, cut = switch_count(run.slices, machine.time_slicing.quantum, switch)
        shares.append(cut / begun if begun else 0.0)
    if max(shares, default=0.0) <= CUT_SHARE:
        return []
    percent, names = _above(CUT_SHARE, shares, [run.scenario.label for run in runs])
    fact = f"{percent} of the context switches under {names} start over, as jobs arrive or end meanwhile"
    return [Note(fact, "let events keep the running slice, if the machine's do", "--at-events keep")]


COUNTED: Final = ("policy", "nodes", "jobs", "killed", "rejected", "load")


def _without_price(runs: Sequence[Result]) -> list[Note]:
    """Return a note on policies that wait for cheaper energy, and know no price."""
    labels = [
        run.scenario.label
        for run in runs
        if run.machine.price is None and getattr(make_policy(run.scenario.policy), "price", "it needs none") is None
    ]
    names = _names(labels, [run.scenario.label for run in runs])
    return [Note(f"no price of energy is known, so no hour is cheaper under {names}", "give one", "--price")] if labels else []


def count_notes(
    runs: Sequence[Any], unit: str = "processor", *, with_memory: bool = False, with_rules: bool = False
) -> list[Note]:
    """Return notes on jobs that were killed or rejected and on loads above 1, the worst run of each.

    Runs have the attributes ``COUNTED``.  With ``with_memory`` rejected jobs may need more memory than a node has, with
    ``with_rules`` rules or other jobs may never let them run.
    """
    if not runs:
        return []
    notes = []
    killed = [run for run in runs if run.killed > KILLED_SHARE * run.jobs]
    if killed:
        worst = max(killed, key=lambda run: run.killed / run.jobs)
        numbers = f"{worst.killed:,} of {worst.jobs:,} jobs ({100 * worst.killed / worst.jobs:.0f} %)"
        names = _names([run.policy for run in killed], [run.policy for run in runs])
        fact = f"{numbers} are killed at their wall-time limit under {names}"
        notes.append(Note(fact, "check the estimates, or let jobs run on", "--no-kill-at-estimate"))
    most = max(runs, key=lambda run: run.rejected)
    if most.rejected:
        others = ["of none", *["in need of more memory than a node has"] * with_memory]
        others += ["never let run by rules or by jobs that they depend on"] * with_rules
        notes.append(_too_large(most.rejected, most.nodes, unit, others))
    heaviest = max(runs, key=lambda run: 0.0 if isnan(run.load) else run.load)
    if heaviest.load > 1:
        more = f"more work arrives than {counted(heaviest.nodes, unit)} can do, and waits grow as long as jobs arrive"
        stretch = ceil(10 * heaviest.load / _LOAD_TO_TRY) / 10
        fact, options = f"the offered load is {heaviest.load:.3g}: {more}", f"--nodes, --scale-interarrival {stretch:g}"
        notes.append(Note(fact, "give more nodes, or more time between arrivals", options))
    return notes


def _too_large(jobs: int, nodes: int, unit: str, others: Sequence[str] = ("of none",)) -> Note:
    are_rejected = f"{counted(jobs, 'job')} {'is' if jobs == 1 else 'are'} rejected"
    fact = f"{are_rejected}: larger than the machine of {counted(nodes, unit)}, {', '.join([*others[:-1], f'or {others[-1]}'])}"
    return Note(fact, "give a larger machine, or leave such jobs out", f"--nodes, --size 1:{nodes}")


def notes_on_rejected(run: Result) -> list[Note]:
    """Return why jobs of a run are rejected, a note for each reason."""
    memory = _needing_too_much(run)
    limited = _beyond_limits(run, memory)
    large = run.summary().rejected - memory - limited
    notes = [_too_large(large, run.machine.processors, run.scenario.unit)] if large else []
    notes += [_too_much_memory(memory, run.machine)] if memory else []
    return notes + [Note(*words) for words in notes_on_rules(run, limited, rejected_only=True)]


def _long_tail(runs: Sequence[Summary]) -> list[Note]:
    """Return a note on runs whose utilization is far below the offered load, because most comes after the last submission.

    Loads above 1 have a note of their own.
    """
    after = [run for run in runs if run.load <= 1 and run.load_until_end < TAIL_SHARE * run.load]
    if not after:
        return []
    worst = min(after, key=lambda run: run.load_until_end / run.load)
    names = _names([run.policy for run in after], [run.policy for run in runs])
    share = 1 - worst.load_until_end / worst.load
    fact = f"{100 * share:.0f} % of the makespan under {names} is after the last submission, when ever fewer jobs are left: "
    fact += f"at an offered load of {worst.load:.2f}, the work is only {worst.load_until_end:.2f} of the capacity"
    return [Note(fact, "give more jobs, or shorter ones")]


def _estimates_in_minutes(runs: Sequence[Result]) -> list[Note]:
    for records in (run.records for run in runs):
        run, estimate = (records.column(name) for name in ("run", "estimate"))
        known = (estimate > 0) & (run > 0)
        ratios = run[known] / estimate[known]
        typical = float(np.median(ratios)) if known.any() else 0.0
        if typical >= _MINUTE / _MOST_OVERESTIMATED and (ratios > 1.05 * _MINUTE).mean() < KILLED_SHARE:
            fact = f"most jobs run longer than their estimates, at the median {typical:.3g} times as long: the estimates look "
            fact += "like minutes, the run times like seconds"
            return [Note(fact, "multiply the estimates by 60, or do without them", "--estimates run-time")]
    return []


def _same_schedule(runs: Sequence[Result], counts: Sequence[Summary]) -> list[Note]:
    if len(runs) < 2:
        return []
    first, *others = [np.array([run.records.column(name) for name in ("id", "start", "end")]) for run in runs]
    if not all(np.array_equal(first, other) for other in others):
        return []
    summary = runs[0].summary()
    since = summary.mean_wait_since_eligible_s
    waits = summary.mean_wait_s > 0 if since is None else since > 0
    return [same_results(len(runs), counts[0].load, waits=bool(waits), held=bool(summary.mean_wait_s > 0 and not waits))]


def same_results(policies: int, load: float, *, waits: bool, held: bool = False) -> Note:
    """Return the note on policies that make no difference; ``held`` jobs wait for rules or other jobs only."""
    fact = f"all {policies} policies give the same results"
    if held:
        fact = f"{fact}, because jobs wait only as long as rules or jobs that they depend on hold them"
        return Note(fact, "compare policies on more jobs, or on fewer nodes")
    if waits:
        return Note(fact, "compare policies whose rules differ on these jobs, or other jobs")
    if isnan(load):  # all jobs are submitted at one instant
        return Note(f"{fact}, because no job waits", "compare policies on more jobs")
    fact = f"{fact}, because no job waits at an offered load of {load:.2g}"
    return Note(fact, "raise the load for a comparison", "--scale-interarrival 0.5 doubles it")


def _above(limit: float, shares: Sequence[float], policies: Sequence[str]) -> tuple[str, str]:
    """Return the highest share, in percent, and the policies with a share above the limit."""
    chosen = [policy for policy, share in zip(policies, shares, strict=True) if share > limit]
    return f"{100 * max(shares):.0f} %", _names(chosen, policies)


def _names(some: Sequence[str], policies: Sequence[str]) -> str:
    names = list(dict.fromkeys(some))
    if len(names) > 1 and len(names) == len(set(policies)):
        return "each policy" if len(names) <= _NAMED else f"each of {len(names)} policies"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(shown, names[:_NAMED])) + more


# Costs and limits given for a machine that no compared policy uses.


class Costs(NamedTuple):
    """The machine of a run, and which of its costs the run uses, or before it may use."""

    policy: str
    machine: Machine
    uses: frozenset[str]
    in_time: bool  # gangs shared their nodes in time
    saved: bool  # checkpoints took time
    restarted: bool  # restarts took time
    stopped: bool  # run attempts ended before their jobs did
    reshaped: bool  # a job ran on another number of nodes than it asks for
    in_rounds: bool  # the policy may decide in rounds
    malleable: bool  # jobs may be malleable
    resized: bool  # gangs were resized
    speedup: Speedup

    @classmethod
    def of(cls, scenario: Specification) -> Costs:
        """Return what a run may use, before it."""
        policy = make_policy(scenario.policy)
        uses = dependencies_of(policy)
        own = isinstance(policy, PolicyFunction) or not type(policy).__module__.startswith("clustermodel.")
        in_rounds = own or hasattr(policy, "round_s")
        machine, in_time = scenario.used_machine, "time_slicing" in uses
        if may_resize(policy) and not own and (machine.resize_s is not None or not scenario.may_have_malleable):
            uses -= {"checkpointing"}  # only a resize is charged a checkpoint and a restart
        saves = "checkpointing" in uses or machine.checkpointing.interval_s is not None
        restarts = saves or machine.checkpointing.restart_charge != "on-start"
        malleable, resized = scenario.may_have_malleable, may_resize(policy)
        return cls(
            scenario.label, machine, uses, in_time, saves, restarts, True, True, in_rounds, malleable, resized, scenario.speedup
        )  # fmt: skip

    @classmethod
    def of_run(cls, run: Result) -> Costs:
        """Return what a run used."""
        saved, restarted = (sum(run.ledger.amount(account)) > 0 for account in (Account.CHECKPOINT, Account.RESTART))
        costs = cls.of(run.scenario)._replace(in_time=run.slices is not None, saved=saved, restarted=restarted)
        costs = costs._replace(resized=costs.malleable and run.summary().resizes > 0)
        if run.streamed:
            return costs
        allocated = run.records.allocated
        reshaped = bool((allocated != run.records.column("nodes"))[allocated > 0].any())
        return costs._replace(stopped=len(run.records.stopped_runs.job) > 0, reshaped=reshaped)

    @property
    def saves(self) -> bool:
        """Whether the policy may save or migrate gangs."""
        return "checkpointing" in self.uses and self.machine.checkpointing.max_tasks_per_slice != 0

    @property
    def transfers(self) -> bool:
        """Whether gangs may be written to the checkpoint store or read from it."""
        return "checkpointing" in self.uses or self.saved or self.restarted


# An option of ``clustermodel run``, its value, words for a value that is given, what to do so that it is used, whether it is.
_Cost = tuple[str, Callable[[Machine], object], str, str, Callable[[Costs], bool]]
_SHARE: Final = "compare policies that share nodes in time, such as bgs"
_SAVE: Final = "compare policies that save or migrate gangs, such as mbgs or pv-easy:mode=checkpoint"
_SWITCH: Final = "compare policies that share nodes in time or suspend jobs, such as bgs or ss"
_RESIZE: Final = "compare policies that resize malleable jobs, such as expand"
_of: Final[Any] = attrgetter
_COSTS: Final[tuple[_Cost, ...]] = (
    ("--quantum", _of("time_slicing.quantum_s"), "a quantum of {:g} s", _SHARE,
     lambda run: run.in_time or ("context_switch" in run.uses and bool(run.machine.context_switch.fraction))),
    ("--mpl", _of("time_slicing.mpl"), "a multiprogramming level of {}", _SHARE, _of("in_time")),
    ("--at-events", _of("time_slicing.at_events"), "at_events={}", _SHARE, _of("in_time")),
    ("--charge", _of("context_switch.charge"), "charge={}", _SHARE,
     lambda run: run.in_time and run.machine.uniform_switch != 0),
    ("--context-switch", lambda machine: to_seconds(machine.uniform_switch or 0), "a context switch of {:g} s", _SWITCH,
     lambda run: "context_switch" in run.uses),
    ("--set", lambda machine: machine.uniform_switch is None, "a context switch by number of nodes", _SWITCH,
     lambda run: "context_switch" in run.uses),
    ("--suspended-per-node", _of("suspended_per_node"), "a limit of {} suspended tasks per node",
     "compare policies that suspend jobs, such as ss", lambda run: "suspended_per_node" in run.uses),
    ("--checkpoint", _of("checkpointing.checkpoint_s"), "checkpoints of {:g} s", _SAVE,
     lambda run: run.saves or run.saved),
    ("--restart", _of("checkpointing.restart_s"), "restarts of {:g} s", _SAVE, lambda run: run.saves or run.restarted),
    ("--store-bandwidth", _of("checkpointing.store"), "a checkpoint store with a bandwidth", _SAVE, _of("transfers")),
    ("--restart-charge", _of("checkpointing.restart_charge"), "restart_charge={}", _SAVE, _of("restarted")),
    ("--max-migrating-tasks", _of("checkpointing.max_tasks_per_slice"), "the limit Q = {} of migrating tasks", _SAVE,
     _of("transfers")),
    ("--count-migrating", _of("checkpointing.counts"), "counts={}",
     "compare policies that migrate gangs in rows, such as mbgs, with a limit Q",
     lambda run: run.in_time and run.saves and run.machine.checkpointing.max_tasks_per_slice is not None),
    ("--checkpoint-interval", _of("checkpointing.interval_s"), "periodic checkpoints without a cost (interval_s={})",
     "let nodes fail", lambda run: run.machine.failures is not None or run.stopped or run.saved),
    ("--resize-s", _of("resize_s"), "resizes of {:g} s", _RESIZE, _of("resized")),
    ("--on-failure", _of("on_failure"), "on_failure={}", _RESIZE, _of("resized")),
    ("--round", _of("round_s"), "rounds of {:g} s", "compare policies that decide in rounds, such as srtf",
     lambda run: run.in_rounds or (run.machine.checkpointing.restart_charge == "every-round" and run.restarted)),
    ("--allocation", lambda machine: machine.allocation == "consolidate", "allocation=consolidate",
     "give nodes several processors", lambda run: run.machine.has_shared_nodes),
)  # fmt: skip
"""Costs and limits of the machine; those that the same runs use stand together."""
_NOT_GIVEN: Final = Machine(nodes=1)


def _replaced_costs(runs: Sequence[Result]) -> Iterator[Note]:
    """Yield notes on costs of a transfer that no job pays, because each has its own."""
    for name in ("checkpoint", "restart"):
        value = attrgetter(f"machine.checkpointing.{name}_s")
        given = set(map(value, runs)) - {getattr(_NOT_GIVEN.checkpointing, f"{name}_s")}
        columns = [run.scenario.streams.column(name, run.records.column("id")) for run in runs]
        own = [column for column in columns if column is not None and len(column)]
        if given and len(own) == len(columns) and all((each != UNSET).all() for each in own):
            least, most = (f"{to_seconds(end(end(each) for each in own)):g}" for end in (min, max))
            each = f"all jobs have their own, of {least if least == most else f'{least} to {most}'} s"
            yield Note(
                f"{name}s of {max(given):g} s: no effect; {each}", "leave it out, or read the jobs without it", f"--{name}"
            )


def _unused_malleable(runs: Sequence[Costs]) -> Iterator[Note]:
    if any(run.malleable for run in runs) and not any(run.malleable and run.resized for run in runs):
        names = _names([run.policy for run in runs], [run.policy for run in runs])
        yield Note(f"malleable jobs: no effect under {names}", _RESIZE, "--policy")


def unused_costs(runs: Sequence[Costs]) -> list[Note]:
    """Return notes on costs and limits that were given and change nothing in any of the runs, by what would use them."""
    return [*unused_costs_of_machines(runs), *_unused_malleable(runs)]


def unused_costs_of_machines(runs: Sequence[Costs]) -> list[Note]:
    """Return the same without malleable jobs, which are a rule of a site."""
    notes = []
    names = _names([run.policy for run in runs], [run.policy for run in runs])
    for needed, costs in groupby(_COSTS, key=itemgetter(3)):
        words: list[str] = []
        options: list[str] = []
        for option, value, text, _, is_used in costs:
            given = [run for run in runs if value(run.machine) != value(_NOT_GIVEN)]
            # A policy that does not declare what it uses (dependencies_of) may use everything.
            if given and not any(run.uses.issuperset((*PARTS, RANDOM_NUMBERS)) or is_used(run) for run in given):
                words += dict.fromkeys(text.format(value(run.machine)) for run in given)
                options.append(option)
        if words:
            *others, last = words
            given_costs = f"{', '.join(others)} and {last}" if others else last
            notes.append(Note(f"{given_costs}: no effect under {names}", f"leave it out, or {needed}", ", ".join(options)))
    models = [run for run in runs if run.speedup != LINEAR]
    if models and not any(run.reshaped for run in models):
        advice = "leave it out, or compare policies that choose sizes, such as R/L:width=half"
        notes.append(Note(f"a speedup model: no effect under {names}", advice, "--speedup"))
    return notes
