"""Train the scorer on the first half of a trace, in the environment of ``clustermodel.gym``, by the cross-entropy method.

Each generation draws candidates from normal distributions of the weights, plays the same episodes with all of them, and moves
the distributions to the best ones (Rubinstein 1999).  The return of an episode is minus the mean bounded slowdown; candidates
are compared by the mean of its logarithm, as a few windows of a trace are much worse than the others.

    python scenarios/learning/train.py --trace ../shared/traces/lublin_256.swf.gz --nodes 256 lublin_256.json
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from halves import EPISODE, halves
from scorer import SHOWN, WEIGHTS, Scorer

from clustermodel import Machine, Scenario
from clustermodel.gym import SchedulingEnv

CANDIDATES, BEST, EPISODES, CHECKED = 16, 4, 4, 12
LEAST_SPREAD = 0.05
"""Of the distributions that are drawn from, so that they do not settle too early."""


def returns(weights: tuple[float, ...], seeds: range, *, trace: str | None, nodes: int) -> list[float]:
    """Return the returns of episodes on the first half of a trace."""
    scenario = Scenario(workload=halves(trace, 0, nodes)[0], machine=Machine(nodes=nodes))
    env, act = SchedulingEnv(scenario, jobs=EPISODE, window=SHOWN, running=SHOWN), Scorer(weights)
    totals = []
    for seed in seeds:
        observation, info = env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            observation, reward, ended, _, info = env.step(act(observation, info["action_mask"]))
            total += reward
        totals.append(total)
    return totals


def train(trace: str | None, nodes: int, generations: int, workers: int, seed: int) -> dict[str, object]:
    """Return the weights, and the mean logarithm of the slowdown on other episodes after each generation."""
    rng = np.random.default_rng(seed)
    mean, spread = np.zeros(len(WEIGHTS)), np.ones(len(WEIGHTS))
    play = partial(returns, trace=trace, nodes=nodes)
    curve = []
    with ProcessPoolExecutor(workers) as pool:
        for generation in range(generations + 1):
            checked = pool.submit(play, tuple(mean), range(10**6, 10**6 + CHECKED))
            if generation < generations:
                candidates = rng.normal(mean, spread, (CANDIDATES, len(WEIGHTS)))
                seeds = range(EPISODES * generation, EPISODES * (generation + 1))
                played = pool.map(play, map(tuple, candidates.tolist()), [seeds] * CANDIDATES)
                losses = np.array([np.log(-np.array(totals)).mean() for totals in played])
                chosen = candidates[np.argsort(losses)[:BEST]]
            curve.append(float(np.log(-np.array(checked.result())).mean()))
            print(f"generation {generation}: slowdown {np.exp(curve[-1]):.2f}", flush=True)
            if generation < generations:
                mean, spread = chosen.mean(axis=0), np.maximum(chosen.std(axis=0), LEAST_SPREAD)
    weights = {name: round(float(weight), 4) for name, weight in zip(WEIGHTS, mean, strict=True)}
    return {"weights": weights, "curve": [round(loss, 4) for loss in curve]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("written", type=Path, help="file of the weights, JSON")
    parser.add_argument("--trace", help="trace in SWF; by default synthetic jobs")
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    made = train(given.trace, given.nodes, given.generations, given.workers, given.seed)
    given.written.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
