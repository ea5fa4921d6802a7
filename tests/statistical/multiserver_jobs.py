"""Simulated mean response times of rigid jobs beside the tables in ../shared/reference/msj, of another program.

``python -m tests.statistical.multiserver_jobs`` simulates all points of the tables up to a load of 0.9 and keeps, in
docs/data/multiserver_jobs.csv, table value, simulated mean and the half width of its 99 % interval; ``--only easy`` those of
one column.  Points that the file has already are not simulated again.

A replication starts on an empty machine; the first tenth and the last twentieth of the jobs are not counted.  The number of
jobs grows with the load: the higher the load, the longer do responses of successive jobs depend on each other.

*Control variates.*  The mean response is regressed, over the replications, on two quantities of the same jobs whose
expectations are known: their mean run time, and their mean wait if they passed one by one through a single server (M/G/1,
Pollaczek-Khinchine).  The single server is as fast as all nodes together; for FCFS it has the saturation throughput of the
machine.  The intercept is the estimate (e.g. Lavenberg & Welch 1981).  It needs up to 30 times fewer jobs than the plain mean.

The tables have sampling errors too: they are of 10^6 jobs a point at least.  The plain mean of n jobs here has a standard
error s; that of the table is taken to be s sqrt(n / 10^6), and z is the difference over both errors together.
"""

import argparse
import csv
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from clustermodel import Machine, Scenario, Workload
from clustermodel.theory.queueing import mg1_mean_wait
from clustermodel.theory.rigid_jobs import multiserver_job_throughput, multiserver_job_utilization
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow
from tests.shared_data import SHARED

Floats = npt.NDArray[np.float64]
REPLICATIONS: Final = 20
HIGHEST_LOAD: Final = 0.9
TABLE_JOBS: Final = 10**6
BUDGETS: Final = {"fcfs": (4_000, 8_000, 10**6), "easy": (10_000, 2_200, 50_000), "server-filling": (4_000, 150, 10**6)}
"""Policy -> jobs of a replication: at least, times 1 / (1 - load / highest load)^2, at most."""
KEPT: Final = Path("docs/data/multiserver_jobs.csv")
UNIT_S: Final = 1000.0
"""The tables' unit of time: long, so that ticks do not round."""


class Model(NamedTuple):
    """A machine and the jobs that arrive at it."""

    servers: int
    sizes: Mapping[int, float]
    """Size -> probability."""
    mean_service: Mapping[int, float]
    """Size -> mean of the exponential service times, units of time."""

    def arrival_rate(self, load: float) -> float:
        """Return the arrival rate, per unit of time, at which the mean work that arrives is ``load`` x servers."""
        return load * self.servers / sum(size * p * self.mean_service[size] for size, p in self.sizes.items())


EIGHT: Final = Model(8, {1: 2 / 3, 8: 1 / 3}, {1: 1.0, 8: 1.0})
FOUR_A: Final = Model(4, {1: 0.5, 4: 0.5}, {1: 2.0, 4: 1.5})
FOUR_B: Final = Model(4, {1: 0.5, 4: 0.5}, {1: 6.0, 4: 0.5})
COLUMNS: Final = {
    "fcfs": ("response_8_servers.csv", "fcfs", EIGHT),
    "easy": ("response_8_servers.csv", "easy", EIGHT),
    "server_filling": ("response_8_servers.csv", "server-filling", EIGHT),
    "fcfs_a": ("response_4_servers.csv", "fcfs", FOUR_A),
    "fcfs_b": ("response_4_servers.csv", "fcfs", FOUR_B),
    "server_filling_a": ("response_4_servers.csv", "server-filling", FOUR_A),
    "server_filling_b": ("response_4_servers.csv", "server-filling", FOUR_B),
}
"""Column of a table -> file, policy and model."""


class Point(NamedTuple):
    """A value of a table."""

    column: str
    load: float
    response: float
    """Mean response time, units of time; infinite where the queue is not stable."""

    def __str__(self) -> str:
        return f"{self.column} {self.load}"


def points(column: str) -> list[Point]:
    """Return the values of a column, or skip the test that asks where there are no tables."""
    path = SHARED / "reference" / "msj" / COLUMNS[column][0]
    if not path.is_file():
        pytest.skip(f"{path} is not here; the tables are not part of the repository")
    with path.open() as file:
        return [Point(column, float(row["rho"]), float(row[column])) for row in csv.DictReader(file)]


def multiserver_workload(model: Model, load: float, jobs: int, rng: np.random.Generator) -> Workload:
    """Return Poisson arrivals of jobs with random sizes and exponential run times, estimated exactly."""
    sizes = np.array(list(model.sizes))
    submit = np.cumsum(rng.exponential(UNIT_S / model.arrival_rate(load), jobs))
    nodes = rng.choice(sizes, size=jobs, p=list(model.sizes.values()))
    run = rng.exponential(UNIT_S * np.array([model.mean_service[size] for size in nodes.tolist()]))
    columns = (
        np.round(submit * TICKS_PER_SECOND).astype(np.int64).tolist(),
        nodes.tolist(),
        np.maximum(1, np.round(run * TICKS_PER_SECOND)).astype(np.int64).tolist(),
    )
    return Workload(JobRow(s, number, n, r, r, -1, -1, 0, -1) for number, (s, n, r) in enumerate(zip(*columns, strict=True)))


class Estimate(NamedTuple):
    """The mean response time by independent replications."""

    mean: float
    """Units of time."""
    half_width: float
    """Of the 99 % interval, units of time."""
    standard_error: float
    plain_error: float
    """Standard error of the plain mean, without control variates."""
    jobs: int
    """Counted in all replications together."""


def weights(model: Model, policy: str) -> dict[int, float]:
    """Return by size the share of a run time that a job takes on the single server of the control variate."""
    by_size = {size: size / model.servers for size in model.sizes}
    if policy == "fcfs":
        small, large = model.sizes  # large jobs run alone; the shares of small ones give the machine's saturation throughput
        mean_s = 1 / multiserver_job_throughput(model.servers, model.sizes, model.mean_service)
        of_large = model.sizes[large] * model.mean_service[large]
        by_size = {small: (mean_s - of_large) / (model.sizes[small] * model.mean_service[small]), large: 1.0}
    return by_size


def single_server_waits(submit: Floats, service: Floats) -> Floats:
    """Return the waits of jobs that are served one by one: Lindley's recursion."""
    walk = np.concatenate([[0.0], np.cumsum(service[:-1] - np.diff(submit))])
    return walk - np.minimum.accumulate(walk)


def simulate(model: Model, policy: str, load: float, *, jobs: int, seed: int, replications: int = REPLICATIONS) -> Estimate:
    """Return the mean response time in replications of ``jobs`` jobs."""
    counted = slice(jobs // 10, -(jobs // 20))
    share = weights(model, policy)
    shares = {size: share[size] * mean for size, mean in model.mean_service.items()}  # mean service of the single server
    mean = sum(p * shares[size] for size, p in model.sizes.items())
    square = sum(p * 2 * shares[size] ** 2 for size, p in model.sizes.items())
    expected = (
        mg1_mean_wait(model.arrival_rate(load), mean, square - mean**2),
        sum(p * model.mean_service[size] for size, p in model.sizes.items()),
    )
    responses, controls = [], []
    for rng in map(np.random.default_rng, np.random.SeedSequence(seed).spawn(replications)):
        workload = multiserver_workload(model, load, jobs, rng)
        table = Scenario(machine=Machine(nodes=model.servers), workload=workload, policy=policy).run().jobs
        submit, run, response = (table[name].to_numpy() / UNIT_S for name in ("submit_s", "run_s", "response_s"))
        waits = single_server_waits(submit, run * table["nodes"].map(share).to_numpy())
        responses.append(response[counted].mean())
        controls.append((1.0, waits[counted].mean() - expected[0], run[counted].mean() - expected[1]))
    design, observed = np.array(controls), np.array(responses)
    coefficients = np.linalg.lstsq(design, observed, rcond=None)[0]
    freedom = replications - design.shape[1]
    variance = float(np.sum((observed - design @ coefficients) ** 2)) / freedom
    error = float(np.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0]))
    half_width = float(stats.t.ppf(0.995, freedom)) * error
    n = replications * len(response[counted])
    return Estimate(float(coefficients[0]), half_width, error, float(stats.sem(observed)), n)


def jobs_of(point: Point) -> int:
    """Return the jobs of a replication that make half widths of at most 2 % up to a load of 0.8."""
    _, policy, model = COLUMNS[point.column]
    least, scale, most = BUDGETS[policy]
    highest = 1.0
    if policy == "fcfs":
        highest = multiserver_job_utilization(model.servers, model.sizes, model.mean_service)
    return min(max(least, round(scale / (1 - point.load / highest) ** 2)), most)


def simulate_point(point: Point) -> Estimate:
    """Simulate one point, with a seed of its own."""
    _, policy, model = COLUMNS[point.column]
    seed = 1000 * list(COLUMNS).index(point.column) + round(100 * point.load)
    return simulate(model, policy, point.load, jobs=jobs_of(point), seed=seed)


def z(point: Point, estimate: Estimate) -> float:
    """Return the difference from the table in standard errors of both."""
    table = estimate.plain_error * (estimate.jobs / TABLE_JOBS) ** 0.5
    return (point.response - estimate.mean) / float(np.hypot(table, estimate.standard_error))


def compared(point: Point) -> dict[str, object]:
    """Simulate a point and return its line of the kept table: means, and half width of the 99 % interval, units of time."""
    found = simulate_point(point)
    return {
        "column": point.column,
        "load": point.load,
        "table": f"{point.response:.4f}",
        "simulated": f"{found.mean:.4f}",
        "half width": f"{found.half_width:.4f}",
        "of the mean": f"{found.half_width / found.mean:.2%}",
        "z": f"{z(point, found):.2f}",
        "jobs": found.jobs,
    }


def kept(path: Path) -> list[dict[str, object]]:
    """Return the lines of a file; none if there is no file."""
    if not path.is_file():
        return []
    with path.open() as file:
        return [{**line, "load": float(line["load"])} for line in csv.DictReader(file)]


def keep(path: Path, lines: list[dict[str, object]]) -> None:
    """Write the lines into a file, in the order of the tables."""
    order = {name: place for place, name in enumerate(COLUMNS)}
    lines.sort(key=lambda line: (order[str(line["column"])], line["load"]))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def main() -> None:
    """Keep the comparison with the tables."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", choices=list(COLUMNS), help="a column of the tables (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=KEPT, help=f"the file (default: {KEPT})")
    options = parser.parse_args()
    lines = kept(options.out)
    there = {(line["column"], line["load"]) for line in lines}
    missing = [
        point
        for column in ([options.only] if options.only else COLUMNS)
        for point in points(column)
        if point.load <= HIGHEST_LOAD and np.isfinite(point.response) and (column, point.load) not in there
    ]
    missing.sort(key=jobs_of)  # the cheapest first
    with ProcessPoolExecutor(options.workers) as pool:
        for done in as_completed([pool.submit(compared, point) for point in missing]):
            print(line := done.result(), flush=True)
            lines.append(line)
            keep(options.out, lines)


if __name__ == "__main__":
    main()
