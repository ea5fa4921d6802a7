"""What must become of a line: the rules of docs/guide_trace, written down a second time and one line at a time."""

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from clustermodel.workload.job import JobRow
from clustermodel.workload.swf import SWF_FIELDS

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
WHOLE = {"job_number", "allocated_processors", "requested_processors", "status", "user_id", "group_id", "queue", "partition"}
TIMES = {"submit_time", "run_time", "requested_time"}
LABELS = {"status", "user_id", "group_id"}


class Verdict(NamedTuple):
    """What must become of a line."""

    fate: str
    """``"accepted"``, ``"counted"`` or ``"refused"``."""
    reason: str = ""
    """Why it is counted, or what is wrong with it, without the value."""
    field: str = ""
    """The field that is to blame, if one is."""
    repairs: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """The 18 fields of a line that is not refused."""
    nodes: int = 0

    def number(self, field: str) -> int:
        """Return a whole-numbered field; a label that is wrong is unknown."""
        word = self.words[SWF_FIELDS.index(field)]
        return -1 if field in LABELS and _what_is_wrong(field, word) else int(float(word))

    def admits(self, row: JobRow) -> bool:
        """Tell whether ``row`` is what an accepted line says."""
        submit, run, estimate = (self.words[SWF_FIELDS.index(field)] for field in ("submit_time", "run_time", "requested_time"))
        if float(estimate) <= 0:
            estimate = run
        return (
            row.id == self.number("job_number")
            and row.nodes == self.nodes
            and (row.user, row.group) == (self.number("user_id"), self.number("group_id"))
            and (row.priority, row.status) == (0, self.number("status"))
            and nearest_tick(submit, row.submit, least=0)
            and nearest_tick(run, row.run, least=1)
            and nearest_tick(estimate, row.estimate, least=1)
        )


def nearest_tick(word: str, ticks: int, *, least: int) -> bool:
    """Tell whether ``ticks`` is ``word`` seconds to the nearest microsecond, up to two roundings of a double."""
    exact = Fraction(word) * 10**6
    return abs(ticks - max(exact, least)) <= Fraction(1, 2) + exact / 2**52


def is_line_of_job(words: Sequence[str]) -> bool:
    """Return whether a line has 18 fields, and perhaps further columns: twice as many are two lines, and ; begins a comment."""
    return 18 <= len(words) < 36 and not any(word.startswith(";") for word in words)


def judge(text: str) -> Verdict | None:  # noqa: PLR0911  one return for each thing that may become of it
    """Return what must become of a line alone, ``None`` if it is blank or a comment."""
    text = text.strip()
    if not text or text[0] == ";":
        return None
    words = tuple(text.split())
    if not is_line_of_job(words):
        return Verdict("refused", "number of fields")
    further, words = words[18:], words[:18]
    said = dict(zip(SWF_FIELDS, words, strict=True))
    wrong = {field: what for field, word in said.items() if (what := _what_is_wrong(field, word))}
    for field in ("job_number", "submit_time", "run_time"):
        if field in wrong:
            return Verdict("refused", wrong[field], field)
    if float(said["submit_time"]) < 0:
        return Verdict("counted", "submit time missing")
    if float(said["run_time"]) <= 0:
        return Verdict("counted", "run time missing" if float(said["run_time"]) < 0 else "run time zero")
    for field in ("allocated_processors", "requested_time"):
        if field in wrong:
            return Verdict("refused", wrong[field], field)
    nodes, repairs = float(said["allocated_processors"]), []
    if nodes <= 0:
        nodes = -1 if "requested_processors" in wrong else float(said["requested_processors"])
        repairs.append("allocated_processors missing, requested_processors used")
    if nodes <= 0:
        return Verdict("counted", "number of processors missing")
    if (estimate := float(said["requested_time"])) <= 0:
        repairs.append(f"requested_time {'missing' if estimate in (-1, 0) else 'negative'}, run_time used")
    repairs += [
        f"{field} invalid, {'unknown (-1) used' if field in LABELS else 'ignored'}" for field in SWF_FIELDS if field in wrong
    ]
    if further:
        repairs.append("further columns, after the 18 of SWF, left out")
    return Verdict("accepted", repairs=tuple(repairs), words=words, nodes=int(nodes))


def _what_is_wrong(field: str, word: str) -> str:  # noqa: PLR0911  one return for each rule
    if NOT_FINITE.fullmatch(word):
        return "is not a finite number"
    if not NUMBER.fullmatch(word):
        return "is not a number"
    value = float(word)
    if value in (float("inf"), -float("inf")):
        return "is not a finite number"
    if field == "job_number" and value < 0:
        return "must be >= 0"
    if value < 0 and value != -1 and field != "requested_time":
        return "must be >= 0, or -1 for unknown"
    if field in WHOLE and value != int(value):
        return "is not a whole number"
    if field in WHOLE | TIMES and value > 1e10:
        return "must be <= 1e+10"
    return ""
