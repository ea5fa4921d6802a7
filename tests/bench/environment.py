"""What the environment of ``clustermodel.gym`` costs per decision, in microseconds of CPU time, beside plain runs.

    python -m tests.bench.environment               measure, and fill in the table of docs/learning.md
    python -m tests.bench.environment --stored      fill in the stored table again

The jobs are synthetic, at load 0.9; the agent starts the shortest job that fits.  Nothing else should run meanwhile.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

import gymnasium
import pandas as pd
from greenlet import getcurrent, greenlet

import clustermodel.gym
from clustermodel import Machine, Scenario, synthetic_workload
from tests.agents import shortest
from tests.bench.timing import ROOT, best_of, size
from tests.scripts import make_studies

NAME: Final = "environment_cost"
STORED: Final = ROOT / "docs" / "data" / f"{NAME}.csv"
PAGE: Final = ROOT / "docs" / "learning.md"
SCENARIO: Final = Scenario(workload=synthetic_workload(jobs=size(3_000), load=0.9), machine=Machine(nodes=128))
SWITCHES: Final = size(50_000)


def episode(env: gymnasium.Env[Any, Any]) -> int:
    """Play an episode; return the number of decisions."""
    (observation, info), decisions, ended = env.reset(seed=1), 0, False
    while not ended:
        observation, _, ended, _, info = env.step(shortest(observation, info["action_mask"]))
        decisions += 1
    return decisions


def greenlets() -> None:
    """Hand control to another greenlet and back."""

    def other(_: int) -> None:
        while True:
            getcurrent().parent.switch(0)

    run = greenlet(other)
    for number in range(SWITCHES):
        run.switch(number)


def threads() -> None:
    """Hand control to another thread and back."""
    there: SimpleQueue[int] = SimpleQueue()
    back: SimpleQueue[int] = SimpleQueue()

    def other() -> None:
        while there.get() >= 0:
            back.put(0)

    thread = Thread(target=other)
    thread.start()
    for number in range(SWITCHES):
        there.put(number)
        back.get()
    there.put(-1)
    thread.join()


def measured() -> pd.DataFrame:
    """Return the table: what is measured, and microseconds."""
    env = clustermodel.gym.SchedulingEnv(SCENARIO)
    made = gymnasium.make("clustermodel/Scheduling-v0", scenario=SCENARIO)
    decisions = episode(env)
    same, policy = env.scenario, env.to_policy(shortest)
    programs: dict[str, tuple[Callable[[], object], int]] = {
        "environment": (lambda: episode(env), decisions),
        "environment of `gymnasium.make`, which checks each step": (lambda: episode(made), decisions),
        "the same agent as a policy, plain run": (lambda: replace(same, policy=policy).run().summary(), decisions),
        "EASY, plain run": (lambda: replace(same, policy="easy").run().summary(), decisions),
        "handing over control by greenlet": (greenlets, SWITCHES),
        "handing over control by thread": (threads, SWITCHES),
    }
    seconds = best_of(*(program for program, _ in programs.values()))
    rows = [(name, 1e6 * took / count) for (name, (_, count)), took in zip(programs.items(), seconds, strict=True)]
    return pd.DataFrame(rows, columns=["per decision", "µs"])


def main() -> None:
    """Measure, store and show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stored", action="store_true", help="measure nothing: fill in the stored table again")
    if not parser.parse_args().stored:
        measured().round(1).to_csv(STORED, index=False)
    made = make_studies()
    table = made.markdown_table(pd.read_csv(STORED), "---:")
    PAGE.write_text(made.with_tables(PAGE.read_text(encoding="utf-8"), NAME, table), encoding="utf-8")
    print(pd.read_csv(STORED).to_string(index=False))


if __name__ == "__main__":
    main()
