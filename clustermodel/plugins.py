"""Plug-ins: policies, predictors and trace readers of other installed packages, found by their entry points.

A package names them in its ``pyproject.toml``, for example ``[project.entry-points."clustermodel.policies"]`` with the line
``nearest = "nearest_policy:Nearest"``.  A plug-in is imported when its name is first used.  One that cannot be imported or
whose name is taken is an error where it is used and nowhere else.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clustermodel.errors import ClusterModelError, SpecificationError, did_you_mean, in_words, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# Groups of entry points: what makes a policy, from keyword arguments; a run-time predictor or a reader of traces, from nothing.
POLICIES: Final = "clustermodel.policies"
PREDICTORS: Final = "clustermodel.predictors"
READERS: Final = "clustermodel.readers"
_KINDS: Final = {POLICIES: "policy", PREDICTORS: "predictor", READERS: "reader"}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plugin:
    """An entry point of an installed package."""

    kind: str  # what it is, for messages: ``"policy"``
    entry: EntryPoint
    others: tuple[str, ...]  # packages that have another plug-in of this name

    @property
    def name(self) -> str:
        """The name under which it is used."""
        return self.entry.name

    @property
    def package(self) -> str:
        """Name and version of the package."""
        return _package(self.entry)

    def problem(self, taken: Collection[str] = (), *, unfit: str = "") -> str:
        """Return why the name cannot be used, if so: ``taken``, with a character of ``unfit``, or of several packages."""
        what = f"{self.kind} {shown(self.name)!r}"
        if self.name in taken:
            return f"{what} of package {self.package}: the name is taken; it is ignored"
        if not self.name or set(self.name) & set(unfit):
            return f"{what} of package {self.package}: a name has none of {unfit}; it is ignored"
        if self.others:
            packages = " and ".join((self.package, *self.others))
            return f"{what}: packages {packages} have a plug-in of this name; uninstall all but one"
        return ""

    def load(self) -> Callable[..., object]:
        """Import the plug-in and return it; refuse one of several packages, that cannot be imported, or not be called."""
        if problem := self.problem():
            raise SpecificationError(problem)
        return _loaded(self.kind, self.entry)


def plugins(group: str) -> dict[str, Plugin]:
    """Return the plug-ins of a group of entry points by name; imports none of them."""
    return _found(group, tuple(sys.path))


def is_plugin_code(module: str) -> bool:
    """Return whether a module belongs to a top-level package with a plug-in, whose code counts as the user's in run keys."""
    return module.partition(".")[0] in _packages(tuple(sys.path))


def names_module(text: str) -> bool:
    """Return whether a text has the form ``"module:name"``."""
    return text.count(":") == 1 and all(map(str.isidentifier, text.replace(":", ".").split(".")))


def of_module(field: str, name: str, known: Collection[str]) -> object:
    """Return what ``"module:name"`` leads to, in a module on the path, or at last in the working directory."""
    module, _, attribute = name.partition(":")
    folder, field = str(Path.cwd()), f"{field}: {shown(name)!r}"
    sys.path.append(folder)
    try:
        thing: object = import_module(module)
    except ClusterModelError:
        raise
    except (Exception, SystemExit) as problem:  # of the module
        if isinstance(problem, ModuleNotFoundError) and problem.name == module.partition(".")[0]:
            hint = did_you_mean(module, known)
            if module.endswith(".py"):
                hint = f" (did you mean {module.removesuffix('.py')}:{attribute}?)"
            where = f"in {folder}, in PYTHONPATH or among installed packages{hint}"
            raise SpecificationError(f"{field}: there is no module {shown(module)} {where}") from None
        raise SpecificationError(f"{field}: the module cannot be imported: {in_words(problem)}") from problem
    finally:
        del sys.path[len(sys.path) - 1 - sys.path[::-1].index(folder)]  # the last one: the program may have it there itself
    for part in attribute.split("."):
        if (thing := getattr(thing, part, None)) is None:
            raise SpecificationError(f"{field} is not allowed: module {shown(module)} has no {shown(attribute)}")
    return thing


def made_by(what: str, factory: Callable[..., object], **parameters: object) -> object:
    """Return what a class or function of others makes; ``what`` begins the message of one that fails."""
    try:
        return factory(**parameters)
    except ClusterModelError:
        raise
    except Exception as problem:
        raise SpecificationError(f"{what}: it cannot be made: {in_words(problem)}") from problem


@lru_cache(maxsize=2)
def _entry_points(_path: tuple[str, ...]) -> Any:
    """Return the entry points of all groups and installed packages, which it takes a while to search."""
    from importlib.metadata import entry_points  # noqa: PLC0415  few runs ask for plug-ins

    return entry_points()


@lru_cache(maxsize=32)
def _found(group: str, _path: tuple[str, ...]) -> dict[str, Plugin]:
    """Return the plug-ins of a group, which depend on the module path."""
    kind = _KINDS[group]
    entries = sorted(set(_entry_points(_path).select(group=group)), key=lambda entry: (entry.name, _package(entry)))
    by_name: dict[str, Plugin] = {}
    for name, same in groupby(entries, key=lambda entry: entry.name):
        entry, *others = same
        by_name[name] = Plugin(kind, entry, tuple(map(_package, others)))
        _log.debug("found %s %s of package %s", kind, name, _package(entry))
    return by_name


@lru_cache(maxsize=32)
def _packages(_path: tuple[str, ...]) -> frozenset[str]:
    modules = {plugin.entry.module for group in _KINDS for plugin in plugins(group).values()}
    return frozenset(module.partition(".")[0] for module in modules) - {"clustermodel"}


@cache
def _loaded(kind: str, entry: EntryPoint) -> Callable[..., object]:
    """Return the object of an entry point, the same one at each call, also after its module was imported again."""
    what = f"{kind} {shown(entry.name)!r} of package {_package(entry)}"
    try:
        made = entry.load()
    except ClusterModelError:
        raise
    except (Exception, SystemExit) as problem:  # of the other package
        raise SpecificationError(f"{what} cannot be imported: {in_words(problem)}") from problem
    if not callable(made):
        raise SpecificationError(f"{what}: {entry.value} is not allowed; it must be a class or a function that makes one")
    _log.info("imported %s %s from package %s", kind, entry.name, _package(entry))
    return made  # type: ignore[no-any-return]


def _package(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
