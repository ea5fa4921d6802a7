"""What identifies a user's object: its code and values with all that they reach, and nothing else."""

import copyreg
import functools
import importlib
import itertools
import linecache
import logging
import operator
import random
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import field, make_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clustermodel import SpecificationError
from clustermodel.experiment.fingerprint import Sources, fingerprint
from clustermodel.experiment.script import run_script
from clustermodel.policies.backfilling.scheduler import Backfilling
from clustermodel.policies.easy import Easy
from clustermodel.policies.fcfs import Fcfs

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
    made = run_script(path, text)["Mine"]()
    return fingerprint(made, "policy mine", Sources(str(path), text))


CHANGES = {
    "a function two calls away": ("return x * 2", "return x * 3"),
    "a default": ("power=2", "power=3"),
    "a lambda's body": ("job.nodes + 1", "job.nodes + 2"),
    "a nested value of a global": ("[1, 2, 4]", "[1, 2, 8]"),
    "a base class": ("math.sqrt(job.nodes)", "math.log(job.nodes)"),
    "a decorator": ("function(*given) * 2", "function(*given) * 4"),
    "a value of an enumeration": ("LARGE = 2", "LARGE = 3"),
    "a field's factory": ("default_factory=list", "default_factory=dict"),
}
NO_CHANGES = {
    "a comment": ("# a comment", "# another one"),
    "a documentation string": ('"""Documented."""', '"""Better documented."""'),
    "a class's documentation": ('"""A policy."""', '"""My policy."""'),
    "blank lines": ("def helper", "\n\n\ndef helper"),
    "documentation that is added": ("def inner():", "def inner():\n            'inner'"),
}


@pytest.mark.parametrize(("old", "new"), [*CHANGES.values(), *NO_CHANGES.values()], ids=[*CHANGES, *NO_CHANGES])
def test_the_syntax_of_its_source_counts(old: str, new: str, tmp_path: Path) -> None:
    assert TEXT.count(old) == 1
    changed = mine(TEXT, tmp_path) != mine(TEXT.replace(old, new), tmp_path)
    assert changed == ((old, new) in CHANGES.values())


class Held:
    def __init__(self, *values: Any, **named: Any) -> None:
        self.values = values
        vars(self).update(named)

    def method(self) -> None: ...


def scaled(factor: int) -> Callable[[int], int]:
    return lambda x, power=factor: x**power * factor


def made(**values: Any) -> type:
    return type("Made", (Held,), values)


ring: Any = made(all=set())
ring.all.add(ring())
VALUES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "what a closure holds": (lambda: scaled(2), lambda: scaled(3)),
    "a partial": (lambda: functools.partial(scaled, 2), lambda: functools.partial(scaled, 3)),
    "an attribute": (lambda: Held(level=2), lambda: Held(level=3)),
    "the object of a method": (lambda: Held(2).method, lambda: Held(3).method),
    "an attribute of a class": (lambda: made(limit=2), lambda: made(limit=3)),
    "a property": (lambda: made(rank=property(scaled(2))), lambda: made(rank=property(scaled(3)))),
    "a slot": (lambda: made(__slots__=("a",)), lambda: made(__slots__=("b",))),
    "a cached function": (lambda: functools.cache(scaled(2)), lambda: functools.cache(scaled(3))),
    "an order": (lambda: deque([1, 2]), lambda: deque([2, 1])),
    "an element of a set": (lambda: {"b", "a"}, lambda: {"b", "c"}),
    "sets that hold each other": (lambda: ring, lambda: made(all={2})),
    "an array": (lambda: np.arange(6), lambda: np.arange(1, 7)),
    "names of a structured array": (
        lambda: np.zeros(1, dtype=[("l", "i8"), ("m", "i8")]),
        lambda: np.zeros(1, dtype=[("m", "i8"), ("l", "i8")]),
    ),
    "a mask": (lambda: np.ma.array([1, 2], mask=[0, 1]), lambda: np.ma.array([1, 2], mask=[1, 0])),
    "a pattern": (lambda: re.compile("a+"), lambda: re.compile("b+")),
    "the state of a random generator": (lambda: np.random.default_rng(7), lambda: np.random.default_rng(8)),
    "a member": (lambda: Enum("Kind", {"A": 1}).A, lambda: Enum("Kind", {"A": 2}).A),
    "metadata of a field": (
        lambda: make_dataclass("D", [("x", int, field(default=1, metadata={"l": 2}))]),
        lambda: make_dataclass("D", [("x", int, field(default=1, metadata={"l": 5}))]),
    ),
    "a policy's parameter": (Easy, lambda: Easy(reserve_depth=2)),
    "a policy's speculation": (Backfilling, lambda: Backfilling(speculation=0.5)),
}


@pytest.mark.parametrize(("first", "second"), VALUES.values(), ids=VALUES)
def test_values_count(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    assert fingerprint(first(), "x") == fingerprint(first(), "x") != fingerprint(second(), "x")


def test_a_method_of_the_package_that_a_script_replaces_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(Fcfs(), "x")
    monkeypatch.setattr(Fcfs, "decide", scaled(2))
    assert fingerprint(Fcfs(), "x") != before


ORDINARY = """
import configparser, re, struct, types, typing
from typing import Generic, NewType, TypeVar
import numpy as np
from scipy.special import expit
T = TypeVar("T")
class Box(Generic[T]):
    pass
class Attributes(dict):
    __getattr__ = dict.__getitem__
IntBox, Number, Either, Proxy = Box[int], NewType("Number", int), int | str, types.MappingProxyType({"a": 1})
PATTERN, CONFIG, SETTINGS = re.compile("a.*"), configparser.ConfigParser(), Attributes(l=2)
HERE = __file__
class Mine:
    def decide(self):
        return IntBox, Number, Either, Proxy, PATTERN, CONFIG, SETTINGS.l, expit, np.where, __name__, __file__
"""


def test_ordinary_code_is_accepted_and_comments_never_count(tmp_path: Path) -> None:
    assert mine(ORDINARY, tmp_path) == mine(ORDINARY + "# the end\n", tmp_path)


def test_submodules_that_only_a_function_imports_count(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("LIMIT = 1\n")
    helper = tmp_path / "pkg" / "helper.py"
    for line in ("from pkg import helper", "import pkg.helper as helper", "import pkg.helper"):
        script = f"class Mine:\n    def decide(self):\n        {line}\n"
        found = []
        for value in (2, 5):
            helper.write_text(f"limit = {value}\n")
            sys.path.insert(0, str(tmp_path))
            try:
                found.append(mine(script, tmp_path))
            finally:
                sys.path.remove(str(tmp_path))
                for name in ("pkg", "pkg.helper"):
                    sys.modules.pop(name, None)
                importlib.invalidate_caches()
                shutil.rmtree(tmp_path / "pkg" / "__pycache__", ignore_errors=True)
        assert found[0] != found[1], line


def test_it_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Neither addresses, nor the order of sets of texts, nor where the file is count."""
    program = (
        "import sys; from pathlib import Path; from clustermodel.experiment.fingerprint import fingerprint\n"
        "from clustermodel.experiment.script import run_script\n"
        "path = Path(sys.argv[1]); found = run_script(path, path.read_text())['Mine']()\n"
        "print(fingerprint(found, 'mine'))"
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


def test_files_beside_the_script_count_unless_it_writes_them(tmp_path: Path) -> None:
    script = "class Mine:\n    def decide(self):\n        open('weights'), self.frame.to_csv('out.csv')\n"
    found = []
    for weights, out in (("2", "2"), ("2", "3"), ("3", "3")):
        (tmp_path / "weights").write_text(weights)
        (tmp_path / "out.csv").write_text(out)
        found.append(mine(script, tmp_path))
    assert found[0] == found[1] != found[2]


def test_a_module_that_was_edited_after_its_import_is_refused_until_it_is_reloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path = tmp_path / "edited_helper.py"
    path.write_text("def rank(x):\n    return x\n")
    helper = importlib.import_module("edited_helper")
    first = fingerprint(helper.rank, "rank")
    path.write_text("def rank(x):\n    return -x\n")
    with pytest.raises(SpecificationError, match=r"edited_helper\.py: it has changed since this process imported it; start "):
        fingerprint(helper.rank, "rank")
    importlib.reload(helper)
    assert fingerprint(helper.rank, "rank") != first


CELL = """
import dataclasses
LIMIT, UNUSED = 1, 2
def near(x):
    return x + LIMIT
@dataclasses.dataclass(frozen=True)
class Mine:
    depth: int = 1
    def decide(self):
        return [near(x) for x in ()]
"""


def test_functions_of_a_notebook_count_by_their_cells_and_the_globals_that_they_name() -> None:
    def found(text: str, **values: object) -> str:
        linecache.cache["<cell>"] = len(text), None, text.splitlines(keepends=True), "<cell>"
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(text, "<cell>", "exec"), space)
        space.update(values)
        return fingerprint(space["Mine"](), "mine")

    first = found(CELL)
    assert first == found(CELL + "# the end\n") == found(CELL, UNUSED=3)
    others = [
        found(CELL, LIMIT=2),
        found(CELL.replace("x + LIMIT", "x - LIMIT")),
        found(CELL.replace("int = 1", "int = 2")),
    ]
    assert len({first, *others}) == 4


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
        assert found[0] != found[1]


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


def test_what_other_packages_register_with_copyreg_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing distributed registers all exceptions; worker processes have not imported it."""
    before = fingerprint(ValueError("x"), "problem")
    monkeypatch.setitem(copyreg.dispatch_table, ValueError, lambda one: (ValueError, (1, *one.args)))
    assert fingerprint(ValueError("x"), "problem") == before


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


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (LOCK, "policy x: it holds a lock, whose value is not known"),
        ({"a": [memoryview(b"")]}, "policy x: it holds a memoryview, whose value is not known"),
        ((one for one in "ab"), "policy x: it holds a generator, whose value is not known"),
    ],
)
def test_what_has_no_value_is_refused_in_one_line(thing: object, message: str) -> None:
    with pytest.raises(SpecificationError, match=message) as refused:
        fingerprint(thing, "policy x")
    assert "\n" not in str(refused.value)
    assert "define it in a file, from plain values" in str(refused.value)
    assert " at 0x" not in str(refused.value)


def test_functions_of_the_same_name_are_told_apart() -> None:
    first, second, again = (lambda job: job.nodes), (lambda job: job.user), (lambda job: job.nodes)
    assert fingerprint(first, "x") == fingerprint(again, "x") != fingerprint(second, "x")
    same = [lambda job: job.user in {"a", "b", *"cd"}, lambda job: job.user in {"a", "b", *"ce"}]
    assert fingerprint(same[0], "x") != fingerprint(same[1], "x")


def test_functions_without_a_file_are_told_apart_by_their_code() -> None:
    texts = "lambda: 1", "lambda: 1", "lambda: 2", "lambda: LIMIT"
    spaces = {}, {}, {}, {"LIMIT": 3}
    first, again, second, third = (fingerprint(eval(text, space), "x") for text, space in zip(texts, spaces, strict=True))
    assert first == again
    assert len({first, second, third, fingerprint(eval(texts[3], {"LIMIT": 4}), "x")}) == 4


def test_a_class_that_is_changed_in_a_loop_counts_with_its_values() -> None:
    class Mine(Fcfs):
        depth = 1

    found = []
    for depth in (1, 2, 1):
        Mine.depth = depth
        found.append(fingerprint(Mine(), "mine"))
    assert found[0] == found[2] != found[1]
