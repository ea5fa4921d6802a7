"""Lines are read as an array, unusual ones word by word: with the same jobs, counts and messages."""

from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import ClusterModelError, JobFilter, LoadScale, SwfStream, read_swf
from clustermodel.workload import swf

PLAIN = [
    ["1", "0", "5", "100", "4", "99.5", "2000", "4", "200", "-1", "1", "3", "1", "-1", "1", "-1", "-1", "-1"],
    ["2", "7", "0", "60.25", "-1", "-1", "-1", "8", "-1", "1024.5", "0", "-1", "-1", "2", "1", "-1", "1", "10"],
    ["3", "7", "0", "0", "2", "-1", "0", "2", "0", "0", "5", "1", "1", "2", "1", "-1", "-1", "-1"],
    ["4", "3.5", "1", "1e3", "0", "-1", "-1", "-1", "60", "-1", "1", "1", "1", "2", "1", "-1", "-1", "-1"],
    ["5", "-1", "1", "10", "4.0", "-1", "7", "-1", ".5", "-1", "1", "1", "1", "2", "1", "-1", "-1", "-1"],
]
WORDS = ["-1", "0", "7", "12.75", "0.0000001", "9999999999", "10000000001", "99999999999999999999", "3.", "-2", "+3", "1-2",
         "1.2.3", ".", "-", "x", "nan", "1_0", "٣", "2", "3", "4"]  # fmt: skip
CHANGES = st.one_of(st.none(), st.tuples(st.integers(0, 17), st.sampled_from(WORDS)))
LINES = st.lists(st.tuples(st.sampled_from(PLAIN), st.integers(1, 40), CHANGES), min_size=1, max_size=6)
BETWEEN = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "\n; a comment\n", " \n", " 17\n", "\r"])


def outcome(path: Path, **options: object) -> object:
    """Return jobs and counts, or the message of the error."""
    try:
        read = read_swf(path, **options)  # type: ignore[arg-type]
    except ClusterModelError as problem:
        return str(problem)
    stream = SwfStream(path, **options)  # type: ignore[arg-type]
    try:
        rows = list(stream.rows())
    except ClusterModelError as problem:
        assert "a stream must be in order of submission" in str(problem)  # noqa: PT017
    else:
        assert rows == list(read.rows())
        assert stream.provenance == read.provenance
    return list(read.rows()), read.provenance.lines(), read.provenance, read.recipe


OPTIONS = st.sampled_from(
    [
        {},
        {"processors_from": "requested"},
        {"use_estimates": False},
        {"lenient": True},
        {"keep": JobFilter(nodes=(1, 5))},
        {"scale": LoadScale(interarrival=0.5, run_time=3.7, size=2), "keep": JobFilter(statuses={0, 1}, users={1, 3})},
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES, between=st.lists(BETWEEN, min_size=6, max_size=6), ordered=st.booleans(), options=OPTIONS)
def test_a_file_reads_by_columns_as_by_lines(
    tmp_path: Path, lines: list, between: list[str], *, ordered: bool, options: dict[str, object]
) -> None:
    text = "; Version: 2.2\n; MaxProcs: 8\n"
    for position, ((words, number, change), end) in enumerate(zip(lines, between, strict=False), 1):
        found = [str(position), str(2 * position), *words[2:]] if ordered else [str(number), *words[1:]]
        if change is not None:
            found[change[0]] = change[1]
        text += ("\t" if ordered else "  ").join(found) + end
    path = tmp_path / "jobs.swf"
    path.write_text(text, encoding="utf-8", newline="")
    by_columns = outcome(path, **options)
    with mock.patch.object(swf.np, "loadtxt", side_effect=ValueError):  # each line is looked at word by word
        assert by_columns == outcome(path, **options)
    with mock.patch.object(swf, "_BLOCK", 2):
        assert by_columns == outcome(path, **options)
