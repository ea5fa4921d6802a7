"""Fixtures that several test modules share: trace files, the command line, a policy registry that forgets, a browser."""

import re
import shutil
import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from clustermodel import SpecificationError
from clustermodel.cli import main
from clustermodel.policies import registry
from tests.property.strategies import ALL_CASES

# A busy machine makes no test fail.  The tiers draw the same cases in each run, so that no test fails by chance; the second one
# asks for ``--hypothesis-profile=long``.  The profile ``new`` draws others each time.
settings.register_profile("new", deadline=None, max_examples=ALL_CASES)
settings.register_profile("long", deadline=None, max_examples=ALL_CASES // 10, derandomize=True, database=None)
settings.register_profile("fast", deadline=None, max_examples=ALL_CASES // 15, derandomize=True, database=None)
settings.load_profile("fast")


OF_EXTRAS = {
    "report": "bokeh", "test_report_ratio.py": "bokeh", "test_report_data.py": "bokeh", "test_damage.py": "bokeh",
    "test_interruptions.py": "bokeh", "test_dask.py": "distributed", "test_same_everywhere.py": "distributed",
    "test_sweep_ratio.py": "distributed", "test_built_pages.py": "sphinx",
    "test_gym.py": "gymnasium",
}  # fmt: skip
"""The packages that test modules, by their names or their folders', cannot do without."""
PAGES_OF_THE_SECOND_TIER = {
    "backfilling.md": (), "guide_cluster.md": ("distributed",), "guide_machine.md": (), "guide_policy.md": (),
    "learning.md": ("gymnasium",),
    "outputs.md": (), "pv_easy.md": (), "report.md": ("bokeh",), "statistics.md": (),
    "studies.md": (), "validation.md": (), "workloads.md": (),
}  # fmt: skip
"""Pages whose examples take three seconds or more, or need packages of extras."""


COMPILED = {"golden", "timeline", "test_compiled.py", "test_twins.py", "test_gang.py"}
"""Test modules, by their names or their folders', that the second tier runs as well, on compiled modules."""


def missing(*packages: str) -> str:
    """Return why a test is skipped that needs packages, or an empty text."""
    lacking = ", ".join(package for package in packages if find_spec(package) is None)
    return f"needs {lacking}; pip install '.[test-all]' brings it" if lacking else ""


class SkippedModule(pytest.Module):
    """A test module that cannot be imported without a package of an extra."""

    def collect(self) -> list[pytest.Item]:
        """Skip it."""
        package = OF_EXTRAS.get(self.path.name) or OF_EXTRAS[self.path.parent.name]
        pytest.skip(missing(package), allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip modules that need a package which is not installed."""
    package = OF_EXTRAS.get(module_path.name) or OF_EXTRAS.get(module_path.parent.name)
    if package is None or not missing(package) or not module_path.name.startswith("test_"):
        return None
    return SkippedModule.from_parent(parent, path=module_path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the pages of the second tier its marker, and what runs in both tiers another one."""
    for item in items:
        if COMPILED & {item.path.name, item.path.parent.name}:
            item.add_marker(pytest.mark.compiled)
        packages = PAGES_OF_THE_SECOND_TIER.get(item.path.name)
        if packages is not None:
            item.add_marker("long")
            if reason := missing(*packages):
                item.add_marker(pytest.mark.skip(reason=reason))


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


def refusal(make: Callable[[], object]) -> str:
    """Return the line with which a specification is refused."""
    with pytest.raises(SpecificationError) as refused:
        make()
    assert "\n" not in str(refused.value)
    return str(refused.value)
