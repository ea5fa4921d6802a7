"""A limit of time for every test here: a hang is a failure too."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Fail where something takes for ever."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def hangs(*_: object) -> None:
        raise AssertionError("this has taken five minutes")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
