"""What studies cost: measure it and fill a table of docs/design.md.

    python -m tests.bench.studies                   measure all parts
    python -m tests.bench.studies overhead dask     measure these, and keep the other rows of the table
    python -m tests.bench.studies --quick           print few runs, and write nothing

Wall times count, so nothing else should run meanwhile; all parts take ten to fifteen minutes.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple

from clustermodel import sweep
from clustermodel.experiment.executor import Progress
from clustermodel.experiment.factors import Trial
from clustermodel.experiment.run_key import Opened
from clustermodel.experiment.script import origin_of_script
from clustermodel.experiment.store import Store
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.worker import Origin, execute, opened
from tests.bench.record import conditions, require_this_commit
from tests.bench.study_of_runs import study
from tests.bench.timing import ROOT, best_of, with_bytecode

SCRIPT: Final = Path(__file__).with_name("study_of_runs.py")
PAGE: Final = ROOT / "docs" / "design.md"
POLICIES: Final = 4
AS_IN_THE_GUIDE: Final = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
"""Settings of Dask that docs/guide_cluster.md recommends: workers are not interrupted a hundred times a second."""
MARKS: Final = 1_000
"""Runs between two looks at time and memory."""


def settings(**values: object) -> dict[str, str]:
    """Return parameters of the study as texts."""
    return {name: str(value) for name, value in values.items()}


class TwoProcesses(NamedTuple):
    """The same runs one after the other, without keys, store and table, and by a sweep on two processes."""

    runs: int
    single_s: float
    """Wall time of the single runs."""
    sweep_s: float
    single_cpu_s: float
    """CPU time of the single runs."""
    sweep_cpu_s: float
    """CPU time of the sweep, of all its processes; on a busy machine it says more than wall times."""
    start_s: float
    """Wall time of a sweep of very short runs, one of each policy: mostly of starting two processes."""
    slower: float
    """How many times as long the same simulations took on two processes: processors share caches, and others work too."""

    @property
    def faster(self) -> float:
        """How many times as fast two processes were."""
        return self.single_s / self.sweep_s

    @property
    def faster_if_never_idle(self) -> float:
        """The same if neither of two processors had ever waited, by CPU times."""
        return 2 * self.single_cpu_s / self.sweep_cpu_s

    @property
    def faster_once_started(self) -> float:
        """The same without the start, if simulations had taken as long on two processes as on one."""
        return self.single_s / (self.sweep_s - self.start_s) * self.slower


def two_processes(*, jobs: int = 2_000, replications: int = 50) -> TwoProcesses:
    """Measure two processes against the sum of single runs, in a process that lets its workers find bytecode."""
    return TwoProcesses(**in_fresh_process("two", jobs, replications))


def in_fresh_process(measurement: str, *sizes: int) -> dict[str, Any]:
    """Return the fields of a measurement that a fresh process makes, which keeps bytecode as that of a user does."""
    # To set the environment here would not be enough: worker processes also get the options of the interpreter.
    command = [sys.executable, "-m", "tests.bench.studies", "--in-this-process", measurement, *map(str, sizes)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=with_bytecode())
    fields: dict[str, Any] = json.loads(done.stdout)
    return fields


def _two_processes_here(jobs: int, replications: int) -> TwoProcesses:
    design = study(jobs, replications)
    trials = sorted(design.trials(design.first_table()), key=lambda trial: trial.replication)
    single_s = single_cpu_s = in_runs_s = 0.0

    def run_alone(some: Sequence[Trial]) -> None:
        nonlocal single_s, single_cpu_s, in_runs_s
        began, cpu_began = perf_counter(), process_time()
        for trial in some:
            scenario = design.scenario_of(trial)
            assert scenario is not None
            starts = perf_counter()
            result = scenario.run()
            in_runs_s += perf_counter() - starts
            design.numbers_of(result)
        single_s, single_cpu_s = single_s + perf_counter() - began, single_cpu_s + process_time() - cpu_began

    def swept(**values: int) -> tuple[float, float, StudyTable]:
        with tempfile.TemporaryDirectory() as folder:
            began, cpu_began = perf_counter(), cpu_s()
            table = sweep(SCRIPT, folder, workers=2, settings=settings(**values))
            return perf_counter() - began, cpu_s() - cpu_began, table

    swept(jobs=20, replications=1)  # keeps the bytecode of what workers import
    start_s, *_ = swept(jobs=20, replications=1)
    run_alone(trials[: len(trials) // 2])  # before and after the sweep: a machine is not equally fast all the time
    sweep_s, sweep_cpu_s, table = swept(jobs=jobs, replications=replications)
    assert (len(table), table.failures) == (len(design), ())
    assert table.spent is not None
    run_alone(trials[len(trials) // 2 :])
    slower = table.spent.in_runs_s / in_runs_s
    return TwoProcesses(len(design), single_s, sweep_s, single_cpu_s, sweep_cpu_s, start_s, slower)


def cpu_s() -> float:
    """Return the CPU time of this process and of those that it has started and that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Overhead(NamedTuple):
    """What a study adds to each of its runs, milliseconds of CPU time, and what it writes."""

    key: float
    """Making the scenario, its jobs once for all policies, and the key: in the main process; a worker makes them again."""
    write: float
    """Storing numbers; the tables of the first replication are apart."""
    write_tables: float
    read: float
    """Reading a stored run, with a comparison of its digest."""
    row: float
    """Its row of the table."""
    wall: float
    """Wall time of all but ``write_tables``, which counts waiting for the disk."""
    files: int
    """Of all runs; more are tables of the first replication."""
    synced: int
    """How often the disk had to have a file before the study went on."""


def overhead(*, jobs: int = 2_000, replications: int = 50) -> Overhead:
    """Measure the parts of the overhead."""
    design = study(jobs, replications, policies=("fcfs", "easy", "conservative", "pv-easy"))
    origin = Origin(design=design)
    experiment = opened(origin)
    others_first = replace(design, seed=design.seed + 1)
    Opened(others_first).runs(others_first.trials(others_first.first_table())[:1])  # imports, and no job of this study
    trials = design.trials(design.first_table())
    began, cpu_began = perf_counter(), process_time()
    runs = experiment.runs(trials)
    key, key_wall = process_time() - cpu_began, perf_counter() - began
    first, *others = (execute(origin, run) for run in (runs[0], *(run for run in runs if run.trial.replication == 2)))
    assert not first.error
    later = [run for run in runs if run.trial.replication > 1]
    synced, fsync = 0, os.fsync

    def counted(descriptor: int) -> None:
        nonlocal synced
        synced += 1
        fsync(descriptor)

    with tempfile.TemporaryDirectory() as folder:
        os.fsync = counted
        try:
            store = Store.create(folder, design)
            store.enter(design, runs)
        finally:
            os.fsync = fsync

        def write() -> None:
            for number, run in enumerate(later):
                store.keep(run, others[number % len(others)])

        def write_tables() -> None:
            for run in runs[::replications]:
                store.keep(run, first)

        def read() -> None:
            with Store.read(folder) as stored:
                stored.states()

        kept, kept_tables, stored, row = best_of(write, write_tables, read, store.table)
        began = perf_counter()
        for part in (write, read, store.table):
            part()
        wall = key_wall + perf_counter() - began
        files = len(list((Path(folder) / "runs").iterdir()))
    count = len(runs)
    return Overhead(
        1e3 * key / count, 1e3 * kept / len(later), 1e3 * kept_tables / POLICIES, 1e3 * stored / count, 1e3 * row / count,
        1e3 * wall / count, files, synced,
    )  # fmt: skip


class Many(NamedTuple):
    """A study of very many short runs on two processes."""

    runs: int
    first_ms: float
    """Wall time of one of the first thousand runs, after the workers have started."""
    last_ms: float
    first_own_ms: float
    """CPU time of the main process for one of them."""
    last_own_ms: float
    first_mb: float
    """Memory of the main process after a thousand runs."""
    last_mb: float
    resumed_s: float
    """Wall time of the same sweep when all runs are stored."""


def many_runs(*, runs: int = 10_000, jobs: int = 20) -> Many:
    """Measure a study of many short runs in a fresh process, the only one whose memory means something."""
    return Many(**in_fresh_process("many", runs, jobs))


def _many_runs_here(runs: int, jobs: int) -> Many:
    marks: list[tuple[int, float, float, float]] = []
    apart = min(MARKS, runs // 4)

    def look(progress: Progress) -> None:
        if progress.done >= (marks[-1][0] + apart if marks else 1):
            memory = re.findall(r"VmRSS:\s*(\d+) kB", Path("/proc/self/status").read_text())
            marks.append((progress.done, perf_counter(), process_time(), int(memory[0]) / 1024))

    study_of = settings(jobs=jobs, replications=runs // POLICIES, policies="fcfs,easy,conservative,pv-easy")
    with tempfile.TemporaryDirectory() as folder:
        table = sweep(SCRIPT, folder, workers=2, settings=study_of, progress=look)
        assert len(table) == runs
        began = perf_counter()
        sweep(SCRIPT, folder, workers=2, settings=study_of)
        resumed_s = perf_counter() - began

    def between(one: int, other: int) -> tuple[float, float]:
        (first, wall, own, _), (last, wall_then, own_then, _) = marks[one], marks[other]
        return 1e3 * (wall_then - wall) / (last - first), 1e3 * (own_then - own) / (last - first)

    (first_ms, first_own_ms), (last_ms, last_own_ms) = between(0, 1), between(-2, -1)
    return Many(runs, first_ms, last_ms, first_own_ms, last_own_ms, marks[1][3], marks[-1][3], resumed_s)


class OnDask(NamedTuple):
    """Runs that wait, on Dask workers: with them two cores are enough for eight workers."""

    workers: int
    overhead_ms: float
    """What a run takes longer on a worker than in one process: until a worker has it, and the main process its result."""
    own_ms: float
    """CPU time of scheduler and main process together, for each run."""


def on_dask(workers: int, *, runs: int = 800, sleep_s: float = 0.2) -> OnDask:
    """Measure the scheduling overhead per run."""
    import dask
    from distributed import Client, LocalCluster

    replications = runs // POLICIES
    origin = origin_of_script(SCRIPT, settings(jobs=20, replications=replications, sleep_s=sleep_s))
    experiment = opened(origin)
    some = experiment.runs(experiment.design.trials(experiment.design.first_table())[:10])
    execute(origin, some[0])  # imports
    began = perf_counter()
    for run in some[1:]:
        execute(origin, run)
    alone_s = (perf_counter() - began) / (len(some) - 1)
    marks: list[tuple[int, float, float]] = []

    def look(progress: Progress) -> None:
        marks.append((progress.done, perf_counter(), process_time()))

    options: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(AS_IN_THE_GUIDE), LocalCluster(**options) as cluster, tempfile.TemporaryDirectory() as folder:
        with Client(cluster) as client:  # type: ignore[no-untyped-call]
            client.run(execute, origin, some[0])  # type: ignore[no-untyped-call]
        sweep(SCRIPT, folder, dask=cluster.scheduler_address, settings=origin.settings, progress=look)
    # From the time at which all workers are busy to that at which they begin to run out of work.
    begins = next(mark for mark in marks if mark[0] >= runs // 4)
    ends = next(mark for mark in marks if mark[0] >= runs - 2 * workers)
    count = ends[0] - begins[0]
    return OnDask(workers, 1e3 * ((ends[1] - begins[1]) * workers / count - alone_s), 1e3 * (ends[2] - begins[2]) / count)


Rows = dict[str, str]


def rows_of_two(*, quick: bool) -> Rows:
    """Return the rows of two processes."""
    found = two_processes(replications=2) if quick else two_processes()
    return {
        f"{found.runs} runs of 2,000 jobs: alone, study on two processes": f"{found.single_s:.1f}, {found.sweep_s:.1f} s",
        "speed-up of two processes over single runs": f"{found.faster:.2f} (CPU: {found.faster_if_never_idle:.2f})",
        "without their start, and if simulations took as long as alone": f"{found.faster_once_started:.2f}",
        "start of the processes": f"{found.start_s:.1f} s",
    }


def rows_of_overhead(*, quick: bool) -> Rows:
    """Return the rows of the parts of the overhead."""
    found = overhead(replications=5) if quick else overhead()
    parts = f"{found.key:.2f}, {found.write:.2f}, {found.read:.2f}, {found.row:.2f} ms"
    return {
        "per run: jobs and key, store, read, table": parts,
        "all four, wall time; job tables of a first replication": f"{found.wall:.2f} ms; {found.write_tables:.2f} ms",
    }


def rows_of_many(*, quick: bool) -> Rows:
    """Return the rows on very many runs."""
    found = many_runs(runs=400) if quick else many_runs()
    return {
        f"{found.runs:,} runs of 20 jobs: one of the first, last 1,000": f"{found.first_ms:.1f}, {found.last_ms:.1f} ms",
        "main process: CPU time per run": f"{found.first_own_ms:.2f}, {found.last_own_ms:.2f} ms",
        "main process: memory after 1,000 runs, at the end": f"{found.first_mb:.0f}, {found.last_mb:.0f} MB",
        "the same sweep with all runs stored": f"{found.resumed_s:.1f} s",
    }


def rows_of_dask(*, quick: bool) -> Rows:
    """Return the rows on Dask."""
    found = [on_dask(workers, runs=80) if quick else on_dask(workers) for workers in (2, 4, 8)]
    return {
        "Dask with 2, 4, 8 workers: delay of a run": ", ".join(f"{each.overhead_ms:.0f}" for each in found) + " ms",
        "CPU time of its scheduler and the main process for it": ", ".join(f"{each.own_ms:.1f}" for each in found) + " ms",
    }


IN_FRESH_PROCESS: Final[dict[str, Callable[..., TwoProcesses | Many]]] = {"two": _two_processes_here, "many": _many_runs_here}
PARTS: Final = {"two": rows_of_two, "overhead": rows_of_overhead, "many": rows_of_many, "dask": rows_of_dask}
BEGIN, END = "<!-- studies -->\n", "\n<!-- end -->"


def filled(page: str, rows: Rows, *, keep: bool) -> str:
    """Return the page with these rows in its table; with ``keep`` beside others, in place of those with the same names."""
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    earlier = [line for line in table.splitlines() if line.startswith("| ")][2:] if keep else []
    others = dict(line.strip("| ").split(" | ") for line in earlier)
    lines = [f"| {name} | {value} |" for name, value in {**others, **rows}.items()]
    head = [f"{'Measured last' if others else 'Measured'}: {conditions()}.", "", "| studies | |", "| --- | ---: |"]
    return "\n".join([f"{before}{BEGIN}", *head, *lines, f"{END}{after}"])


def main(arguments: list[str]) -> None:
    """Measure parts, print their rows, and write them to the page unless they are only tried."""
    if arguments[:1] == ["--in-this-process"]:
        print(json.dumps(IN_FRESH_PROCESS[arguments[1]](*map(int, arguments[2:]))._asdict()))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to measure; default: all")
    parser.add_argument("--quick", action="store_true", help="try few runs, and write nothing")
    options = parser.parse_args(arguments)
    if not options.quick:
        require_this_commit()
    measured: Rows = {}
    for part in options.parts or PARTS:
        rows = PARTS[part](quick=options.quick)
        print(*(f"{name}: {value}" for name, value in rows.items()), sep="\n", flush=True)
        measured |= rows
        if not options.quick:
            PAGE.write_text(filled(PAGE.read_text(), measured, keep=bool(options.parts)))


if __name__ == "__main__":
    main(sys.argv[1:])
