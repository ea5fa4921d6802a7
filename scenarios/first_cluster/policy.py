"""A policy of your own: what fits starts, shortest estimate first.

python policy.py                              the test: which rules does it break?
clustermodel run --trace jobs.sacct --policy easy --policy policy:ShortestFirst
"""

from __future__ import annotations

from clustermodel import Batch, Setup, Start, View, check_policy


class ShortestFirst:
    """Start every waiting job that fits, shortest estimate first; large jobs have no reservation."""

    name = "shortest-first"
    takes_partitions = True  # each job gets nodes of its partition

    def start(self, setup: Setup) -> ShortestFirst:
        """Return what decides in a run: the policy itself, as it remembers nothing."""
        return self

    def decide(self, batch: Batch, view: View) -> list[Start]:
        """Return the jobs to start now, on the idle nodes that each may have."""
        idle, starts = nodes_of(view.idle_nodes()), []
        for job in sorted(view.waiting.values(), key=lambda job: job.estimate):
            usable = idle if job.eligible is None else idle & nodes_of(job.eligible)
            if len(usable) >= job.nodes:
                chosen = sorted(usable)[: job.nodes]
                starts.append(Start(job=job, columns=chosen))
                idle -= set(chosen)
        return starts


def nodes_of(ranges: tuple[int, ...]) -> set[int]:
    """Return the nodes of ranges: (0, 4, 7, 8) is nodes 0 to 3 and 7."""
    return {node for first, end in zip(ranges[::2], ranges[1::2], strict=True) for node in range(first, end)}


def test_it_keeps_every_rule() -> None:
    assert check_policy(ShortestFirst()) == []


if __name__ == "__main__":
    print("\n".join(map(str, check_policy(ShortestFirst()))) or "no rule broken")
