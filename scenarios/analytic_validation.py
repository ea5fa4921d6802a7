"""Does the simulation agree with what can be computed without it?

One table: a quantity, its formula, what the simulation shows, and whether the two agree.  Some agreement is statistical: the
mean over replications has a 95 % interval, and the formula should lie in it, nineteen times out of twenty.

* M/M/c: mean wait of one-node jobs under FCFS, by Erlang's formula.
* M/G/1: mean response on one node, FCFS by the Pollaczek-Khinchine formula, gang scheduling with slices of 50 ms as processor
  sharing.
* Rigid jobs with exponential run times under FCFS when jobs always wait: the highest utilization (Rumyantsev and Morozov 2017).

Some is exact, run by run:

* loss of capacity kappa by eqs. (2) and (3) of 002 (002_8335dd3215a2768d.txt, section 2.3), and by the ledger;
* kappa = 1 - rho_max at saturation (section 2.3), until the last job starts;
* overhead of migration by eqs. (4) and (5) (section 5.4), and what nodes spent.

    python scenarios/analytic_validation.py                          a small study
    python scenarios/analytic_validation.py --full --figure analytic_validation.png

Replication r has seed r everywhere.  Under it each statistical row has random streams of its own, so that rows are independent
and those that miss can be counted; where equality is exact, all policies have the same jobs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from math import isnan
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from reporting import (
    FloatArray,
    Grid,
    Interval,
    Runs,
    add_usual_options,
    in_parallel,
    interval,
    label_axes,
    percent,
    read,
    report,
    whole,
)

from clustermodel import (
    TICKS_PER_SECOND,
    Account,
    Batch,
    Checkpointing,
    ContextSwitch,
    Decision,
    JobRow,
    Machine,
    Migrate,
    Policy,
    Result,
    Scenario,
    Setup,
    TimeSlicing,
    View,
    Workload,
    make_policy,
    to_seconds,
)
from clustermodel.experiment.random_streams import random_stream
from clustermodel.figures.style import BLUE, GREEN, PURPLE, VERMILLION
from clustermodel.theory.capacity import capacity_loss, gang_capacity_loss
from clustermodel.theory.migration import option_1_overhead, option_2_overhead
from clustermodel.theory.queueing import mg1_mean_wait, mg1_ps_mean_response, mmc_mean_wait, multiserver_job_utilization

FULL_JOBS: Final = 4_000
SMALL_JOBS: Final = 1_000
FULL_REPLICATIONS: Final = 20
SMALL_REPLICATIONS: Final = 5
EXACT_SHARE: Final = 10
"""Identities need no long runs: theirs have a tenth of the jobs."""
MEAN_S: Final = 100.0
"""Mean run time, seconds."""
NODES: Final = 8
"""Of the machine for rigid jobs."""
LOAD: Final = 0.75
"""Of rigid jobs where they do not all come at once: more than FCFS can carry."""
PS_QUANTUM_S: Final = 0.05
PS_ROWS: Final = 128
"""As many as there ever are jobs: nobody waits."""
QUANTUM_S: Final = 20.0
SWITCH: Final = 0.02
CHECKPOINT_S: Final = 3.0
RESTART_S: Final = 7.0
"""Longer than a checkpoint, so that eqs. (4) and (5) cannot be mistaken for each other."""
EXACTLY: Final = 1e-9
"""Largest difference, absolute or relative to the formula if that is more than one, that rounding can explain."""
UNIFORM: Final = "1 to 8 nodes alike"
POWERS: Final = "1, 2, 4 or 8 nodes alike"
CHARGES: Final[tuple[Literal["every-slice", "on-change"], ...]] = ("every-slice", "on-change")

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table, to be replicated."""

    family: str
    quantity: str
    """Names the row within its family."""
    measure: Callable[[Case, int, int], Row]
    """Simulates the case with a number of jobs and a seed; returns formula, simulated value and what else is kept."""
    policy: str
    x: float | None = None
    """Where it stands in the figure: load, or share of wide jobs."""
    curve: str | None = None
    """On which of the figure's curves it stands."""
    nodes: int = NODES
    shape: str = "exponential"
    """Of run times."""
    sizes: Mapping[int, float] | None = None
    """Nodes of a job -> probability."""
    charge: Literal["every-slice", "on-change"] | None = None

    def stream(self, seed: int, purpose: str) -> np.random.Generator:
        """Return the random stream of one attribute of the jobs."""
        jobs = f"{self.family}: {self.quantity}" if self.family in STATISTICAL else "the same for all"
        return random_stream(seed, f"{purpose} of {jobs}")


# Jobs.


def run_times(case: Case, jobs: int, seed: int) -> FloatArray:
    """Return run times with a mean of 100 s, seconds."""
    rng = case.stream(seed, "run times")
    if case.shape == "constant":
        return np.full(jobs, MEAN_S)
    if case.shape == "hyperexponential":  # four of five have a mean of 40 s, the others 340 s; the squared CV is 3.88
        return rng.exponential(np.where(rng.random(jobs) < 0.8, 40.0, 340.0))
    return rng.exponential(MEAN_S, jobs)


VARIANCE_S2: Final = {
    "constant": 0.0,
    "exponential": MEAN_S**2,
    "hyperexponential": 2 * (0.8 * 40.0**2 + 0.2 * 340.0**2) - MEAN_S**2,
}
"""Of run times, seconds squared."""


def poisson(case: Case, rate: float, jobs: int, seed: int) -> FloatArray:
    """Return times of submission, seconds."""
    return np.cumsum(case.stream(seed, "arrivals").exponential(size=jobs)) / rate


def sizes_of(case: Case, jobs: int, seed: int) -> FloatArray:
    """Return nodes of jobs."""
    assert case.sizes is not None
    sizes, probabilities = np.array(list(case.sizes), dtype=float), list(case.sizes.values())
    return case.stream(seed, "sizes").choice(sizes, size=jobs, p=probabilities)


def workload(submit_s: FloatArray, run_s: FloatArray, nodes: FloatArray) -> Workload:
    """Return jobs that know their run times."""
    submit, run = (np.round(times * TICKS_PER_SECOND).astype(np.int64) for times in (submit_s, run_s))
    columns = zip(submit.tolist(), np.maximum(run, 1).tolist(), nodes.astype(int).tolist(), strict=True)
    return Workload([JobRow(s, number, n, r, r, -1, -1, 0, -1) for number, (s, r, n) in enumerate(columns)])


# Statistical agreement.


def one_node_jobs(case: Case, jobs: int, seed: int, machine: Machine) -> Result:
    assert case.x is not None
    submit, run = poisson(case, case.x * machine.nodes / MEAN_S, jobs, seed), run_times(case, jobs, seed)
    return Scenario(machine=machine, workload=workload(submit, run, np.ones(jobs)), policy=case.policy, seed=seed).run()


def counted_mean(result: Result, column: str) -> float:
    """Return the mean over the jobs after the first fifth, in which the machine fills, and before the last twentieth, who have
    it more and more to themselves.
    """
    values = result.jobs[column].to_numpy()
    return float(values[len(values) // 5 : len(values) - len(values) // 20].mean())


def measure_mmc(case: Case, jobs: int, seed: int) -> Row:
    assert case.x is not None
    result = one_node_jobs(case, jobs, seed, Machine(nodes=case.nodes))
    return {"formula": mmc_wait(case.nodes, case.x), "simulated": counted_mean(result, "wait_s")}


def mmc_wait(nodes: int, load: float) -> float:
    """Return the mean wait by formula, seconds."""
    return mmc_mean_wait(nodes, load * nodes / MEAN_S, MEAN_S)


def mg1_response(policy: str, shape: str, load: float) -> float:
    """Return the mean response on one node by formula, seconds."""
    if policy == "fcfs":
        return MEAN_S + mg1_mean_wait(load / MEAN_S, MEAN_S, VARIANCE_S2[shape])
    return mg1_ps_mean_response(load / MEAN_S, MEAN_S)


def highest_utilization(nodes: int, share: float) -> float:
    """Return the highest utilization by formula where so large a share of the jobs has ``nodes``, the others one."""
    return multiserver_job_utilization(NODES, wide(nodes, share))


def measure_mg1(case: Case, jobs: int, seed: int) -> Row:
    assert case.x is not None
    machine = Machine(nodes=1, time_slicing=TimeSlicing(quantum_s=PS_QUANTUM_S, mpl=PS_ROWS))
    result = one_node_jobs(case, jobs, seed, machine)
    if case.policy == "gs" and result.jobs["wait_s"].any():
        raise ValueError(f"{case.quantity}: {PS_ROWS} rows are not enough for processor sharing; a job has waited")
    return {"formula": mg1_response(case.policy, case.shape, case.x), "simulated": counted_mean(result, "response_s")}


def at_once(case: Case, jobs: int, seed: int) -> Workload:
    """Return rigid jobs that are all submitted at the same time."""
    return workload(np.zeros(jobs), run_times(case, jobs, seed), sizes_of(case, jobs, seed))


def measure_saturation(case: Case, jobs: int, seed: int) -> Row:
    """Measure utilization from when a tenth of the jobs have started until the last one starts."""
    assert case.sizes is not None
    table = Scenario(machine=Machine(nodes=NODES), workload=at_once(case, jobs, seed), policy="fcfs", seed=seed).run().jobs
    start, end, nodes = (table[name].to_numpy(dtype=float) for name in ("start_s", "end_s", "nodes"))
    begin, stop = np.sort(start)[jobs // 10], start.max()
    busy = float(nodes @ np.clip(np.minimum(end, stop) - np.maximum(start, begin), 0, None))
    formula = multiserver_job_utilization(NODES, case.sizes)
    return {"formula": formula, "simulated": busy / (NODES * (stop - begin))}


# Exact agreement.


def shared_machine(case: Case) -> Machine:
    """Return a machine on which context switches and migrations take time, if the case has any."""
    if case.charge is None:
        return Machine(nodes=NODES)
    return Machine(
        nodes=NODES,
        time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=4),
        context_switch=ContextSwitch(fraction=SWITCH, charge=case.charge),
        checkpointing=Checkpointing(checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S),
    )


def rigid_jobs(case: Case, jobs: int, seed: int) -> Workload:
    assert case.sizes is not None
    mean_nodes = sum(size * probability for size, probability in case.sizes.items())
    submit = poisson(case, LOAD * case.nodes / (mean_nodes * MEAN_S), jobs, seed)
    return workload(submit, run_times(case, jobs, seed), sizes_of(case, jobs, seed))


def measure_kappa(case: Case, jobs: int, seed: int) -> Row:
    jobs = max(2, jobs // EXACT_SHARE)
    result = Scenario(machine=shared_machine(case), workload=rigid_jobs(case, jobs, seed), policy=case.policy, seed=seed).run()
    return {"formula": result.kappa_by_formula, "simulated": result.ledger.capacity_loss}


def measure_saturated(case: Case, jobs: int, seed: int) -> Row:
    """Measure kappa and 1 - rho until the last job starts, and over the whole run.

    Until the last start a job always waits, which is saturation.  Neither of the two comes from the ledger: rho counts run
    times in the job table, kappa empty and held up nodes in the log of events and slices.
    """
    jobs = max(2, jobs // EXACT_SHARE)
    machine = shared_machine(case)
    result = Scenario(machine=machine, workload=at_once(case, jobs, seed), policy=case.policy, seed=seed).run()
    start, end, nodes = (result.jobs[name].to_numpy(dtype=float) for name in ("start_s", "end_s", "nodes"))
    last = start.max()
    if result.slices is None:
        log = result.events
        until = slice(0, int(np.searchsorted(log.time_s, last)) + 1)
        kappa = capacity_loss(log.time_s[until], (log.empty + log.held_up)[until], log.waiting[until], NODES)
        done = float(nodes @ np.clip(np.minimum(end, last) - start, 0, None))
    else:
        quantum, switch = machine.time_slicing.quantum, machine.switch_ticks
        stretches = list(result.slices)
        saturated = [stretch for stretch in stretches if stretch.waiting]
        draining = [
            stretch._replace(waiting=True) for stretch in stretches[len(saturated) :]
        ]  # as if all that it loses counted
        kappa = gang_capacity_loss(saturated, quantum, switch, NODES)
        later = NODES * (end.max() - last) * (1 - gang_capacity_loss(draining, quantum, switch, NODES))
        done = float(nodes @ result.jobs["run_s"].to_numpy(dtype=float)) - later
    whole_run = {"jobs": jobs, "rho": result.ledger.utilization, "kappa": result.ledger.capacity_loss}
    return {"formula": 1 - done / (NODES * last), "simulated": kappa, **whole_run}


class Watched:
    """A policy whose migrations are added up by eqs. (4) and (5).

    Args:
        policy: what decides.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.overhead_s = 0.0
        """Node-seconds."""
        self.several_move = 0
        """Migrations in which several gangs move, which only option 1 has."""
        self.several_wait = 0
        """Migrations for which several gangs wait, which only option 2 has."""

    @property
    def name(self) -> str:
        """Its name."""
        return self._policy.name

    def begin(self, setup: Setup) -> None:
        """Let it begin."""
        self._policy.begin(setup)

    def decide(self, batch: Batch, view: View) -> Iterable[Decision]:
        """Let it decide, and add up."""
        decisions = list(self._policy.decide(batch, view))
        for decision in decisions:
            if isinstance(decision, Migrate):
                moves, waits = [job.nodes for job, _ in decision.moves], [job.nodes for job in decision.blocked]
                self.several_move += len(moves) > 1
                self.several_wait += len(waits) > 1
                if len(waits) > 1:  # option 2: A moves, those in its way wait
                    self.overhead_s += option_2_overhead(sum(moves), waits, CHECKPOINT_S, RESTART_S)
                else:  # option 1: A waits (if it runs already); where one moves and one waits, (4) and (5) say the same
                    self.overhead_s += option_1_overhead(sum(waits), moves, CHECKPOINT_S, RESTART_S)
        return decisions


def measure_migration(case: Case, jobs: int, seed: int) -> Row:
    """Measure what nodes spend on migration; switches are free, for on change nodes also wait for others of their gang."""
    jobs = max(2, jobs // EXACT_SHARE)
    watched = Watched(make_policy(case.policy))
    machine = Machine(
        nodes=case.nodes,
        time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=4),
        checkpointing=Checkpointing(checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S),
    )
    ledger = Scenario(machine=machine, workload=rigid_jobs(case, jobs, seed), policy=watched, seed=seed).run().ledger
    spent = sum(sum(ledger.amount(account)) for account in (Account.CHECKPOINT, Account.RESTART, Account.BLOCKED))
    counts = {"several_move": watched.several_move, "several_wait": watched.several_wait}
    return {"formula": watched.overhead_s, "simulated": to_seconds(spent), **counts}


# What is run.


MMC: Final = "M/M/c under FCFS: mean wait (s)"
MG1_FCFS: Final = "M/G/1 under FCFS: mean response (s)"
MG1_PS: Final = "M/G/1-PS by GS: mean response (s)"
SATURATION: Final = f"Rigid jobs under FCFS, {NODES} nodes: highest utilization"
KAPPA: Final = "κ by eqs. (2), (3) and by the ledger"
SATURATED: Final = "1 - ρ_max and κ, until the last start"
MIGRATION: Final = "Migration by eqs. (4), (5) and as spent (node-s)"
STATISTICAL: Final = (MMC, MG1_FCFS, MG1_PS, SATURATION)
EXACT: Final = (KAPPA, SATURATED, MIGRATION)
COLOURS: Final = dict(zip(STATISTICAL, (BLUE, VERMILLION, GREEN, PURPLE), strict=True))


def wide(nodes: int, probability: float) -> dict[int, float]:
    """Return sizes of one-node jobs and wide ones."""
    return {1: 1 - probability, nodes: probability}


def cases(*, full: bool) -> list[Case]:
    loads = [0.5, 0.7, 0.85] if full else [0.5, 0.8]
    found = [
        Case(family=MMC, quantity=f"c = {c}, ρ = {load}", measure=measure_mmc, policy="fcfs", x=load, curve=f"c = {c}", nodes=c)
        for c in ((1, 4, 16) if full else (1, 4))
        for load in loads
    ]
    for family, policy in ((MG1_FCFS, "fcfs"), (MG1_PS, "gs")):
        for shape, loads in (
            ("hyperexponential", [0.3, 0.5, 0.7, 0.8] if full else [0.5, 0.7]),
            ("constant", [0.5, 0.7] if full else [0.7]),
        ):
            found += [
                Case(
                    family=family,
                    quantity=f"{shape} run times, ρ = {load}",
                    measure=measure_mg1,
                    policy=policy,
                    x=load,
                    curve=f"{policy.upper()}, {shape}",
                    nodes=1,
                    shape=shape,
                )
                for load in loads
            ]
    for nodes in (4, 5, 8) if full else (5, 8):
        for share in (0.05, 0.2, 0.5, 0.8) if full else (0.2, 0.8):
            found.append(
                Case(
                    family=SATURATION,
                    quantity=f"{100 * share:g} % of the jobs have {nodes} nodes, the others 1",
                    measure=measure_saturation,
                    policy="fcfs",
                    x=share,
                    curve=f"wide: {nodes} nodes",
                    sizes=wide(nodes, share),
                )
            )
    uniform = dict.fromkeys(range(1, NODES + 1), 1 / NODES)
    for name, sizes in ((UNIFORM, uniform), (POWERS, dict.fromkeys((1, 2, 4, 8), 0.25))):
        found.append(Case(family=SATURATION, quantity=name, measure=measure_saturation, policy="fcfs", sizes=sizes))
    return found + exact_cases(uniform)


def exact_cases(sizes: Mapping[int, float]) -> list[Case]:
    found = []
    for family, measure in ((KAPPA, measure_kappa), (SATURATED, measure_saturated)):
        for policy in ("fcfs", "bf"):
            equation = ", eq. (2)" if family == KAPPA else ""
            found.append(Case(family=family, quantity=policy.upper() + equation, measure=measure, policy=policy, sizes=sizes))
        for policy in ("gs", "bgs", "mgs", "mbgs"):
            equation = ", eq. (3)" if family == KAPPA else ""
            found += [
                Case(
                    family=family,
                    quantity=f"{policy.upper()}{equation}, switches paid {charge.replace('-', ' ')}",
                    measure=measure,
                    policy=policy,
                    sizes=sizes,
                    charge=charge,
                )
                for charge in CHARGES
            ]
    return found + [
        Case(
            family=MIGRATION,
            quantity=f"{policy.upper()}, {nodes} nodes",
            measure=measure_migration,
            policy=policy,
            nodes=nodes,
            sizes=sizes,
        )
        for policy in ("mgs", "mbgs")
        for nodes in (NODES, 4 * NODES)
    ]


KEPT: Final = ("formula", "simulated", "jobs", "rho", "kappa", "several_move", "several_wait")


def run(case: Case, jobs: int, seed: int) -> Row:
    """Simulate one replication of a case."""
    place = {"family": case.family, "quantity": case.quantity, "policy": case.policy, "curve": case.curve, "x": case.x}
    found = case.measure(case, jobs, seed)
    return {**place, "replication": seed, **{name: found.get(name) for name in KEPT}}


def options_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--full", action="store_true", help=f"more rows, {FULL_JOBS:,} jobs in a run")
    add("--jobs", type=whole, help=f"jobs in a run (default {SMALL_JOBS:,}; {FULL_JOBS:,} with --full)")
    default = f"default {SMALL_REPLICATIONS}; {FULL_REPLICATIONS} with --full"
    add("--replications", type=whole, help=f"independent seeds ({default})")
    add_usual_options(parser, study="analytic_validation")
    return parser


def runs_of(options: argparse.Namespace) -> Runs:
    """Run all cases in all replications, or read them from where they are stored."""
    if options.stored:
        return read(options.stored)
    jobs = options.jobs or (FULL_JOBS if options.full else SMALL_JOBS)
    replications = options.replications or (FULL_REPLICATIONS if options.full else SMALL_REPLICATIONS)
    tasks = [(case, jobs, seed) for seed in range(1, replications + 1) for case in cases(full=options.full)]
    facts = {
        "study": options.study,
        "clustermodel": version("clustermodel"),
        "jobs": jobs,
        "replications": replications,
    }
    return Runs(facts, in_parallel(run, tasks, options.workers))


# Tables.


def difference(here: Runs) -> Interval:
    """Return simulated - formula; a formula that depends on the jobs is taken replication by replication."""
    return interval(here.values("simulated") - here.values("formula"))


def furthest(here: Runs) -> float:
    """Return the largest difference of any run, relative to a formula above one."""
    formula = here.values("formula")
    return float((np.abs(here.values("simulated") - formula) / np.maximum(1, np.abs(formula))).max())


def holds(here: Runs) -> bool:
    """Return whether the 95 % interval holds the formula."""
    apart = difference(here)
    return abs(apart.mean) <= apart.half


def number(value: float) -> str:
    """Write about four digits."""
    size = abs(value)
    return (
        f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.2f}" if size >= 10 else f"{value:.4f}"
    )


def points(runs: Runs, family: str) -> list[Runs]:
    """Return the runs of each row of a family."""
    of_all = runs.at(family=family)
    return [of_all.at(quantity=quantity) for quantity in of_all.distinct("quantity")]


def tables(runs: Runs) -> list[Grid]:
    rows, counts = [], []
    for family in (*STATISTICAL, *EXACT):
        every = points(runs, family)
        rows.append([family, "", "", "", ""])
        for here in every:
            formula, apart = here.interval("formula"), difference(here)
            cells = [here.distinct("quantity")[0], number(formula.mean), here.interval("simulated").shown(number)]
            if family in EXACT:
                cells += [f"at most {furthest(here):.0e}", "equal" if furthest(here) <= EXACTLY else "DIFFERENT"]
            elif isnan(apart.half):
                cells += [f"{100 * apart.mean / formula.mean:+.1f} %", "-"]
            else:
                cells += [f"{100 * apart.mean / formula.mean:+.1f} %", "inside" if holds(here) else "OUTSIDE"]
            rows.append(cells)
        if family in EXACT:
            agree, wanted = sum(furthest(here) <= EXACTLY for here in every), str(len(every))
            width = "-"
        else:
            agree, wanted = sum(map(holds, every)), f"{0.95 * len(every):.1f}"
            halves = [difference(here).half / here.interval("formula").mean for here in every]
            width = "-" if isnan(halves[0]) else f"{percent(min(halves))} to {percent(max(halves))}"
        counts.append([family, str(len(every)), str(agree), wanted, width])
    headings = ["", "formula", "simulated ± 95 % interval", "simulated - formula", "formula in the interval, or equal"]
    return [
        Grid(f"Formula and simulation, {size_of(runs)}", headings, rows),
        Grid(
            "How many rows agree",
            ["", "rows", "agree", "expected", "half width of the intervals, in per cent of the formula"],
            counts,
        ),
        saturated_table(runs),
    ]


def saturated_table(runs: Runs) -> Grid:
    known = points(runs.at(quantity=UNIFORM), SATURATION)[0].interval("formula").mean
    rows = []
    for here in points(runs, SATURATED):
        rho, kappa = here.interval("rho"), here.interval("kappa")
        left = interval(1 - here.values("rho") - here.values("kappa"))
        rows.append(
            [
                here.distinct("quantity")[0],
                f"{1 - known:.4f}" if here.distinct("policy") == ["fcfs"] else "-",
                here.interval("simulated").shown(number),
                number(1 - rho.mean),
                number(kappa.mean),
                left.shown(number),
            ]
        )
    jobs = runs.at(family=SATURATED).distinct("jobs")[0]
    headings = [
        "", "1 - ρ_max by Rumyantsev and Morozov", "κ = 1 - ρ until the last start", "whole run: 1 - ρ", "whole run: κ",
        "whole run: lost while no job waits",
    ]  # fmt: skip
    title = f"Saturation: {jobs:,} jobs of {UNIFORM} at once, {NODES} nodes, {runs.facts['replications']} replications"
    return Grid(title, headings, rows)


def size_of(runs: Runs) -> str:
    """Return the size of the study in words."""
    jobs, count = runs.facts["jobs"], runs.facts["replications"]
    assert isinstance(jobs, int)
    replications = f"{count} replication{'s' if count != 1 else ''}"
    return f"{jobs:,} jobs ({max(2, jobs // EXACT_SHARE):,} where equality is exact), {replications}"


# Figure.


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(12, 9), layout="constrained")
    (waits, responses), (saturation, apart) = picture.subplots(2, 2)
    loads = np.linspace(0.2, 0.9, 141)
    draw_curves(waits, runs.at(family=MMC), loads, {f"c = {c}": partial(mmc_wait, c) for c in (1, 4, 16)})
    waits.set_yscale("log")
    waits.set_ylim(bottom=0.05)
    label_axes(waits, "load ρ", "mean wait (s)")
    waits.set_title("M/M/c")
    one_node = Runs(runs.facts, [*runs.at(family=MG1_FCFS).rows, *runs.at(family=MG1_PS).rows])
    draw_curves(
        responses,
        one_node,
        loads,
        {
            f"{policy.upper()}, {shape}": partial(mg1_response, policy, shape)
            for policy in ("fcfs", "gs")
            for shape in ("hyperexponential", "constant")
        },
    )
    responses.set_yscale("log")
    label_axes(responses, "load ρ", "mean response (s)")
    responses.set_title("M/G/1: FCFS, and GS with short slices as processor sharing")
    of_share = {f"wide: {nodes} nodes": partial(highest_utilization, nodes) for nodes in (4, 5, 8)}
    draw_curves(saturation, runs.at(family=SATURATION), np.linspace(0, 1, 201), of_share)
    label_axes(saturation, f"share of wide jobs; the others have 1 of {NODES} nodes", "highest utilization ρ_max")
    saturation.set_title("rigid jobs under FCFS")
    draw_standardized(apart, runs)
    picture.suptitle(f"Lines: formulas; points: simulation with 95 % intervals; {size_of(runs)}")
    return picture


def draw_curves(axes: Axes, runs: Runs, x: FloatArray, formulas: Mapping[str, Callable[[float], float]]) -> None:
    """Draw formulas as lines and the means of the runs on them as points with intervals."""
    colours = (BLUE, VERMILLION, GREEN, PURPLE)
    styles = ("-", (0, (4, 1.5)), (0, (1, 1.5)), (0, (4, 1.5, 1, 1.5)))
    for position, (curve, formula) in enumerate(formulas.items()):
        here = runs.at(curve=curve)
        if not here.rows:
            continue
        look: dict[str, Any] = {"color": colours[position]}
        axes.plot(x, [formula(at) for at in x.tolist()], linewidth=1.2, linestyle=styles[position], **look)
        places = here.distinct("x")
        mean, half = np.array([here.at(x=place).interval("simulated") for place in places]).T
        axes.errorbar(places, mean, yerr=half, fmt="o", markersize=4, capsize=3, linewidth=1.2, label=curve, **look)
    axes.legend()


def draw_standardized(axes: Axes, runs: Runs) -> None:
    """Draw how far means are from formulas, in half widths of their intervals."""
    place = 0
    for family in STATISTICAL:
        found = [difference(here) for here in points(runs, family)]
        places = np.arange(place, place + len(found))
        label = family.partition(":")[0].partition(",")[0]
        axes.plot(places, [one.mean / one.half for one in found], "o", color=COLOURS[family], label=label)
        place += len(found)
    axes.axhspan(-1, 1, color="0.9", zorder=0)
    axes.axhline(0, color="0.4", linewidth=0.8)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -1.5), max(high, 2.4))
    label_axes(axes, "row of the table", "(simulated - formula) / half width")
    axes.set_title("grey: the interval holds the formula, expected for 95 %")
    axes.legend(ncols=2, loc="upper right")


def main(argv: Sequence[str] | None = None) -> None:
    options = options_of().parse_args(argv)
    runs = runs_of(options)
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
