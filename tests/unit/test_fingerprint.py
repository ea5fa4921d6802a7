"""What identifies a user's object: its code and values with all that they reach, and nothing else."""

from __future__ import annotations

import itertools
import logging
import operator
import random
import re
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clustermodel import SpecificationError
from clustermodel.policies.backfilling import Backfilling
from clustermodel.policies.easy import Easy
from clustermodel.study.fingerprint import fingerprint
from clustermodel.study.script import run_script

TEXT = '''
"""A script."""
import collections, dataclasses, enum, functools, logging, math, random, re
import numpy as np
from clustermodel.policies.fcfs import Fcfs

LIMITS = {"short": 3600, "sizes": [1, 2, 4], "names": {"b", "a"}}
UNUSED = 1
LOG = logging.getLogger(__name__)
WORD = re.compile("a+")
TABLE = np.arange(6).reshape(2, 3)

def two_away(x):
    # a comment
    return x * 2

def helper(x, power=2):
    """Documented."""
    return two_away(x) ** power

def unused(x):
    return x

@functools.singledispatch
def kind_of(x):
    return 1

@kind_of.register(int)
def _(x):
    return 20

def twice(function):
    @functools.wraps(function)
    def wrapper(*given):
        return function(*given) * 2
    return wrapper

@functools.cache
def kept(x):
    return x + 1

class Kind(enum.Enum):
    SMALL = 1
    LARGE = 2
    def bound(self):
        return self.value * 10

@dataclasses.dataclass
class Part:
    weight: float = 0.5
    names: list = dataclasses.field(default_factory=list)

class Base(Fcfs):
    def rank(self, job):
        return math.sqrt(job.nodes)

class Mine(Base):
    """A policy."""
    name = "mine"
    kind = Kind.SMALL
    def __init__(self):
        self.part = Part()
        self.score = lambda job: job.nodes + 1
        self.rng = np.random.default_rng(7)
        self.queue = collections.deque([1, 2])
    @twice
    def scaled(self, x):
        return x
    @property
    def quota(self):
        return LIMITS["short"]
    @staticmethod
    def fixed():
        return kept(3)
    def decide(self, batch, view):
        def inner():
            return helper(1) + TABLE.sum() + len(LIMITS)
        random.random()
        LOG.debug("%s %s", WORD.match("a"), kind_of(2))
        return [inner()] + [self.kind.bound()]
'''


def mine(text: str, tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(text)
    return fingerprint(run_script(path, text)["Mine"](), "policy mine").sha256


CHANGES = {
    "a function two calls away": ("return x * 2", "return x * 3"),
    "a default": ("power=2", "power=3"),
    "a lambda's body": ("job.nodes + 1", "job.nodes + 2"),
    "a module global": ('"short": 3600', '"short": 7200'),
    "a nested value of a global": ("[1, 2, 4]", "[1, 2, 8]"),
    "an element of a set": ('{"b", "a"}', '{"b", "c"}'),
    "an array": ("np.arange(6)", "np.arange(1, 7)"),
    "a base class": ("math.sqrt(job.nodes)", "math.log(job.nodes)"),
    "a method": ("[inner()] +", "[inner(), inner()] +"),
    "an inner function": ("len(LIMITS)", "2 * len(LIMITS)"),
    "a decorator": ("function(*given) * 2", "function(*given) * 4"),
    "what is decorated": ("def scaled(self, x):\n        return x", "def scaled(self, x):\n        return -x"),
    "a pattern": ("a+", "b+"),
    "an implementation of a dispatched function": ("return 20", "return 30"),
    "a property": ('LIMITS["short"]', 'LIMITS["short"] + 1'),
    "a static method": ("kept(3)", "kept(4)"),
    "a cached function": ("return x + 1", "return x + 2"),
    "a class attribute": ("kind = Kind.SMALL", "kind = Kind.LARGE"),
    "a value of an enumeration": ("LARGE = 2", "LARGE = 3"),
    "a method of an enumeration": ("self.value * 10", "self.value * 11"),
    "a field's default": ("weight: float = 0.5", "weight: float = 0.6"),
    "a field's factory": ("default_factory=list", "default_factory=dict"),
    "a random generator's state": ("default_rng(7)", "default_rng(8)"),
    "an attribute": ("deque([1, 2])", "deque([2, 1])"),
}
NO_CHANGES = {
    "a comment": ("# a comment", "# another one"),
    "a documentation string": ('"""Documented."""', '"""Better documented."""'),
    "a class's documentation": ('"""A policy."""', '"""My policy."""'),
    "blank lines": ("def helper", "\n\n\ndef helper"),
    "an unused global": ("UNUSED = 1", "UNUSED = 2"),
    "an unused function": ("def unused(x):\n    return x", "def unused(x):\n    return 5"),
    "the order of a set": ('{"b", "a"}', '{"a", "b"}'),
}


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES)
def test_what_it_reaches_counts(old: str, new: str, tmp_path: Path) -> None:
    assert TEXT.count(old) == 1
    assert mine(TEXT, tmp_path) != mine(TEXT.replace(old, new), tmp_path)


@pytest.mark.parametrize(("old", "new"), NO_CHANGES.values(), ids=NO_CHANGES)
def test_what_no_number_depends_on_does_not_count(old: str, new: str, tmp_path: Path) -> None:
    assert TEXT.count(old) == 1
    assert mine(TEXT, tmp_path) == mine(TEXT.replace(old, new), tmp_path)


def test_it_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Neither addresses, nor the order of sets of texts, nor where the file is count."""
    program = (
        "import sys; from pathlib import Path; from clustermodel.study.fingerprint import fingerprint\n"
        "from clustermodel.study.script import run_script\n"
        "path = Path(sys.argv[1]); found = run_script(path, path.read_text())['Mine']()\n"
        "print(fingerprint(found, 'mine').sha256)"
    )
    here = mine(TEXT, tmp_path)
    for seed in ("1", "2"):
        path = tmp_path / seed / "script.py"
        path.parent.mkdir()
        path.write_text(TEXT)
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == here


def test_modules_beside_the_script_count_too_as_far_as_they_are_used(tmp_path: Path) -> None:
    script = "import tools\nclass Mine:\n    def decide(self):\n        return tools.deep.rank(1)\n"
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("from tools import deep\n")
    deep = "def rank(x):\n    return base(x)\ndef base(x):\n    return x\ndef unused():\n    return 1\n"
    (tmp_path / "tools" / "deep.py").write_text(deep)
    first = mine(script, tmp_path)
    (tmp_path / "tools" / "deep.py").write_text(deep.replace("return 1", "return 2"))
    assert mine(script, tmp_path) == first
    (tmp_path / "tools" / "deep.py").write_text(deep.replace("return x", "return -x"))
    assert mine(script, tmp_path) != first


def test_functions_that_import_inside_count_what_they_import(tmp_path: Path) -> None:
    script = "import aside\nclass Mine:\n    def decide(self):\n        from aside import rank\n        return rank\n"
    (tmp_path / "aside.py").write_text("def rank(x):\n    return x\n")
    first = mine(script, tmp_path)
    (tmp_path / "aside.py").write_text("def rank(x):\n    return -x\n")
    assert mine(script, tmp_path) != first


def test_files_count_by_their_content(tmp_path: Path) -> None:
    quotas = tmp_path / "quotas.txt"
    quotas.write_text("1")

    class Reads:
        def begin(self, path: Path | str) -> None:
            self.path = path

    for path in (quotas, str(quotas)):
        reads = Reads()
        reads.begin(path)
        found = []
        for content in ("1", "2"):
            quotas.write_text(content)
            found.append(fingerprint(reads, "reads"))
        assert found[0].sha256 == found[1].sha256
        assert list(found[0].files) == list(found[1].files) == [str(quotas)]
        assert found[0].files != found[1].files


def test_policies_of_the_package_count_by_their_values() -> None:
    assert fingerprint(Easy(), "easy") == fingerprint(Easy(), "easy")
    assert fingerprint(Easy(), "easy") != fingerprint(Easy(reserve_depth=2), "easy")
    assert fingerprint(Backfilling(), "b") != fingerprint(Backfilling(speculation=0.5), "b")


@pytest.mark.parametrize(
    "value",
    [
        lambda: (1, 1.5, "a", b"b", None, ..., 2j, 10**5000),
        lambda: [np.float64(1.5), np.arange(3), np.array(["a", None], dtype=object), np.random.default_rng(3)],
        lambda: {"frame": pd.DataFrame({"a": [1, 2]}), 3: {4, 5}, "f": frozenset({"x", "y"})},
        lambda: [max, "a".join, np.add, np.random.default_rng, [].append],
        lambda: (range(3), slice(1, 2), Path("nowhere"), pd.Timestamp(0)),
        lambda: [re.compile("a+"), logging.getLogger("mine"), list[int], int | None, Any, itertools.count(3), stats.norm],
        lambda: (random.Random(3), Counter("abc"), deque([1], maxlen=2), operator.itemgetter(1), Decimal("1.5"), np.add),
    ],
)
def test_values_of_many_kinds(value: Callable[[], object]) -> None:
    assert fingerprint(value(), "value") == fingerprint(value(), "value")


def test_objects_that_hold_themselves_end() -> None:
    def ring(length: int) -> list[object]:
        first: list[object] = []
        last = first
        for _ in range(length):
            last.append(following := [])
            last = following
        last.append(first)
        return first

    assert fingerprint(ring(2), "ring") == fingerprint(ring(2), "ring") != fingerprint(ring(3), "ring")
    with pytest.raises(SpecificationError, match="ring: it is nested too deeply"):
        fingerprint(ring(10_000), "ring")


LOCK = threading.Lock()


def uses_a_lock() -> None:
    with LOCK:
        pass


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (
            uses_a_lock,
            "policy x: reaches LOCK, a lock, of which neither source nor value is known, so a run's key could not tell",
        ),
        (LOCK, "policy x: is a lock of which neither source nor value is known"),
        ({"a": [memoryview(b"")]}, "policy x: reaches a, a .*, of which neither source nor value is known"),
        ((one for one in "ab"), "policy x: is a generator of which neither source nor value is known"),
        (eval("lambda: 1"), "policy x: is a function whose source is not known"),
    ],
)
def test_what_has_no_source_and_no_value_is_refused_in_one_line(thing: object, message: str) -> None:
    with pytest.raises(SpecificationError, match=message) as refused:
        fingerprint(thing, "policy x")
    assert "\n" not in str(refused.value)
    assert "define it in a file, from plain values" in str(refused.value)
    assert " at 0x" not in str(refused.value)
