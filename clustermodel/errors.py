"""The package's exceptions: one small tree, every message one line that names the field, the value and what is allowed."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
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


def shown(value: object, text_of: Callable[[object], str] = str) -> str:
    """Return ``str(value)``, truncated: a damaged file may have a word of a million digits."""
    try:
        text = text_of(value)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN // 2]}... ({len(text):,} characters)"


def quoted(value: object) -> str:
    """Return ``repr(value)``, truncated in the same way."""
    return shown(value, repr)


def refused(field: str, value: object, must: str, where: str = "") -> SpecificationError:
    """Return the error of a value that is not allowed; ``must`` says what is, ``where`` in which circumstances."""
    where = where or (number_meant(value) if re.search("number|integer", must) else "")
    return SpecificationError(f"{field}: {quoted(value)} is not allowed{where}; {must}")


def in_words(problem: BaseException) -> str:
    """Return the type and the text of an exception of others' code, in one line."""
    return " ".join(f"{type(problem).__name__}: {problem}".split())


def visible(text: str, keep: str = "") -> str:
    r"""Return ``text`` with escape sequences written out: control characters, which terminals obey, as ``\x1b``.

    Direction marks and unpaired surrogates, which cannot be encoded, are written out too; the characters of ``keep`` are not.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def missing_package(what: str, package: str, extra: str) -> str:
    """Return the error message of a feature whose optional package is not installed, with the command that installs it."""
    return f"{what}: the package {package} is missing; pip install '.[{extra}]' in a clone of clustermodel installs it"


def counted(number: int, noun: str) -> str:
    """Return ``"1 job"`` or ``"2,000 jobs"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def did_you_mean(word: object, allowed: Iterable[str], meant: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return ``" (did you mean 'easy'?)"`` with the closest of ``allowed``, or an empty string if none is close.

    A name that begins the word is closest: ``easy``, of ``easy-backfill``.  Where none is close, up to three that contain the
    word are named: ``wait``, among the columns of runs.  ``meant`` has what to suggest in place of a name.
    """
    typed, names = str(word).lower(), list(allowed)
    if len(typed) > _LONGEST_SHOWN:
        return ""
    if len(several := re.findall(r"[^\s,;]+", typed)) > 1 and {*several} <= {*names}:
        return f" (did you mean {' and '.join(map(repr, several))}, each by itself?)"
    begun = [name for name in names if typed not in names and re.match(re.escape(name.lower()) + r"[^\w]", typed)]
    parts = [name for name in names if len(typed) >= 3 and typed in name.lower()]
    near = sorted(begun, key=len)[-1:] or difflib.get_close_matches(typed, names, n=1) or parts[:3]
    texts = list(dict.fromkeys(repr(meant.get(name, name)) for name in near))
    both = " or ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
    return f" (did you mean {both}?)" if near else ""


_UNITS: Final = {
    "": 1, "k": 1000, "%": 0.01, "s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86_400, "GiB": 1, "W": 1, "kW": 1000,
}  # fmt: skip
_WITH_UNIT: Final = re.compile(rf"([+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?) ?({'|'.join(_UNITS)})")


def number_meant(value: object) -> str:
    """Return ``" (did you mean 86400?)"`` for a text such as ``1d``, with the unit or separators that a number must not have.

    Otherwise the text is empty.
    """
    if not isinstance(value, str) or len(value) > _LONGEST_SHOWN or (match := _WITH_UNIT.fullmatch(value.strip())) is None:
        return ""
    number = float(match[1].replace(",", "")) * _UNITS[match[2]]
    is_plain = not match[2] and not {*match[1]} & {*",eE"}
    return "" if is_plain or abs(number) >= 1e10 else f" (did you mean {number:.10g}?)"
