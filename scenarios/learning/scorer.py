"""A small agent: it scores the jobs that it is shown, and starts the best one that fits, or keeps nodes for a better one."""

import json
from dataclasses import dataclass
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clustermodel import AgentPolicy
from clustermodel.arrays import BoolArray, FloatArray
from clustermodel.policies.agent import WAIT, Mask, Observation
from clustermodel.validation import LONGEST_S

WEIGHTS = ("nodes", "estimate", "nodes x estimate", "waited", "delays the best blocked job", "waiting for it")
SHOWN = 64
"""Waiting jobs and running gangs that the agent is shown."""
_SCALE = log1p(LONGEST_S)


@dataclass(frozen=True)
class Scorer:
    """A job's score is linear in its size, its estimate, their product, and how long it has waited.

    The best of the jobs that do not fit could start when enough of the running gangs have ended as expected.  A job that would
    delay it gets a further weight, and waiting the score of the blocked job and a last weight.
    """

    weights: tuple[float, ...]

    def __call__(self, observation: Observation, mask: Mask) -> int:
        """Return the action with the best score."""
        queue, running = observation["queue"], observation["running"]
        present = int(queue[:, 0].sum())
        _, nodes, estimate, waited, *_ = queue[:present].T.astype(np.float64)
        of_nodes, of_estimate, of_both, of_waited, delays, waiting = self.weights
        score = of_nodes * nodes + of_estimate * estimate + of_both * nodes * estimate + of_waited * waited
        fits = mask[1 : 1 + present] == 1
        blocked = np.flatnonzero(~fits)
        wait = -np.inf
        if blocked.size:
            best = blocked[score[blocked].argmax()]
            wait = score[best] + waiting
            delayed = _delays(nodes, estimate, nodes[best], float(observation["machine"][0]), running)
            score = score + delays * delayed
        if not fits.any():
            return WAIT
        chosen = int(np.where(fits, score, -np.inf).argmax())
        return WAIT if mask[WAIT] and wait > score[chosen] else 1 + chosen


def _delays(nodes: FloatArray, estimate: FloatArray, asked: float, idle: float, running: npt.NDArray[np.float32]) -> BoolArray:
    """Return which jobs would hold nodes that a blocked job needs when enough gangs have ended, shape ``(jobs,)``."""
    free = idle + np.cumsum(running[:, 1].astype(np.float64))
    enough = int(np.searchsorted(free, asked - 1e-6))
    if enough >= len(free):
        return np.zeros(len(nodes), dtype=bool)
    late: BoolArray = (estimate > running[enough, 2]) & (nodes > free[enough] - asked + 1e-6)
    return late


def agent(weights: tuple[float, ...], name: str = "agent") -> AgentPolicy:
    """Return the agent with these weights as a policy."""
    return AgentPolicy(act=Scorer(weights), window=SHOWN, running=SHOWN, name=name)


def trained(path: str | Path) -> dict[str, Any]:
    """Return what train.py has written."""
    read: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return read
