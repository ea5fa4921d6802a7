"""One node with time slices, simulated in a few lines that share nothing with the package.

Times are in any unit; with whole numbers the responses are exact.
"""

from collections import deque
from collections.abc import Sequence


def round_robin(
    submit: Sequence[float],
    run: Sequence[float],
    quantum: float,
    switch: float,
    *,
    charge: str,
    arrivals: str,
    mpl: int = 10**9,
) -> list[float]:
    """Return the response times of jobs, given in order of submission.

    Args:
        submit: times of submission.
        run: run times.
        quantum: length of a slice.
        switch: length of a context switch.
        charge: ``"on-change"`` or ``"every-slice"``.
        arrivals: ``"cut"``: an arrival ends the slice, and rows take turns by number; ``"keep"``: the same, but an arrival ends
            no slice; ``"queue"``: an arriving job joins the tail.
        mpl: number of rows, where there are rows.
    """
    responses = [0.0] * len(submit)
    left = list(run)
    rows: dict[int, int] = {}  # row -> job
    tail: deque[int] = deque()  # jobs that wait for a row, or, with "queue", for their next slice
    row, loaded, following, now = -1, -1, 0, 0.0
    while following < len(submit) or rows or tail:
        if not rows and not tail:
            now = submit[following]
        while following < len(submit) and submit[following] <= now:
            tail.append(following)
            following += 1
        if arrivals != "queue":
            while tail and len(rows) < mpl:
                rows[next(free for free in range(mpl) if free not in rows)] = tail.popleft()
            row = min((other for other in rows if other > row), default=min(rows))
            job = rows[row]
        else:
            job = tail.popleft()
        pay = 0 if charge == "on-change" and loaded == job else switch
        end = now + min(quantum, pay + left[job])
        if arrivals == "cut" and following < len(submit):
            end = min(end, submit[following])
        left[job] -= max(0, end - now - pay)
        loaded = job if end - now >= pay else -1
        while arrivals != "cut" and following < len(submit) and submit[following] < end:
            tail.append(following)
            following += 1
            if arrivals == "keep" and len(rows) < mpl:
                rows[next(free for free in range(mpl) if free not in rows)] = tail.popleft()
        now = end
        if left[job] <= 1e-12:
            responses[job] = now - submit[job]
            rows.pop(row, None)
        elif arrivals == "queue":
            tail.append(job)
    return responses
