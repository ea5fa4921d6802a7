"""Costs and limits given for a machine that no compared policy uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from clustermodel.machine import Machine
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, uses_of
from clustermodel.policies.preemptive import PreemptiveScheduler
from clustermodel.policies.registry import make_policy
from clustermodel.recording.ledger import Account
from clustermodel.speedup import LINEAR, Speedup
from clustermodel.ticks import to_seconds

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result


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
    charged: frozenset[Account]
    """Accounts of overheads with an amount."""
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


class _Cost(NamedTuple):
    """A cost or a limit of the machine."""

    option: str
    """Of ``clustermodel run``."""
    value: Callable[[Machine], object]
    words: str
    """A format string for a value that is given."""
    is_used: Callable[[_Run], bool]


def _transfers(run: _Run) -> bool:
    """Return whether gangs may be written to the checkpoint store or read from it."""
    return "checkpointing" in run.uses or bool(run.charged)


_NOT_GIVEN: Final = Machine(nodes=1)
_COSTS: Final[tuple[tuple[str, tuple[_Cost, ...]], ...]] = (
    (
        "compare policies that share nodes in time, such as bgs",
        (
            _Cost(
                "--quantum",
                lambda machine: machine.time_slicing.quantum_s,
                "a quantum of {:g} s",
                lambda run: run.in_time or ("context_switch" in run.uses and bool(run.machine.context_switch.fraction)),
            ),
            _Cost(
                "--mpl",
                lambda machine: machine.time_slicing.mpl,
                "a multiprogramming level of {}",
                lambda run: run.in_time,
            ),
            _Cost("--at-events", lambda machine: machine.time_slicing.at_events, "at_events={}", lambda run: run.in_time),
            _Cost(
                "--charge",
                lambda machine: machine.context_switch.charge,
                "charge={}",
                lambda run: run.in_time and run.machine.switch_ticks > 0,
            ),
        ),
    ),
    (
        "compare policies that share nodes in time or suspend jobs, such as bgs or ss",
        (
            _Cost(
                "--context-switch",
                lambda machine: to_seconds(machine.switch_ticks),
                "a context switch of {:g} s",
                lambda run: "context_switch" in run.uses,
            ),
        ),
    ),
    (
        "compare policies that suspend jobs, such as ss",
        (
            _Cost(
                "--suspended-per-node",
                lambda machine: machine.suspended_per_node,
                "a limit of {} suspended tasks per node",
                lambda run: "suspended_per_node" in run.uses,
            ),
        ),
    ),
    (
        "compare policies that save or migrate gangs, such as mbgs or pv-easy:mode=checkpoint",
        (
            _Cost(
                "--checkpoint",
                lambda machine: machine.checkpointing.checkpoint_s,
                "checkpoints of {:g} s",
                lambda run: run.saves or Account.CHECKPOINT in run.charged,
            ),
            _Cost(
                "--restart",
                lambda machine: machine.checkpointing.restart_s,
                "restarts of {:g} s",
                lambda run: run.saves or Account.RESTART in run.charged,
            ),
            _Cost(
                "--store-bandwidth",
                lambda machine: machine.checkpointing.store,
                "a checkpoint store with a bandwidth",
                _transfers,
            ),
            _Cost(
                "--restart-charge",
                lambda machine: machine.checkpointing.restart_charge,
                "restart_charge={}",
                lambda run: Account.RESTART in run.charged,
            ),
            _Cost(
                "--max-migrating-tasks",
                lambda machine: machine.checkpointing.max_tasks_per_slice,
                "the limit Q = {} of migrating tasks",
                _transfers,
            ),
        ),
    ),
    (
        "compare policies that migrate gangs in rows, such as mbgs, with a limit Q",
        (
            _Cost(
                "--count-migrating",
                lambda machine: machine.checkpointing.counts,
                "counts={}",
                lambda run: run.in_time and run.saves and run.machine.checkpointing.max_tasks_per_slice is not None,
            ),
        ),
    ),
    (
        "let nodes fail",
        (
            _Cost(
                "--checkpoint-interval",
                lambda machine: machine.checkpointing.interval_s,
                "periodic checkpoints without a cost (interval_s={})",
                lambda run: run.machine.failures is not None or run.stopped or Account.CHECKPOINT in run.charged,
            ),
        ),
    ),
    (
        "compare policies that decide in rounds, such as srtf",
        (
            _Cost(
                "--round",
                lambda machine: machine.round_s,
                "rounds of {:g} s",
                lambda run: (
                    run.in_rounds
                    or (run.machine.checkpointing.restart_charge == "every-round" and Account.RESTART in run.charged)
                ),
            ),
        ),
    ),
    (
        "give nodes several processors",
        (
            _Cost(
                "--allocation",
                lambda machine: machine.allocation == "consolidate",
                "allocation=consolidate",
                lambda run: run.machine.gpus_per_node > 1,
            ),
        ),
    ),
)
"""Costs and limits of the machine, by what uses them."""


def unused_costs(runs: Sequence[Result]) -> Iterator[Unused]:
    """Yield the costs and limits that were given and change nothing in any run, by what would use them.

    A policy that does not declare what it uses (:class:`~clustermodel.policies.interface.Dependent`) may use everything.

    Args:
        runs: that are compared.
    """
    looked_at = [_looked_at(run) for run in runs]
    for needed, costs in _COSTS:
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
    charged = frozenset(account for account in (Account.CHECKPOINT, Account.RESTART) if sum(run.ledger.amount(account)))
    stopped = reshaped = True
    if not run.streamed:
        stopped = len(run.records.stopped_runs.job) > 0
        allocated = run.records.allocated
        reshaped = bool((allocated != run.records.column("nodes"))[allocated > 0].any())
    shipped = type(policy).__module__.startswith("clustermodel.")
    in_rounds = isinstance(policy, PreemptiveScheduler) or not shipped
    return _Run(
        run.machine, uses_of(policy), run.slices is not None, charged, stopped, reshaped, in_rounds, run.scenario.speedup
    )


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
