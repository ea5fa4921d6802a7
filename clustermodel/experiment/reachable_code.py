"""The names that compiled code reaches: module globals, attributes of the user's modules, and imports."""

from __future__ import annotations

import dis
import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any, Final

from clustermodel.experiment.code_origin import origin_of_file, origin_of_module

_LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")
_PLACES: Final = ("__name__", "__file__", "__spec__", "__loader__", "__path__", "__cached__")
"""Globals with the location of a module, on which no number should depend."""

Reached = tuple[tuple[str, ...], object]
"""Names as in the code, and their value."""


def operations(code: CodeType) -> Iterator[tuple[str, object]]:
    """Yield the operations of code, each with its argument; constants are their values, so that unused ones do not count."""
    for instruction in dis.get_instructions(code):
        yield instruction.opname, instruction.argval if instruction.opcode in dis.hasconst else instruction.arg


def reached(code: CodeType, values: Mapping[str, Any]) -> Iterator[Reached]:
    """Yield the names and values that ``code`` reaches, each once.

    Args:
        code: of a function; nested functions are not entered.
        values: the globals of its module.
    """
    done: set[tuple[str, ...]] = set()
    instructions = list(dis.get_instructions(code))
    for at, one in enumerate(instructions):
        name = str(one.argval)
        if one.opname in _LOADS and name in values and name not in _PLACES:
            found = [_followed(name, values[name], instructions[at + 1 :])]
        elif one.opname == "IMPORT_NAME":
            found = _imports(name, instructions[at - 2].argval, instructions[at - 1].argval, values)
        else:
            continue
        for names, value in found:
            if names not in done:
                done.add(names)
                yield names, value


def _followed(name: str, value: object, following: Sequence[dis.Instruction]) -> Reached:
    """Return the value of a global, or of the attribute that the code takes from it if it is a module of the user."""
    names = [name]
    for one in following:
        attribute = str(one.argval)
        if not _is_module_of_user(value) or one.opname not in _ATTRIBUTES or not hasattr(value, attribute):
            break
        value = getattr(value, attribute)
        names.append(attribute)
    return tuple(names), value


def _imports(name: str, level: object, wanted: object, values: Mapping[str, Any]) -> list[Reached]:
    """Return the user's objects that a function imports: single names, or whole modules."""
    dots = "." * level if isinstance(level, int) else ""
    module = _imported(dots + name, values)
    if isinstance(wanted, tuple):  # from module import ...
        found: list[Reached] = []
        for one in wanted:
            inner = f"{dots}{name}.{one}" if name else dots + one
            value = getattr(module, one, None) if hasattr(module, one) else _imported(inner, values)
            if value is not None:
                found.append(((name, one), value))
        return found
    parts = name.split(".")
    modules = [(".".join(parts[: count + 1]), _imported(".".join(parts[: count + 1]), values)) for count in range(len(parts))]
    return [((one,), found) for one, found in modules if found is not None]


def _imported(name: str, values: Mapping[str, Any]) -> ModuleType | None:
    """Return a module of the user, ``None`` for other modules and for modules that cannot be found."""
    try:
        full = importlib.util.resolve_name(name, values.get("__package__")) if name.startswith(".") else name
        spec = importlib.util.find_spec(full)
        if spec is None or (spec.origin is not None and origin_of_file(spec.origin) is not None):
            return None
        if spec.origin is None and any(origin_of_file(f"{place}/module.py") for place in spec.submodule_search_locations or ()):
            return None
        return importlib.import_module(full)
    except Exception:  # of the module's code, which the run will raise again
        return None


def _is_module_of_user(thing: object) -> bool:
    return isinstance(thing, ModuleType) and origin_of_module(thing.__name__) is None
