"""Tables of text: nothing is cut at any width, plain lines for programs, and the table in a notebook."""

import re
from io import StringIO

import pytest
from rich.console import Console

from clustermodel.figures.text_table import Column, TextTable

LONG = "slack:slack_factor=3.0,heuristic=ast,compression=shift,awt=conservative,alpha_u=1.0,alpha_t=0.5"


def example(*names: str, columns: int = 12) -> TextTable:
    numbers = [
        [Column(f"measure\n{group}.{at} (s)", [f"{1_000_000 * at + row:,}" for row in range(len(names))]) for at in range(4)]
        for group in range(columns // 4)
    ]
    plain = {"policy": names, **{f"m{at}": [at + row / 3 for row in range(len(names))] for at in range(columns)}}
    return TextTable("a title", [Column("policy", names, number=False)], numbers, plain)


def drawn(table: TextTable, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(table)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("width", [40, 80, 120, 160, 400])
def test_every_cell_is_whole_at_every_width(width: int) -> None:
    table = example("fcfs", "easy:backfill_order=shortest", LONG)
    lines = drawn(table, width)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    words = " ".join(lines).split()
    for group in table.groups:
        for column in group:
            assert all(number in words for number in column.cells)
            assert all(word in words for word in column.heading.split())


def test_a_wider_terminal_needs_fewer_lines() -> None:
    table = example("fcfs", "easy")
    lengths = [len(drawn(table, width)) for width in (40, 80, 120, 160)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]
    assert sum(line.startswith("fcfs") for line in drawn(table, 400)) == 1


def test_the_columns_of_a_group_stay_together_where_they_fit() -> None:
    blocks = "\n".join(drawn(example("fcfs"), 80)).split("\n\n")
    assert [re.findall(r"\d\.\d", block) for block in blocks] == [[f"{group}.{at}" for at in range(4)] for group in range(3)]


def test_a_long_name_is_folded_behind_its_separators_and_whole() -> None:
    rows = [line for line in drawn(example(LONG, columns=4), 80)[4:] if line.strip()]
    assert "".join(row[:34].strip() for row in rows) == LONG
    assert all(row[:34].strip().endswith((",", "=", ":")) for row in rows[:-1])
    endless = "x" * 300
    assert "".join(line[:34].strip() for line in drawn(example(endless, columns=4), 80)[4:]) == endless


def test_markup_and_control_characters_are_shown_as_they_are() -> None:
    lines = "\n".join(drawn(example("[bold]a\x1b[0m"), 200))
    assert "[bold]a\\x1b[0m" in lines


def test_no_escape_code_reaches_a_terminal_from_any_part_of_a_table() -> None:
    hostile = "\x1b[2Ja\x9b1m\u202eb\r"
    column = Column(f"{hostile}\n(s)", [f"1\n{hostile}"])
    table = TextTable(hostile, [Column(hostile, [hostile], number=False)], [[column]], {hostile: [hostile]}, [hostile])
    texts = ["\n".join(drawn(table, 100)), str(table), table._repr_html_(), table.plain_text()]
    for text in texts:
        assert not set("\x1b\x9b\u202e\r") & set(text)
        assert "\\x1b[2Ja\\x9b1m\\u202eb\\r" in text
    assert "1\\n\\x1b" in texts[0]  # a cell is no second line


def test_the_plain_form_has_tabs_between_values_and_nothing_else() -> None:
    table = TextTable("t", [], [], {"policy": ["a b", "c\td"], "n": [1, 12_345], "x": [1 / 3, None], "y": [float("nan"), 1e9]})
    assert table.plain_text() == "policy\tn\tx\ty\na b\t1\t0.3333333333\tnan\nc\\td\t12345\tnan\t1000000000\n"


def test_as_text_a_table_has_its_notes_below_it() -> None:
    table = TextTable("t", [Column("a", ["b"], number=False)], [[Column("n", ["1"])]], {}, ["look & see"])
    assert str(table).splitlines()[-2:] == ["b  1", "note: look & see"]
    html = table._repr_html_()
    assert "note: look &amp; see" in html
    assert '<td style="text-align: left">b</td><td style="text-align: right">1</td>' in html


def test_lines_are_ascii_where_the_terminal_is() -> None:
    class Ascii(StringIO):
        encoding = "ascii"  # type: ignore[assignment]

    console = Console(file=Ascii(), width=80, color_system=None)
    console.print(example("fcfs"))
    assert console.file.getvalue().isascii()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [80, 40, 20])
def test_a_text_that_is_wider_than_the_terminal_goes_on_below(width: int) -> None:
    note = "a sentence that is longer than the terminal is wide, with the last number 123456789 at its end"
    table = TextTable(
        "t", [Column("a", ["b"], number=False)], [[Column("n", ["1,234"])], [Column("x", [note], number=False)]], {}
    )
    lines = drawn(table, width)
    assert all(len(line.rstrip()) <= width for line in lines)
    assert set(note.split()) <= set(" ".join(lines).split())
