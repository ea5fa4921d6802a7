"""The digest of an object that does not depend on the process: its values, and the user's source files that it reaches.

Source files count as syntax trees without docstrings, with the files that they name and all that they import.  The standard
library and installed packages count by their versions.
"""

from __future__ import annotations

import ast
import copyreg
import dis
import functools
import hashlib
import io
import json
import os
import pickle
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cached_property
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

from clustermodel.errors import SpecificationError, visible
from clustermodel.experiment import user_code

_FACTS: Final[dict[type, Callable[[Any], object]]] = {
    types.CodeType: attrgetter("co_code", "co_names", "co_consts"),  # neither its lines nor its file
    types.CellType: lambda cell: [] if cell == types.CellType() else [cell.cell_contents],
    types.MappingProxyType: dict,
    types.MemberDescriptorType: attrgetter("__name__"),
    types.GetSetDescriptorType: attrgetter("__name__"),
    staticmethod: attrgetter("__func__"),
    classmethod: attrgetter("__func__"),
    property: attrgetter("fget", "fset", "fdel"),
    cached_property: attrgetter("func"),
    functools._lru_cache_wrapper: attrgetter("__wrapped__"),
}
"""What distinguishes an object without a reduced form, or with more in it than counts."""
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
        return _Source(sha256(content))
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
    return _Source(sha256(ast.dump(tree)), tuple(imports), tuple(files))


def sha256(content: str | bytes) -> str:
    """Return the digest of a text or of bytes, in hexadecimal digits."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content).hexdigest()


def canonical(value: object) -> str:
    """Return ``value`` as JSON, always in the same way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest_of_file(name: str, folder: str = "") -> str | None:
    """Return the digest of the file that a text names, if there is one."""
    path = os.path.join(folder, name)  # noqa: PTH118  many texts, few of which are files
    try:
        return sha256(Path(path).read_bytes()) if name and os.path.isfile(path) else None  # noqa: PTH113
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
        return sha256(repr([self._settings, sorted(reached.values(), key=repr)]))

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
    # the object by its name; what reaches an object without a value is refused.
    values = _Values(name)
    try:
        values.dump(thing)
    except RecursionError:
        raise SpecificationError(f"{name}: it is nested too deeply for a run's key") from None
    digest = sha256(values.written.getvalue())
    return sha256(digest + (sources or Sources()).digest(frozenset(values.modules))) if values.is_users else digest


class _Values(pickle.Pickler):
    """Writes what distinguishes an object from others; nothing reads it again."""

    def __init__(self, name: str) -> None:
        self.written = io.BytesIO()
        super().__init__(self.written, protocol=4)
        self.modules: set[tuple[str, str]] = set()  # of the user, whose code the object reaches: names and files
        self.is_users = False
        self._name = name

    def persistent_id(self, thing: Any) -> str | None:
        """Return the text that stands for an object whose value can be pickled in several ways."""
        kind = type(thing)
        if kind is str or isinstance(thing, PurePath):
            return f"text {_digest_of_file(str(thing))} {thing}"
        if kind in (set, frozenset):
            return f"{kind.__name__} {sorted(map(self._digest, thing))}"
        return "parts" if thing is _parts else None

    def _digest(self, element: object) -> str:
        within = _Values(self._name)
        if not isinstance(element, str | int | float):
            within.memo = self.memo  # a copy, which takes time: an element may lead back to what is around the set
        within.dump(element)
        self.modules |= within.modules
        self.is_users |= within.is_users
        return sha256(within.written.getvalue())

    def reducer_override(self, thing: Any) -> tuple[Any, ...]:
        """Return what is written of an object: first what is known before it, then what may lead back to it."""
        return _parts, *self._described(thing)

    def _described(self, thing: Any) -> tuple[tuple[Any, ...], Any]:  # noqa: PLR0911  a line for each kind of object
        kind = type(thing)
        if kind is types.FunctionType:
            return self._function(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, types.ModuleType):
            users = user_code.origin_of_module(thing.__name__) is None
            name = self._module(thing.__name__, getattr(thing, "__file__", None)) if users else thing.__name__
            return ("module", name), None
        if facts := next((_FACTS[above] for above in kind.__mro__ if above in _FACTS), None):
            return (kind,), facts(thing)
        frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
        # A class of the user without fields of its own may keep more than the fields that it inherits.
        if frozen and ("__dataclass_params__" in vars(kind) or user_code.origin_of(kind) is not None):
            return (kind,), [(field.name, getattr(thing, field.name)) for field in fields(thing)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    reduced = thing.__reduce_ex__(4)
                except TypeError:  # second: packages register more classes with copyreg when they are imported
                    reduced = copyreg.dispatch_table[kind](thing)
        except Exception:  # of the object's own methods: it has no reduced form
            cannot = "so a run's key could not tell when it changes; define it in a file, from plain values"
            reached = f"{self._name}: it holds a {kind.__name__}, whose value is not known, {cannot}"
            raise SpecificationError(visible(reached)) from None
        if isinstance(reduced, str):
            return (kind, reduced), None
        make, given, *state = reduced
        return (kind, make, given), [list(part) if isinstance(part, Iterator) else part for part in state]

    def _module(self, name: str | None, file: str | None) -> str:
        """Note a module of the user whose code is reached, and return its name; that of a script does not count."""
        self.is_users = True
        name = "" if name is None or name == "__main__" or name.startswith("clustermodel_script_") else name
        if file is not None and Path(file).is_file():
            self.modules.add((name, file))
        return name

    def _function(self, function: types.FunctionType) -> tuple[tuple[Any, ...], Any]:
        code, attributes = function.__code__, vars(function)
        of_script = code.co_filename == getattr(sys.modules.get(function.__module__), "__file__", None)  # sent as text
        # Standard input is the file of __main__, too.
        in_file = not code.co_filename.startswith("<") and (of_script or Path(code.co_filename).is_file())
        is_named = user_code.named(function.__module__, function.__qualname__) is function
        about = "function", function.__qualname__, None if in_file and is_named else code  # others may have its name
        if user_code.origin_of_file(code.co_filename) is not None:  # an installed function around functions of the user
            cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
            inside = [(value.values() if isinstance(value, Mapping) else [value]) for value in (*cells, *attributes.values())]
            return (*about, function.__module__), [part for part in chain(*inside) if _is_of_user(part)]
        read: list[tuple[str, Any]] = []
        if not in_file:  # of a notebook: no source has the values of the globals that it reads
            names = _names_in(code)
            self.modules.update(_modules_of_users(names, ""))
            read = [(name, value) for name, value in sorted(function.__globals__.items(), key=itemgetter(0)) if name in names]
        held = function.__closure__, function.__defaults__, function.__kwdefaults__, attributes, read
        return (*about, self._module(function.__module__, code.co_filename)), held

    def _class(self, kind: type) -> tuple[tuple[Any, ...], Any]:
        origin, values = user_code.origin_of(kind), sorted(vars(kind).items())
        if origin is not None:  # a script may have replaced attributes of the package's classes
            replaced = [pair for pair in values if origin == "clustermodel" and _is_of_user(pair[1])]
            return ("class", kind.__qualname__, origin, kind.__module__), replaced
        module = self._module(kind.__module__, getattr(sys.modules.get(kind.__module__), "__file__", None))
        own = [pair for pair in values if not _is_generated(*pair)]
        return ("class", kind.__qualname__, module), [kind.__bases__, type(kind), own]


def _parts() -> None:
    """Stand for the function that would make an object again from its parts."""


def _is_of_user(thing: object) -> bool:
    return isinstance(thing, functools.partial) or user_code.origin_of(getattr(thing, "__func__", thing)) is None


def _is_generated(name: str, value: object) -> bool:  # by Python, from what a class is
    is_method = isinstance(value, types.FunctionType) or name == "__dataclass_fields__"
    return not is_method and (name.startswith("_abc_") or (name.startswith("_") and name.endswith("_")))


def _names_in(code: types.CodeType) -> set[str]:
    """Return the names of the globals and modules that code reads."""
    names, module = set(), ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            module = instruction.argval
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME"):
            names.add(instruction.argval)
        elif instruction.opname == "IMPORT_FROM":
            names.add(f"{module}.{instruction.argval}")
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names.union(*map(_names_in, inner))
