"""The record of watched ratios: the stored table, the page made of it, and the command that adds to them."""

import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.bench import file_to_table, record, studies
from tests.bench.watched import WATCHED

NAMES = [one.name for one in WATCHED]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository of two commits, from whose folder the command records."""
    folder = tmp_path / "repository"
    package = folder / "clustermodel"
    package.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    for text in ("first = 1\n", "second = 2\n"):
        (package / "__init__.py").write_text(text)
        subprocess.run(["git", "add", "."], cwd=folder, check=True)
        who = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
        subprocess.run(["git", *who, "commit", "--quiet", "--message", text], cwd=folder, check=True)
    monkeypatch.setattr(record, "ROOT", folder)
    return folder


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a table in which the command keeps ratios, instead of that of the page."""
    monkeypatch.setattr(record, "STORED", tmp_path / "ratios.csv")
    monkeypatch.setattr(record, "show", lambda _: None)
    return tmp_path / "ratios.csv"


def table(*rows: tuple[str, int, str, str, str, float]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=record.COLUMNS)


def test_every_bound_of_the_watched_ratios_has_its_row_and_the_last_commit_is_within_it() -> None:
    stored = record.read(record.STORED)
    last = stored[(stored["commit"] == stored["commit"].iloc[-1])]
    for kind, rows in last.groupby("kind"):
        values = rows.set_index("ratio")["value"]
        assert values.index.tolist() == NAMES
        bounds = dict(zip(NAMES, record.BOUNDS[str(kind)], strict=True))
        assert [name for name in NAMES if not 0 < values[name] <= bounds[name]] == []


def test_the_stored_table_is_in_order_without_repetitions_and_of_committed_packages() -> None:
    stored = pd.read_csv(record.STORED, dtype=str)
    assert list(stored.columns) == record.COLUMNS
    assert set(stored["ratio"]) == set(NAMES)
    assert set(stored["kind"]) <= set(record.KINDS)
    assert stored["number"].astype(int).is_monotonic_increasing
    assert not stored.duplicated(["commit", "kind", "ratio"]).any()
    assert stored["commit"].str.fullmatch("[0-9a-f]{7,}").all()


def test_the_page_shows_the_stored_table_and_its_figure() -> None:
    page = record.PAGE.read_text(encoding="utf-8")
    stored = record.read(record.STORED)
    assert record.with_summary(page, stored) == page
    text = record.SPEED_PAGE.read_text(encoding="utf-8")
    assert record.with_speed(text, stored) == text
    assert record.speed(stored)["policy"].tolist() == ["FCFS", "EASY", "conservative", "mbgs", "slack"]
    assert f"(figures/{record.PICTURE.name})" in page
    assert record.PICTURE.stat().st_size > 10_000
    shown = record.summary(stored)
    assert shown["bound, pure"].tolist() == [one.at_most for one in WATCHED]
    assert shown["bound, compiled"].tolist() == [one.compiled_at_most for one in WATCHED]
    value = stored[(stored["kind"] == "pure") & (stored["ratio"] == NAMES[1])]["value"].iloc[-1]
    assert shown.filter(regex="^[0-9a-f]{7}, pure").iloc[1, -1] == pytest.approx(value, rel=0.01)


def test_ratios_of_the_same_commit_and_kind_are_replaced_and_commits_are_in_order() -> None:
    date = "2026-01-01T00:00:00Z"
    first, second = NAMES[:2]
    before = table(
        ("aaaaaaa", 8, date, "compiled", first, 1.0),
        ("aaaaaaa", 8, date, "pure", first, 2.0),
        ("aaaaaaa", 8, date, "pure", second, 3.0),
    )
    commit = record.Commit("aaaaaaa", 8, date)
    after = record.with_ratios(before, commit, "pure", {first: 4.00004, second: "ValueError: no"})
    assert after.to_numpy().tolist() == [
        ["aaaaaaa", 8, date, "compiled", first, 1.0],
        ["aaaaaaa", 8, date, "pure", first, 4.0],
    ]
    after = record.with_ratios(after, commit, "pure", {second: 7.0})
    earlier = record.with_ratios(after, record.Commit("bbbbbbb", 7, date), "pure", {second: 5.0, first: 6.0})
    assert earlier["commit"].tolist() == ["bbbbbbb", "bbbbbbb", "aaaaaaa", "aaaaaaa", "aaaaaaa"]
    assert earlier["ratio"].tolist() == [first, second, first, first, second]
    assert earlier["value"].tolist() == [6.0, 5.0, 1.0, 4.0, 7.0]


def test_a_tree_with_changes_is_refused_in_one_line(repository: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "measure", lambda *_: ("pure", dict.fromkeys(NAMES, 2.0)))
    (repository / "clustermodel" / "__init__.py").write_text("third = 3\n")
    with pytest.raises(SystemExit, match=r"^clustermodel/__init__\.py differs from the commit: commit it first$"):
        record.main([])
    assert not kept.exists()
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=repository, check=True)
    (repository / "README.md").write_text("ratios do not depend on this file\n")
    record.main([])
    shown = record.read(kept)[["commit", "number", "date"]].drop_duplicates()
    assert shown.to_numpy().tolist() == [list(record.commit_of("HEAD"))]
    assert shown["number"].tolist() == [2]


def test_an_earlier_commit_is_measured_with_its_own_package(
    repository: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def measure(package: Path, rounds: int, names: list[str]) -> tuple[str, dict[str, float | str]]:
        assert names == NAMES
        seen.append(((package / "clustermodel" / "__init__.py").read_text(), sorted(path.name for path in package.iterdir())))
        return "pure", {NAMES[0]: 2.0, NAMES[1]: "ImportError: not there yet"}

    monkeypatch.setattr(record, "measure", measure)
    record.main(["--commit", "HEAD~1"])
    assert seen == [("first = 1\n", ["clustermodel"])]
    assert record.read(kept)["ratio"].tolist() == NAMES[:1]
    with pytest.raises(SystemExit, match=f"^{NAMES[1]} could not be measured$"):
        record.main([])
    with pytest.raises(SystemExit, match=r"^git rev-parse: fatal: "):
        record.main(["--commit", "elsewhere"])


def test_a_package_in_another_folder_must_be_that_of_the_commit(repository: Path, kept: Path, tmp_path: Path) -> None:
    (tmp_path / "clustermodel").mkdir()
    (tmp_path / "clustermodel" / "__init__.py").write_text("first = 1\n")
    with pytest.raises(SystemExit, match=r"clustermodel/__init__\.py is missing or differs"):
        record.main(["--package", str(tmp_path)])
    assert not kept.exists()


def test_hashes_that_look_like_numbers_stay_text(kept: Path) -> None:
    for name in ("54e3372", "0012345"):
        commit = record.Commit(name, 1, "2026-01-01T00:00:00Z")
        record.with_ratios(record.read(kept), commit, "pure", {NAMES[0]: 1.0}).to_csv(kept, index=False)
    assert record.read(kept)["commit"].tolist() == ["0012345", "54e3372"]


def test_the_page_shows_the_stored_parts_from_file_to_table() -> None:
    page = file_to_table.PAGE.read_text(encoding="utf-8")
    assert file_to_table.with_parts(page, file_to_table.read()) == page
    assert all(f"commit {commit}" in page for commit in file_to_table.read().loc["measured"].str[-7:])


def test_rows_on_studies_take_the_place_of_earlier_ones_and_keep_others() -> None:
    page = studies.filled(f"before\n{studies.BEGIN}{studies.END}\nafter", {"a": "1 ms", "b": "2, 3 s"}, keep=False)
    measured = f"Measured: {record.conditions()}."
    rows = ["| studies | |", "| --- | ---: |", "| a | 1 ms |", "| b | 2, 3 s |"]
    assert page.splitlines()[2:-2] == ["", measured, "", *rows, ""]
    again = studies.filled(page, {"b": "4 s"}, keep=True)
    assert again == page.replace("2, 3 s", "4 s").replace("Measured:", "Measured last:")
    assert studies.filled(again, {"c": "5"}, keep=False).count("\n| ") == 3
