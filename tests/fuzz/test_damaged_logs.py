"""Accounting logs with random damage: every line is counted, or the log is refused in one line."""

from pathlib import Path
from random import Random

import pytest

from clustermodel import TraceError, read_lsf, read_pbs, read_sacct

READERS = {".pbs": read_pbs, ".acct": read_lsf}
LOGS = sorted((Path(__file__).resolve().parents[1] / "logs").iterdir())
PIECES = (b"|", b"||", b"\n", b"\r\n", b"\0", b"\xff", b"=", b"+", b"[1-", b"]", b";", b"-1", b"9" * 30, "²".encode())


def damaged(rng: Random, text: bytes) -> bytes:
    """Return ``text`` with a few bytes replaced, left out, inserted, copied from elsewhere, or cut off."""
    for _ in range(rng.randrange(1, 8)):
        at, other = rng.randrange(len(text)), rng.randrange(len(text))
        text = rng.choice(
            (
                text[:at] + rng.randbytes(1) + text[at + 1 :],
                text[:at] + text[at + rng.randrange(1, 40) :],
                text[:at] + rng.choice(PIECES) + text[at:],
                text[:at] + text[other : other + rng.randrange(200)] + text[at:],
                text[: max(1, at)] if rng.random() < 0.2 else text,
            )
        )
        text = text or b"x"
    return text


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_every_line_of_a_damaged_log_is_counted(log: Path, tmp_path: Path) -> None:
    rng = Random(log.name)
    path = tmp_path / "log"
    for _ in range(15):
        text = damaged(rng, log.read_bytes())
        path.write_bytes(text)
        refusal = ""
        try:
            workload = READERS.get(log.suffix, read_sacct)(path)
        except TraceError as refused:
            refusal = str(refused)
        assert "\n" not in refusal
        if refusal:
            continue
        report = workload.provenance.report
        assert report is not None
        assert sum(report.counts.values()) == report.lines == text.count(b"\n") + (not text.endswith(b"\n"))
        assert min(report.counts.values()) >= 0
        assert all((workload.column(name) > 0).all() for name in ("nodes", "run", "estimate"))
        assert (workload.column("wait") >= 0).all()
