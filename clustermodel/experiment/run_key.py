"""The key of a run: a digest of everything that its numbers depend on.

The key covers the machine, the jobs, the policy and the speedup model, the seed, the warm-up and the software.  Where a policy,
a speedup model or a measure is the user's, it covers their values, and all source files of the experiment: the script and what
it imports, as syntax trees without docstrings.  The standard library and installed packages count by their versions.  The host,
names and the order of the runs do not count.
"""

from __future__ import annotations

import ast
import copyreg
import functools
import hashlib
import json
import linecache
import os
import platform
import re
import secrets
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from importlib.util import resolve_name
from itertools import islice
from pathlib import Path, PurePath
from types import CodeType, FunctionType, GetSetDescriptorType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError, visible
from clustermodel.experiment import user_code
from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.scenario import Scenario
from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.measure.input_notes import Costs
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, Policy, dependencies_of
from clustermodel.policies.predictors import installed_predictor
from clustermodel.policies.registry import make_policy, policy_factory, policy_settings
from clustermodel.workload.table import PRECEDING, STREAM, THINK, JobSource, Workload

RECORDS: Final = "records"
"""The job table of a run."""
STATES_OVER_TIME: Final = "states"
"""The state of the machine after each scheduling event."""
PLACEMENTS: Final = "placements"
"""The nodes of each gang over time."""
TABLES: Final = (RECORDS, STATES_OVER_TIME, PLACEMENTS)
"""Names of the tables of a run, and of their folders."""

_PACKAGE: Final = Path(__file__).parents[1]
_NO_NUMBERS: Final = ("cli/", "figures/", "report/")
"""Folders of sources on which no number of a run depends: commands, figures and reports."""
_CHUNK: Final = 4096
_ATOMS: Final = frozenset({bool, int, float, complex, bytes, type(None), type(Ellipsis), type(NotImplemented)})
_WRAPPERS: Final[dict[type, tuple[str, ...]]] = {
    MethodType: ("__func__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools._lru_cache_wrapper: ("__wrapped__",),
}
"""Attributes in which objects around functions hold them."""
_LONGEST_FILE_NAME: Final = 1024
_WRITES: Final = re.compile("save|to_|write|dump")
"""How the names of functions begin whose arguments name files that are written."""
_first_seen: dict[str, tuple[ModuleSpec | None, str]] = {}
"""For each imported module of the user its specification, which a reload replaces, and the digest of its source."""


# Source files of users.


class _Source(NamedTuple):
    """A source file, or a cell of a notebook."""

    digest: str
    imports: tuple[str, ...] = ()
    """Names of modules; some are names of other things in modules."""
    files: tuple[tuple[str, str], ...] = ()
    """Names of files among its texts, and digests of their contents."""


def _read_source(content: bytes, folder: str, package: str) -> _Source:
    """Return what counts of a source: its syntax tree without docstrings, or all of it if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes
            tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return _Source(_sha256(content))
    imports: list[str] = []
    texts: dict[str, None] = {}
    written: set[int] = set()
    for node in ast.walk(tree):  # each definition before its docstring, and each call before its arguments
        match node:
            case ast.Module() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if ast.get_docstring(node, clean=False) is not None:
                    del node.body[0]
            case ast.Import():
                imports += [name.name for name in node.names]
            case ast.ImportFrom():
                with suppress(ImportError):  # beyond the top-level package
                    module = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
                    imports += [module, *(f"{module}.{name.name}" for name in node.names)]
            case ast.Call():
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if _WRITES.match(called):
                    written |= {id(argument) for argument in (*node.args, *(keyword.value for keyword in node.keywords))}
            case ast.Constant(value=str(text)) if id(node) not in written:
                texts[text] = None
    files = [(name, digest) for name in texts if (digest := _digest_of_file(name, folder)) is not None]
    return _Source(_sha256(ast.dump(tree)), tuple(imports), tuple(files))


def _sha256(content: str | bytes) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content).hexdigest()


def _digest_of_file(name: str, folder: str = "") -> str | None:
    """Return the digest of the file that a text names, if there is one."""
    if not name or len(name) > _LONGEST_FILE_NAME or not name.isprintable():
        return None
    path = os.path.join(folder, name)  # noqa: PTH118  many texts, few of which are files
    try:
        return _sha256(Path(path).read_bytes()) if os.path.isfile(path) else None  # noqa: PTH113
    except OSError:
        return "unreadable"


def _file_of(name: str, folder: str) -> str | None:
    """Return the file of a module, without importing it; ``None`` if there is none."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None)
    search = [folder, *sys.path]
    if above := name.rpartition(".")[0]:
        package = _file_of(above, folder)
        if package is None or Path(package).stem != "__init__":
            return None
        search = [str(Path(package).parent)]
    spec = PathFinder.find_spec(name, search)
    return spec.origin if spec is not None and spec.has_location else None


class Sources:
    """The source files of the user in one experiment: its script, or the program of this process, and what that imports."""

    def __init__(self, script: str = "", text: str = "", settings: Mapping[str, str] | None = None) -> None:
        self.token = secrets.token_hex(16)
        """Identifies functions of this process without a source, which no other process has."""
        self._known: dict[str, _Source] = {}
        self._digests: dict[tuple[tuple[str, str], ...], str] = {}
        self._settings = sorted((settings or {}).items())
        program = getattr(sys.modules["__main__"], "__file__", None) or ""
        self._roots: list[tuple[str, str]] = []
        if script:
            self._known[script] = _read_source(text.encode("utf-8", "surrogatepass"), str(Path(script).parent), "")
            modules = [(name, _file_of(name, "")) for name in user_code.SCRIPT_MODULES]
            self._roots = [("", script), *((name, file) for name, file in modules if file)]
        elif program and user_code.origin_of_file(program) is None and Path(program).is_file():
            self._roots = [("", program)]

    def digest(self, others: Iterable[tuple[str, str]] = ()) -> str:
        """Return the digest of the experiment's sources, and of other modules: their names and files."""
        others = tuple(sorted(set(others)))
        if others not in self._digests:
            reached: dict[str, tuple[object, ...]] = {}
            todo = [*self._roots, *others]
            while todo:
                name, file = todo.pop(0)
                if file not in reached:
                    source = self._source(name, file)
                    reached[file] = name, source.digest, source.files
                    todo += _modules_of_users(source.imports, str(Path(file).parent))
            self._digests[others] = _sha256(repr([self._settings, sorted(reached.values(), key=repr)]))
        return self._digests[others]

    def _source(self, name: str, file: str) -> _Source:
        if file in self._known:
            return self._known[file]
        main = sys.modules["__main__"]
        module = sys.modules.get(name) if name else main if getattr(main, "__file__", None) == file else None
        package = name if Path(file).stem == "__init__" else name.rpartition(".")[0]
        source = _read_source(Path(file).read_bytes(), str(Path(file).parent), package)
        if module is not None:
            spec, digest = _first_seen.get(file, (None, ""))
            if file not in _first_seen or spec is not module.__spec__:
                _first_seen[file] = module.__spec__, source.digest
            elif digest != source.digest and module is not main:
                raise SpecificationError(
                    f"{file}: it has changed since this process imported it; start again, or reload the module"
                )
            source = source._replace(digest=_first_seen[file][1])  # the program runs as it was
        self._known[file] = source
        return source


def _modules_of_users(imports: Iterable[str], folder: str) -> list[tuple[str, str]]:
    """Return the names and the files of imported modules, and of their packages, that are not installed."""
    names = {whole[:end] for whole in imports for end in (*(dot.start() for dot in re.finditer(r"\.", whole)), len(whole))}
    files = [(name, _file_of(name, folder)) for name in sorted(names)]
    return [(name, file) for name, file in files if file is not None and user_code.origin_of_file(file) is None]


# Objects of users.


def fingerprint(thing: object, name: str, sources: Sources | None = None) -> str:
    """Return the digest of an object, a class or a function, the same in every process that makes it from the same code.

    It covers the object's values, the files that these name and, if it reaches code of the user, the experiment's sources: by
    default those of this process.  Messages call the object ``name``; what reaches an object without known source and value is
    refused.
    """
    sources = sources or Sources()
    walk = _Walk(name, sources.token)
    try:
        digest = walk.of(thing)
    except RecursionError:
        raise SpecificationError(f"{name}: it is nested too deeply for a run's key") from None
    return _sha256(digest + sources.digest(walk.modules)) if walk.is_users else digest


class _Walk:
    """One walk through an object and the objects that it holds."""

    def __init__(self, name: str, token: str) -> None:
        self.modules: set[tuple[str, str]] = set()
        """The modules of the user whose code the object reaches: names and files."""
        self.is_users = False
        self._token = token
        self._names = [name]
        self._path: list[int] = []
        self._known: dict[int, tuple[object, str]] = {}  # keeps objects alive, so that no other one gets their ids

    def of(self, thing: Any, name: str = "") -> str:
        """Return the digest of an object, which has a name in the object above it or none."""
        if type(thing) in _ATOMS:
            return f"{type(thing).__name__} {hex(thing) if type(thing) is int else repr(thing)}"
        if id(thing) in self._path:
            return f"again, {len(self._path) - self._path.index(id(thing))} above"
        if id(thing) not in self._known:
            self._path.append(id(thing))
            self._names.append(name)
            self._known[id(thing)] = thing, _sha256(repr(self._parts(thing)))
            self._path.pop()
            self._names.pop()
        return self._known[id(thing)][1]

    def _parts(self, thing: Any) -> list[object]:  # noqa: PLR0911  a line for each kind of object
        """Return what distinguishes an object from others, as texts and numbers."""
        kind = type(thing)
        if kind is str or isinstance(thing, PurePath):
            return ["text", str(thing), _digest_of_file(str(thing))]
        if kind in (list, tuple):
            return [kind.__name__, *map(self.of, thing)]
        if kind in (set, frozenset):  # unordered
            return [kind.__name__, *sorted(map(self.of, thing))]
        if kind in (dict, MappingProxyType):
            names = [key if isinstance(key, str) else f"[{type(key).__name__}]" for key in thing]
            return ["dict", *((self.of(key), self.of(thing[key], name)) for key, name in zip(thing, names, strict=True))]
        if kind is np.ndarray and not thing.dtype.hasobject:
            return ["array", thing.dtype.descr, thing.shape, _sha256(thing.tobytes())]
        if kind is FunctionType:
            return self._function(thing)
        if kind is CodeType:
            return ["code", thing.co_code, thing.co_names, *map(self.of, thing.co_consts)]
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, ModuleType):
            users = user_code.origin_of_module(thing.__name__) is None
            return ["module", self._module(thing.__name__, getattr(thing, "__file__", None)) if users else thing.__name__]
        if isinstance(thing, MemberDescriptorType | GetSetDescriptorType):
            return ["descriptor", thing.__name__]
        for wrapper, attributes in _WRAPPERS.items():
            if isinstance(thing, wrapper):
                return [self.of(kind), *(self.of(getattr(thing, name)) for name in attributes)]
        return self._instance(thing)

    def _module(self, name: str, file: str | None) -> str:
        """Note a module of the user whose code is reached, and return its name; that of a script does not count."""
        self.is_users = True
        name = "" if name == "__main__" or name.startswith("clustermodel_script_") else name
        if file is not None and Path(file).is_file():
            self.modules.add((name, file))
        return name

    def _function(self, function: FunctionType) -> list[object]:
        code = function.__code__
        cells = list(zip(code.co_freevars, map(_contents_of, function.__closure__ or ()), strict=True))
        parts: list[object] = ["function", function.__qualname__]
        if user_code.named(function.__module__, function.__qualname__) is not function:  # others may have this name
            parts.append(self.of(code))
        if user_code.origin_of_file(code.co_filename) is not None:
            held = [value for _, value in cells] + list(vars(function).values())
            values = [part for value in held for part in (value.values() if isinstance(value, Mapping) else [value])]
            return [*parts, function.__module__, *(self.of(value) for value in values if _may_be_users(value))]
        parts.append(self._module(function.__module__, code.co_filename))
        of_script = code.co_filename == getattr(sys.modules.get(function.__module__), "__file__", None)  # sent as text
        if code.co_filename.startswith("<") or not (of_script or Path(code.co_filename).is_file()):
            parts += self._typed(function)  # standard input is the file of __main__, too
        parts += [(name, self.of(value, name)) for name, value in cells]
        return [*parts, self.of((function.__defaults__, function.__kwdefaults__, vars(function)))]

    def _typed(self, function: FunctionType) -> list[object]:
        """Return what counts of a function without a file: its cell of a notebook, and the globals that it names."""
        cell = "".join(linecache.getlines(function.__code__.co_filename))
        parts: list[object] = []
        if cell:
            source = _read_source(cell.encode("utf-8", "surrogatepass"), "", "")
            parts = [source]
            self.modules.update(_modules_of_users(source.imports, ""))
        elif function.__globals__ is vars(sys.modules["__main__"]):
            parts = [self._token]
        else:
            self._refuse(function, "whose source is not known")
        names = sorted(_names_in(function.__code__) & function.__globals__.keys())
        return parts + [(name, self.of(function.__globals__[name], name)) for name in names if not name.startswith("__")]

    def _class(self, kind: type) -> list[object]:
        origin = user_code.origin_of_class(kind)
        values = sorted(vars(kind).items())
        if origin is not None:  # a script may have replaced attributes of the package's classes
            values = [pair for pair in values if origin == "clustermodel" and user_code.is_users_code(pair[1])]
            replaced = [(name, self.of(value, name)) for name, value in values]
            return ["class", kind.__qualname__, origin, kind.__module__, *replaced]
        module = self._module(kind.__module__, getattr(sys.modules.get(kind.__module__), "__file__", None))
        parts = ["class", kind.__qualname__, module, *map(self.of, kind.__bases__), self.of(type(kind))]
        if is_dataclass(kind):
            parts += [self.of([field.name, field.default_factory, field.metadata]) for field in fields(kind)]
        return [*parts, *((name, self.of(value, name)) for name, value in values if not _is_generated(name, value))]

    def _instance(self, thing: Any) -> list[object]:
        kind = type(thing)
        if is_dataclass(thing) and kind.__dataclass_params__.frozen:
            values = [(field.name, self.of(getattr(thing, field.name), field.name)) for field in fields(thing)]
            return [self.of(kind), *values]
        parts: Any = ()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    parts = thing.__reduce_ex__(4)
                except TypeError:  # second: packages register more classes with copyreg when they are imported
                    parts = copyreg.dispatch_table[kind](thing)
        except Exception:  # of the object's own methods: it has no reduced form
            self._refuse(thing, "of which neither source nor value is known")
        parts = [parts] if isinstance(parts, str) else parts
        return [self.of(kind), *(self.of(list(part) if isinstance(part, Iterator) else part) for part in parts)]

    def _refuse(self, thing: object, why: str) -> None:
        name, *names = filter(None, self._names)
        reached = f" reaches {'.'.join(names)}, a {type(thing).__name__}," if names else f" is a {type(thing).__name__}"
        raise SpecificationError(
            visible(
                f"{name}:{reached} {why}, so a run's key could not tell when it changes; define it in a file, from plain values"
            )
        )


def _may_be_users(thing: object) -> bool:
    return isinstance(thing, functools.partial) or user_code.is_users_code(getattr(thing, "__func__", thing))


def _is_generated(name: str, value: object) -> bool:
    """Return whether Python, not the user, has made an attribute of a class, from what the class or its fields are."""
    if isinstance(value, FunctionType) and name.startswith("__"):
        return value.__code__.co_filename.startswith("<") and not linecache.getlines(value.__code__.co_filename)
    return name.startswith("_abc_") or (name.startswith("_") and name.endswith("_"))


def _contents_of(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in code."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names, *(name for part in inner for name in _names_in(part))}


class Identities:
    """Identities of policies, speedup models and measures in one process."""

    def __init__(self, sources: Sources | None = None) -> None:
        self.sources = sources or Sources()
        self._known: dict[str | int, tuple[object, object]] = {}  # by names, and ids of policies: what makes it, its identity

    def of_code(self, scenario: Scenario, measures: object = None) -> dict[str, object]:
        """Return the identities of all code of a run: policy, speedup model and measures."""
        speedup, policy = scenario.speedup, scenario.policy
        kind = type(speedup).__name__
        # Identified once, before any run: it may change what the policy reads, and another script may register the name anew.
        made_by, place = (policy_factory(policy), policy) if isinstance(policy, str) else (policy, id(policy))
        if place not in self._known:
            self._known[place] = made_by, self._of_policy(policy)
        if self._known[place][0] is not made_by:
            raise SpecificationError(f"policy {policy}: another script has registered this name meanwhile")
        return {
            "policy": self._known[place][1],
            "speedup": repr(speedup) if user_code.is_ours(type(speedup)) else self._of(kind, f"speedup {kind}", speedup),
            "measures": measures,
        }

    def _of_policy(self, policy: str | Policy) -> object:
        """Return the identity of a policy: its name with parameters, or a digest of its values and of the user's sources."""
        if not isinstance(policy, str):
            return self._of(policy.name, f"policy {policy.name}", policy)
        factory = policy_factory(policy)
        identity: object = policy if user_code.is_ours(factory) else self._of(policy, f"policy {policy}", factory)
        predictor = installed_predictor(policy_settings(policy).get("predictor"))
        if predictor is None:
            return identity
        return {"policy": identity, "predictor": self._of(policy, f"predictor of policy {policy}", predictor)}

    def of_measures(self, measures: Mapping[str, Callable[..., object]]) -> dict[str, object]:
        """Return the identities of a study's own measures by name."""
        return {name: self._of(name, f"measure {name}", measure) for name, measure in measures.items()}

    def _of(self, name: str, shown: str, thing: object) -> dict[str, object]:
        return {"name": name, "sha256": fingerprint(thing, shown, self.sources)}


# Jobs.


class JobsDigest(NamedTuple):
    """Identity of the jobs of a stream."""

    sha256: str
    jobs: int


def digest_of_jobs(source: JobSource) -> JobsDigest:
    """Return the digest of the jobs of a stream; reads all of it.

    It covers labels of streams and feedback where the workload has them, on which metrics and submissions depend.
    """
    digest, jobs = hashlib.sha256(), 0
    if isinstance(source, Workload):
        names = (*JobRow._fields, *(name for name in (STREAM, PRECEDING, THINK) if source.has(name)))
        table = np.stack([source.column(name) for name in names], axis=1).astype("<i8", order="C", copy=False)
        digest.update(table.tobytes())
        if names != JobRow._fields:
            digest.update(json.dumps([names, source.streams]).encode())
        return JobsDigest(digest.hexdigest(), len(source))
    rows = iter(source.rows())
    while chunk := list(islice(rows, _CHUNK)):
        digest.update(np.array(chunk, dtype="<i8").tobytes())
        jobs += len(chunk)
    return JobsDigest(digest.hexdigest(), jobs)


class DigestsOfJobs:
    """Digests of job streams, each computed once; the streams are not kept alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], object], JobsDigest]] = {}

    def of(self, source: JobSource) -> JobsDigest:
        """Return the digest of the jobs of ``source``, which is read to its end the first time."""
        shared = source.column("id").base if isinstance(source, Workload) else None  # workloads of the same jobs share it
        jobs: object = source if shared is None or shared.flags.writeable else shared
        reference, digest = self._known.get(id(jobs), (None, None))
        if reference is None or digest is None or reference() is not jobs:  # ids are reused
            digest = digest_of_jobs(source)
            with suppress(TypeError):  # of a class that allows no weak references
                self._known[id(jobs)] = weakref.ref(jobs), digest
        return digest


# Runs.


class Run(NamedTuple):
    """A trial with the key of its run.  Trials whose scenarios cannot differ have the same key."""

    key: str
    trial: Trial
    specification: Mapping[str, Any]
    """Everything that the run's numbers depend on; plain values."""
    about: Mapping[str, Label]
    """Policy, workload, number of nodes and seed of the scenario."""
    jobs: int
    sources: Sequence[str]
    """The origins of the job streams, for readers."""
    history: bool
    """Whether the run keeps every state of the Ousterhout matrix."""
    error: str | None = None
    """Why the scenario could not be made; such a run has failed."""
    costs: Costs | None = None
    """What was given for the machine, and what of it the policy may use."""


def identified(
    trial: Trial, scenario: Scenario, jobs: Sequence[JobsDigest], code: Mapping[str, Any], *, warm_up_s: float
) -> Run:
    """Return the run of a trial, of which the digests of the jobs and the identities of the code are known."""
    specified = specification(scenario, code, [digest.sha256 for digest in jobs], warm_up_s=warm_up_s)
    about: dict[str, Label] = {
        "policy": scenario.label,
        "workload": scenario.workload_name,
        "nodes": scenario.used_machine.processors,
        "seed": scenario.seed,
    }
    names = [source.provenance.source for source in scenario.sources]
    number, costs = sum(digest.jobs for digest in jobs), Costs.of(scenario)
    return Run(key_of(specified), trial, specified, about, number, names, scenario.history, costs=costs)


def without_scenario(trial: Trial, experiment: str, seed: int, error: str) -> Run:
    """Return the failed run of a trial of which the scenario could not be made; its own key keeps it apart from results."""
    specified = {"scenario": "could not be made", "trial": list(trial), "study": experiment, "seed": seed}
    about: dict[str, Label] = {"policy": None, "workload": None, "nodes": None, "seed": seed}
    return Run(key_of(specified), trial, specified, about, 0, [], history=False, error=error)


def specification(scenario: Scenario, code: Mapping[str, Any], jobs: Sequence[str], *, warm_up_s: float) -> dict[str, Any]:
    """Return everything that the numbers of a run depend on, as plain values.

    A policy that declares what it depends on (:func:`~clustermodel.policies.interface.dependencies_of`) makes the same schedule
    on machines that differ in other parts; those parts, and the seed of a policy that draws no random numbers, are left out.
    """
    machine = scenario.used_machine
    checkpointing, memory = machine.checkpointing, machine.node_memory
    whatever_the_policy_decides = {
        "checkpointing": checkpointing.interval_s is not None or checkpointing.restart_charge != "on-start",
        RANDOM_NUMBERS: machine.failures is not None,
        "node_memory_gib": memory is not None  # some jobs may need more than a node has
        and any(not isinstance(source, Workload) or source.column("memory").max() > memory for source in scenario.sources),
    }
    used = {
        *dependencies_of(make_policy(scenario.policy)),
        *(part for part, counts in whatever_the_policy_decides.items() if counts),
    }
    unused = {*PARTS, "failures"} - used
    plain = {field.name: getattr(machine, field.name) for field in fields(Machine) if field.name not in unused}
    plain = {name: part if isinstance(part, int | float | str | None) else asdict(part) for name, part in plain.items()}
    plain["failures"] = None if machine.failures is None else fingerprint(machine.failures, "Machine.failures")
    return {
        "machine": plain,
        "jobs_sha256": list(jobs),
        "seed": scenario.seed if RANDOM_NUMBERS in used else None,
        "fidelity": scenario.fidelity,
        "events": scenario.events,
        "warm_up_s": warm_up_s,
        **code,
        "software": software(),
    }


def key_of_scenario(scenario: Scenario) -> str:
    """Return the key of a run on its own, without a warm-up or measures; reads streamed traces to their ends."""
    jobs = [digest_of_jobs(source).sha256 for source in scenario.sources]
    return key_of(specification(scenario, Identities().of_code(scenario), jobs, warm_up_s=0.0))


def key_of(specification: Mapping[str, Any]) -> str:
    """Return the key of a run: 32 hexadecimal digits of the digest of its specification."""
    return _sha256(canonical(specification))[:32]


def canonical(value: object) -> str:
    """Return ``value`` as JSON, always in the same way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@cache
def software() -> dict[str, str]:
    """Return the identity of the software that makes the numbers: versions, and a digest of this package's sources."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        name = path.relative_to(_PACKAGE).as_posix()
        if path.suffix in (".py", ".json") and not name.startswith(_NO_NUMBERS):
            digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    packages = {name: version(name) for name in ("numpy", "simpy")}
    return {"clustermodel": version("clustermodel"), "clustermodel_sha256": digest.hexdigest(), "python": python, **packages}


def difference(expected: Mapping[str, Any], found: Mapping[str, Any], jobs: int, found_jobs: int) -> str:
    """Return in one line how the specification of a worker's run differs from the study's, and how to correct it."""
    import pandas as pd

    study, worker = (pd.json_normalize(dict(specification)).to_dict("records")[0] for specification in (expected, found))
    names = sorted(str(name) for name in study.keys() | worker.keys() if study.get(name) != worker.get(name))
    name = next((name for name in names if name.startswith("software")), names[0])
    texts = (str(values.get(name, "missing")) for values in (worker, study))
    there, here = (text if len(text) <= 20 else f"{text[:8]}..." for text in texts)
    if name.startswith("software"):
        return f"it was run by other software: {name.partition('.')[2]} is {there} there and {here} here; install the same"
    if names == ["jobs_sha256"]:
        return (
            f"it was run on other jobs: {found_jobs:,} there and {jobs:,} here, or of other values; a workload must depend on "
            "its seed alone: seed its random generators, and read no environment, clock or file that changes"
        )
    return (
        f"it was run on another specification: {name} is {there} there and {here} here; the script, and all that it imports "
        "and reads, must be the same wherever it runs"
    )
