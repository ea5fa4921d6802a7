"""Run one simulator in a process of its own: ``python -m tests.bench.peer_run SIMULATOR POLICY JOBS`` prints JSON.

JOBS is a JSON file: the nodes of the machine, and the submission, nodes, run time and estimate of each job, in seconds.  What
reads jobs into the simulator's own types is not measured.  Each simulator is imported only where it runs, so that it can have
a Python of its own.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

Jobs = Sequence[Sequence[int]]
Program = Callable[[], object]
Starts = Callable[[object], Sequence[float]]
"""Returns the start of each job from what the program has returned."""


def clustermodel(nodes: int, jobs: Jobs, policy: str) -> tuple[Program, Starts]:
    """Return this package's run."""
    from clustermodel import Machine, Scenario, Workload
    from clustermodel.workload.job import JobRow

    rows = [
        JobRow(10**6 * submit, number, size, 10**6 * run, 10**6 * estimate, -1, -1, 0, 1)
        for number, (submit, size, run, estimate) in enumerate(jobs, 1)
    ]
    scenario = Scenario(machine=Machine(nodes=nodes), workload=Workload(rows, name="jobs"), policy=policy)
    return scenario.run, lambda result: result.jobs.sort_values("job")["start_s"].tolist()


def pyss(nodes: int, jobs: Jobs, policy: str) -> tuple[Program, Starts]:
    """Return the run of pyss's method."""
    from tests.bench.pyss_algorithm import simulate

    return lambda: simulate(jobs, nodes, policy), lambda starts: starts


def accasim(nodes: int, jobs: Jobs, policy: str) -> tuple[Program, Starts]:
    """Return AccaSim's run, which writes no file and prints nothing; its first-fit allocator chooses the nodes."""
    import collections
    from collections.abc import Mapping

    collections.Mapping = Mapping  # where AccaSim 1.1.3 expects it, and Python has it until 3.9
    from accasim.base.additional_data import AdditionalData
    from accasim.base.allocator_class import FirstFit
    from accasim.base.event_class import AttributeType, JobFactory
    from accasim.base.resource_manager_class import ResourceManager, Resources
    from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut
    from accasim.base.simulator_class import Simulator
    from accasim.utils.reader_class import Reader

    first = 1_000  # a time of 0 counts as none
    starts = [0.0] * len(jobs)

    class JobsInMemory(Reader):
        def __init__(self, factory: JobFactory) -> None:
            super().__init__(factory)
            self._rest = enumerate(jobs)

        def _read(self, current_time: int) -> dict[str, object] | None:
            number, job = next(self._rest, (None, None))
            if job is None:
                self.stop_submission()
                return None
            submit, size, run, estimate = job
            return {
                "job_id": number,
                "queued_time": first + submit,
                "duration": run,
                "expected_duration": estimate,
                "requested_nodes": size,
                "requested_resources": {"core": 1},
                "core": size,
            }

    class KeptStarts(AdditionalData):
        def exec_after_completion(self, jobs: Sequence[object]) -> None:
            for job in jobs:
                starts[int(job.id)] = job.start_time - first

        def ignore(self, *_: object) -> None:
            """Do nothing at the other points of a run."""

        exec_before_dispatching = exec_after_dispatching = exec_before_submission = ignore
        exec_after_submission = exec_before_completion = stop = ignore

    machine = ResourceManager(Resources({"node": {"core": 1}}, {"node": nodes}))
    attributes = [AttributeType("core", int), AttributeType("expected_duration", int)]
    factory = JobFactory(machine, job_attrs=attributes)
    dispatcher = {"fcfs": FirstInFirstOut, "easy": EASYBackfilling}[policy](FirstFit())

    def run() -> object:
        with TemporaryDirectory() as folder:
            simulator = Simulator(
                "jobs", None, dispatcher, machine, JobsInMemory(factory), factory, KeptStarts,
                scheduling_output=False, statistics_output=False, show_statistics=False, overwrite_previous=False,
                RESULTS_FOLDER_PATH=folder, LOG_LEVEL="WARNING",
            )  # fmt: skip
            simulator.start_simulation()
        return starts

    return run, lambda starts: starts


SIMULATORS = {"clustermodel": clustermodel, "pyss's method": pyss, "accasim": accasim}


def peak_kb() -> int:
    """Return the peak memory of this process: not ru_maxrss, which begins with that of the process that started this one."""
    return int(re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[0])


def main(simulator: str, policy: str, path: str) -> None:
    found = json.loads(Path(path).read_text())
    program, starts_of = SIMULATORS[simulator](found["nodes"], found["jobs"], policy)
    began = process_time()
    result = program()
    seconds = process_time() - began
    peak = peak_kb()
    installed = version("accasim") if simulator == "accasim" else None
    print(json.dumps({"seconds": seconds, "peak_kb": peak, "version": installed, "starts": list(starts_of(result))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
