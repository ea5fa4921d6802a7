"""A digest of a user's object with all that it does: the code it reaches, and the values that code uses.

A result is stale when the code that made it has changed, be it in a function two calls away.  So the digest covers, from
the object on: the code of every function and class of the user's own, their defaults and closures, the module globals that
this code names, the state of instances, and the content of the files that are named by paths and texts among them.

Code counts as it is compiled, without comments, documentation strings and positions.  What is installed (the standard
library, packages in ``site-packages``) counts by its name and version; what can be given neither way is refused.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import importlib
import linecache
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib.util import find_spec
from itertools import takewhile
from pathlib import PurePath
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError, visible
from clustermodel.study.installed import origin_of_file, origin_of_module

_ATOMS: Final = (bool, int, float, complex, bytes, type(None), type(Ellipsis), type(NotImplemented))
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)
_LONGEST_FILE_NAME: Final = 1024
_LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")
_GENERATED: Final = frozenset(
    {"__dataclass_fields__", "__dataclass_params__", "__match_args__", "__doc__", "__module__", "__dict__", "__weakref__",
     "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__orig_bases__", "__parameters__",
     "__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl", "_is_protocol", "_is_runtime_protocol",
     "__protocol_attrs__", "__non_callable_proto_members__", "__subclasshook__", "__qualname__", "__type_params__",
     "__field_defaults__", "__classcell__", "__slotnames__"}
)  # fmt: skip
"""What Python itself writes into a class: it follows from the rest, or says where the class stands."""


class Fingerprint(NamedTuple):
    """What identifies an object of the user."""

    sha256: str
    """Digest of its code and values."""
    files: Mapping[str, str]
    """Digests of the files that it names, by name."""


def fingerprint(thing: object, name: str) -> Fingerprint:
    """Return the fingerprint of ``thing``; equal in every process that has made it from the same code.

    Args:
        thing: an object, a class or a function.
        name: what messages call it.

    Raises:
        SpecificationError: it reaches something of which neither source nor value is known.
    """
    walk = _Walk(name)
    try:
        walk.visit(thing)
    except RecursionError:
        raise SpecificationError(f"{name}: it is nested too deeply for a run's key") from None
    return Fingerprint(walk.digest.hexdigest(), dict(sorted(walk.files.items())))


def is_ours(thing: object) -> bool:
    """Return whether a class or function is the package's own; its code counts with the package's."""
    code = getattr(thing, "__code__", None)
    if isinstance(code, CodeType):
        return origin_of_file(code.co_filename) == "clustermodel"
    return isinstance(thing, type) and origin_of_module(thing.__module__) == "clustermodel"


class _Walk:
    """One walk through an object and all that it reaches.

    Every object with an identity is gone into once; later visits refer to the first.  So walks end, and are the same
    wherever the same code has made the same objects.
    """

    def __init__(self, name: str) -> None:
        self.digest = hashlib.sha256()
        self.files: dict[str, str] = {}
        self._seen: dict[int, tuple[int, object]] = {}  # with the object, since an id is unique while it lives
        self._trail = [name]
        self._lenient = 0

    def _put(self, *tokens: object) -> None:
        for token in tokens:
            data = token if isinstance(token, bytes) else str(token).encode("utf-8", "surrogatepass")
            self.digest.update(len(data).to_bytes(8, "big") + data)

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        self._trail.append(name)
        yield
        self._trail.pop()

    def _refuse(self, thing: object, why: str) -> None:
        if self._lenient:  # inside installed code, which counts by its version
            self._put("unknown", type(thing).__qualname__)
            return
        name, *trail = self._trail
        reached = f" reaches {'.'.join(trail)}, a {type(thing).__name__}," if trail else f" is a {type(thing).__name__}"
        raise SpecificationError(
            visible(
                f"{name}:{reached} {why}, so a run's key could not tell when it changes; define it in a file, from plain values"
            )
        )

    def visit(self, thing: object) -> None:
        """Put ``thing`` into the digest."""
        if isinstance(thing, _ATOMS) and type(thing).__module__ == "builtins":
            self._put(type(thing).__name__, hex(thing) if type(thing) is int else repr(thing))
        elif type(thing) is str:
            self._put("str", thing)
            if "." in thing or os.sep in thing:
                self._file(thing)
        elif isinstance(thing, PurePath):
            self._put("path", thing)
            self._file(str(thing))
        elif type(thing) in (tuple, frozenset):
            self._contents(thing)
        elif isinstance(thing, CodeType):
            self._code(thing, None)
        elif id(thing) in self._seen:
            self._put("again", self._seen[id(thing)][0])
        else:
            self._seen[id(thing)] = len(self._seen), thing
            self._enter(thing)

    def _enter(self, thing: Any) -> None:
        if isinstance(thing, FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, ModuleType):
            self._module(thing)
        elif (parts := _parts(thing)) is not None:
            self._put(type(thing).__qualname__)
            self.visit(parts)
        elif isinstance(thing, MemberDescriptorType | GetSetDescriptorType):
            self._put("descriptor", thing.__name__)
        elif type(thing) in _CONTAINERS:
            self._contents(thing)
        elif isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            self._put("array", thing.dtype.str, thing.shape, np.ascontiguousarray(thing).tobytes())
        elif isinstance(thing, Enum):
            self._put("enum", thing.name)
            self.visit(type(thing))
        elif callable(thing) and hasattr(thing, "__name__") and hasattr(thing, "__qualname__"):
            self._built_in(thing)
        else:
            self._instance(thing)

    def _file(self, name: str) -> None:
        """Count the content of the file that a text names, if there is one."""
        if len(name) > _LONGEST_FILE_NAME or name in self.files or not name.isprintable() or self._lenient:
            return
        try:
            if os.path.isfile(name):  # noqa: PTH113  a Path would lose what the text says
                with open(name, "rb") as file:
                    self.files[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            self.files[name] = "unreadable"

    def _contents(self, thing: Any) -> None:
        self._put(next(kind.__name__ for kind in _CONTAINERS if isinstance(thing, kind)), len(thing))
        if isinstance(thing, dict):
            for key, value in thing.items():
                self.visit(key)
                with self._at(key if isinstance(key, str) else f"[{type(key).__name__}]"):
                    self.visit(value)
        elif isinstance(thing, set | frozenset):  # which have no order
            for digest in sorted(fingerprint(element, self._trail[0]).sha256 for element in thing):
                self._put(digest)
        else:
            for element in thing:
                self.visit(element)

    # Code.

    def _function(self, function: FunctionType) -> None:
        code = function.__code__
        origin = origin_of_file(code.co_filename)
        if origin is not None:
            self._put("installed", origin, code.co_qualname, code.co_firstlineno)
            self._lenient += 1  # but it may be a wrapper around the user's own
            for held in (*map(_contents_of, function.__closure__ or ()), *function.__dict__.values()):
                self.visit(_users_code_in(held))
            self._lenient -= 1
            return
        if not linecache.getline(code.co_filename, code.co_firstlineno) and not _is_generated(function):
            self._refuse(function, "whose source is not known")
        self._put("function", function.__name__)
        self._code(code, function)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with self._at(name):
                self.visit(_contents_of(cell))
        self.visit((function.__defaults__, function.__kwdefaults__, function.__dict__))

    def _code(self, code: CodeType, function: FunctionType | None, reaches: dict[str, Any] | None = None) -> None:
        constants = code.co_consts
        if function is not None and constants and isinstance(constants[0], str) and constants[0] == function.__doc__:
            constants = constants[1:]
        if function is not None:
            reaches = function.__globals__
        shape = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        self._put("code", code.co_name, shape, code.co_code, code.co_exceptiontable)
        self._put(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        for constant in constants:
            if isinstance(constant, CodeType):
                self._code(constant, None, reaches)
            else:
                self.visit(constant)
        if reaches is not None:
            self._globals(code, reaches)

    def _globals(self, code: CodeType, values: Mapping[str, Any]) -> None:
        """Go into the module globals that ``code`` names, and of modules into the attributes that it uses."""
        done = set()
        instructions = list(dis.get_instructions(code))
        for at, instruction in enumerate(instructions):
            name = str(instruction.argval)
            if instruction.opname in _LOADS and name in values:
                found, path = values[name], [name]
            elif instruction.opname == "IMPORT_NAME":
                level = instructions[at - 2].argval if at >= 2 else 0
                found, path = _imported(name, level if isinstance(level, int) else 0, values), [name]
                if found is None:
                    continue
            else:
                continue
            following = instructions[at + 1 :]
            if instruction.opname == "IMPORT_NAME" and following and following[0].opname == "IMPORT_FROM":
                own = takewhile(lambda one: one.opname == "IMPORT_FROM" or one.opname.startswith("STORE"), following)
                wanted = [str(one.argval) for one in own if one.opname == "IMPORT_FROM"]
                reached = [([*path, one], getattr(found, one)) for one in wanted if hasattr(found, one)]
            else:
                for after in following:
                    attribute = str(after.argval)
                    if not _is_module_of_user(found) or after.opname not in _ATTRIBUTES or not hasattr(found, attribute):
                        break
                    found = getattr(found, attribute)
                    path.append(attribute)
                reached = [(path, found)]
            for names, value in reached:
                if tuple(names) not in done:
                    done.add(tuple(names))
                    self._put("global", names)
                    with self._at(".".join(names)):
                        self.visit(value)

    def _class(self, kind: type) -> None:
        origin = origin_of_module(kind.__module__)
        if origin is not None:
            self._put("installed", origin, kind.__qualname__)
            return
        self._put("class", kind.__qualname__)
        for base in kind.__bases__:
            self.visit(base)
        if type(kind) is not type:
            self.visit(type(kind))
        if issubclass(kind, Enum):
            self.visit([(name, member.value) for name, member in kind.__members__.items()])
        for name, value in sorted(vars(kind).items()):
            if name in _GENERATED or (issubclass(kind, Enum) and not _is_code(value)):
                continue
            self._put(name)
            with self._at(name):
                self.visit(value)

    def _module(self, module: ModuleType) -> None:
        origin = origin_of_module(module.__name__)
        if origin is not None:
            self._put("installed", origin, module.__name__)
            return
        self._put("module")
        for name, value in sorted(vars(module).items()):
            if not (name.startswith("__") and name.endswith("__")):
                self._put(name)
                with self._at(name):
                    self.visit(value)

    def _built_in(self, thing: Any) -> None:
        """Go into a function or method that is not written in Python."""
        owner = getattr(thing, "__self__", None)
        module = getattr(thing, "__module__", None) or getattr(getattr(thing, "__objclass__", None), "__module__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            self._put("built-in", thing.__name__)
            self.visit(owner)
        elif module is not None and (origin := origin_of_module(module)) is not None:
            self._put("installed", origin, getattr(thing, "__qualname__", type(thing).__qualname__))
        else:
            self._refuse(thing, "whose source is not known")

    # Values.

    def _instance(self, thing: Any) -> None:
        kind = type(thing)
        if _is_part_of_its_module(thing):
            self._put("installed", kind.__module__, kind.__qualname__)
            return
        self._put("instance")
        self.visit(kind)
        written = [above for above in kind.__mro__ if origin_of_module(above.__module__) in (None, "clustermodel")]
        if written:
            for name, value in _state(thing, kind):
                self._put(name)
                with self._at(name):
                    self.visit(value)
            if isinstance(thing, _CONTAINERS):
                self._contents(thing)
                return
            others = [above.__qualname__ for above in kind.__mro__ if above not in written]
            if all(above in ("object", "Generic", "Protocol", "ABC") for above in others):
                return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reduced = _reduced(thing)
        except Exception:  # whatever it says: it has no value that could be written down
            self._refuse(thing, "of which neither source nor value is known")
            return
        if isinstance(reduced, str):
            self._put(reduced)
            return
        make, arguments, *state = reduced
        self.visit(make)
        self.visit(tuple(arguments))
        for part in state:
            self.visit(list(part) if isinstance(part, Iterator) else part)


def _parts(thing: Any) -> tuple[object, ...] | None:
    """Return what a wrapper around functions consists of, ``None`` if ``thing`` is none."""
    if isinstance(thing, MethodType):
        return thing.__func__, thing.__self__
    if isinstance(thing, staticmethod | classmethod):
        return (thing.__func__,)
    if isinstance(thing, property):
        return thing.fget, thing.fset, thing.fdel
    if isinstance(thing, functools.cached_property):
        return (thing.func,)
    wrapped = getattr(thing, "__wrapped__", None)  # functools.cache and its like
    return (wrapped,) if isinstance(wrapped, FunctionType) else None


def _state(thing: object, kind: type) -> list[tuple[str, object]]:
    """Return the attributes of an instance, by name."""
    values = dict(getattr(thing, "__dict__", {}))
    for above in kind.__mro__:
        slots = vars(above).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(thing, name):
                values[name] = getattr(thing, name)
    return sorted(values.items())


def _is_part_of_its_module(thing: object) -> bool:
    """Return whether an object is a global of the installed module that defines its class, as the generator of ``random``."""
    name = type(thing).__module__
    home = sys.modules.get(name) if isinstance(name, str) and origin_of_module(name) is not None else None
    return home is not None and any(value is thing for value in vars(home).values())


def _is_module_of_user(thing: object) -> bool:
    return isinstance(thing, ModuleType) and origin_of_module(thing.__name__) is None


def _is_code(value: object) -> bool:
    return isinstance(value, FunctionType | staticmethod | classmethod | property)


def _contents_of(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _users_code_in(held: object) -> tuple[object, ...]:
    """Return the functions and classes of the user's own that a variable of installed code holds, itself or in a mapping."""
    values = list(held.values()) if isinstance(held, Mapping) else [held]
    return tuple(one for one in values if _is_users_code(getattr(one, "__func__", one)))


def _is_users_code(thing: object) -> bool:
    if isinstance(thing, FunctionType):
        return origin_of_file(thing.__code__.co_filename) is None
    return isinstance(thing, type) and origin_of_module(thing.__module__) is None


def _reduced(thing: Any) -> Any:
    """Return what an object is made from, as :mod:`copy` and :mod:`pickle` find it."""
    registered = copyreg.dispatch_table.get(type(thing))
    return thing.__reduce_ex__(4) if registered is None else registered(thing)


def _is_generated(function: FunctionType) -> bool:
    """Return whether Python itself has written a function: the methods of dataclasses and of named tuples."""
    name, file = function.__name__, function.__code__.co_filename
    return file.startswith("<") and name.startswith("__") and name.endswith("__")


def _imported(name: str, level: int, values: Mapping[str, Any]) -> ModuleType | None:
    """Return a module of the user's own that a function imports, ``None`` if it is none, or cannot be found."""
    try:
        full = importlib.util.resolve_name("." * level + name, values.get("__package__")) if level else name
        if (spec := find_spec(full)) is None or origin_of_file(spec.origin or "<built-in>") is not None:
            return None
        return importlib.import_module(full)
    except Exception:  # whatever the module does: the run will meet it, too
        return None
