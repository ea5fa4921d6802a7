"""Parameters of users' policies that are written as text, held against the types that their code declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

_WORDS: Final[dict[type, str]] = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


def declared_types(factory: Callable[..., object]) -> dict[str, Any]:
    """Return the declared types of the parameters of a class or function."""
    try:
        parameters = inspect.signature(factory, eval_str=True).parameters
    except Exception:  # of a name that is imported for types only, or whatever else the user's annotations do
        parameters = inspect.signature(factory).parameters
    return {name: _by_name(parameter.annotation) for name, parameter in parameters.items()}


def _by_name(declared: object) -> object:
    """Return the type that a text names, if it consists of simple types; what is no text, as it is."""
    if not isinstance(declared, str):
        return declared
    named = {kind.__name__: kind for kind in _WORDS} | {"None": NoneType}
    parts = [named.get(part.strip(), object) for part in declared.split("|")]
    return Union[tuple(parts)]  # noqa: UP007  of parts that are known at run time only


def as_declared(value: object, text: str, declared: object) -> tuple[object, str]:
    """Return a value of a declared type, and what is allowed, in words, if ``value`` is none; empty if it is one.

    Where text is allowed and ``value``, a number or a truth value, is not, the text is the value.

    Args:
        value: the number, truth value or text as which ``text`` is read.
        text: as it was written.
        declared: the type.
    """
    choices = _choices(declared)
    if not choices or any(_is(value, choice) for choice in choices):
        return value, ""
    if any(_is(text, choice) for choice in choices):
        return text, ""
    words = [_WORDS[choice] if isinstance(choice, type) else repr(choice) for choice in choices]
    return value, " or ".join(dict.fromkeys(words))


def _is(value: object, choice: object) -> bool:
    if choice is float:
        return type(value) in (int, float)
    return type(value) is choice if isinstance(choice, type) else type(value) is type(choice) and value == choice


def _choices(declared: object) -> list[object]:
    """Return simple types and literal values that a type allows; none if it allows anything else, too."""
    if get_origin(declared) is Literal:
        return list(get_args(declared))
    if get_origin(declared) in (Union, UnionType):
        parts = [_choices(part) for part in get_args(declared) if part is not NoneType]
        return [choice for part in parts for choice in part] if all(parts) else []
    return [declared] if isinstance(declared, type) and declared in _WORDS else []
