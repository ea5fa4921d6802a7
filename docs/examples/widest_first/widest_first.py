"""A policy of another package: jobs on many nodes first."""

from clustermodel import Start


class WidestFirst:
    """The widest jobs start; one that has waited ``patience_s`` blocks all others."""

    def __init__(self, *, patience_s=86_400.0):
        self.name = f"widest-first:patience_s={patience_s:g}"
        self._patience = round(patience_s * 1_000_000)  # ticks

    def begin(self, setup):
        """Keep nothing from an earlier run."""

    def decide(self, batch, view):
        """Return a start for each job that fits."""
        decisions, idle = [], view.idle
        jobs = view.waiting.values()
        overdue = [job for job in jobs if view.now - job.submit >= self._patience]
        widest_first = sorted(jobs, key=lambda job: (-job.nodes, job.queue_order))
        for job in overdue or widest_first:
            if job.nodes <= idle:
                decisions.append(Start(job=job))
                idle -= job.nodes
            elif overdue:
                break
        return decisions
