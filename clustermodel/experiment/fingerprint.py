"""Fingerprints: digests of a user's objects, with the source files of the code behind them.

A stored result is stale if any code behind it has changed.  So all of a source file counts, and of those that it imports, as
syntax trees without docstrings.  What follows from no source counts by value: attributes, closures, defaults, and files whose
names are among texts.  The standard library and installed packages count by their versions.  Functions typed into a notebook
or at a prompt count by their cell, and by the values of the globals that they name.
"""

from __future__ import annotations

import ast
import copyreg
import functools
import hashlib
import inspect
import linecache
import os
import re
import secrets
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError, visible
from clustermodel.experiment.user_code import (
    SCRIPT_MODULES,
    is_users_code,
    origin_of_class,
    origin_of_file,
    origin_of_module,
)

_ATOMS: Final = (bool, int, float, complex, bytes, type(None), type(Ellipsis), type(NotImplemented))
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)
_GENERATED: Final = frozenset(
    {"__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__setattr__", "__delattr__",
     "__new__", "__getstate__", "__setstate__"}
)  # fmt: skip
"""Functions of dataclasses and named tuples that Python makes from the fields."""
_LONGEST_FILE_NAME: Final = 1024
_DOCUMENTED: Final = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WRITES: Final = re.compile("save|to_|write|dump")
"""How the names of functions begin whose arguments name files that are written."""
_first_seen: dict[str, tuple[ModuleSpec | None, str]] = {}
"""For each imported module of the user its specification, which a reload replaces, and the digest of its source."""


# Source files.


class _Source(NamedTuple):
    """A source file, or a cell of a notebook."""

    digest: str
    imports: tuple[str, ...]
    """Names of modules; some are names of other things in modules."""
    files: tuple[tuple[str, str], ...]
    """Names of files among its texts, and digests of their contents."""


def _read_source(text: str, folder: str, package: str) -> _Source:
    """Return what counts of a source text: its syntax tree without docstrings, or all of it if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return _Source(_sha256(text), (), ())
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    imports: list[str] = []
    texts: dict[str, None] = {}
    written: set[int] = set()
    for node in ast.walk(tree):  # each call before its arguments
        if isinstance(node, ast.Import):
            imports += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # beyond the top-level package
                module = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
                imports += [module, *(f"{module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if _WRITES.match(called):
                written |= {id(argument) for argument in (*node.args, *(keyword.value for keyword in node.keywords))}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in written:
            texts[node.value] = None
    files = [(name, digest) for name in texts if (digest := _digest_of_file(name, "", folder)) is not None]
    return _Source(_sha256(ast.dump(tree)), tuple(imports), tuple(files))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _digest_of_file(name: str, *folders: str) -> str | None:
    """Return the digest of the file that a text names in the first of these folders that has it, if there is one."""
    if not name or len(name) > _LONGEST_FILE_NAME or not name.isprintable():
        return None
    for folder in folders:
        path = os.path.join(folder, name)  # noqa: PTH118  many texts, few of which are files
        try:
            if os.path.isfile(path):  # noqa: PTH113
                with open(path, "rb") as file:
                    return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return "unreadable"
    return None


def _file_of(name: str, folder: str) -> str | None:
    """Return the file of a module, without importing it; ``None`` if there is none."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None)
    above = name.rpartition(".")[0]
    if above:
        package = _file_of(above, folder)
        if package is None or Path(package).stem != "__init__":
            return None
        search = [str(Path(package).parent)]
    else:
        search = [folder, *sys.path]
    spec = PathFinder.find_spec(name, search)
    return spec.origin if spec is not None and spec.has_location else None


class Sources:
    """The source files of the user in one experiment: its script, or the program of this process, and what that imports.

    Args:
        script: the path of the script; the program of this process if it is empty.
        text: of the script.
        settings: of the script's parameters.
    """

    def __init__(self, script: str = "", text: str = "", settings: Mapping[str, str] | None = None) -> None:
        self.token = secrets.token_hex(16)
        """Identifies functions of this process without a source, which no other process has."""
        self._known: dict[str, _Source] = {}
        self._digests: dict[tuple[tuple[str, str], ...], str] = {}
        self._settings = sorted((settings or {}).items())
        main = sys.modules["__main__"]
        file = script or getattr(main, "__file__", None) or ""
        self._roots: list[tuple[str, str]] = []
        if script:
            self._known[script] = _read_source(text, str(Path(script).parent), "")
            self._roots = [("", script), *((name, file) for name in SCRIPT_MODULES if (file := _file_of(name, "")))]
        elif file and origin_of_file(file) is None and Path(file).is_file():
            self._roots = [("", file)]

    def digest(self, others: Iterable[tuple[str, str]] = ()) -> str:
        """Return the digest of the experiment's sources, and of other modules: their names and files.

        Raises:
            SpecificationError: a file has changed since this process imported it.
        """
        others = tuple(sorted(set(others)))
        if others in self._digests:
            return self._digests[others]
        reached: dict[str, tuple[object, ...]] = {}
        todo = [*self._roots, *others]
        while todo:
            name, file = todo.pop(0)
            if file in reached:
                continue
            source = self._source(name, file)
            reached[file] = name, source.digest, source.files
            folder = str(Path(file).parent)
            for imported in {part for whole in source.imports for part in _with_packages(whole)}:
                beside = _file_of(imported, folder)
                if beside is not None and origin_of_file(beside) is None:
                    todo.append((imported, beside))
        self._digests[others] = _sha256(repr([self._settings, sorted(reached.values(), key=repr)]))
        return self._digests[others]

    def _source(self, name: str, file: str) -> _Source:
        if file not in self._known:
            main = sys.modules["__main__"]
            module = sys.modules.get(name) if name else main if getattr(main, "__file__", None) == file else None
            package = name if Path(file).stem == "__init__" else name.rpartition(".")[0]
            content = Path(file).read_bytes()
            try:
                source = _read_source(content.decode("utf-8-sig"), str(Path(file).parent), package)
            except UnicodeDecodeError:  # compiled
                source = _Source(hashlib.sha256(content).hexdigest(), (), ())
            if module is not None:
                spec, digest = _first_seen.setdefault(file, (module.__spec__, source.digest))
                if spec is not module.__spec__:
                    _first_seen[file] = module.__spec__, source.digest
                elif digest != source.digest and module is not main:
                    raise SpecificationError(
                        f"{file}: it has changed since this process imported it; start again, or reload the module"
                    )
                source = source._replace(digest=_first_seen[file][1])  # the program runs as it was
            self._known[file] = source
        return self._known[file]


def _with_packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


# Values.


def fingerprint(thing: object, name: str, sources: Sources | None = None) -> str:
    """Return the digest of ``thing``: its values, the files that these name and, if it reaches code of the user, the sources.

    It is the same in every process that makes the object from the same code.

    Args:
        thing: an object, a class or a function.
        name: of the object in messages.
        sources: of the experiment; by default those of this process.

    Raises:
        SpecificationError: the object reaches another one without known source and value, or a source file has changed since
            this process imported it.
    """
    sources = sources or Sources()
    walk = _Walk(name, sources.token)
    try:
        walk.visit(thing)
    except RecursionError:
        raise SpecificationError(f"{name}: it is nested too deeply for a run's key") from None
    digest = walk.digest.hexdigest()
    return _sha256(digest + sources.digest(walk.modules)) if walk.is_users else digest


class _Walk:
    """One walk through an object and the objects that it holds; each object with an identity is entered once."""

    def __init__(self, name: str, token: str) -> None:
        self.digest = hashlib.sha256()
        self.modules: set[tuple[str, str]] = set()
        """The modules of the user whose code the object reaches: names and files."""
        self.is_users = False
        self._token = token
        self._seen: dict[int, tuple[int, object]] = {}  # keeps the object alive, so that no other one gets its id
        self._trail = [name]

    def _put(self, *tokens: object) -> None:
        for token in tokens:
            data = token if isinstance(token, bytes) else str(token).encode("utf-8", "surrogatepass")
            self.digest.update(len(data).to_bytes(8, "big") + data)

    @contextmanager
    def _within(self, name: str) -> Iterator[None]:
        self._trail.append(name)
        yield
        self._trail.pop()

    def _visit_named(self, values: Iterable[tuple[str, object]]) -> None:
        for name, value in values:
            self._put(name)
            with self._within(name):
                self.visit(value)

    def _refuse(self, thing: object, why: str) -> None:
        name, *trail = self._trail
        reached = f" reaches {'.'.join(trail)}, a {type(thing).__name__}," if trail else f" is a {type(thing).__name__}"
        raise SpecificationError(
            visible(
                f"{name}:{reached} {why}, so a run's key could not tell when it changes; define it in a file, from plain values"
            )
        )

    def visit(self, thing: Any) -> None:
        """Add ``thing`` to the digest."""
        if isinstance(thing, _ATOMS) and type(thing).__module__ == "builtins":
            self._put(type(thing).__name__, hex(thing) if type(thing) is int else repr(thing))
        elif type(thing) is str or isinstance(thing, PurePath):
            self._put("text", thing)
            if (digest := _digest_of_file(str(thing), "")) is not None:
                self._put("file", digest)
        elif type(thing) in (tuple, frozenset):
            self._container(thing)
        elif id(thing) in self._seen:
            self._put("again", self._seen[id(thing)][0])
        else:
            self._seen[id(thing)] = len(self._seen), thing
            self._enter(thing)

    def _enter(self, thing: Any) -> None:  # noqa: PLR0912  a branch for each kind of object
        if isinstance(thing, FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, ModuleType):
            self._put("module", thing.__name__)
            if origin_of_module(thing.__name__) is None:
                self._add_module(thing.__name__, getattr(thing, "__file__", None))
        elif isinstance(thing, MethodType):
            self.visit((thing.__func__, thing.__self__))
        elif isinstance(thing, staticmethod | classmethod):
            self.visit((type(thing).__name__, thing.__func__))
        elif isinstance(thing, property):
            self.visit((type(thing), thing.fget, thing.fset, thing.fdel))
        elif isinstance(thing, functools.cached_property):
            self.visit((type(thing), thing.func))
        elif isinstance(thing, MemberDescriptorType | GetSetDescriptorType):
            self._put("descriptor", thing.__name__)
        elif type(thing) in (*_CONTAINERS, MappingProxyType):
            self._container(thing)
        elif type(thing) is np.ndarray and not thing.dtype.hasobject:
            self._put("array", thing.dtype.descr, thing.shape, np.ascontiguousarray(thing).tobytes())
        elif isinstance(thing, Enum):
            self.visit((type(thing), thing.name, thing.value))
        elif isinstance(thing, BuiltinFunctionType) and not isinstance(thing.__self__, ModuleType | None):
            self.visit((thing.__name__, thing.__self__))
        elif origin_of_class(type(thing)) is not None and inspect.getattr_static(thing, "__wrapped__", None) is not None:
            self.visit((type(thing), thing.__wrapped__))  # functools.cache and its like
        else:
            self._instance(thing)

    def _container(self, thing: Any) -> None:
        kind = next((kind.__name__ for kind in _CONTAINERS if isinstance(thing, kind)), "dict")
        self._put(kind, len(thing))
        if kind == "dict":
            for key, value in thing.items():
                self.visit(key)
                with self._within(key if isinstance(key, str) else f"[{type(key).__name__}]"):
                    self.visit(value)
        elif kind in ("set", "frozenset"):  # unordered
            for digest in sorted(map(self._digest_apart, thing)):
                self._put(digest)
        else:
            for element in thing:
                self.visit(element)

    def _digest_apart(self, element: object) -> str:
        """Return the digest of an element of a set, independent of the elements before it."""
        walk = _Walk(self._trail[0], self._token)
        walk._trail, walk.modules = list(self._trail), self.modules
        if not isinstance(element, (*_ATOMS, str)):
            walk._seen = dict(self._seen)  # the element may refer to an object that contains the set
        walk.visit(element)
        self.is_users |= walk.is_users
        return walk.digest.hexdigest()

    # Code.

    def _add_module(self, name: str, file: str | None) -> None:
        """Note a module of the user whose code is reached."""
        self.is_users = True
        if file is not None and Path(file).is_file():
            is_root = name == "__main__" or name.startswith("clustermodel_script_")
            self.modules.add(("" if is_root else name, file))

    def _function(self, function: FunctionType) -> None:
        code = function.__code__
        self._put("function", function.__qualname__)
        if origin_of_file(code.co_filename) is not None:
            self._put(function.__module__)
            for value in (*map(_contents_of, function.__closure__ or ()), *vars(function).values()):
                parts = value.values() if isinstance(value, Mapping) else [value]
                self.visit([part for part in parts if _may_be_users(part)])  # a function that it decorates
            return
        self._add_module(function.__module__, code.co_filename)
        known = Path(code.co_filename).is_file()
        of_script = code.co_filename == getattr(sys.modules.get(function.__module__), "__file__", None)  # sent as text
        if code.co_filename.startswith("<") or not (known or of_script):  # standard input is the file of __main__, too
            self._typed(function)
        cells = map(_contents_of, function.__closure__ or ())
        self._visit_named(zip(code.co_freevars, cells, strict=True))
        self.visit((function.__defaults__, function.__kwdefaults__, vars(function)))

    def _typed(self, function: FunctionType) -> None:
        """Add a function without a file: the cell of a notebook that defines it, and the globals that it names."""
        cell = "".join(linecache.getlines(function.__code__.co_filename))
        if cell:
            source = _read_source(cell, "", "")
            self._put(source.digest, source.files)
            for name in source.imports:
                self._put(name)
                if (file := _file_of(name, "")) is not None and origin_of_file(file) is None:
                    self.modules.add((name, file))
        elif function.__globals__ is vars(sys.modules["__main__"]):
            self._put(self._token)
        else:
            self._refuse(function, "whose source is not known")
        names = sorted(_names_in(function.__code__) & function.__globals__.keys())
        self._visit_named((name, function.__globals__[name]) for name in names if not name.startswith("__"))

    def _class(self, kind: type) -> None:
        origin = origin_of_class(kind)
        self._put("class", kind.__qualname__)
        if origin is not None:
            self._put(origin, kind.__module__)
            if origin == "clustermodel":  # a script may have replaced its attributes
                self.visit([(name, value) for name, value in sorted(vars(kind).items()) if is_users_code(value)])
            return
        self._add_module(kind.__module__, getattr(sys.modules.get(kind.__module__), "__file__", None))
        self.visit([*kind.__bases__, *([] if type(kind) is type else [type(kind)])])
        if is_dataclass(kind):
            self.visit([(field.name, field.default_factory, dict(field.metadata)) for field in fields(kind)])
        for name, value in sorted(vars(kind).items()):
            is_function = isinstance(value, FunctionType)
            if is_function and name in _GENERATED and value.__code__.co_filename == "<string>":
                continue
            if name.startswith("_abc_") or (issubclass(kind, Enum) and name.startswith("_") and not is_function):
                continue
            if is_function or not name.startswith("__"):
                self._visit_named([(name, value)])

    # Values.

    def _instance(self, thing: Any) -> None:
        kind = type(thing)
        self._put("instance")
        self.visit(kind)
        if is_dataclass(thing) and kind.__dataclass_params__.frozen:
            self._visit_named((field.name, getattr(thing, field.name)) for field in fields(thing))
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    parts = thing.__reduce_ex__(4)
                except TypeError:  # second: packages register more classes with copyreg when they are imported
                    parts = copyreg.dispatch_table[kind](thing)
        except Exception:  # of the object's own methods: it has no reduced form
            self._refuse(thing, "of which neither source nor value is known")
            return
        for part in [parts] if isinstance(parts, str) else parts:
            self.visit(list(part) if isinstance(part, Iterator) else part)


def _may_be_users(thing: object) -> bool:
    return isinstance(thing, functools.partial) or is_users_code(getattr(thing, "__func__", thing))


def _contents_of(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in code."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names, *(name for part in inner for name in _names_in(part))}
