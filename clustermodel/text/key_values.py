"""Specifications as short texts, as the command line has them: ``0-63,start_s=86400,accounts=bio,chem``."""

from collections.abc import Collection, Mapping

from clustermodel.errors import refused
from clustermodel.validation import choice, require


def values_by_field(
    what: str, text: str, known: Mapping[str, str], several: Collection[str] = (), *, first: str = "", form: str
) -> dict[str, list[str]]:
    """Return the values in a text by field; a SpecificationError, which names ``what``, if it cannot be read.

    Args:
        what: what the text describes.
        text: the text.
        known: fields by the names that they have in the text.
        several: fields that may have several values.
        first: the field of what stands before the first name; by default nothing may.
        form: how to write it, in words.
    """
    values: dict[str, list[str]] = {first: []} if first else {}
    field = first
    for part in text.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if equals:
            field = known[choice(what, name, known)]
            require(field not in values, f"{what}: {name}", value, "it is given twice")
            values[field] = [value]
        else:
            require(field, what, name, form)
            require(field in several or not values[field], f"{what}: {field}", name, form)
            values[field].append(name)
    return values


def number_in(what: str, text: str, must: str = "it must be a number") -> float:
    """Return the number that a text is; ``what`` and ``must`` say what it is of, and what it must be."""
    try:
        return float(text)
    except ValueError:
        raise refused(what, text, must) from None
