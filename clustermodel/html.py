"""Small tables for notebooks: what ``_repr_html_`` returns.  Text is escaped, and no colour is fixed, for dark themes."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from clustermodel.errors import visible
from clustermodel.readable import cell

MOST_ROWS: Final = 40
"""Rows of a table in a notebook."""
_LONGEST: Final = 120
"""Characters of a text in a cell."""


def escaped(value: object) -> str:
    """Return any value as text for a page: at most 120 characters, control characters written out."""
    text = visible(str(value))
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 3 :]}"
    return html.escape(text)


def html_table(heading: str, columns: Mapping[str, Sequence[object]], *, most: int = MOST_ROWS) -> str:
    """Return a table with a heading above it.

    Args:
        heading: one line.
        columns: the cells of each column by its title; numbers and undefined values are on the right, texts on the left.
        most: number of rows that are shown; a line below tells how many there are.
    """
    right = {title: all(_is_number(value) for value in values) for title, values in columns.items()}
    titles = "".join(_element("th", title, right=right[title]) for title in columns)
    rows = list(zip(*columns.values(), strict=True))
    body = [
        "".join(_element("td", value, right=right[title]) for title, value in zip(columns, row, strict=True))
        for row in rows[:most]
    ]
    below = f"<div>{most:,} of {len(rows):,} rows</div>" if len(rows) > most else ""
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f"{_heading(heading)}<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>{below}"


def html_fields(heading: str, fields: Iterable[tuple[str, object]]) -> str:
    """Return a table with a row for each field, its name and its value, with a heading above it."""
    rows = "".join(
        f"<tr>{_element('th', name, right=False)}{_element('td', value, right=_is_number(value))}</tr>"
        for name, value in fields
    )
    return f"{_heading(heading)}<table><tbody>{rows}</tbody></table>"


def _heading(text: str) -> str:
    return f"<div><strong>{escaped(text)}</strong></div>"


def _element(tag: str, value: Any, *, right: bool) -> str:
    return f'<{tag} style="text-align: {"right" if right else "left"}">{escaped(cell(value))}</{tag}>'


def _is_number(value: object) -> bool:
    """Return whether a cell is aligned as a number: it is one, or undefined."""
    return value is None or (not isinstance(value, bool | str) and hasattr(value, "__float__"))
