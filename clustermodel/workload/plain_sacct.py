"""Records of Slurm's sacct read by columns: about twice as fast as one by one, with the same jobs, counts and order.

Only plain records are read so: jobs, array tasks and steps, with time stamps as sacct writes them, whole seconds, and amounts
up to 2**31.  Any other record is left to the reader of single records, which knows every form and says what is wrong
(:mod:`clustermodel.workload.sacct`); it has its turn when all records before it have been added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.job import UNSET
from clustermodel.validation import LONGEST_S
from clustermodel.workload.import_report import JOBS
from clustermodel.workload.log_columns import LARGEST, ODD, Durations, Rows, Stamps, Values, amounts, are_digits
from clustermodel.workload.log_jobs import LogJob, LogJobs, Names
from clustermodel.workload.log_values import NO_VALUE, Clock, gres_gpus, requested_kib, tres
from clustermodel.workload.node_names import node_names
from clustermodel.workload.sacct_fields import (
    MOST_SUSPICIOUS_S,
    NEVER,
    NO_LENGTH,
    NO_START,
    NO_SUBMISSION,
    NO_TIME,
    REQUEUED,
    SIZE_MISSING,
    STATUS,
    STEP,
    Fields,
    state_of,
    why_not_ended,
)
from clustermodel.workload.sacct_records import JOB_ID, MOST_DIGITS, Block

FEWEST: Final = 16
"""Records in a block that are worth reading by columns, and number of records per record that may be read by itself."""
_NOT_ENDED: Final = -3
_LARGEST_MEMORY: Final = 2**62
_LONGEST_MARK: Final = max(map(len, NO_VALUE)) + 1
_AT: Final = {name: at for at, name in enumerate(LogJob._fields)}

_Texts = Sequence[Sequence[str]]
ReadOne = Callable[[Fields, int, list[str]], None]
"""Reads a single record: where its fields stand, the number of its line, and its fields."""


class _Identities(NamedTuple):
    """What the fields JobID and JobIDRaw say."""

    numbers: list[int]
    raw: list[int]
    tasks: list[int]
    """Task + 1, 0 for a job that is no task."""
    step: BoolArray
    odd: BoolArray
    """Components of heterogeneous jobs, and tasks that have not been split off."""


class _Times(NamedTuple):
    """Times in seconds, shape ``(records,)`` each."""

    submit: IntArray
    start: IntArray
    end: IntArray
    run: IntArray
    suspended: IntArray
    has_length: BoolArray
    eligible: IntArray
    odd: BoolArray


class _Sizes(NamedTuple):
    """What records say of sizes, shape ``(records,)`` each; 0 where they do not."""

    nodes: IntArray
    cores: IntArray
    missing: BoolArray
    """Whether neither nodes nor cores are known where they are looked for first."""
    gpus: IntArray
    gpus_per_node: IntArray
    memory: IntArray
    """KiB."""
    allocated_cores: IntArray
    odd: BoolArray


class _Parsed(NamedTuple):
    """The records of a block, before names are numbered and anything is counted."""

    columns: _Texts
    identities: _Identities
    node_lists: list[str]
    """Empty where there is none."""
    reasons: list[str]
    """What each record counts as."""
    is_job: BoolArray
    odd: BoolArray
    table: IntArray
    """Rows of :class:`~clustermodel.workload.log_jobs.LogJob`, without the numbers of names."""
    eligible_later: BoolArray
    size_missing: BoolArray


class PlainReader:
    """Adds the records of a log to its jobs.

    Args:
        jobs: takes jobs and counts.
        clock: reads time stamps.
        read_one: reads a record that is not plain.
        requested_first: whether requested sizes are used even where allocated ones are known.
    """

    def __init__(self, jobs: LogJobs, clock: Clock, read_one: ReadOne, *, requested_first: bool) -> None:
        self._jobs = jobs
        self._read_one = read_one
        self._requested_first = requested_first
        self._stamps = Stamps(clock)
        self._seconds, self._minutes = Durations(), Durations(60)
        self._amounts = amounts()
        self._gpus = Values[str](_gres)
        self._tres = Rows(_tres, 5)
        self._states = Rows(_state, 3)

    def read(self, at: Fields, block: Block) -> None:
        """Add the jobs of a block of records, and count them all.

        Args:
            at: where the fields stand.
            block: the records.
        """
        records = block.size
        parsed = self._parsed(at, block) if records >= FEWEST else None
        if parsed is None or np.count_nonzero(parsed.odd) > records // FEWEST:
            for record in range(records):
                self._read_one(at, block.line + record, block.fields(record))
            return
        begin = 0
        for odd in np.flatnonzero(parsed.odd).tolist():
            self._add(at, parsed, begin, odd)
            self._read_one(at, block.line + odd, block.fields(odd))
            begin = odd + 1
        self._add(at, parsed, begin, records)

    def _parsed(self, at: Fields, block: Block) -> _Parsed:
        records = block.size
        columns = [*block.columns, [""] * records]  # the last one for the position -1
        identities = _identities(columns[at.job_id], columns[at.raw_id])
        self._note_arrays(columns[at.job_id], columns[at.cluster])
        status, requeued, completed = self._states.of(columns[at.state])
        if at.state < 0:
            status = np.full(records, UNSET)
        times, sizes = self._times(at, columns), self._sizes(at, columns)
        limit = self._first_known(self._minutes, columns, at.limit_raw, at.limit)
        restarts = self._of(self._amounts, columns, at.restarts)
        node_lists = _node_lists(columns[at.node_list])

        reasons = np.full(records, JOBS, dtype=object)
        reasons[times.submit == UNSET] = NO_SUBMISSION
        for record in np.flatnonzero(times.has_length & (times.run <= 0)).tolist():
            idle = not (node_lists[record] or sizes.allocated_cores[record])
            reasons[record] = NEVER if idle and not completed[record] else NO_TIME
        reasons[~times.has_length] = NO_LENGTH
        reasons[times.start == UNSET] = np.where(times.run[times.start == UNSET] > 0, NO_START, NEVER)
        for record in np.flatnonzero(status == _NOT_ENDED).tolist():
            reasons[record] = why_not_ended(columns[at.state][record])
        reasons[identities.step] = STEP
        is_job = reasons == JOBS
        is_read = (status != _NOT_ENDED) & ~identities.step
        off = np.where(times.end == UNSET, 0, np.abs(times.end - times.start - times.run - times.suspended))
        backwards = (times.end != UNSET) & (times.end < times.start)
        odd = is_job & (off > MOST_SUSPICIOUS_S) | is_read & (times.start != UNSET) & backwards
        odd |= is_read & (times.odd | sizes.odd | (limit == ODD) | (restarts == ODD)) | (is_job & identities.odd)
        is_job &= ~odd

        nodes, memory = sizes.nodes.copy(), sizes.memory.copy()
        for record in np.flatnonzero(is_job & (nodes == 0)).tolist():
            nodes[record] = len(node_names(node_lists[record]))
        for record in np.flatnonzero(is_job & (memory == 0)).tolist():
            asked = requested_kib(columns[at.req_mem][record], int(nodes[record]), int(sizes.cores[record])) or UNSET
            odd[record] = asked > _LARGEST_MEMORY
            memory[record] = UNSET if odd[record] else asked
        is_job &= ~odd
        table = np.full((records, len(LogJob._fields)), UNSET, dtype=np.int64)
        _fill(
            table,
            line=np.arange(block.line, block.line + records),
            number=np.array(identities.raw, dtype=np.int64),
            submit=times.submit,
            start=times.start,
            run=times.run,
            suspended=times.suspended,
            limit=limit,
            nodes=nodes,
            cores=sizes.cores,
            gpus=np.where(sizes.gpus > 0, sizes.gpus, sizes.gpus_per_node * np.maximum(nodes, 1)),
            memory=memory,
            status=status,
            requeued=requeued,
            restarts=restarts,
        )
        return _Parsed(
            columns=columns,
            identities=identities,
            node_lists=node_lists,
            reasons=reasons.tolist(),
            is_job=is_job,
            odd=odd,
            table=table,
            eligible_later=(times.submit + MOST_SUSPICIOUS_S < times.eligible) & (times.eligible <= times.start),
            size_missing=sizes.missing & ((nodes > 0) | (sizes.cores > 0)),
        )

    def _note_arrays(self, texts: Sequence[str], clusters: Sequence[str]) -> None:
        """Keep the limits of job arrays, which stand in records of tasks that have not been split off."""
        for text, cluster in zip(texts, clusters, strict=True):
            if "%" in text and (found := JOB_ID.fullmatch(text)) and found[3]:
                self._jobs.note_array(int(found[1]), cluster, found[3])

    def _of(self, values: Values[str], columns: _Texts, at: int) -> IntArray:
        """Return the numbers in a field; a field that the log does not have is empty everywhere."""
        return np.full(len(columns[-1]), values[""]) if at < 0 else values.of(columns[at])

    def _filled(self, values: Values[str], columns: _Texts, found: IntArray, *fields: int) -> IntArray:
        """Return numbers or, where they are 0, those in the first of the fields that has one."""
        for at in fields:
            if at >= 0 and not found.all():
                found = _first(found, values.of(columns[at]))
        return found

    def _first_known(self, values: Values[str], columns: _Texts, first: int, second: int) -> IntArray:
        """Return the numbers in a field, or in another one where it has none."""
        found = self._of(values, columns, first)
        unknown = found == UNSET
        return np.where(unknown, self._of(values, columns, second), found) if unknown.any() else found

    def _times(self, at: Fields, columns: _Texts) -> _Times:
        stamps = {
            field: self._stamps.of(columns[field]) if field >= 0 else np.full(len(columns[-1]), UNSET)
            for field in (at.submit, at.start, at.end, at.eligible)
        }
        submit, start, end, eligible = (stamps[field] for field in (at.submit, at.start, at.end, at.eligible))
        suspended = self._of(self._seconds, columns, at.suspended)
        length = self._first_known(self._seconds, columns, at.elapsed_raw, at.elapsed)
        odd = np.logical_or.reduce([values == ODD for values in (submit, start, end, eligible, suspended, length)])
        suspended = np.maximum(suspended, 0)
        by_ends = (length == UNSET) & (start != UNSET) & (end != UNSET)
        run = np.where(by_ends, end - start - suspended, length)
        return _Times(
            submit=submit,
            start=start,
            end=end,
            run=run,
            suspended=suspended,
            has_length=by_ends | (length != UNSET),
            eligible=eligible,
            odd=odd | (run > LONGEST_S),
        )

    def _sizes(self, at: Fields, columns: _Texts) -> _Sizes:
        granted, asked = self._tres.of(columns[at.alloc_tres]), self._tres.of(columns[at.req_tres])
        got = (granted, (at.alloc_nodes, at.nnodes), (at.alloc_cpus,))
        wanted = (asked, (at.req_nodes,), (at.req_cpus,))
        (first, *first_fields), (second, *second_fields) = (wanted, got) if self._requested_first else (got, wanted)
        preferred = [
            self._filled(self._amounts, columns, first[1 - which], *fields) for which, fields in enumerate(first_fields)
        ]
        nodes, cores = (
            self._filled(self._amounts, columns, _first(preferred[which], second[1 - which]), *fields)
            for which, fields in enumerate(second_fields)
        )
        gpus = _first(self._filled(self._gpus, columns, granted[3], at.alloc_gres), asked[3])
        per_node = _first(self._of(self._gpus, columns, at.req_gres), asked[4])
        return _Sizes(
            nodes=nodes,
            cores=cores,
            missing=(preferred[0] == 0) & (preferred[1] == 0),
            gpus=gpus,
            gpus_per_node=per_node,
            memory=_first(granted[2], asked[2]),
            allocated_cores=granted[0],
            odd=np.logical_or.reduce([values == ODD for values in (granted[0], asked[0], nodes, cores, gpus, per_node)]),
        )

    def _add(self, at: Fields, parsed: _Parsed, begin: int, end: int) -> None:
        """Add the jobs of the records from ``begin`` to ``end`` (excluded), none of which is odd; count the records."""
        jobs = self._jobs
        for reason, count in Counter(parsed.reasons[begin:end]).items():
            jobs.left_out(reason, count)
        chosen = begin + np.flatnonzero(parsed.is_job[begin:end])
        if not len(chosen):
            return
        flags = parsed.is_job[begin:end].tolist()
        jobs.eligible_later += int(parsed.eligible_later[chosen].sum())
        if missing := int(parsed.size_missing[chosen].sum()):
            jobs.repaired[SIZE_MISSING[self._requested_first]] += missing

        def numbers(names: Names, first: Sequence[str], second: Sequence[str] = ()) -> IntArray:
            texts: Iterable[str] = compress(first[begin:end], flags)
            if second and not all(first[begin:end]):
                texts = [text or other for text, other in zip(texts, compress(second[begin:end], flags), strict=True)]
            return np.fromiter(names.numbers(texts), dtype=np.int64, count=len(chosen))

        columns, identities = parsed.columns, parsed.identities
        clusters = numbers(jobs.clusters, columns[at.cluster])
        ids, tasks = (compress(values[begin:end], flags) for values in (identities.numbers, identities.tasks))
        keys = ((number << 30 | task) << 40 | one + 1 for number, task, one in zip(ids, tasks, clusters.tolist(), strict=True))
        table = parsed.table[chosen]
        _fill(
            table,
            key=np.fromiter(jobs.keys.numbers(keys), dtype=np.int64, count=len(chosen)),
            cluster=clusters,
            user=numbers(jobs.users, columns[at.user], columns[at.uid]),
            group=numbers(jobs.groups, columns[at.group], columns[at.gid]),
            account=numbers(jobs.accounts, columns[at.account]),
            partition=numbers(jobs.partitions, columns[at.partition]),
            qos=numbers(jobs.qos, columns[at.qos]),
            job_name=numbers(jobs.job_names, columns[at.job_name]),
            node_list=numbers(jobs.node_lists, parsed.node_lists),
        )
        jobs.add_table(table)


def _identities(texts: Sequence[str], raw_texts: Sequence[str]) -> _Identities:
    """Return what the fields JobID and JobIDRaw of records say."""
    step, odd = (np.zeros(len(texts), dtype=bool) for _ in range(2))
    tasks = [0] * len(texts)
    if are_digits(texts, MOST_DIGITS):
        numbers = list(map(int, texts))
    else:
        numbers = [int(text) if text.isdecimal() else UNSET for text in texts]
        for record in [record for record, number in enumerate(numbers) if number == UNSET]:
            found = JOB_ID.fullmatch(texts[record])
            assert found is not None
            number, task, several, component, name = found.groups()
            numbers[record] = int(number)
            tasks[record] = int(task) + 1 if task else 0
            step[record] = bool(name)
            odd[record] = several is not None or bool(component)
    raw = numbers
    if raw_texts != texts and any(raw_texts):
        if are_digits(raw_texts, MOST_DIGITS):
            raw = list(map(int, raw_texts))
        else:
            found_raw = map(JOB_ID.fullmatch, raw_texts)
            raw = [
                int(found[1]) if found and not found[5] else number for found, number in zip(found_raw, numbers, strict=True)
            ]
    return _Identities(numbers, raw, tasks, step, odd)


def _fill(table: IntArray, **columns: IntArray) -> None:
    """Write columns of :class:`~clustermodel.workload.log_jobs.LogJob` into a table, shape ``(jobs, fields)``."""
    for name, values in columns.items():
        table[:, _AT[name]] = values


def _first(*columns: IntArray) -> IntArray:
    """Return the first value of each record that is not 0."""
    *others, found = columns
    for values in reversed(others):
        found = np.where(values != 0, values, found)
    return found


def _node_lists(texts: Sequence[str]) -> list[str]:
    """Return node lists without margins, empty where there is a mark of no value."""
    return ["" if len(text) < _LONGEST_MARK and text.lower() in NO_VALUE else text for text in map(str.strip, texts)]


def _state(text: str) -> tuple[int, int, int]:
    """Return status (:data:`_NOT_ENDED` if the state is none in which a run attempt has ended), requeued, completed."""
    state = state_of(text)
    return STATUS.get(state, _NOT_ENDED), int(state in REQUEUED), int(state == "COMPLETED")


def _tres(text: str) -> tuple[int, int, int, int, int]:
    """Return cores, nodes, memory and GPUs of a TRES string, and the GPUs that ``gpu:2`` in its place asks for."""
    found, gpus = tres(text), gres_gpus(text)
    largest = max(found.cores, found.nodes, found.gpus, gpus)
    return found.cores if largest <= LARGEST else ODD, found.nodes, found.memory, found.gpus, gpus


def _gres(text: str) -> int:
    return gpus if (gpus := gres_gpus(text)) <= LARGEST else ODD
