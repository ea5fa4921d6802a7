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
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from functools import cached_property
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from importlib.util import resolve_name
from itertools import accumulate, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError, visible
from clustermodel.experiment import user_code
from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.scenario import Scenario
from clustermodel.machine.costs import SizeCost
from clustermodel.machine.machine import COSTS_OF_SIZE, Machine
from clustermodel.measure.input_notes import Costs
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, Policy, dependencies_of
from clustermodel.policies.predictors import installed_predictor
from clustermodel.policies.registry import make_policy, may_resize, policy_factory, policy_settings
from clustermodel.workload.job import NUMBERS
from clustermodel.workload.table import JobSource, Workload

if TYPE_CHECKING:
    from clustermodel.experiment.study import Experiment

RECORDS: Final = "records"  # the job table of a run
STATES_OVER_TIME: Final = "states"  # the state of the machine after each scheduling event
PLACEMENTS: Final = "placements"  # the nodes of each gang over time
RECORDED: Final = "recorded"  # the recorded placements, where the workload has them
TABLES: Final = (RECORDS, STATES_OVER_TIME, PLACEMENTS)  # names of the tables that a run may have to have
ALL_TABLES: Final = (*TABLES, RECORDED)  # and of their folders

_PACKAGE: Final = Path(__file__).parents[1]
# Sources on which no number of a run depends; on the measures of classes of jobs, in report/measure_table.py, some do.
_NO_NUMBERS: Final = ("cli/", "figures/", *(f"report/{name}.py" for name in ("data", "html", "plots", "write")))
_NOT_OF_VERSION: Final = frozenset({"history", "job_tables", "shown", "text", "tables", "figures"})
"""Fields of experiments that change no number of a run."""
_CHUNK: Final = 4096
_ATOMS: Final = frozenset({bool, int, float, complex, bytes, type(None), type(Ellipsis), type(NotImplemented)})
_WRAPPERS: Final[dict[type, tuple[str, ...]]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    cached_property: ("func",),
    functools._lru_cache_wrapper: ("__wrapped__",),
}
"""Attributes in which objects around functions hold them."""
_WRITES: Final = re.compile("save|to_|write|dump")  # begins the names of functions whose arguments name files to write
_first_seen: dict[str, tuple[ModuleSpec | None, str]] = {}
"""For each imported module of the user its specification, which a reload replaces, and the digest of its source."""


class _Source(NamedTuple):
    digest: str
    imports: tuple[str, ...] = ()  # names of modules; some are names of other things in modules
    files: tuple[tuple[str, str], ...] = ()  # names of files among its texts, and digests of their contents


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
    path = os.path.join(folder, name)  # noqa: PTH118  many texts, few of which are files
    try:
        return _sha256(Path(path).read_bytes()) if name and os.path.isfile(path) else None  # noqa: PTH113
    except OSError:
        return "unreadable"


def _modules_of_users(imports: Iterable[str], folder: str) -> list[tuple[str, str]]:
    """Return the names and the files of imported modules, and of their packages, that are not installed."""
    names = {name for whole in imports for name in accumulate(whole.split("."), "{}.{}".format)}
    files = [(name, _file_of(name, folder)) for name in sorted(names)]
    return [(name, file) for name, file in files if file is not None and user_code.origin_of_file(file) is None]


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
        self.token = secrets.token_hex(16)  # of functions of this process without a source, which no other process has
        self.digest = functools.cache(self._digest)
        self._known: dict[str, _Source] = {}
        self._settings = sorted((settings or {}).items())
        self._roots: list[tuple[str, str]] = []
        program = getattr(sys.modules["__main__"], "__file__", None) or ""
        if script:
            self._known[script] = _read_source(text.encode("utf-8", "surrogatepass"), str(Path(script).parent), "")
            modules = [(name, _file_of(name, "")) for name in user_code.SCRIPT_MODULES]
            self._roots = [("", script), *((name, file) for name, file in modules if file)]
        elif program and user_code.origin_of_file(program) is None and Path(program).is_file():
            self._roots = [("", program)]

    def _digest(self, others: frozenset[tuple[str, str]] = frozenset()) -> str:
        """Return the digest of the experiment's sources, and of other modules: their names and files."""
        reached: dict[str, tuple[object, ...]] = {}
        todo = [*self._roots, *sorted(others)]
        while todo:
            name, file = todo.pop(0)
            if file not in reached:
                source = self._source(name, file)
                reached[file] = name, source.digest, source.files
                todo += _modules_of_users(source.imports, str(Path(file).parent))
        return _sha256(repr([self._settings, sorted(reached.values(), key=repr)]))

    def _source(self, name: str, file: str) -> _Source:
        if file not in self._known:
            main = sys.modules["__main__"]
            module = sys.modules.get(name) if name else main if getattr(main, "__file__", None) == file else None
            package = name if Path(file).stem == "__init__" else name.rpartition(".")[0]
            source = _read_source(Path(file).read_bytes(), str(Path(file).parent), package)
            if module is not None:
                spec, digest = _first_seen.get(file, (None, ""))
                if not digest or spec is not module.__spec__:
                    digest = source.digest
                    _first_seen[file] = module.__spec__, digest
                if digest != source.digest and module is not main:
                    again = "start again, or reload the module"
                    raise SpecificationError(f"{file}: it has changed since this process imported it; {again}")
                source = source._replace(digest=digest)  # the program runs as it was
            self._known[file] = source
        return self._known[file]


def fingerprint(thing: object, name: str, sources: Sources | None = None) -> str:
    """Return the digest of an object, a class or a function, the same in every process that makes it from the same code."""
    # It covers values, the files that these name and, if it reaches code of the user, the experiment's sources.  Messages call
    # the object by its name; what reaches an object without known source and value is refused.
    sources = sources or Sources()
    walk = _Walk(name, sources.token)
    try:
        digest = walk.of(thing)
    except RecursionError:
        raise SpecificationError(f"{name}: it is nested too deeply for a run's key") from None
    return _sha256(digest + sources.digest(frozenset(walk.modules))) if walk.is_users else digest


class _Walk:
    """One walk through an object and the objects that it holds."""

    def __init__(self, name: str, token: str) -> None:
        self.modules: set[tuple[str, str]] = set()  # of the user, whose code the object reaches: names and files
        self.is_users = False
        self._token = token
        self._name = name
        self._above: dict[int, str] = {}  # objects around the one that is looked at, from the outermost: ids and names
        self._known: dict[int, tuple[object, str]] = {}  # keeps objects alive, so that no other one gets their ids

    def of(self, thing: Any, name: str = "") -> str:
        """Return the digest of an object, which has a name in the object above it or none."""
        if type(thing) in _ATOMS:
            return f"{type(thing).__name__} {hex(thing) if type(thing) is int else repr(thing)}"
        if id(thing) in self._above:
            return f"again, {len(self._above) - list(self._above).index(id(thing))} above"
        if id(thing) not in self._known:
            self._above[id(thing)] = name
            self._known[id(thing)] = thing, _sha256(repr(self._parts(thing)))
            del self._above[id(thing)]
        return self._known[id(thing)][1]

    def _pairs(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[str, str]]:
        return [(self.of(name), self.of(value, name if isinstance(name, str) else "")) for name, value in pairs]

    def _parts(self, thing: Any) -> list[object]:  # noqa: PLR0911, PLR0912  a line for each kind of object
        """Return what distinguishes an object from others, as texts and numbers."""
        kind = type(thing)
        if kind is str or isinstance(thing, PurePath):
            return ["text", str(thing), _digest_of_file(str(thing))]
        if kind in (list, tuple, set, frozenset):
            inside = list(map(self.of, thing))
            return [kind.__name__, *(inside if kind in (list, tuple) else sorted(inside))]
        if kind in (dict, types.MappingProxyType):
            return ["dict", *self._pairs(thing.items())]
        if kind is types.FunctionType:
            return self._function(thing)
        if kind is types.CodeType:
            return ["code", thing.co_code, thing.co_names, *map(self.of, thing.co_consts)]
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, types.ModuleType):
            users = user_code.origin_of_module(thing.__name__) is None
            return ["module", self._module(thing.__name__, getattr(thing, "__file__", None)) if users else thing.__name__]
        if isinstance(thing, types.MemberDescriptorType | types.GetSetDescriptorType):
            return ["descriptor", thing.__name__]
        for wrapper, attributes in _WRAPPERS.items():
            if isinstance(thing, wrapper):
                return [self.of(kind), *(self.of(getattr(thing, name)) for name in attributes)]
        frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
        # A class of the user without fields of its own may keep more than the fields that it inherits.
        if frozen and ("__dataclass_params__" in vars(kind) or user_code.origin_of(kind) is not None):
            return [self.of(kind), *self._pairs((field.name, getattr(thing, field.name)) for field in fields(thing))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    parts = thing.__reduce_ex__(4)
                except TypeError:  # second: packages register more classes with copyreg when they are imported
                    parts = copyreg.dispatch_table[kind](thing)
        except Exception:  # of the object's own methods: it has no reduced form
            raise self._refused(thing, "of which neither source nor value is known") from None
        parts = [parts] if isinstance(parts, str) else parts
        return [self.of(kind), *(self.of(list(part) if isinstance(part, Iterator) else part) for part in parts)]

    def _module(self, name: str, file: str | None) -> str:
        """Note a module of the user whose code is reached, and return its name; that of a script does not count."""
        self.is_users = True
        name = "" if name == "__main__" or name.startswith("clustermodel_script_") else name
        if file is not None and Path(file).is_file():
            self.modules.add((name, file))
        return name

    def _function(self, function: types.FunctionType) -> list[object]:
        code, attributes = function.__code__, vars(function)
        cells: list[tuple[str, Any]] = []
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # an empty cell
                cells.append((name, cell.cell_contents))
        parts: list[object] = ["function", function.__qualname__]
        if user_code.named(function.__module__, function.__qualname__) is not function:  # others may have this name
            parts.append(self.of(code))
        if user_code.origin_of_file(code.co_filename) is not None:  # an installed function around functions of the user
            inside = [*(value for _, value in cells), *attributes.values()]
            values = [part for value in inside for part in (value.values() if isinstance(value, Mapping) else [value])]
            users = [part for part in values if user_code.origin_of(getattr(part, "__func__", part)) is None]
            partials = [part for part in values if isinstance(part, functools.partial)]
            return [*parts, function.__module__, *map(self.of, users), *map(self.of, partials)]
        parts.append(self._module(function.__module__, code.co_filename))
        of_script = code.co_filename == getattr(sys.modules.get(function.__module__), "__file__", None)  # sent as text
        if code.co_filename.startswith("<") or not (of_script or Path(code.co_filename).is_file()):
            parts += self._typed(function)  # standard input is the file of __main__, too
        return [*parts, *self._pairs(cells), self.of((function.__defaults__, function.__kwdefaults__, attributes))]

    def _typed(self, function: types.FunctionType) -> list[object]:
        """Return what counts of a function without a file: its cell of a notebook, and the globals that it names."""
        parts: list[object] = [self._token]
        if cell := "".join(linecache.getlines(function.__code__.co_filename)):
            source = _read_source(cell.encode("utf-8", "surrogatepass"), "", "")
            parts = [source]
            self.modules.update(_modules_of_users(source.imports, ""))
        elif function.__globals__ is not vars(sys.modules["__main__"]):
            raise self._refused(function, "whose source is not known")
        names = sorted(_names_in(function.__code__) & function.__globals__.keys())
        return parts + self._pairs((name, function.__globals__[name]) for name in names if not name.startswith("__"))

    def _class(self, kind: type) -> list[object]:
        origin = user_code.origin_of(kind)
        values = sorted(vars(kind).items())
        if origin is not None:  # a script may have replaced attributes of the package's classes
            replaced = [pair for pair in values if origin == "clustermodel" and user_code.origin_of(pair[1]) is None]
            return ["class", kind.__qualname__, origin, kind.__module__, *self._pairs(replaced)]
        module = self._module(kind.__module__, getattr(sys.modules.get(kind.__module__), "__file__", None))
        parts = ["class", kind.__qualname__, module, *map(self.of, kind.__bases__), self.of(type(kind))]
        if is_dataclass(kind):
            parts += [self.of([field.name, field.default_factory, field.metadata]) for field in fields(kind)]
        return [*parts, *self._pairs(pair for pair in values if not _is_generated(*pair))]

    def _refused(self, thing: object, why: str) -> SpecificationError:
        names = list(filter(None, self._above.values()))
        reached = f" reaches {'.'.join(names)}, a {type(thing).__name__}," if names else f" is a {type(thing).__name__}"
        cannot = "so a run's key could not tell when it changes; define it in a file, from plain values"
        return SpecificationError(visible(f"{self._name}:{reached} {why}, {cannot}"))


def _is_generated(name: str, value: object) -> bool:  # by Python, from what a class or its fields are
    if isinstance(value, types.FunctionType) and name.startswith("__"):
        return value.__code__.co_filename.startswith("<") and not linecache.getlines(value.__code__.co_filename)
    return name.startswith("_abc_") or (name.startswith("_") and name.endswith("_"))


def _names_in(code: types.CodeType) -> set[str]:
    """Return the names of globals and attributes in code."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return {*code.co_names, *(name for part in inner for name in _names_in(part))}


class JobsDigest(NamedTuple):
    """Identity of the jobs of a stream."""

    sha256: str
    jobs: int


def digest_of_jobs(source: JobSource) -> JobsDigest:
    """Return the digest of all jobs of a stream, with all that is known of them, on which measures may depend."""
    digest, jobs = hashlib.sha256(), 0
    if isinstance(source, Workload):
        names = (*NUMBERS, *source.extra)
        table = np.stack([source.column(name) for name in names], axis=1).astype("<i8", order="C", copy=False)
        digest.update(table.tobytes())
        if names != NUMBERS:
            digest.update(json.dumps([names, source.streams]).encode())
        if source.names:
            digest.update(json.dumps(source.names, sort_keys=True).encode())
        digest.update(source.dependencies.astype("<i8").tobytes())
        if source.placed is not None:  # on which no schedule depends, but measures may, and a table that is kept
            digest.update(source.placed.digest.encode())
        return JobsDigest(digest.hexdigest(), len(source))
    rows = iter(source.rows())
    while chunk := list(islice(rows, _CHUNK)):
        digest.update(np.array([row[:-1] for row in chunk], dtype="<i8").tobytes())
        if any(demands := [row.demand for row in chunk]):
            digest.update(repr(demands).encode())
        jobs += len(chunk)
    return JobsDigest(digest.hexdigest(), jobs)


class Run(NamedTuple):
    """A trial with the key of its run.  Trials whose scenarios cannot differ have the same key."""

    key: str
    trial: Trial
    specification: Mapping[str, Any]  # everything that the run's numbers depend on; plain values
    about: Mapping[str, Label]  # policy, workload, number of nodes and seed of the scenario
    jobs: int
    sources: Sequence[str]  # the origins of the job streams, for readers
    history: bool  # whether the run keeps every state of the Ousterhout matrix
    error: str | None = None  # why the scenario could not be made; such a run has failed
    costs: Costs | None = None  # what was given for the machine, and what of it the policy may use


class Opened:
    """An experiment in the process that runs it, with the identities that its policies and measures had before any run."""

    def __init__(self, design: Experiment[Any], *, sent: bool = False, sources: Sources | None = None) -> None:
        self.design = design
        self._sent = sent  # by another process, which has identified its code
        self._sources = sources or Sources()
        self._policies: dict[str | int, tuple[object, object]] = {}  # by names, and ids: what makes it, its identity
        self._is_ours = functools.cache(user_code.is_ours)
        self._jobs: dict[int, tuple[Callable[[], object], JobsDigest]] = {}  # streams are not kept alive

    @cached_property
    def measures(self) -> dict[str, object]:
        """The identities of the experiment's own measures; none if another process sent them."""
        measures = {} if self._sent else self.design.measures
        return {name: self._identity(name, f"measure {name}", measure) for name, measure in measures.items()}

    @cached_property
    def version(self) -> str:
        """Digest of the user's sources and of the parameters of the experiment; the shards of a job array have the same."""
        design = self.design
        levels = {name: design.levels.labels(name) for name in design.levels.names}
        values = {part.name: getattr(design, part.name) for part in fields(design) if part.name not in _NOT_OF_VERSION}
        plain = {name: repr(part) for name, part in values.items() if isinstance(part, int | float | str) or is_dataclass(part)}
        return key_of({"levels": levels, "fields": plain, "sources": self._sources.digest()})

    def jobs_of(self, source: JobSource) -> JobsDigest:
        """Return the digest of the jobs of ``source``, which is read to its end the first time."""
        shared = source.column("id").base if isinstance(source, Workload) else None  # workloads of the same jobs share it
        jobs: object = source if shared is None or shared.flags.writeable else shared
        reference, digest = self._jobs.get(id(jobs), (None, None))
        if reference is None or digest is None or reference() is not jobs:  # ids are reused
            digest = digest_of_jobs(source)
            with suppress(TypeError):  # of a class that allows no weak references
                self._jobs[id(jobs)] = weakref.ref(jobs), digest
        return digest

    def identify(self, trial: Trial, scenario: Scenario, jobs: Sequence[JobsDigest], run: Run | None = None) -> Run:
        """Return the run of a trial, with its key; ``run`` is that of the process that sent the experiment."""
        if run is not None and self._sent:
            code: dict[str, object] = {name: run.specification.get(name) for name in ("policy", "speedup", "measures")}
        else:
            speedup, kind = scenario.speedup, type(scenario.speedup).__name__
            ours = self._is_ours(type(speedup))
            of_speedup = repr(speedup) if ours else self._identity(kind, f"speedup {kind}", speedup)
            code = {"policy": self._policy(scenario.policy), "speedup": of_speedup, "measures": self.measures}
        specified = _specification(scenario, code, [digest.sha256 for digest in jobs], warm_up_s=self.design.warm_up_s)
        about: dict[str, Label] = {
            "policy": scenario.label,
            "workload": scenario.workload_name,
            "nodes": scenario.used_machine.processors,
            "seed": scenario.seed,
        }
        names = [source.provenance.source for source in scenario.sources]
        number, costs = sum(digest.jobs for digest in jobs), Costs.of(scenario)
        return Run(key_of(specified), trial, specified, about, number, names, scenario.history, costs=costs)

    def _identity(self, name: str, shown: str, thing: object) -> dict[str, object]:
        return {"name": name, "sha256": fingerprint(thing, shown, self._sources)}

    def _policy(self, policy: str | Policy) -> object:
        """Return the identity of a policy: its name with parameters, or a digest of its values and of the user's sources."""
        # Determined before any run, which may change what the policy reads; another script may register its name anew.
        if not isinstance(policy, str):
            if id(policy) not in self._policies:
                self._policies[id(policy)] = policy, self._identity(policy.name, f"policy {policy.name}", policy)
            return self._policies[id(policy)][1]
        factory = policy_factory(policy)
        if policy not in self._policies:
            identity: object = policy if user_code.is_ours(factory) else self._identity(policy, f"policy {policy}", factory)
            predictor = installed_predictor(policy_settings(policy).get("predictor"))
            if predictor is not None:
                of_predictor = self._identity(policy, f"predictor of policy {policy}", predictor)
                identity = {"policy": identity, "predictor": of_predictor}
            self._policies[policy] = factory, identity
        if self._policies[policy][0] is not factory:
            raise SpecificationError(f"policy {policy}: another script has registered this name meanwhile")
        return self._policies[policy][1]


def _specification(scenario: Scenario, code: Mapping[str, Any], jobs: Sequence[str], *, warm_up_s: float) -> dict[str, Any]:
    """Return everything that the numbers of a run depend on, as plain values."""
    # Parts of the machine on which the policy does not depend, and the seed if it draws no random numbers, are left out.
    machine = scenario.used_machine
    checkpointing, memory = machine.checkpointing, machine.node_memory
    policy, shrinks = make_policy(scenario.policy), machine.on_failure == "shrink"
    whatever_the_policy_decides = {
        "checkpointing": checkpointing.interval_s is not None or checkpointing.restart_charge != "on-start" or shrinks,
        RANDOM_NUMBERS: machine.failures is not None,
        "node_memory_gib": memory is not None  # some jobs may need more than a node has, or share it
        and (
            machine.has_shared_nodes
            or any(each.memory_gib is not None for each in machine.node_types)
            or any(not isinstance(source, Workload) or source.column("memory").max() > memory for source in scenario.sources)
        ),
    }
    used = dependencies_of(policy) | {part for part, counts in whatever_the_policy_decides.items() if counts}
    unused = {*PARTS, "failures"} - used
    plain = {field.name: getattr(machine, field.name) for field in fields(Machine) if field.name not in unused}
    named: dict[str, Any] = {name: list(map(asdict, plain.pop(name))) for name in ("partitions", "node_types", "reservations")}
    for each in named["node_types"]:
        if each["power"] is None:
            del each["power"]
    for name in COSTS_OF_SIZE:
        if (cost := _cost_by_nodes(f"Machine.{name}", plain.pop(name))) != 0:
            named[name] = cost
    plain = {name: part if isinstance(part, int | float | str | None) else asdict(part) for name, part in plain.items()}
    plain |= {name: each for name, each in named.items() if each}
    if "context_switch" in plain:
        plain["context_switch"]["seconds"] = _cost_by_nodes("ContextSwitch.seconds", machine.context_switch.seconds)
    for name in ("power", "price", "power_cap_w", "idle_off_s", "resize_s"):
        if getattr(machine, name) is None:
            del plain[name]
    if not shrinks:
        del plain["on_failure"]
        if not may_resize(policy):
            plain.pop("resize_s", None)
    if machine.processors_per_node == 1:
        del plain["processors_per_node"]
    plain["failures"] = None if machine.failures is None else fingerprint(machine.failures, "Machine.failures")
    site = {} if scenario.used_site is None else {"site": fingerprint(scenario.used_site, "Scenario.site")}
    return {
        "machine": plain,
        **site,
        "jobs_sha256": list(jobs),
        "seed": scenario.seed if RANDOM_NUMBERS in used else None,
        "fidelity": scenario.fidelity,
        "events": scenario.events,
        "warm_up_s": warm_up_s,
        **code,
        "software": software(),
    }


def _cost_by_nodes(name: str, cost: Any) -> Any:
    """Return a cost as a plain value: a function as its digest."""
    if type(cost) is SizeCost:
        return asdict(cost)
    return fingerprint(cost, name) if callable(cost) else cost


def key_of_scenario(scenario: Scenario) -> str:
    """Return the key of a run on its own, without a warm-up or measures; reads streamed traces to their ends."""
    alone: Any = types.SimpleNamespace(measures={}, warm_up_s=0.0)
    return Opened(alone).identify(Trial((), 1), scenario, list(map(digest_of_jobs, scenario.sources))).key


def key_of(specification: Mapping[str, Any]) -> str:
    """Return the key of a run: 32 hexadecimal digits of the digest of its specification."""
    return _sha256(canonical(specification))[:32]


def canonical(value: object) -> str:
    """Return ``value`` as JSON, always in the same way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@functools.cache
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


def difference(expected: Run, found: Run) -> str:
    """Return in one line how a worker's run differs from the study's, and how to correct it; nothing if it does not."""
    if found.key == expected.key:
        return ""
    import pandas as pd  # a worker that agrees does without

    study, worker = (pd.json_normalize(dict(run.specification)).to_dict("records")[0] for run in (expected, found))
    names = sorted(str(name) for name in study.keys() | worker.keys() if study.get(name) != worker.get(name))
    name = next((name for name in names if name.startswith("software")), names[0])
    ours, theirs = (str(values.get(name, "missing")) for values in (study, worker))
    differs = " there and ".join(text if len(text) <= 20 else f"{text[:8]}..." for text in (theirs, ours)) + " here"
    if name.startswith("software"):
        return f"it was run by other software: {name.partition('.')[2]} is {differs}; install the same"
    if names == ["jobs_sha256"]:
        return (
            f"it was run on other jobs: {found.jobs:,} there and {expected.jobs:,} here, or of other values; a workload must "
            "depend on its seed alone: seed its random generators, and read no environment, clock or file that changes"
        )
    must = "the script, and all that it imports and reads, must be the same wherever it runs"
    return f"it was run on another specification: {name} is {differs}; {must}"
