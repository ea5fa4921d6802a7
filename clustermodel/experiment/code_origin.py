"""The origin of code: this package, the standard library, an installed package, or the user."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import FunctionType
from typing import Final

from clustermodel.plugins import is_plugin_code

_PACKAGE: Final = str(Path(__file__).parents[1])
_HEAP_TYPE: Final = 1 << 9
"""CPython's flag of classes that were made while the program ran."""
_CLASS_FACTORIES: Final = ("abc", "collections", "dataclasses", "enum", "functools", "types", "typing")
"""Standard modules that a user's class names as its own module when a call made the class."""


@cache
def _installed_in() -> tuple[tuple[str, str], ...]:
    """Return the folders of installed code, each with its kind, ``"packages"`` or ``"python"``; inner folders come first."""
    paths = sysconfig.get_paths()
    packages = {paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()}
    library = {paths["stdlib"], paths["platstdlib"], str(Path(os.__file__).parent)}
    folders = [(folder, "packages") for folder in packages] + [(folder, "python") for folder in library]
    return tuple((str(Path(folder).resolve()) + os.sep, what) for folder, what in folders)


@cache
def _compiled_modules() -> frozenset[str]:
    """Return the names of this package's sources in tracebacks of compiled modules: paths from the root of the checkout."""
    modules = [(name, getattr(module, "__file__", None) or "") for name, module in sys.modules.items()]
    ours = (name for name, file in modules if name.startswith("clustermodel.") and not file.endswith(".py"))
    return frozenset(name.replace(".", "/") + ".py" for name in ours)


@lru_cache(maxsize=10_000)
def origin_of_file(name: str) -> str | None:
    """Return the origin of a source file: ``"clustermodel"``, ``"python"``, or an installed package with its version.

    It is ``None`` for code of the user, and for packages with plug-ins, which people edit as they edit scripts.
    """
    if name.startswith("<"):
        return "python" if name.startswith("<frozen") or name == "<built-in>" else None
    path = str(Path(name).resolve())
    if path.startswith(_PACKAGE + os.sep) or name in _compiled_modules():
        return "clustermodel"
    for folder, what in _installed_in():
        if path.startswith(folder):
            return "python" if what == "python" else _origin_of_package(Path(path.removeprefix(folder)).parts[0])
    parts = Path(path).parts
    for kind in ("site-packages", "dist-packages"):
        if kind in parts:
            return _origin_of_package(parts[parts.index(kind) + 1])
    return None


def _origin_of_package(top: str) -> str | None:
    return None if is_plugin_code(top) else _distribution(top)


def origin_of_module(name: object) -> str | None:
    """Return the origin of a module by its name, as :func:`origin_of_file` does."""
    if not isinstance(name, str) or name.startswith("_cython_"):  # classes written in C
        return "python"
    top = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or getattr(sys.modules.get(top), "__file__", None)
    if file is not None:
        return origin_of_file(file)
    return "python" if top in sys.stdlib_module_names and top != "__main__" else None


@cache
def _distribution(top: str) -> str:
    top = top.partition(".")[0]
    try:
        return f"{top} {version(top)}"
    except (PackageNotFoundError, ValueError):
        names = packages_distributions().get(top, ())
        return " ".join(f"{name} {version(name)}" for name in sorted(set(names))) or top


def origin_of_class(kind: type) -> str | None:
    """Return the origin of a class, as :func:`origin_of_file` does."""
    origin = origin_of_module(kind.__module__)
    if origin == "python" and kind.__module__ in _CLASS_FACTORIES:
        named: object = sys.modules[kind.__module__]
        for name in kind.__qualname__.split("."):
            named = getattr(named, name, None)
        heap = bool(kind.__flags__ & _HEAP_TYPE)
        return origin if named is kind or not heap or kind.__qualname__.startswith("_") else None
    return origin


def is_ours(thing: object) -> bool:
    """Return whether a class or function is unchanged code of this package, which its digest of sources covers."""
    if isinstance(thing, FunctionType):
        return origin_of_file(thing.__code__.co_filename) == "clustermodel"
    if not isinstance(thing, type) or origin_of_module(thing.__module__) != "clustermodel":
        return False
    return not any(is_users_code(value) for above in thing.__mro__ for value in vars(above).values())


def is_users_code(thing: object) -> bool:
    """Return whether a function, a class, or the class of an object is code of the user."""
    if isinstance(thing, FunctionType):
        return origin_of_file(thing.__code__.co_filename) is None and not is_generated(thing)
    kind = thing if isinstance(thing, type) else type(thing)
    return origin_of_class(kind) is None


def is_generated(function: FunctionType) -> bool:
    """Return whether Python generated a function, such as a method of a dataclass or of a named tuple."""
    name, file = function.__name__, function.__code__.co_filename
    return file.startswith("<") and name.startswith("__") and name.endswith("__")


def is_of_main(function: FunctionType) -> bool:
    """Return whether the program of this process defines a function, such as one from standard input or a notebook."""
    return function.__globals__ is vars(sys.modules["__main__"])


def is_global_of_its_module(thing: object) -> bool:
    """Return whether an object is a global of the installed module that defines its class, such as ``random``'s generator."""
    name = type(thing).__module__
    module = sys.modules.get(name) if isinstance(name, str) and origin_of_module(name) is not None else None
    return module is not None and any(value is thing for value in vars(module).values())
