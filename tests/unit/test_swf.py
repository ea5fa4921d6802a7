"""The Standard Workload Format: reading, streaming, refusing and writing, to the line and the field."""

import gzip
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clustermodel as cm
from clustermodel.workload.job import JobRow
from clustermodel.workload.swf import write_swf

WriteTrace = Callable[..., Path]

# A job without gaps in the fields that matter.
USUAL = dict(zip(cm.SWF_FIELDS, (1, 0, -1, 100, 2, -1, -1, 4, 200, -1, 1, 7, 3, -1, -1, -1, -1, -1), strict=True))


def line(number: object = 1, **fields: object) -> str:
    assert fields.keys() <= USUAL.keys()
    return " ".join(str(value) for value in {**USUAL, "job_number": number, **fields}.values())


def ids(workload: cm.Workload) -> list[int]:
    return [row.id for row in workload.rows()]


def test_a_data_line_becomes_a_job_field_by_field(write_trace: WriteTrace) -> None:
    path = write_trace(line(12, submit_time=3, run_time=100.5, status=5))
    # submit, id, nodes, run, estimate, user, group, priority, status; 1 s = 1e6 ticks
    assert list(cm.read_swf(path).rows()) == [JobRow(3_000_000, 12, 2, 100_500_000, 200_000_000, 7, 3, 0, 5)]


def test_spaces_blank_lines_comments_and_windows_line_ends_mean_nothing(tmp_path: Path, write_trace: WriteTrace) -> None:
    plain = write_trace(line(1), line(2, submit_time=5))
    odd = tmp_path / "odd.swf"
    odd.write_bytes(f"\r\n\t {line(1)}  \r\n; between\r\n   ;indented\r\n{line(2, submit_time=5)}".replace(" ", "\t ").encode())
    assert list(cm.read_swf(odd).rows()) == list(cm.read_swf(plain).rows())


def test_a_compressed_trace_is_the_same_trace_under_the_same_name(write_trace: WriteTrace, tmp_path: Path) -> None:
    plain = write_trace("; MaxProcs: 8", line(1), line(2, submit_time=5), name="small.swf")
    packed = tmp_path / "small.swf.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(cm.read_swf(packed).rows()) == list(cm.read_swf(plain).rows())
    assert cm.read_swf(packed).name == cm.read_swf(plain).name == "small"
    assert cm.read_swf(packed).provenance.header == {"MaxProcs": "8"}
    assert cm.read_swf(packed).provenance.source == str(packed)


def test_header_comments_before_the_first_job_are_kept_by_key(write_trace: WriteTrace) -> None:
    path = write_trace(
        "; Computer: IBM SP2",
        ";Version:2.2",
        "; Note: one: with a colon",
        "; a line without a key",
        ";",
        "; Two words: are no key",
        "; Note: two",
        "",
        line(1),
        "; Late: too late",
        line(2),
    )
    assert cm.read_swf(path).provenance.header == {"Computer": "IBM SP2", "Version": "2.2", "Note": "one: with a colon\ntwo"}


@pytest.mark.parametrize(
    ("header", "nodes"),
    [
        (("; MaxNodes: 16", "; MaxProcs: 64"), 64),
        (("; MaxProcs: 64 (four to a node)", "; MaxNodes: 16"), 64),
        (("; MaxNodes: 16",), 16),
        (("; MaxProcs: unknown", "; MaxNodes: 16"), 16),
        (("; MaxProcs: -1", "; MaxNodes: 16"), 16),
        (("; MaxProcs: 0",), None),
        (("; MaxProcs:",), None),
        (("; MaxProcs:", "; MaxProcs:", "; MaxNodes: 16"), 16),
        (("; MaxProcs: \u0663", "; MaxNodes: 16"), 16),  # a digit, but none of the format's
        ((f"; MaxProcs: {2**53}",), 2**53),
        ((f"; MaxProcs: {2**53 + 1}", "; MaxNodes: 16"), 16),  # no machine may be as large
        (("; MaxProcs: " + "9" * 5000, "; MaxNodes: 16"), 16),
        ((), None),
    ],
)
def test_the_machine_is_max_procs_of_the_header_else_max_nodes(
    write_trace: WriteTrace, header: tuple[str, ...], nodes: int | None
) -> None:
    path = write_trace(*header, line(1))
    assert cm.read_swf(path).machine_nodes == cm.SwfStream(path).machine_nodes == nodes


@pytest.mark.parametrize(("preferred", "other", "first"), [("allocated", "requested", 2), ("requested", "allocated", 4)])
def test_processors_come_from_one_field_and_where_it_is_missing_from_the_other_which_is_counted(
    write_trace: WriteTrace, preferred: str, other: str, first: int
) -> None:
    path = write_trace(
        line(1),
        line(2, submit_time=1, **{f"{preferred}_processors": -1, f"{other}_processors": 16}),
        line(3, submit_time=2, **{f"{preferred}_processors": 0, f"{other}_processors": 8}),
        line(4, submit_time=3, **{f"{preferred}_processors": 3, f"{other}_processors": -1}),
    )
    workload = cm.read_swf(path, processors_from=preferred)
    assert workload.column("nodes").tolist() == [first, 16, 8, 3]
    assert workload.provenance.repaired == {f"{preferred}_processors missing, {other}_processors used": 2}
    assert workload.provenance.lines() == [f"2 jobs repaired: {preferred}_processors missing, {other}_processors used"]


def test_processors_come_from_no_other_field(write_trace: WriteTrace) -> None:
    with pytest.raises(
        cm.SpecificationError, match=r"^processors_from: 'used' is not allowed; it must be 'allocated' or 'requested'$"
    ):
        cm.read_swf(write_trace(line(1)), processors_from="used")


def test_jobs_that_cannot_run_are_dropped_and_counted_by_reason(write_trace: WriteTrace) -> None:
    path = write_trace(
        line(1),
        line(2, run_time=-1),
        line(3, run_time=0),
        line(4, run_time=0),
        line(5, submit_time=-1),
        line(6, allocated_processors=-1, requested_processors=0),
    )
    workload = cm.read_swf(path)
    assert ids(workload) == [1]
    assert workload.provenance.lines() == [
        "1 job dropped: number of processors missing",
        "1 job dropped: run time missing",
        "2 jobs dropped: run time zero",
        "1 job dropped: submit time missing",
    ]


def test_a_missing_or_zero_estimate_becomes_the_run_time_and_is_counted(write_trace: WriteTrace) -> None:
    path = write_trace(line(1, requested_time=-1), line(2, requested_time=0), line(3, requested_time=0.5), line(4))
    workload = cm.read_swf(path)
    assert workload.seconds("estimate").tolist() == [100, 100, 0.5, 200]
    assert workload.provenance.repaired == {"requested_time missing, run_time used": 2}
    without = cm.read_swf(path, use_estimates=False)  # every one is the run time, and that is no repair
    assert without.seconds("estimate").tolist() == without.seconds("run").tolist() == [100] * 4
    assert not without.provenance.repaired


@pytest.mark.parametrize(
    ("keep", "kept", "reason"),
    [
        (cm.JobFilter(window_s=(10, 20)), [2], "outside the time window"),
        (cm.JobFilter(nodes=(2, 4)), [1, 2], "outside the size range"),
        (cm.JobFilter(statuses={0, 5}), [2, 3], "status not selected"),
        (cm.JobFilter(users={8}), [3], "user not selected"),
    ],
)
def test_jobs_are_filtered_while_reading(write_trace: WriteTrace, keep: cm.JobFilter, kept: list[int], reason: str) -> None:
    path = write_trace(
        line(1, submit_time=0, status=1),
        line(2, submit_time=10, allocated_processors=4, status=0),
        line(3, submit_time=20, allocated_processors=5, status=5, user_id=8),
    )
    workload = cm.read_swf(path, keep=keep)
    assert ids(workload) == kept
    assert workload.provenance.dropped == {reason: 3 - len(kept)}
    assert workload.provenance.options["filter"] == keep


def test_load_is_scaled_after_filtering_from_the_first_job_that_is_kept(write_trace: WriteTrace) -> None:
    path = write_trace(line(1), line(2, submit_time=10), line(3, submit_time=30))
    scale = cm.LoadScale(interarrival=2, run_time=3, size=2)
    workload = cm.read_swf(path, keep=cm.JobFilter(window_s=(10, 31)), scale=scale)
    # 10 s stays; 30 s becomes 10 + 2 x 20
    assert workload.seconds("submit").tolist() == [10, 50]
    assert workload.seconds("run").tolist() == [300, 300]
    assert workload.seconds("estimate").tolist() == [600, 600]
    assert workload.column("nodes").tolist() == [4, 4]


def test_an_unsorted_file_is_sorted_before_scaling_and_the_jobs_out_of_place_are_counted(write_trace: WriteTrace) -> None:
    path = write_trace(*(line(number, submit_time=time) for number, time in enumerate((50, 10, 20, 15, 60), 1)))
    workload = cm.read_swf(path, scale=cm.LoadScale(interarrival=2))
    assert ids(workload) == [2, 4, 3, 1, 5]
    # the first submission, 10 s, stays where it is: 10, 10 + 2 x 5, 10 + 2 x 10, 10 + 2 x 40, 10 + 2 x 50
    assert workload.seconds("submit").tolist() == [10, 20, 30, 90, 110]
    # 2 stands below 1, and 4 below 3
    assert workload.provenance.repaired == {"submitted before the job on the line above, sorted": 2}


@pytest.mark.parametrize(
    ("third", "why"),
    [
        (line(3, submit_time=59), "job 3 stands after job 4, which was submitted later"),
        (line(3, submit_time=60), "job 3 stands after job 4, which was submitted at the same time and has a higher number"),
        (
            line(4, submit_time=60, allocated_processors=1),
            "job 4 stands after job 4, which was submitted at the same time and has the same number",
        ),
    ],
)
def test_a_stream_out_of_order_is_refused_by_line_and_job(write_trace: WriteTrace, third: str, why: str) -> None:
    path = write_trace("; MaxProcs: 8", line(1, submit_time=50), line(4, submit_time=60), third)
    rows = cm.SwfStream(path).rows()
    assert [next(rows).id, next(rows).id] == [1, 4]
    with pytest.raises(cm.TraceError) as refused:
        next(rows)
    assert str(refused.value) == (
        f"{path}:4: {why}; a stream must be in order of submission: read the file with read_swf, which sorts (without --stream)"
    )


@pytest.mark.parametrize("scale", [{"run_time": 1e300}, {"interarrival": 1e12}, {"size": 1e19}])
def test_factors_that_lead_beyond_64_bits_are_refused_by_both_readers(write_trace: WriteTrace, scale: dict[str, float]) -> None:
    path = write_trace(line(1, run_time=1e-6, requested_time=1e-6), line(2, submit_time=1e9))
    for read in (cm.read_swf, lambda path, **options: list(cm.SwfStream(path, **options).rows())):
        with pytest.raises(
            cm.SpecificationError,
            match=r"^LoadScale: job \d: a time or size is too large for 64-bit ticks; scale it by smaller factors$",
        ):
            read(path, scale=cm.LoadScale(**scale))


def test_a_stream_can_be_read_again_and_its_counters_begin_anew(write_trace: WriteTrace) -> None:
    stream = cm.SwfStream(write_trace("junk", line(1), line(2, run_time=0), line(3, requested_time=-1)), lenient=True)
    first = list(stream.rows())
    counted = Counter(stream.provenance.dropped), Counter(stream.provenance.repaired), list(stream.malformed)
    assert list(stream.rows()) == first
    assert (stream.provenance.dropped, stream.provenance.repaired, stream.malformed) == counted
    assert counted[0] == {"malformed line": 1, "run time zero": 1}


def test_a_stream_simulates_like_the_table(write_trace: WriteTrace) -> None:
    lines = [line(n, submit_time=7 * n, run_time=40 + 3 * (n % 5), allocated_processors=1 + n % 4) for n in range(1, 40)]
    path = write_trace("; MaxProcs: 4", *lines)
    table, stream = (cm.Scenario(workload=source, policy="easy").run() for source in (cm.read_swf(path), cm.SwfStream(path)))
    assert stream.jobs.equals(table.jobs[stream.jobs.columns])  # which has the recorded status, too
    assert stream.machine == table.machine == cm.Machine(nodes=4)


@pytest.mark.parametrize("further", ["5", "5 6 7", "-1.5 0 1", "node:ppn=2 x"])
@pytest.mark.parametrize("mixed", [False, True])
def test_further_columns_are_left_out_and_counted(write_trace: WriteTrace, further: str, mixed: bool) -> None:
    lines = [line(number, submit_time=number) for number in range(1, 601)]
    wide = [text if mixed and number % 3 else f"{text} {further}" for number, text in enumerate(lines)]
    path = write_trace("; MaxProcs: 8", *wide)
    expected = cm.read_swf(write_trace("; MaxProcs: 8", *lines, name="narrow.swf"))
    workload, stream = cm.read_swf(path), cm.SwfStream(path)
    assert np.array_equal(workload.table, expected.table)
    assert list(stream.rows()) == list(expected.rows())
    reason, number = "further columns, after the 18 of SWF, left out", sum(map(str.__ne__, wide, lines))
    assert dict(workload.provenance.repaired) == dict(stream.provenance.repaired) == {reason: number}


def test_a_negative_run_time_beside_further_columns_needs_lenient(write_trace: WriteTrace) -> None:
    path = write_trace(line(1) + " 1 2 3", line(2, run_time=-7) + " 1 2 3", line(3) + " 1 2 3")
    assert refusal(path).endswith(":2: field run_time: -7 is not allowed; it must be >= 0, or -1 for unknown")
    assert ids(cm.read_swf(path, lenient=True)) == [1, 3]


def refusal(path: Path, **options: Any) -> str:
    """Return the message with which both ways of reading refuse ``path``."""
    with pytest.raises(cm.TraceError) as from_table:
        cm.read_swf(path, **options)
    with pytest.raises(cm.TraceError) as from_stream:
        list(cm.SwfStream(path, **options).rows())
    assert str(from_table.value) == str(from_stream.value)
    assert "\n" not in str(from_table.value)
    return str(from_table.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.swf") == f"{tmp_path}/no.swf: cannot be read: No such file or directory"
    assert refusal(tmp_path / "no.swf.gz") == f"{tmp_path}/no.swf.gz: cannot be read: No such file or directory"
    assert refusal(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_or_a_device_is_refused_because_a_trace_is_read_twice(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.swf"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        assert refusal(path) == f"{path}: cannot be read: it is not a file but a pipe or a device; write a file"


def test_a_name_that_no_file_can_have() -> None:
    assert re.fullmatch(r"'a\\x00.swf': cannot be read: .*embedded null (byte|character).*", refusal(Path("a\0.swf")))


def test_a_byte_order_mark_is_not_part_of_the_first_line(tmp_path: Path) -> None:
    for name, start in (("head.swf", "; MaxProcs: 8\n"), ("job.swf", "")):
        path = tmp_path / name
        path.write_text(f"\ufeff{start}{line(1)}\n", encoding="utf-8")
        assert ids(cm.read_swf(path)) == [1]
        assert cm.read_swf(path).machine_nodes == (8 if start else None)


def test_a_gzip_file_that_was_cut_off_says_after_which_line(tmp_path: Path) -> None:
    whole = gzip.compress("".join(line(n, submit_time=n) + "\n" for n in range(20_000)).encode())
    path = tmp_path / "cut.swf.gz"
    for length in (5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        message = refusal(path)
        start, end = f"{path}: the compressed data ends early, after line ", "; the file is truncated"
        assert message.startswith(start)
        assert message.endswith(end)
        assert 0 <= int(message.removeprefix(start).removesuffix(end)) <= 20_000


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("plain.swf.gz", line(1).encode(), ": not readable as gzip after line 0: Not a gzipped file (b'1 ')"),
        ("crc.swf.gz", gzip.compress(line(1).encode(), mtime=0)[:-8] + bytes(8), ": not readable as gzip after line "),
        ("binary.swf", line(1).encode() + b"\n" + bytes(range(128, 256)), ":2: 1 field; a data line has 18"),
    ],
)
def test_a_file_that_is_no_gzip_or_no_text(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert refusal(path).startswith(f"{path}{complaint}")


NOT_NEGATIVE = "is not allowed; it must be >= 0, or -1 for unknown"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (line(1).rpartition(" ")[0], "17 fields; a data line has 18"),
        (f"{line(1)} {line(2)}", "36 fields; a data line has 18"),
        (line(1) + " ; resubmitted", "20 fields; a data line has 18"),
        ("1,2,3", "1 field; a data line has 18"),
        (line(1, run_time="abc"), "field run_time: 'abc' is not a number"),
        (line(1, run_time="1_000"), "field run_time: '1_000' is not a number"),  # Python reads these three
        (line(1, run_time="\u0663"), "field run_time: '\u0663' is not a number"),
        (line(1, allocated_processors="\uff11"), "field allocated_processors: '\uff11' is not a number"),
        (line(1, run_time="9" * 1000), f"field run_time: '{'9' * 29}... (1,002 characters) is not a finite number"),
        (
            line(1, run_time="0" * 1000 + "1e99"),
            f"field run_time: {'0' * 30}... (1,004 characters) is not allowed; it must be <= 1e+10",
        ),
        (line(1, run_time="1:30"), "field run_time: '1:30' is not a number"),
        (line(1, requested_time="?"), "field requested_time: '?' is not a number"),
        (line("x1"), "field job_number: 'x1' is not a number"),
        (line(1, submit_time="nan"), "field submit_time: 'nan' is not a finite number"),
        (line(1, requested_time="inf"), "field requested_time: 'inf' is not a finite number"),
        (line(1, run_time="-inf"), "field run_time: '-inf' is not a finite number"),
        (line(1, requested_time="1e999"), "field requested_time: '1e999' is not a finite number"),
        (line(1, submit_time=-2), f"field submit_time: -2 {NOT_NEGATIVE}"),
        (line(1, run_time=-0.5), f"field run_time: -0.5 {NOT_NEGATIVE}"),
        (line(1, allocated_processors=-4), f"field allocated_processors: -4 {NOT_NEGATIVE}"),
        (line(-1), "field job_number: -1 is not allowed; it must be >= 0"),
        (line(1.5), "field job_number: 1.5 is not a whole number"),
        (line(1, allocated_processors=2.5), "field allocated_processors: 2.5 is not a whole number"),
        (line(-1, submit_time=-1), "field job_number: -1 is not allowed; it must be >= 0"),
        (line(1, requested_time="1e11"), "field requested_time: 1e11 is not allowed; it must be <= 1e+10"),
        (line(1, run_time="1e11"), "field run_time: 1e11 is not allowed; it must be <= 1e+10"),
        (line(10**20), f"field job_number: {10**20} is not allowed; it must be <= 1e+10"),
        (line(1, run_time="abc", submit_time="def"), "field submit_time: 'def' is not a number"),  # the first of several
    ],
)
def test_a_malformed_line_is_refused_by_file_line_field_and_value(write_trace: WriteTrace, wrong: str, complaint: str) -> None:
    path = write_trace("; MaxProcs: 8", line(8), "", wrong)
    assert refusal(path) == f"{path}:4: {complaint}"


def test_a_large_number_in_a_field_that_is_not_used_is_no_error(write_trace: WriteTrace) -> None:
    path = write_trace(line(1, used_memory="1e300", requested_memory="1e308", think_time=1.5))
    assert ids(cm.read_swf(path)) == [1]
    assert not cm.read_swf(path).provenance.repaired


@pytest.mark.parametrize(
    ("used", "requested", "kib"),
    [
        *((-1, 2048, 2048), (1000, 2048, 2048), (1000, -1, 1000), (1000.2, 0, 1001)),
        *((-1, -1, -1), (0, 0, -1), ("1e300", "1e308", -1), ("much", -1, -1)),
    ],
)
def test_the_memory_of_a_job_is_what_it_requested_or_else_what_it_used(
    write_trace: WriteTrace, used: object, requested: object, kib: int
) -> None:
    trace = read_alike(write_trace(line(1, used_memory=used, requested_memory=requested)))
    assert trace.column("memory").tolist() == [kib]
    assert ("memory_gib" in trace.frame) == (kib != -1)


IGNORED = (
    *("wait_time", "average_cpu_time", "used_memory", "requested_memory"),
    *("executable", "queue", "partition", "preceding_job", "think_time"),
)
LABELS = ("status", "user_id", "group_id")


def read_alike(path: Path, **options: Any) -> cm.Workload:
    """Return the workload of ``path``, which the stream reads in the same way."""
    workload, stream = cm.read_swf(path, **options), cm.SwfStream(path, **options)
    assert list(stream.rows()) == list(workload.rows())
    assert stream.provenance == workload.provenance
    return workload


@pytest.mark.parametrize("word", ["-2", "-0.5", "nan", "-inf", "1e999", "n/a", "1_0", "\uff11", "12:30"])
@pytest.mark.parametrize("field", IGNORED)
def test_a_field_that_no_result_depends_on_never_refuses_a_line_and_is_counted(
    write_trace: WriteTrace, field: str, word: str
) -> None:
    workload = read_alike(write_trace(line(1), line(2, **{field: word}), line(3, **{field: word})))
    assert list(workload.rows()) == list(cm.read_swf(write_trace(line(1), line(2), line(3))).rows())
    assert workload.provenance.repaired == {f"{field} invalid, ignored": 2}


@pytest.mark.parametrize("word", ["-2", "-4", "0.1", "nan", "inf", "n/a", "1e11", str(2**63)])
@pytest.mark.parametrize("field", LABELS)
def test_an_impossible_status_user_or_group_is_unknown_and_counted(write_trace: WriteTrace, field: str, word: str) -> None:
    workload = read_alike(write_trace(line(1), line(2, **{field: word})))
    column = field.removesuffix("_id")
    assert workload.column(column).tolist() == [USUAL[field], -1]
    assert workload.provenance.repaired == {f"{field} invalid, unknown (-1) used": 1}


def test_a_negative_estimate_is_a_missing_one_counted_apart(write_trace: WriteTrace) -> None:
    path = write_trace(line(1, requested_time=-2), line(2, requested_time=-1), line(3, requested_time=-0.5))
    workload = read_alike(path)
    assert workload.seconds("estimate").tolist() == [100, 100, 100]
    assert workload.provenance.repaired == {
        "requested_time negative, run_time used": 2,
        "requested_time missing, run_time used": 1,
    }


@pytest.mark.parametrize("word", ["?", "inf", "1e11"])
def test_an_estimate_that_is_not_used_refuses_no_line(write_trace: WriteTrace, word: str) -> None:
    workload = read_alike(write_trace(line(1, requested_time=word)), use_estimates=False)
    assert workload.seconds("estimate").tolist() == [100]
    assert workload.provenance.repaired == {"requested_time invalid, ignored": 1}


@pytest.mark.parametrize("word", ["-4", "2.5", "many", "nan", "1e11"])
@pytest.mark.parametrize(("used", "other"), [("allocated", "requested"), ("requested", "allocated")])
def test_the_field_of_processors_that_is_not_used_refuses_no_line(
    write_trace: WriteTrace, used: str, other: str, word: str
) -> None:
    fields = {f"{used}_processors": 3, f"{other}_processors": word}
    workload = read_alike(write_trace(line(1, **fields)), processors_from=used)
    assert workload.column("nodes").tolist() == [3]
    assert workload.provenance.repaired == {f"{other}_processors invalid, ignored": 1}
    fields[f"{used}_processors"] = -1
    workload = read_alike(write_trace(line(1, **fields), line(2)), processors_from=used)
    assert ids(workload) == [2]
    assert workload.provenance.dropped == {"number of processors missing": 1}
    assert not workload.provenance.repaired
    with pytest.raises(cm.TraceError, match=rf":1: field {other}_processors: "):
        cm.read_swf(write_trace(line(1, **fields)), processors_from=other)


@pytest.mark.parametrize("why", [{"run_time": -1}, {"run_time": 0}, {"submit_time": -1}])
def test_a_line_that_is_left_out_is_so_whatever_else_it_has(write_trace: WriteTrace, why: dict[str, object]) -> None:
    wrong = {"allocated_processors": -4, "requested_time": "?", "status": -2}
    workload = read_alike(write_trace(line(1, **why, **wrong), line(2)))
    assert ids(workload) == [2]
    assert sum(workload.provenance.dropped.values()) == 1
    assert not workload.provenance.repaired


def test_a_line_of_the_greatest_length_is_read_and_a_longer_one_is_refused(write_trace: WriteTrace) -> None:
    longest = line(1).ljust(65_536)
    assert ids(cm.read_swf(write_trace(longest))) == [1]
    for lines in ((longest + " ",), (longest + " ", line(2))):
        assert refusal(path := write_trace(*lines)) == f"{path}:1: the line has more than 65,536 characters"
    path = write_trace(line(1), "; " + "x" * 65_536, line(2))
    for lenient in (False, True):
        assert refusal(path, lenient=lenient) == f"{path}:2: the line has more than 65,536 characters"


@pytest.mark.parametrize("other", ["", ";", "   "])
def test_so_many_lines_without_a_job_are_read_and_no_more(write_trace: WriteTrace, other: str) -> None:
    between = [other] * 100_000
    path = write_trace(*between, line(1), *between, line(2))
    assert ids(cm.read_swf(path)) == [1, 2]
    end = "more than 100,000 lines or 1,048,576 characters of comments and blank lines without a job in between"
    path = write_trace(*between, other, line(1))
    assert refusal(path) == f"{path}:100001: {end}"
    path = write_trace(line(1), *between, other, line(2))
    assert refusal(path) == f"{path}:100002: {end}"


def test_a_header_of_a_mebibyte_is_read_and_no_longer_one(write_trace: WriteTrace) -> None:
    comment = "; Note: ".ljust(1023, "x")  # 1,024 characters with the line's end
    assert len(cm.read_swf(write_trace(*[comment] * 1024, line(1))).provenance.header["Note"].split("\n")) == 1024
    path = write_trace(*[comment] * 1024, ";", line(1))
    assert refusal(path).startswith(f"{path}:1025: more than 100,000 lines or 1,048,576 characters of comments")


PEAK = """
import resource, sys, time
from clustermodel import SwfStream, TraceError, read_swf
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
for read in read_swf, lambda path: list(SwfStream(path, lenient=True).rows()):
    try:
        read(sys.argv[1])
    except TraceError as refused:
        print(refused)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, time.process_time() - began)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the unit of ru_maxrss is another one")
@pytest.mark.parametrize(
    ("start", "filling", "complaint"),
    [
        (b"", b"1 ", ":1: the line has more than 65,536 characters"),
        (b"; Note: ", b"x", ":1: the line has more than 65,536 characters"),
        (line(1).encode() + b"\n", b"9", ":2: the line has more than 65,536 characters"),
        (b"", b"\n", ":100001: more than 100,000 lines or 1,048,576 characters of comments and blank lines without a job"),
        (line(1).encode() + b"\n", b"\r\n", ":100002: more than 100,000 lines or 1,048,576 characters of comments"),
        (b"", b" " * 60_000 + b"\n", ":18: more than 100,000 lines or 1,048,576 characters of comments and blank lines"),
    ],
    ids=["a line", "a comment", "a word after a job", "3 * 10^8 empty lines", "empty lines after a job", "spaces"],
)
@pytest.mark.long
def test_a_compressed_bomb_is_refused_soon_and_in_little_memory(
    tmp_path: Path, start: bytes, filling: bytes, complaint: str
) -> None:
    path = tmp_path / "bomb.swf.gz"
    block = filling * (2**20 // len(filling))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(300):
            file.write(block)
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True, timeout=60)
    *refusals, taken = done.stdout.splitlines()
    assert len(refusals) == 2
    assert all(said.startswith(f"{path}{complaint}") for said in refusals)
    kilobytes, seconds = map(float, taken.split())
    assert kilobytes < 20_000  # of 300 MB
    assert seconds < 20  # a bound on a hang: 0.3 s are usual


def test_two_jobs_of_one_number_are_refused(write_trace: WriteTrace) -> None:
    path = write_trace(line(1), line(5, submit_time=1), line(5, submit_time=2), line(5, submit_time=3))
    message = f"{path}:3: field job_number: 5 is used by 3 jobs, first on line 2; job numbers must be unique"
    with pytest.raises(cm.TraceError, match=f"^{re.escape(message)}$"):
        cm.read_swf(path)


def test_two_jobs_of_one_number_of_which_one_is_left_out_are_no_twins(write_trace: WriteTrace) -> None:
    path = write_trace(line(5), line(5, submit_time=1, run_time=0), line(5, submit_time=2, user_id=8))
    assert ids(cm.read_swf(path, keep=cm.JobFilter(users={8}))) == [5]


def test_jobs_of_one_instant_are_sorted_by_number_which_is_no_repair(write_trace: WriteTrace) -> None:
    workload = cm.read_swf(write_trace(line(2), line(1), line(3)))
    assert ids(workload) == [1, 2, 3]
    assert not workload.provenance.repaired


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        ((), "the file has no job lines"),
        (("; MaxProcs: 8", " ", "; nothing else"), "the file has no job lines"),
        (
            (line(1, run_time=0), line(2, run_time=-1), line(3, run_time=0), line(4), line(5)),
            "1 job dropped: run time missing; 2 jobs dropped: run time zero; 2 jobs dropped: user not selected",
        ),
    ],
)
def test_a_trace_without_a_usable_job_says_why(write_trace: WriteTrace, lines: tuple[str, ...], because: str) -> None:
    plain, packed = write_trace(*lines), write_trace(*lines, name="packed.swf")
    packed.write_bytes(gzip.compress(packed.read_bytes()))
    for path in (plain, packed):
        with pytest.raises(cm.TraceError, match=f"^{re.escape(str(path))}: no usable job: {because}$"):
            cm.read_swf(path, keep=cm.JobFilter(users={99}))


def test_lenient_skips_and_counts_malformed_lines_and_keeps_the_first_ten_messages(write_trace: WriteTrace) -> None:
    path = write_trace(line(1), *["1 2 3"] * 11, line(2, run_time="x"), line(3, submit_time=9))
    workload = cm.read_swf(path, lenient=True)
    assert ids(workload) == [1, 3]
    assert workload.provenance.dropped == {"malformed line": 12}
    stream = cm.SwfStream(path, lenient=True)
    assert [row.id for row in stream.rows()] == [1, 3]
    assert stream.malformed == [f"{path}:{number}: 3 fields; a data line has 18" for number in range(2, 12)]


def test_lenient_does_not_forgive_a_damaged_file_or_a_trace_of_nothing_but_nonsense(
    write_trace: WriteTrace, tmp_path: Path
) -> None:
    with pytest.raises(cm.TraceError, match="no usable job: 2 jobs dropped: malformed line"):
        cm.read_swf(write_trace("a", "b"), lenient=True)
    cut = tmp_path / "cut.swf.gz"
    cut.write_bytes(gzip.compress(line(1).encode())[:-3])
    assert refusal(cut, lenient=True).endswith("the file is truncated")


def test_numbers_are_written_as_short_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "out.swf"
    write_swf(path, [(1, 2.0, 0.5, 0.000001, -1, 12.340000)], header=[("Note", "a"), ("MaxProcs", 4)])
    assert path.read_text() == "; Note: a\n; MaxProcs: 4\n1 2 0.5 0.000001 -1 12.34\n"


def test_a_schedule_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    result = cm.Scenario(
        machine=cm.Machine(nodes=1), workload=cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=1)])
    ).run()
    for path, problem in ((tmp_path / "no" / "out.swf", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(cm.OutputError) as refused:
            result.to_swf(path)
        assert str(refused.value) == f"{path}: cannot be written: {problem}"


def test_equal_schedules_give_equal_bytes(tmp_path: Path) -> None:
    scenario = cm.Scenario(workload=cm.synthetic_workload(jobs=50, nodes=16))
    for suffix in ("swf", "swf.gz"):
        for number in (1, 2):
            scenario.run().to_swf(tmp_path / f"{number}.{suffix}")
        assert (tmp_path / f"1.{suffix}").read_bytes() == (tmp_path / f"2.{suffix}").read_bytes()


@pytest.mark.parametrize("odd", [{"nodes": -3}, {"user": -7}])
def test_a_written_schedule_can_be_read_whatever_the_jobs_were(tmp_path: Path, odd: dict[str, int]) -> None:
    # a negative size is legal, and rejected; so is a user number below -1
    jobs = [cm.Job(id=1, nodes=1, submit_s=0, run_s=1), cm.Job(**{"id": 2, "nodes": 1, "submit_s": 0, "run_s": 1, **odd})]
    path = tmp_path / "out.swf"
    cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload.from_jobs(jobs)).run().to_swf(path)
    assert 1 in ids(cm.read_swf(path))
