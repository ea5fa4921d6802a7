"""The package's exceptions: one small tree, every message one line that names the field, the value and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final


class ClusterModelError(Exception):
    """Base of every error that a user of the package can cause."""


class SpecificationError(ClusterModelError, ValueError):
    """A machine, job, workload, policy parameter or option has a value that is not allowed."""


class TraceError(ClusterModelError, ValueError):
    """A trace file cannot be read; the message starts with ``file:line:`` if the error is in a line."""


class DecisionError(ClusterModelError):
    """A policy asked for something impossible, for example to start a gang on more nodes than are idle."""


class PolicyError(ClusterModelError):
    """The code of a policy failed; the message starts with ``file:line:`` if the error is in a file of the user."""


class StrandedJobsError(DecisionError):
    """The simulation ran out of events while jobs were waiting: the policy never started them."""


class LedgerError(ClusterModelError):
    """The capacity ledger does not add up to nodes x horizon: a bug of the simulator, not an error of the user."""


class OutputError(ClusterModelError, OSError):
    """A result cannot be written where the user asked for it."""


class ExecutionError(ClusterModelError):
    """The processes or the cluster that run a study cannot continue; unfinished runs are still to be done."""


_LONGEST_SHOWN: Final = 60
_MOST_NAMED: Final = 3
_LEAST_PART: Final = 3
"""Letters of a word that is looked for within names."""
_TOO_LONG_TO_PRINT: Final = "a number of thousands of digits"


def shown(value: object) -> str:
    """Return ``str(value)``, truncated: a damaged file may have a word of a million digits."""
    try:
        text = str(value)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        return _TOO_LONG_TO_PRINT
    return _cut(text)


def quoted(value: object) -> str:
    """Return ``repr(value)``, truncated in the same way."""
    try:
        text = repr(value)
    except ValueError:
        return _TOO_LONG_TO_PRINT
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN // 2]}... ({len(text):,} characters)"


def visible(text: str, keep: str = "") -> str:
    r"""Return ``text`` with escape sequences written out: control characters, which terminals obey, as ``\x1b``.

    Direction marks and unpaired surrogates, which cannot be encoded, are written out too.

    Args:
        text: any.
        keep: characters to leave as they are.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keep else ascii(one)[1:-1] for one in text)


def missing_package(what: str, package: str, extra: str) -> str:
    """Return the error message of a feature whose optional package is not installed, with the command that installs it."""
    return f"{what}: the package {package} is missing; pip install '.[{extra}]' in a clone of clustermodel installs it"


def counted(number: int, noun: str) -> str:
    """Return ``"1 job"`` or ``"2,000 jobs"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def did_you_mean(word: object, allowed: Iterable[str], meant: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return ``" (did you mean 'easy'?)"`` with the closest of ``allowed``, or an empty string if none is close.

    Where none is close, those that contain the word are named: three for ``wait``, among the columns of runs.

    Args:
        word: what was typed.
        allowed: the names.
        meant: what to suggest in place of a name.
    """
    typed, names = str(word).lower(), list(allowed)
    if len(typed) > _LONGEST_SHOWN:
        return ""
    near = difflib.get_close_matches(typed, names, n=1)
    if not near and len(typed) >= _LEAST_PART:
        near = [name for name in names if typed in name.lower()][:_MOST_NAMED]
    if not near:
        return ""
    *others, last = dict.fromkeys(repr(meant.get(name, name)) for name in near)
    return f" (did you mean {', '.join(others)} or {last}?)" if others else f" (did you mean {last}?)"
