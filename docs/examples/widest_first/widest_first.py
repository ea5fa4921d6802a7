"""A policy of another package: jobs on many nodes first."""

from dataclasses import dataclass

from clustermodel import Start, to_ticks


@dataclass(frozen=True, kw_only=True)
class WidestFirst:
    """The widest jobs start; one that has waited ``patience_s`` blocks all others."""

    patience_s: float = 86_400.0

    @property
    def name(self):
        """Name in tables."""
        return f"widest-first:patience_s={self.patience_s:g}"

    def start(self, setup):
        """Return what decides in a run: the policy itself, which remembers nothing."""
        return self

    def decide(self, batch, view):
        """Return a start for each job that fits."""
        decisions, idle = [], view.idle
        jobs = view.waiting.values()
        patience = to_ticks(self.patience_s)
        overdue = [job for job in jobs if view.now - job.submit >= patience]
        widest_first = sorted(jobs, key=lambda job: (-job.nodes, job.queue_order))
        for job in overdue or widest_first:
            if job.nodes <= idle:
                decisions.append(Start(job=job))
                idle -= job.nodes
            elif overdue:
                break
        return decisions
