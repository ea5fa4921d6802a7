"""Fixtures that several test modules share: trace files, the command line, a policy registry that forgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from clustermodel.cli import main
from clustermodel.policies import registry

settings.register_profile("any machine", deadline=None)  # a busy machine makes no test fail
settings.load_profile("any machine")


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


@pytest.fixture
def forgetful_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget, after the test, every policy that it registers."""
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
