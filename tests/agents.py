"""Agents without anything learnt."""

import numpy as np

from clustermodel.policies.agent import Mask, Observation


def first_allowed(_: Observation, mask: Mask) -> int:
    """Wait if that is allowed."""
    return int(mask.argmax())


def shortest(observation: Observation, mask: Mask) -> int:
    """Start the shortest job that fits; preempt no gang."""
    estimates = observation["queue"][:, 2]
    fits = mask[1 : 1 + len(estimates)] == 1
    return 1 + int(np.where(fits, estimates, 2).argmin()) if fits.any() else 0


def last_allowed(_: Observation, mask: Mask) -> int:
    """Preempt the gang that is expected to end last if any may be, and start the last job shown if not."""
    return len(mask) - 1 - int(mask[::-1].argmax())
