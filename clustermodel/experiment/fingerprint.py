"""Fingerprints: a digest of a user's object with all the code that it reaches and the values that this code uses.

A stored result is stale if any code behind it has changed, even in a function two calls away.  So the digest covers the code
of every function and class of the user, their defaults and closures, the module globals that this code names, the state of
instances, and the content of the files that are named by paths and texts among them.

Code is digested in its compiled form, without comments, docstrings and positions.  Installed code (the standard library,
packages in ``site-packages``) counts by its name and version.  An object without known source and value is refused.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final, NamedTuple, NewType

import numpy as np

from clustermodel.errors import SpecificationError, visible
from clustermodel.experiment.code_origin import (
    is_generated,
    is_global_of_its_module,
    is_of_main,
    is_users_code,
    origin_of_class,
    origin_of_file,
    origin_of_module,
)
from clustermodel.experiment.fingerprint_parts import contents_of, reduced, state_of, users_code_in, wrapped_parts
from clustermodel.experiment.reachable_code import operations, reached

_ATOMS: Final = (bool, int, float, complex, bytes, type(None), type(Ellipsis), type(NotImplemented))
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)
_LONGEST_FILE_NAME: Final = 1024
_HAS_DOCSTRING: Final = 0x4000000
_BUILT_IN: Final = (
    BuiltinFunctionType, ClassMethodDescriptorType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
)  # fmt: skip
_GENERATED: Final = frozenset(
    {"__dataclass_fields__", "__dataclass_params__", "__doc__", "__module__", "__dict__", "__weakref__",
     "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__orig_bases__", "__parameters__",
     "__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl", "_is_protocol", "_is_runtime_protocol",
     "__protocol_attrs__", "__non_callable_proto_members__", "__qualname__", "__type_params__",
     "__field_defaults__", "__classcell__", "__slotnames__"}
)  # fmt: skip
"""Attributes that Python writes into a class: they follow from the others, or say where the class is defined."""


class Fingerprint(NamedTuple):
    """Identity of an object of the user."""

    sha256: str
    """Digest of the object's code and values."""
    files: Mapping[str, str]
    """Digests of the files that the object names, by name."""


def fingerprint(thing: object, name: str) -> Fingerprint:
    """Return the fingerprint of ``thing``, the same in every process that makes the object from the same code.

    Args:
        thing: an object, a class or a function.
        name: of the object in messages.

    Raises:
        SpecificationError: the object reaches another one without known source and value.
    """
    walk = _Walk(name)
    try:
        walk.visit(thing)
    except RecursionError:
        raise SpecificationError(f"{name}: it is nested too deeply for a run's key") from None
    return Fingerprint(walk.digest.hexdigest(), dict(sorted(walk.files.items())))


class _Walk:
    """One walk through an object and all objects that it reaches.

    The walk enters each object with an identity once; later visits refer to the first.  So the walk ends, and it is the same
    wherever the same code makes the same objects.
    """

    def __init__(self, name: str) -> None:
        self.digest = hashlib.sha256()
        self.files: dict[str, str] = {}
        self._seen: dict[int, tuple[int, object]] = {}  # keeps the object alive, so that no other one gets its id
        self._trail = [name]
        self._lenient = 0
        self._folder = ""  # of the code that is being walked through

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
        if self._lenient:  # inside installed code, which counts by its version alone
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
        """Add ``thing`` to the digest."""
        if isinstance(thing, _ATOMS) and type(thing).__module__ == "builtins":
            self._put(type(thing).__name__, hex(thing) if type(thing) is int else repr(thing))
        elif type(thing) is str:
            self._put("str", thing)
            self._file(thing)
        elif isinstance(thing, PurePath):
            self._put("path", thing)
            self._file(str(thing))
        elif type(thing) in (tuple, frozenset):
            self._contents(thing)
        elif isinstance(thing, CodeType):
            self._code(thing, {})
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
        elif (wrapped := wrapped_parts(thing)) is not None:
            self._put("wrapper")
            self.visit(type(thing))
            self.visit(wrapped)
            if origin_of_module(type(thing).__module__) is None:
                self.visit([(name, value) for name, value in state_of(thing, type(thing)) if name not in _GENERATED])
        elif isinstance(thing, MemberDescriptorType | GetSetDescriptorType):
            self._put("descriptor", thing.__name__)
        elif type(thing) in (*_CONTAINERS, MappingProxyType):
            self._contents(dict(thing) if isinstance(thing, MappingProxyType) else thing)
        elif type(thing) is np.ndarray and not thing.dtype.hasobject:
            self._put("array", thing.dtype.descr, thing.shape, np.ascontiguousarray(thing).tobytes())
        elif isinstance(thing, Enum):
            self._put("enum", thing.name)
            self.visit(type(thing))
        elif isinstance(thing, NewType):
            self._put("new type", thing.__name__)
            self.visit(thing.__supertype__)
        elif isinstance(thing, _BUILT_IN):
            self._built_in(thing)
        else:
            self._instance(thing)

    def _file(self, name: str) -> None:
        """Note the digest of the file that a text names, if there is one, here or beside the code that names it."""
        if not name or len(name) > _LONGEST_FILE_NAME or name in self.files or not name.isprintable() or self._lenient:
            return
        for path in (name, os.path.join(self._folder, name)):  # noqa: PTH118  a Path would normalize the text
            try:
                if os.path.isfile(path):  # noqa: PTH113
                    with open(path, "rb") as file:
                        self.files[name] = hashlib.file_digest(file, "sha256").hexdigest()
                    return
            except OSError:
                self.files[name] = "unreadable"

    def _contents(self, thing: Any) -> None:
        self._put(next(kind.__name__ for kind in _CONTAINERS if isinstance(thing, kind)), len(thing))
        if isinstance(thing, dict):
            for key, value in thing.items():
                self.visit(key)
                with self._at(key if isinstance(key, str) else f"[{type(key).__name__}]"):
                    self.visit(value)
        elif isinstance(thing, set | frozenset):  # unordered
            for digest in sorted(map(self._digest_apart, thing)):
                self._put(digest)
        else:
            for element in thing:
                self.visit(element)

    def _digest_apart(self, element: object) -> str:
        """Return the digest of an element of a set, independent of the elements before it."""
        walk = _Walk(self._trail[0])
        walk._trail, walk._lenient, walk._folder, walk.files = list(self._trail), self._lenient, self._folder, self.files
        if not isinstance(element, (*_ATOMS, str)):
            walk._seen = dict(self._seen)  # the element may refer to an object that contains the set
        walk.visit(element)
        return walk.digest.hexdigest()

    # Code.

    def _function(self, function: FunctionType) -> None:
        code = function.__code__
        origin = origin_of_file(code.co_filename)
        if origin is not None:
            self._put("installed", origin, code.co_qualname, code.co_firstlineno)
            self._lenient += 1  # but the function may wrap one of the user
            for held in (*map(contents_of, function.__closure__ or ()), *function.__dict__.values()):
                self.visit(users_code_in(held))
            self._lenient -= 1
            return
        # Since Python 3.13 "<string>" has the lines of ``python -c``, not those of the text that a call compiled.
        line = linecache.getline(code.co_filename, code.co_firstlineno) if code.co_filename != "<string>" else ""
        if not (line or is_generated(function) or is_of_main(function)):
            self._refuse(function, "whose source is not known")
        folder, self._folder = self._folder, os.path.dirname(code.co_filename)  # noqa: PTH120
        self._put("function", function.__name__)
        self._code(code, function.__globals__)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with self._at(name):
                self.visit(contents_of(cell))
        self.visit((function.__defaults__, function.__kwdefaults__, function.__dict__))
        self._folder = folder

    def _code(self, code: CodeType, values: Mapping[str, Any]) -> None:
        shape = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_HAS_DOCSTRING
        self._put("code", code.co_name, shape, code.co_exceptiontable)
        self._put(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        for operation, argument in operations(code):
            self._put(operation)
            if isinstance(argument, CodeType):
                self._code(argument, values)
            else:
                self.visit(argument)
        for names, value in reached(code, values):
            self._put("global", names)
            with self._at(".".join(names)):
                self.visit(value)

    def _class(self, kind: type) -> None:
        origin = origin_of_class(kind)
        if origin is not None:
            self._put("installed", origin, kind.__qualname__)
            if origin == "clustermodel":  # a script may have replaced its attributes
                self.visit([(name, value) for name, value in sorted(vars(kind).items()) if is_users_code(value)])
            return
        self._put("class", kind.__qualname__)
        for base in kind.__bases__:
            self.visit(base)
        if type(kind) is not type:
            self.visit(type(kind))
        metadata = [
            (field.name, dict(field.metadata)) for field in getattr(kind, "__dataclass_fields__", {}).values() if field.metadata
        ]
        self.visit(metadata)
        members: Mapping[str, Any] = kind.__members__ if issubclass(kind, Enum) else {}
        for name, member in members.items():
            own = {key: value for key, value in vars(member).items() if not _is_sunder(key) and key not in _GENERATED}
            self.visit((name, member.value, sorted(own.items())))
        for name, value in sorted(vars(kind).items()):
            if name in _GENERATED or name in members or (members and _is_sunder(name)):
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
        """Add a function or method that is not written in Python."""
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
        if is_global_of_its_module(thing):
            self._put("installed", kind.__module__, kind.__qualname__)
            return
        self._put("instance")
        self.visit(kind)
        readable = [base for base in kind.__mro__ if origin_of_module(base.__module__) in (None, "clustermodel")]
        if readable:
            for name, value in state_of(thing, kind):
                self._put(name)
                with self._at(name):
                    self.visit(value)
            if isinstance(thing, _CONTAINERS):
                self._contents(thing)
                return
            others = [base.__qualname__ for base in kind.__mro__ if base not in readable]
            if all(base in ("object", "Generic", "Protocol", "ABC") for base in others):
                return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parts = reduced(thing)
        except Exception:  # of the object's own methods: it has no reduced form
            self._refuse(thing, "of which neither source nor value is known")
            return
        if isinstance(parts, str):
            self._put(parts)
            return
        make, arguments, *state = parts
        self.visit(make)
        self.visit(tuple(arguments))
        for part in state:
            self.visit(list(part) if isinstance(part, Iterator) else part)


def _is_sunder(name: str) -> bool:
    return name.startswith("_") and name.endswith("_")
