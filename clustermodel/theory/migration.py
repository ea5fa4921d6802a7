"""Overhead of the two options to migrate a gang, by the formulas of Zhang et al. 2003, section 5.4.

Job A of ``|A|`` tasks moves from a source row to a target row, in which the jobs of S(A) use columns of A.  C is the cost of
one migration, C/2 each for checkpoint and restart; here the two may differ.  Arguments and results may be in any unit of time.
``tasks`` is ``|A|``, and ``in_the_way`` has ``|J|`` of each job in S(A).
"""

from collections.abc import Sequence


def option_1_overhead(tasks: int, in_the_way: Sequence[int], checkpoint_s: float, restart_s: float) -> float:
    """Return ``(C/2) |A| + C sum_{J in S(A)} |J|``, eq. (4), in node time: the jobs of S(A) migrate, A waits."""
    return checkpoint_s * tasks + (checkpoint_s + restart_s) * sum(in_the_way)


def option_2_overhead(tasks: int, in_the_way: Sequence[int], checkpoint_s: float, restart_s: float) -> float:
    """Return ``C |A| + (C/2) sum_{J in S(A)} |J|``, eq. (5), in node time: A migrates, the jobs of S(A) wait."""
    return (checkpoint_s + restart_s) * tasks + checkpoint_s * sum(in_the_way)
