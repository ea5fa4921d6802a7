"""The bare-SimPy floor: one process per job and a coordinator woken at each submission and end; it schedules nothing.

Watched ratios that name nothing else are ratios to this program, measured in the same run on the same jobs.
"""

from collections.abc import Generator, Iterable

import simpy


def bare_simpy(jobs: Iterable[tuple[int, int]]) -> int:
    """Run (submit, duration) jobs, in order of submission, each on a machine of its own; return the wake-ups."""
    env = simpy.Environment()
    wake = env.event()
    wake_ups = 0

    def notify() -> None:
        if not wake.triggered:
            wake.succeed()

    def coordinator() -> Generator[simpy.Event, object, None]:
        nonlocal wake, wake_ups
        while True:
            yield wake
            wake = env.event()
            wake_ups += 1

    def job(duration: int) -> Generator[simpy.Event, object, None]:
        yield env.timeout(duration)
        notify()

    def stream() -> Generator[simpy.Event, object, None]:
        for submit, duration in jobs:
            if submit > env.now:
                yield env.timeout(submit - env.now)
            env.process(job(duration))
            notify()

    env.process(coordinator())
    env.process(stream())
    env.run()
    return wake_ups
