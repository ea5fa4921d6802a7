"""Overhead of the two ways to migrate a gang, by the formulas of 002 (002_8335dd3215a2768d.txt, section 5.4).

Job A of ``|A|`` tasks moves from a source row to a target row, in which the jobs of S(A) use columns of A.  C is the cost of
one migration, C/2 each for checkpoint and restart; here the two may differ.
"""

from __future__ import annotations

from collections.abc import Sequence


def option_1_overhead(tasks: int, in_the_way: Sequence[int], checkpoint_s: float, restart_s: float) -> float:
    """Return ``(C/2) |A| + C sum_{J in S(A)} |J|``, eq. (4), node-seconds: the jobs in the way migrate, A waits.

    Args:
        tasks: ``|A|``.
        in_the_way: ``|J|`` of each job in S(A).
        checkpoint_s: time to checkpoint a gang, C/2 in the paper.
        restart_s: time to restart it, C/2 in the paper.
    """
    return checkpoint_s * tasks + (checkpoint_s + restart_s) * sum(in_the_way)


def option_2_overhead(tasks: int, in_the_way: Sequence[int], checkpoint_s: float, restart_s: float) -> float:
    """Return ``C |A| + (C/2) sum_{J in S(A)} |J|``, eq. (5), node-seconds: A migrates, the jobs in the way wait.

    Args:
        tasks: ``|A|``.
        in_the_way: ``|J|`` of each job in S(A).
        checkpoint_s: time to checkpoint a gang, C/2 in the paper.
        restart_s: time to restart it, C/2 in the paper.
    """
    return (checkpoint_s + restart_s) * tasks + checkpoint_s * sum(in_the_way)
