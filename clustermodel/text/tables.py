"""Tables of TOML files that describe specifications: reading them with one line for every mistake, and writing them.

A message begins with the file and the key: ``kth.toml: machine.nodes: 0 is not allowed; it must be an integer >= 1``.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from clustermodel.errors import SpecificationError, TraceError, did_you_mean, quoted, shown
from clustermodel.text.files import specification_bytes
from clustermodel.validation import flag

SUFFIX: Final = ".toml"
_HEADINGS: Final = 2  # levels of tables with headings of their own in a written file
_MOST_INCLUDES: Final = 10  # files of which each includes the next
_STRING: Final = r'"""(?:[^\\]|\\.)*?(?:"{3,5}|\Z)|\'\'\'.*?(?:\'{3,5}|\Z)|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
_STRING_OR_COMMENT: Final = rf"(?s){_STRING}|#[^\n]*"
# A key of more than 32 parts: reading one takes time and memory that grow as the square of its length.
_DEEP: Final = r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){32}"
_Made = TypeVar("_Made")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Place of a value in a file, for messages, and for the paths that the file names."""

    file: str
    folder: Path  # to which paths in the file are relative
    key: str = ""  # with dots: ``machine.nodes``; empty for the whole file
    depth: int = 0  # number of files that include this one, one in the other

    def at(self, key: str | int) -> Place:
        """Return the place of a value below this one: of a key, or at a position of a list."""
        below = f"[{key}]" if isinstance(key, int) else f".{shown(key)}"
        return replace(self, key=(self.key + below).removeprefix("."))

    def error(self, message: str) -> SpecificationError:
        """Return the error with this place before the message."""
        return SpecificationError(f"{self.file}: {self.key}: {message}" if self.key else f"{self.file}: {message}")

    def refused(self, value: object, allowed: str) -> SpecificationError:
        """Return the error of a value that is not allowed."""
        return self.error(f"{quoted(value)} is not allowed; it must be {allowed}")


def read_file(path: Path, *, depth: int = 0) -> tuple[dict[str, Any], Place]:
    """Return the content of a TOML file, and the place of its values."""
    place = Place(str(path), path.parent, depth=depth)
    if depth > _MOST_INCLUDES:
        raise place.error(f"more than {_MOST_INCLUDES} files include each other")
    content = specification_bytes(path)
    _log.info("read %s", path)
    try:
        return read_text(content.decode("utf-8-sig"), place), place
    except UnicodeDecodeError as problem:
        raise place.error(f"is not UTF-8: {problem.reason} at byte {problem.start}") from None


def read_text(text: str, place: Place) -> dict[str, Any]:
    """Return the content of a TOML text, after checking that reading it takes no excessive time or memory."""
    import tomllib  # noqa: PLC0415  slow, and few runs read a file

    if re.search(_DEEP, re.sub(_STRING_OR_COMMENT, lambda match: "" if match[0][0] == "#" else "text", text)):
        raise place.error("is not allowed: a key has more than 32 parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        at = re.search(r"\(at line (\d+), column \d+\)$", str(problem))
        line = text.split("\n")[int(at[1]) - 1].strip() if at else ""
        raise place.error(f"is not TOML: {problem}{f', in {quoted(line)}' if line else ''}") from None
    except ValueError:  # of Python, about an integer of more than 4,300 digits
        raise place.error("is not allowed: a number has thousands of digits") from None
    except RecursionError:
        raise place.error("is not TOML: it is nested too deeply") from None


def table_at(value: object, place: Place, what: str) -> tuple[Mapping[str, Any], Place]:
    """Return a table, in messages ``what``, and its place: ``value``, or the content of the ``.toml`` file that it names."""
    if isinstance(value, str) and value.endswith(SUFFIX):
        if not os.path.isfile(place.folder / value):  # noqa: PTH113  false for a name that is too long
            raise place.error(f"{quoted(value)}: there is no such file")
        return read_file(place.folder / value, depth=place.depth + 1)
    if not isinstance(value, Mapping):
        raise place.refused(value, f"a table with the keys of {what}, or the name of a {SUFFIX} file with them")
    return value, place


def require_keys(
    table: Mapping[str, Any], known: Collection[str], place: Place, elsewhere: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse a table with an unknown key; ``elsewhere`` has keys of other tables, and where these are."""
    for key in table:
        if key not in known:
            other = elsewhere.get(key)
            hint = f" (did you mean {other!r}?)" if other else did_you_mean(key, known)
            raise place.at(key).error(f"unknown key{hint}; known are {', '.join(known)}")


def made(make: Callable[..., _Made], arguments: Mapping[str, Any], place: Place, **others: object) -> _Made:
    """Return the result of a class or function whose parameters are the keys of a table, and ``others``, which are not."""
    parameters = {name: each for name, each in inspect.signature(make).parameters.items() if name not in others}
    require_keys(arguments, parameters, place)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise place.at(name).error("is missing")
        if isinstance(parameter.default, bool) and name in arguments:
            placed(partial(flag, name, arguments[name]), place, (name,))
    return placed(lambda: make(**arguments, **others), place, arguments, named=getattr(make, "__name__", ""))


def placed(make: Callable[[], _Made], place: Place, keys: Iterable[str], *, named: str = "") -> _Made:
    """Return the result of ``make``; its errors begin with the place of the table, or of the value of the key that they name.

    ``named`` is the class that errors name before the key.
    """
    try:
        return make()
    except (SpecificationError, TraceError) as problem:
        key, colon, rest = str(problem).partition(": ")
        key = key.removeprefix(f"{named}.")
        raise (place.at(key).error(rest) if colon and key in keys else place.error(str(problem))) from None
    except (TypeError, ValueError, AttributeError) as problem:  # of a value of a wrong type that no field refuses itself
        raise place.error(f"{problem}; a value has a wrong type") from None


def plain(value: object, place: Place) -> Any:
    """Return a value as TOML has it: numbers, texts, relative paths, lists, and tables, without fields that have no value."""
    kinds: dict[type, Callable[[Any], object]] = {bool: bool, str: str, Integral: int, Real: float}
    for kind, convert in kinds.items():  # the first that fits; numpy has numbers of its own
        if isinstance(value, kind):
            return convert(value)
    if isinstance(value, os.PathLike):
        return relative(Path(value), place)
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each, place.at(str(key))) for key, each in value.items() if each is not None}
    many = (
        sorted(value, key=lambda each: (isinstance(each, str), each))
        if isinstance(value, AbstractSet)
        else value.tolist()
        if hasattr(value, "tolist")
        else value
    )
    if not isinstance(many, Sequence) or isinstance(many, bytes | bytearray):
        raise place.error(f"{quoted(value)} cannot be written to a file")
    return [plain(each, place) for each in many]


def relative(path: Path, place: Place) -> str:
    """Return a path as the file at ``place`` names it: absolute, or relative to the folder of the file."""
    return (path if path.is_absolute() else Path(os.path.relpath(path, place.folder))).as_posix()


def text_of_table(table: Mapping[str, Any]) -> str:
    """Return a table of plain values as TOML: headings for tables and tables in them, one line for those further inside."""
    import tomlkit  # noqa: PLC0415  only who writes a file waits for it

    document = {key: _item(value, headings=_HEADINGS) for key, value in table.items()}
    return tomlkit.dumps(document).strip() + "\n"


def inline_text(value: Any) -> str:
    """Return a plain value as TOML has it after a key, on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(key)} = {inline_text(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline_text, value))}]"
    return json.dumps(value)


def _item(value: Any, *, headings: int) -> Any:
    """Return a value for tomlkit; ``headings`` is how many levels of tables may have headings."""
    import tomlkit  # noqa: PLC0415

    if isinstance(value, Mapping):
        table: Any = tomlkit.table() if headings else tomlkit.inline_table()
        for key, each in sorted(value.items(), key=lambda item: isinstance(item[1], Mapping)):
            table.add(key, _item(each, headings=max(headings - 1, 0)))
        return table
    if not isinstance(value, list):
        return value
    of_tables = any(isinstance(each, Mapping) for each in value)
    with_headings = of_tables and headings == _HEADINGS
    many: Any = tomlkit.aot() if with_headings else tomlkit.array().multiline(of_tables)
    for each in value:
        many.append(_item(each, headings=headings if with_headings else 0))
    return many
