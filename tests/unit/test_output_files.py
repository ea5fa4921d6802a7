"""Files are written as a whole or not at all, and nothing else is touched."""

from collections.abc import Callable
from pathlib import Path

import pytest

import clustermodel as cm
from clustermodel.errors import OutputError, visible
from clustermodel.text.files import is_compressed, opened, replacing, write_file


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


WRITERS: dict[str, Callable[[cm.Result, Path], object]] = {
    "to_swf": lambda result, path: result.to_swf(path),
    "to_csv": lambda result, path: result.to_csv(path),
    "to_perfetto": lambda result, path: result.to_perfetto(path),
    "to_toml": lambda _, path: cm.Scenario(workload=cm.synthetic_workload(jobs=3, nodes=8)).to_toml(path),
    "write_trace": lambda _, path: cm.write_trace(path, cm.synthetic_workload(jobs=3, nodes=8)),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", ["x.gz", "x.bz2", "x.xz", "x.swf", "x.json", "x.txt", "x"])
def test_the_method_says_what_is_written_and_the_name_only_whether_it_is_compressed(
    tmp_path: Path, write: Callable[[cm.Result, Path], object], name: str
) -> None:
    result = cm.Scenario(workload=cm.synthetic_workload(jobs=3, nodes=8)).run()
    write(result, tmp_path / "plain")
    write(result, tmp_path / name)
    assert is_compressed(tmp_path / name) == name.endswith((".gz", ".bz2", ".xz"))
    with opened(tmp_path / name) as file:
        assert file.read() == (tmp_path / "plain").read_text()


@pytest.mark.parametrize("name", ["kth.toml.gz", "kth.toml.xz"])
def test_a_compressed_scenario_is_read_again(tmp_path: Path, name: str) -> None:
    scenario = cm.Scenario(workload=cm.synthetic_workload(jobs=3, nodes=8), policy="easy")
    scenario.to_toml(tmp_path / name)
    assert cm.Scenario.from_toml(tmp_path / name).policy == "easy"
