"""A machine and the rules of a site in words, for pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from clustermodel.text.formatting import duration

if TYPE_CHECKING:
    from clustermodel.machine.machine import Machine
    from clustermodel.site.site import Site

_UNITS: Final = {"_gib_s": "GiB/s", "_gib": "GiB", "_w": "W", "_hours": "h"}
_NOT_SAID: Final = ("nodes", "processors_per_node", "gpus_per_node")


def machine_in_words(machine: Machine) -> list[str]:
    """Return a machine in lines of words: its nodes, then everything that is not as by default."""
    each = machine.gpus_per_node or 1
    of = f", {each} GPUs each" if each > 1 else ""
    of = of or (f", {machine.processors_per_node} processors each" if machine.processors_per_node > 1 else "")
    return [f"{machine.nodes:,} {'node' if machine.nodes == 1 else 'nodes'}{of}", *_lines_of(machine, _NOT_SAID)]


def site_in_words(site: Site) -> list[str]:
    """Return the rules of a site in lines of words; those of its nodes are the machine's."""
    of_machine = ("partitions", "node_types", "reservations", "power", "price", "power_cap_w")
    return list(_lines_of(site, of_machine))


def _lines_of(specification: Any, without: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a line for each field that is not as by default, or for each of several specifications in it."""
    for field in fields(specification):
        value = getattr(specification, field.name)
        if field.name in without or not field.repr or _is_default(field, value):
            continue
        name = _words(field.name)
        if isinstance(value, (list, tuple)) and value and all(is_dataclass(each) for each in value):
            yield from (f"{_singular(name)}: {_described(each)}" for each in value)
        elif is_dataclass(value):
            yield f"{name}: {_described(value)}"
        else:
            yield _with_value(field.name, value)


def _described(specification: Any) -> str:
    parts = [
        _with_value(field.name, getattr(specification, field.name))
        for field in fields(specification)
        if field.repr and not _is_default(field, getattr(specification, field.name))
    ]
    return ", ".join(parts) or "as by default"


def _is_default(field: Field[Any], value: Any) -> bool:
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    return value is None or value == default or (isinstance(value, (tuple, list, Mapping)) and not value)


def _with_value(name: str, value: Any) -> str:
    """Return a field and its value in words: ``max wall time 30.0 min`` of ``max_wall_time_s``."""
    if isinstance(value, bool):
        return _words(name) if value else f"not {_words(name)}"
    if name == "name":
        return str(value)
    if name.endswith("_s") and not name.endswith("_gib_s") and isinstance(value, (int, float)):
        return f"{_words(name[:-2])} {duration(value)}"
    suffix = next((suffix for suffix in _UNITS if name.endswith(suffix)), "")
    return f"{_words(name.removesuffix(suffix))} {_text(value)} {_UNITS.get(suffix, '')}".rstrip()


def _text(value: Any) -> str:
    """Return a value in words: parts of several, and of a specification, in one line."""
    if is_dataclass(value):
        return f"({_described(value)})"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(_text(each) for each in value)
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
    return getattr(value, "__name__", str(value))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _singular(name: str) -> str:
    return name.removesuffix("s")
