"""Independent random number generators for the purposes of one run, all derived from one root seed."""

from __future__ import annotations

from zlib import crc32

import numpy as np


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the random number generator for ``purpose`` under a root seed; different purposes get independent streams."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(purpose.encode()),)))
