"""The preemptive schedulers and charging conventions once more, event by event and without anything of the package."""

from dataclasses import dataclass


@dataclass
class Job:
    """A job of the reference; times in whole seconds."""

    id: int
    nodes: int
    submit: int
    left: int
    restart: int
    held: int = 0
    queue: int = 0
    runs: bool = False


def completions(nodes: int, jobs: list[Job], rule: str, limits: tuple[int, ...] = ()) -> dict[int, int]:
    """Return when each job completes if it pays its restart in every interval in which it does not complete.

    Args:
        nodes: size of the machine.
        jobs: in order of submission; each fits the machine.
        rule: ``"srtf"``, ``"srsf"`` or ``"las"``.
        limits: of the queues of LAS, node-seconds.
    """
    to_come, queues, now = list(jobs), [[] for _ in range(len(limits) + 1)], 0
    ends: dict[int, int] = {}
    while to_come or any(queues):
        there = [job for queue in queues for job in queue]
        times = [now + job.left for job in there if job.runs] + [job.submit for job in to_come[:1]]
        times += [
            now + max(-(-limits[job.queue] // job.nodes) - job.held, 1) for job in there if job.runs and job.queue < len(limits)
        ]
        then = min(times)
        passed, now = then - now, then
        for job in sorted((job for job in there if job.runs), key=lambda job: (job.submit, job.id)):
            job.held += passed
            if job.left == passed:
                ends[job.id] = now
                queues[job.queue].remove(job)
                continue
            job.left -= max(passed - job.restart, 0)
            if job.queue < len(limits) and job.held * job.nodes >= limits[job.queue]:
                queues[job.queue].remove(job)
                job.queue += 1
                queues[job.queue].append(job)
        while to_come and to_come[0].submit == now:
            queues[0].append(to_come.pop(0))
        if rule != "las":
            queues[0].sort(key=lambda job: job.left * (job.nodes if rule == "srsf" else 1))
        free = nodes
        for queue in queues:
            for job in queue:
                job.runs = job.nodes <= free
                free -= job.nodes * job.runs
            if rule == "las":
                queue.sort(key=lambda job: not job.runs)
    return ends


def in_rounds(nodes: int, jobs: list[Job], rule: str, length: int) -> dict[int, int]:
    """Return when each job completes if decisions are made every ``length`` seconds and each round begins with a restart."""
    to_come, there, now = list(jobs), [], 0
    ends: dict[int, int] = {}
    while to_come or there:
        there += [job for job in to_come if job.submit <= now]
        to_come = [job for job in to_come if job.submit > now]
        there.sort(key=lambda job: job.left * (job.nodes if rule == "srsf" else 1))
        free = nodes
        for job in list(there):
            if job.nodes <= free:
                free -= job.nodes
                if job.restart + job.left <= length:
                    ends[job.id] = now + job.restart + job.left
                    there.remove(job)
                else:
                    job.left -= length - job.restart
        now += length
    return ends
