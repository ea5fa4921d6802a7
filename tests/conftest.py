"""Fixtures that several test modules share: trace files, the command line, a policy registry that forgets, a browser."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from clustermodel.cli import main
from clustermodel.policies import registry
from tests.property.strategies import ALL_CASES

# A busy machine makes no test fail.  The tiers draw the same cases in each run, so that no test fails by chance; the second one
# asks for ``--hypothesis-profile=long``.  The profile ``new`` draws others each time.
settings.register_profile("new", deadline=None, max_examples=ALL_CASES)
settings.register_profile("long", deadline=None, max_examples=ALL_CASES // 2, derandomize=True, database=None)
settings.register_profile("fast", deadline=None, max_examples=ALL_CASES // 10, derandomize=True, database=None)
settings.load_profile("fast")


@pytest.fixture(autouse=True, scope="session")
def signals_arrive() -> None:
    """Let Ctrl-C and the end of a terminal arrive, which the background of a shell and nohup ignore; in child processes too.

    No test does that in ``preexec_fn``: Python between fork and exec may wait for ever for a lock of another thread.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


CHROMIUM_OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Finished(NamedTuple):
    """What a command left behind."""

    code: object
    out: str
    err: str


@pytest.fixture
def write_trace(tmp_path: Path) -> Callable[..., Path]:
    """Write lines to a file in ``tmp_path`` and return its path."""

    def write(*lines: str, name: str = "jobs.swf") -> Path:
        path = tmp_path / name
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def command_line(capsys: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """Run ``clustermodel`` with arguments, which must end in an exit, and return code, output and error output."""

    def run(*arguments: object) -> Finished:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        return Finished(stopped.value.code, *capsys.readouterr())

    return run


class _Screen(StringIO):
    """Standard output as a terminal."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finished]:
    """Run ``clustermodel`` with its standard output on a terminal of ``columns``; return what is shown, without escapes."""

    def run(*arguments: object, columns: int = 80, encoding: str = "utf-8") -> Finished:
        screen = _Screen(encoding)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", screen)
            patch.setenv("COLUMNS", str(columns))
            patch.setenv("TERM", "xterm")
            with pytest.raises(SystemExit) as stopped:
                main([str(argument) for argument in arguments])
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
        return Finished(stopped.value.code, shown, capsys.readouterr().err)

    return run


@pytest.fixture
def forgetful_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget, after the test, every policy that it registers."""
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return a Chromium without a window."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing, which drives the browser")
    programs = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for name in programs if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=list(CHROMIUM_OPTIONS))
        yield launched
        launched.close()
