"""The page that ``run`` and ``whatif`` write: the numbers of the terminal, words for the machine, no script."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from clustermodel import Limits, Machine, Partition, Reservation, Site
from clustermodel.report.words import machine_in_words, site_in_words
from tests.conftest import Finished

Command = Callable[..., Finished]


def cells(page: str) -> list[list[str]]:
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]


def page_of(command_line: Command, path: Path, *arguments: object) -> tuple[str, Finished]:
    finished = command_line(*arguments, "--report", path)
    assert finished.code == 0, finished.err
    return unescape(path.read_text(encoding="utf-8")), finished


def test_the_page_of_runs_has_the_numbers_of_the_terminal(
    command_line: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["clustermodel", "run", "--jobs", "300"])
    arguments = ("run", "--jobs", 300, "--policy", "fcfs", "--policy", "easy")
    page, finished = page_of(command_line, tmp_path / "page.html", *arguments)
    head, *rows = (line.split("\t") for line in finished.out.splitlines())
    table = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    names, *shown = cells(page)
    assert [row[0] for row in shown] == ["fcfs", "easy"]
    for row in shown:
        own = dict(zip(names, row, strict=True))
        assert own["mean wait (h)"] == f"{float(table[row[0]]['mean_wait_s']) / 3600:,.2f}"
        assert own["jobs"] == table[row[0]]["jobs"]
    assert "With easy instead of fcfs the mean wait falls from" in page
    assert page.count("<svg") == 3
    assert "<li>128 nodes</li>" in page
    assert "<code>clustermodel run --jobs 300</code>" in page
    assert "<script" not in page


def test_where_nodes_are_shared_in_time_response_times_are_compared(command_line: Command, tmp_path: Path) -> None:
    policies = ("--policy", "easy", "--policy", "fcfs", "--policy", "gs")
    page, _ = page_of(command_line, tmp_path / "page.html", "run", "--jobs", 200, *policies)
    assert "With fcfs instead of easy the mean response time" in page
    assert re.search(r"With gs instead of easy the mean response time (falls|rises) from", page)
    assert "the mean wait" not in page
    assert "Mean response time of jobs by their size" in page


def test_one_policy_alone_has_no_answer(command_line: Command, tmp_path: Path) -> None:
    page, _ = page_of(command_line, tmp_path / "page.html", "run", "--jobs", 50, "--policy", "easy")
    assert 'class="answer' not in page
    assert page.count("<svg") == 2


def test_the_name_of_the_file_says_its_format(command_line: Command, tmp_path: Path) -> None:
    finished = command_line("run", "--jobs", 5, "--report", tmp_path / "page.pdf")
    assert finished.code == 1
    assert finished.err.endswith("page.pdf: format '.pdf' is unknown; use .html\n")
    finished = command_line("run", "--jobs", 5, "--stream", "--report", tmp_path / "page.html")
    assert finished.code == 2


def test_machines_and_rules_are_in_words() -> None:
    machine = Machine(
        nodes=60,
        gpus_per_node=4,
        partitions=[Partition(name="debug", nodes="0-3", max_wall_time_s=1800, priority=1)],
        reservations=[Reservation(start_s=86_400, end_s=90_000, every_s=604_800)],
    )
    assert machine_in_words(machine) == [
        "60 nodes, 4 GPUs each",
        "partition: debug, nodes 0-3, max wall time 30 min, priority 1",
        "reservation: start 24 h, end 25 h, every 7 d",
    ]
    site = Site(limits=[Limits(user="*", running_jobs=2)])
    assert site_in_words(site) == ["limit: user *, running jobs 2"]
    words = "\n".join((*machine_in_words(machine), *site_in_words(site)))
    assert not re.search(r"[\[\]{}'=]|None|True", words)


@pytest.mark.parametrize("name", ["a <b>", "x & y"])
def test_names_are_text(command_line: Command, tmp_path: Path, name: str) -> None:
    (log := tmp_path / f"{name}.swf").write_text("1 0 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n")
    finished = command_line("run", "--trace", log, "--nodes", 2, "--policy", "easy", "--report", tmp_path / "page.html")
    assert finished.code == 0, finished.err
    assert f"<h1>{name}" not in (tmp_path / "page.html").read_text()
