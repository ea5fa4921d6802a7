"""Mutated lines of a trace, judged one by one: each is accepted, counted, or refused by file and line.

What must become of a line says an oracle that shares no code with the reader; that the reader agrees is checked for the
reader of whole files and for the stream, strict and lenient, and that whatever was accepted can be simulated.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from clustermodel import Machine, Scenario, SwfStream, TraceError, Workload, read_swf
from clustermodel.workload.job import JobRow
from clustermodel.workload.swf import write_swf
from tests.fuzz.mutations import mutated_lines
from tests.fuzz.oracle import NUMBER, Verdict, is_line_of_job, judge, nearest_tick

FEW, MANY = 10_000, 100_000
"""Lines in the first tier of the tests and in the second."""
BATCH = 100
"""Jobs in a file."""
HEADER = b"; MaxProcs: 64"
SORTED = "submitted before the job on the line above, sorted"
MALFORMED = "malformed line"
FATES = {
    ("accepted", ""): 24_321,
    ("accepted", "requested_time missing, run_time used"): 14_722,
    ("accepted", "a value invalid, ignored"): 7_429,
    ("accepted", "further columns, after the 18 of SWF, left out"): 2_831,
    ("accepted", "a value invalid, unknown (-1) used"): 1_907,
    ("accepted", "allocated_processors missing, requested_processors used"): 1_224,
    ("accepted", "requested_time negative, run_time used"): 40,
    ("counted", "number of processors missing"): 3_319,
    ("counted", "run time missing"): 2_506,
    ("counted", "run time zero"): 1_415,
    ("counted", "submit time missing"): 1_291,
    ("refused", "number of fields"): 26_553,
    ("refused", "is not a number"): 7_370,
    ("refused", "is used by"): 3_086,
    ("refused", "must be <= 1e+10"): 516,
    ("refused", "is not a whole number"): 489,
    ("refused", "must be >= 0"): 452,
    ("refused", "is not a finite number"): 427,
    ("refused", "must be >= 0, or -1 for unknown"): 102,
}  # fmt: skip
"""How many of the many lines have which fate and why; what is said of an accepted line is the first repaired in it."""


class Batch:
    """A file of mutated lines, and what becomes of each of them.

    Args:
        path: where the file is written.
        lines: mutated ones, without line ends.
        newline: to end them with.
    """

    def __init__(self, path: Path, lines: Sequence[bytes], newline: bytes) -> None:
        self.path = path
        self.path.touch()
        self.newline = newline
        self.lines = list(lines)
        self.verdicts = [judge(line.decode(errors="replace")) for line in lines]
        self.refusals: dict[int, str] = {}
        """Line -> what the reader of whole files says, without file and line."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Write a header and ``lines``, the last of which has no line end."""
        # A file that is emptied and written again goes to the disk at once, where the file system fears for it: a hundred
        # times slower than to write over it and cut off what is left of the old one.
        with self.path.open("r+b") as file:
            file.write(self.newline.join((HEADER, *lines)))
            file.truncate()

    def complaint(self) -> tuple[int, str] | None:
        """Read the file; return the index of the line that is refused, and why; ``None`` if none is."""
        try:
            read_swf(self.path)
        except TraceError as refused:
            message = str(refused)
            assert message.isprintable()
            assert len(message) < len(str(self.path)) + 200
            found = re.fullmatch(re.escape(str(self.path)) + r":(\d+): (.*)", message)
            if found is None:
                assert message.startswith(f"{self.path}: no usable job: ")
                return None
            return int(found[1]) - 2, found[2]
        return None

    def find_malformed_lines(self) -> None:
        """Read as far as it goes, then go on behind the line that was refused."""
        begin = 0
        while True:
            self.write(self.lines[begin:])
            refused = self.complaint()
            if refused is None or " is used by " in refused[1]:
                return
            begin += refused[0]
            self.refusals[begin] = refused[1]
            begin += 1

    def find_twins(self) -> None:
        """Read what is left, until no two jobs have one number."""
        while True:
            self.write(self.rest())
            refused = self.complaint()
            if refused is None:
                return
            assert " is used by " in refused[1]
            index, message = refused
            number = int(message.split()[2])
            twins = [
                other
                for other, verdict in enumerate(self.verdicts)
                if other not in self.refusals
                and verdict is not None
                and verdict.fate == "accepted"
                and verdict.number("job_number") == number
            ]
            assert index == twins[1]
            assert message == (
                f"field job_number: {number} is used by {len(twins)} jobs, first on line {twins[0] + 2}; "
                "job numbers must be unique"
            )
            self.refusals[index] = message
            self.verdicts[index] = Verdict("refused", "is used by", "job_number")

    def rest(self) -> list[bytes]:
        """Return the lines, with a comment in place of each that was refused."""
        return [b";" if index in self.refusals else line for index, line in enumerate(self.lines)]


def expected_message(verdict: Verdict, message: str) -> bool:
    """Tell whether ``message`` says what is wrong: the field, the value and what is allowed."""
    if verdict.reason == "number of fields":
        return re.fullmatch(r"[\d,]+ fields?; a data line has 18", message) is not None
    return message.startswith(f"field {verdict.field}: ") and verdict.reason in message


@pytest.mark.parametrize("number_of_lines", [FEW, pytest.param(MANY, marks=pytest.mark.whole)])
@pytest.mark.long
def test_each_mutated_line_is_accepted_counted_or_refused(tmp_path: Path, number_of_lines: int) -> None:
    rng = Random(1996)
    fates: Counter[tuple[str, str]] = Counter()
    number = out_of_order = 0
    while (data_lines := sum(fates.values())) < number_of_lines:
        number += 1
        lines: list[bytes] = []
        for line in map(of_whole_job, mutated_lines(rng, BATCH)):  # exactly as many data lines as wanted, comments besides
            is_data = judge(line.decode(errors="replace")) is not None
            if not is_data or data_lines < number_of_lines:
                lines.append(line)
                data_lines += is_data
        batch = Batch(tmp_path / "fuzz.swf", lines, (b"\n", b"\r\n", b"\r")[number % 3])
        batch.find_malformed_lines()
        batch.find_twins()
        fates += judged(batch)
        out_of_order += read_by_both_readers(batch)
        if number % 8 == 0:
            round_trip_and_simulate(batch, ("fcfs", "easy", "conservative", "gs")[number // 8 % 4])
    assert sum(fates.values()) == number_of_lines
    assert out_of_order > number_of_lines / 1000
    assert fates.keys() == FATES.keys()
    if number_of_lines == MANY:
        assert dict(fates) == FATES


def of_whole_job(line: bytes) -> bytes:
    """Return a line with status 1 instead of 2, 3 or 4: what becomes of those depends on the lines around them."""
    words = line.decode(errors="replace").split()
    if is_line_of_job(words) and NUMBER.fullmatch(words[10]) and float(words[10]) in (2, 3, 4):
        return " ".join([*words[:10], "1", *words[11:]]).encode()
    return line


def judged(batch: Batch) -> Counter[tuple[str, str]]:
    """Compare what has become of each line with what must; return how many have had which fate."""
    fates: Counter[tuple[str, str]] = Counter()
    for index, verdict in enumerate(batch.verdicts):
        if verdict is None or verdict.fate != "refused":
            assert index not in batch.refusals, (batch.lines[index], batch.refusals[index])
        else:
            assert expected_message(verdict, batch.refusals[index]), (batch.lines[index], batch.refusals[index])
            fates["refused", verdict.reason] += 1
    return fates + accepted_and_counted(batch)


def accepted_and_counted(batch: Batch) -> Counter[tuple[str, str]]:
    """Compare the jobs and counts of the lines that are not refused with what they must be."""
    kept = [verdict for verdict in batch.verdicts if verdict is not None and verdict.fate != "refused"]
    accepted = {verdict.number("job_number"): verdict for verdict in kept if verdict.fate == "accepted"}
    dropped = Counter(verdict.reason for verdict in kept if verdict.fate == "counted")
    stream = SwfStream(batch.path)
    if not accepted:
        assert list(stream.rows()) == []
        assert stream.provenance.dropped == dropped
        return Counter({("counted", reason): count for reason, count in dropped.items()})
    workload = read_swf(batch.path)
    rows = list(workload.rows())
    assert {row.id for row in rows} == accepted.keys()
    assert len(rows) == len(accepted)
    for row in rows:
        assert accepted[row.id].admits(row), (accepted[row.id], row)
    submit = {row.id: row.submit for row in rows}
    moved = sum(submit[later] < submit[earlier] for earlier, later in pairwise(accepted))
    repaired = Counter(repair for verdict in accepted.values() for repair in verdict.repairs) + Counter({SORTED: moved})
    assert workload.provenance.dropped == dropped
    assert workload.provenance.repaired == repaired
    assert workload.machine_nodes == 64
    fates = Counter({("counted", reason): count for reason, count in workload.provenance.dropped.items()})
    for row in rows:
        first = next(iter(accepted[row.id].repairs), "")
        fates["accepted", re.sub(r"^\w+ invalid, ", "a value invalid, ", first)] += 1
    return fates


def read_by_both_readers(batch: Batch) -> bool:
    """Compare the stream with the table, strict and lenient; return whether the lines are out of order."""
    rest = batch.rest()
    batch.write(rest)
    try:
        rows = list(read_swf(batch.path).rows())
    except TraceError:
        return False  # no usable job: compared already
    position = {row.id: place for place, row in enumerate(rows)}
    places = [
        (position[verdict.number("job_number")], index)
        for index, verdict in enumerate(batch.verdicts)
        if verdict is not None and verdict.fate == "accepted"
    ]
    wrong = next((late for (early_place, _), (late_place, late) in pairwise(places) if late_place < early_place), None)
    if wrong is not None:
        with pytest.raises(TraceError, match=re.escape(f"{batch.path}:{wrong + 2}: job ")):
            list(SwfStream(batch.path).rows())

    # In order, the stream has the rows and the counts of the table; lenient, both skip and count the malformed lines.
    of_jobs = {index for _, index in places}
    twins = {index for index, text in batch.refusals.items() if " is used by " in text}
    malformed = {index: text for index, text in batch.refusals.items() if index not in twins}
    others = [index for index in range(len(rest)) if index not in of_jobs | twins]
    in_order = [index for _, index in sorted(places)]
    for lenient in (False, True):
        indices = (others if lenient else [index for index in others if index not in malformed]) + in_order
        batch.write([batch.lines[index] for index in indices])
        stream, table = SwfStream(batch.path, lenient=lenient), read_swf(batch.path, lenient=lenient)
        assert list(stream.rows()) == rows == list(table.rows())
        assert stream.provenance == table.provenance
        assert table.provenance.dropped[MALFORMED] == (len(malformed) if lenient else 0)
        messages = [f"{batch.path}:{line}: {malformed[i]}" for line, i in enumerate(indices, 2) if i in malformed]
        assert stream.malformed == messages[:10]
    return wrong is not None


def round_trip_and_simulate(batch: Batch, policy: str) -> None:
    """Write the accepted jobs and read them again; simulate them."""
    batch.write(batch.rest())
    try:
        workload = read_swf(batch.path)
    except TraceError:
        return
    rows = list(workload.rows())
    write_swf(batch.path, map(as_fields, rows), header=[("MaxProcs", 64)])
    again = list(read_swf(batch.path).rows())
    assert len(again) == len(rows)
    for row, twin in zip(rows, again, strict=True):
        assert row._replace(submit=0, run=0, estimate=0) == twin._replace(submit=0, run=0, estimate=0)
        for field in ("submit", "run", "estimate"):
            ticks, found = getattr(row, field), getattr(twin, field)
            # a double holds microseconds exactly for 285 years
            assert found == ticks if ticks < 2**53 else nearest_tick(f"{ticks}e-6", found, least=0)
    simulate(workload, policy)


def as_fields(row: JobRow) -> tuple[float, ...]:
    submit, run, estimate = (value / 1e6 for value in (row.submit, row.run, row.estimate))
    of_user = (row.status, row.user, row.group)
    return row.id, submit, -1, run, row.nodes, -1, -1, -1, estimate, row.memory, *of_user, -1, -1, -1, -1, -1


def simulate(workload: Workload, policy: str) -> None:
    """Every job runs to an end, or is rejected because the machine has too few nodes."""
    result = Scenario(machine=Machine(nodes=64), workload=workload, policy=policy).run()
    fits = workload.column("nodes") <= 64
    assert result.summary().jobs == fits.sum()
    assert result.summary().rejected == (~fits).sum()
