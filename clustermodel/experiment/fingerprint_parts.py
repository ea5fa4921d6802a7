"""The parts of a Python object that its fingerprint covers: state, wrapped functions, reduced form."""

from __future__ import annotations

import copyreg
import functools
import inspect
from collections.abc import Mapping
from types import MethodType
from typing import Any

from clustermodel.experiment.code_origin import is_users_code, origin_of_module


def wrapped_parts(thing: Any) -> tuple[object, ...] | None:
    """Return the functions and objects inside a wrapper, such as a method or property; ``None`` for other objects."""
    if isinstance(thing, MethodType):
        return thing.__func__, thing.__self__
    if isinstance(thing, staticmethod | classmethod):
        return (thing.__func__,)
    if isinstance(thing, property):
        return thing.fget, thing.fset, thing.fdel
    if isinstance(thing, functools.cached_property):
        return (thing.func,)
    wrapped = inspect.getattr_static(thing, "__wrapped__", None)  # functools.cache and its like
    return (wrapped,) if wrapped is not None and origin_of_module(type(thing).__module__) is not None else None


def state_of(thing: object, kind: type) -> list[tuple[str, object]]:
    """Return the attributes of an instance, slots included, sorted by name; only those that its class lets a copy have."""
    values = dict(getattr(thing, "__dict__", {}))
    of_copies: object = kind.__getstate__
    if of_copies is not object.__getstate__ and isinstance(kept := thing.__getstate__(), dict):
        values = {name: value for name, value in values.items() if name in kept}
    for above in kind.__mro__:
        slots = vars(above).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            slot = f"_{above.__name__.lstrip('_')}{name}" if private else name
            if name not in ("__dict__", "__weakref__") and hasattr(thing, slot):
                values[slot] = getattr(thing, slot)
    return sorted(values.items())


def contents_of(cell: Any) -> object:
    """Return the value of a closure's cell, ``None`` for an empty one."""
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def users_code_in(held: object) -> tuple[object, ...]:
    """Return the user's objects in a variable of installed code: its value, or the values of a mapping."""
    values = list(held.values()) if isinstance(held, Mapping) else [held]
    return tuple(
        value for value in values if isinstance(value, functools.partial) or is_users_code(getattr(value, "__func__", value))
    )


def reduced(thing: Any) -> Any:
    """Return the reduced form of an object, from which :mod:`pickle` would rebuild it.

    Functions registered with :mod:`copyreg` come second, because some packages register more of them when they are imported.
    """
    try:
        return thing.__reduce_ex__(4)
    except TypeError:
        return copyreg.dispatch_table[type(thing)](thing)
