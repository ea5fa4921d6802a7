"""The last time at which windows let a job start, against the direct method: all instants at which anything changes."""

import random

from clustermodel.plans.windows import Windows
from clustermodel.ticks import NEVER


def test_as_the_direct_method() -> None:
    for seed in range(1500):
        choose = random.Random(seed)
        drawn = []
        for _ in range(choose.randint(1, 3)):
            begin, length, low = choose.randint(0, 20), choose.randint(1, 6), choose.randint(0, 2)
            every = choose.choice([0, length + choose.choice([1, 2, 5, 7, 10])])
            drawn.append(((low, choose.randint(low + 1, 3)), begin, begin + length, every))
        windows, needs, duration = Windows(drawn, len(drawn)), choose.randint(1, 3), choose.randint(1, 12)
        now, step = choose.randint(0, 25), choose.choice([1, 1, 2, 3, 5])

        def fits(start: int, windows: Windows = windows, duration: int = duration, needs: int = needs) -> bool:
            return (0b111 & ~windows.barred(start, duration, windows.bits)).bit_count() >= needs

        base = max(now, windows.settled)
        starts = range(now + -now % step, base + 1 + step * max(windows.period, 1), step)
        direct = [start for start in starts if fits(start)]
        expected = NEVER if any(start >= base for start in direct) else max(direct, default=-1)
        found = windows.last_start(
            now, duration, lambda mask, needs=needs: mask.bit_count() >= needs, 0b111, windows.bits, step
        )
        assert found == expected, seed


def test_turns_of_seconds_and_jobs_of_months_take_few_steps() -> None:
    asked = list[int]()
    second, month = 10**6, 30 * 86_400 * 10**6
    windows = Windows([((0, 1), 0, second, 2 * second), ((0, 2), 0, second, 3 * second)], 2)

    def enough(mask: int) -> bool:
        asked.append(mask)
        return mask.bit_count() >= 1

    assert windows.last_start(5 * second, month, enough, 0b11, windows.bits) == -1
    assert len(asked) <= 4
