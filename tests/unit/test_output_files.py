"""Files are written as a whole or not at all, and nothing else is touched."""

from pathlib import Path

import pytest

from clustermodel.errors import OutputError, visible
from clustermodel.files import replacing, write_file


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_file(path, "old")
    path.chmod(0o640)
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [left.name for left in tmp_path.iterdir()] == ["table.csv"]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_file(path, "old")

    def half() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_links_are_replaced_and_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "precious.txt", tmp_path / "report.html"
    target.write_text("precious")
    link.symlink_to(target)
    write_file(link, "report")
    assert (target.read_text(), link.read_text()) == ("precious", "report")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/dev/full", "/dev/full: cannot be written: No space left on device"),
        ("/nowhere/at/all", "/nowhere/at/all: cannot be written: No such file or directory"),
        ("nul\0", r"'nul\\x00': cannot be written: .*embedded null (byte|character)"),
    ],
)
def test_a_file_that_cannot_be_written_is_named_in_one_line(path: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        write_file(path, "text")


def test_control_characters_are_made_visible() -> None:
    assert visible("plain, ü, 日本") == "plain, ü, 日本"
    assert visible("a\x1b[31mb\n\x00\u202e\ud800") == r"a\x1b[31mb\n\x00\u202e\ud800"
