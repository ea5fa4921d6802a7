"""Files that are damaged or hostile as a whole: compressed ones, headers, and the worst of them through the command line."""

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from clustermodel import TraceError, read_swf
from tests.conftest import Finished
from tests.fuzz.mutations import flip_bit, flip_byte, good_line

GOOD = "1 0 -1 100 2 -1 -1 2 200 -1 1 7 1 -1 -1 -1 -1 -1"
ANOTHER = f"\n2 60{GOOD[3:]}"


def with_field(at: int, value: str) -> str:
    """Return a good line with another value in field ``at``, counted from 0."""
    words = GOOD.split()
    words[at] = value
    return " ".join(words)


KINDS = ("bit", "byte", "start", "end", "cut", "hole", "zeros", "more", "twice", "nothing of it")


def damage(rng: Random, packed: bytes) -> tuple[str, bytes]:
    """Return what is done to a compressed file, and what is left of it."""
    at = rng.randrange(len(packed))
    kind = rng.choice(KINDS)
    damaged: dict[str, Callable[[], bytes]] = {
        "bit": lambda: flip_bit(rng, packed),
        "byte": lambda: flip_byte(rng, packed),
        "start": lambda: flip_byte(rng, packed[:12]) + packed[12:],
        "end": lambda: packed[:-8] + flip_byte(rng, packed[-8:]),
        "cut": lambda: packed[:at],
        "hole": lambda: packed[:at] + packed[at + rng.randrange(1, 9) :],
        "zeros": lambda: packed[:at] + bytes(64) + packed[at + 64 :],
        "more": lambda: packed + b"x" + rng.randbytes(rng.randrange(40)),
        "twice": lambda: packed + gzip.compress(b"; another member\n", mtime=0),
        "nothing of it": lambda: rng.randbytes(at),
    }
    return kind, damaged[kind]()


@pytest.mark.parametrize("files", [250, pytest.param(1000, marks=pytest.mark.whole)])
def test_a_damaged_compressed_file_is_read_as_it_was_or_refused(files: int, tmp_path: Path) -> None:
    rng = Random(2)
    lines = [good_line(rng, number, 60 * number) for number in range(1, 101)]
    path = tmp_path / "damaged.swf.gz"
    packed = gzip.compress(b"; MaxProcs: 128\n" + b"\n".join(lines) + b"\n", mtime=0)
    path.write_bytes(packed)
    whole = list(read_swf(path).rows())
    outcomes: Counter[tuple[str, str]] = Counter()
    for _ in range(files):
        kind, data = damage(rng, packed)
        path.write_bytes(data)
        try:
            rows = list(read_swf(path).rows())
        except TraceError as refused:
            message = str(refused)
            assert message.startswith((f"{path}: ", f"{path}:")), message
            assert message.isprintable()
            outcomes[kind, "refused"] += 1
        else:
            assert rows == whole
            outcomes[kind, "read"] += 1
    # how a flipped bit ends depends on how zlib has packed the lines, but not what was cut, added or never there
    assert {kind for kind, outcome in outcomes if outcome == "refused"} == {*KINDS} - {"twice"}
    assert not {kind for kind, outcome in outcomes if outcome == "read"} & {"cut", "hole", "more", "nothing of it"}
    assert outcomes["start", "read"] > files // 100  # a time stamp, an operating system
    assert outcomes["twice", "read"] > files // 20


BEYOND = str(2**53), str(2**63)
WRONG = ("nan", "-inf", "1e400", "-2", "1_000", "\u0663", "0x10", "1:30", "\u200b1")
REFUSED: dict[str, bytes] = {
    "nothing": b"",
    "one NUL": b"\0",
    "NULs": bytes(100_000),
    "line ends": b"\r\n" * 1000,
    "bytes": bytes(range(256)) * 100,
    "words without end": b"1 " * 1_000_000,
    "a word without end": b"9" * 1_000_000,
    "a number without end": with_field(3, "9" * 1_000_000).encode(),
    "UTF-16": GOOD.encode("utf-16"),
    "UTF-32": GOOD.encode("utf-32"),
    "NULs between": GOOD.replace(" ", "\0").encode(),
    "commas": GOOD.replace(" ", ",").encode(),
    "JSON": b'{"jobs": [1, 2, 3]}',
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "comments only": b"; MaxProcs: 8\n" * 5000,
    "cut": GOOD[:-3].encode(),
    "comment inside": GOOD.replace(" 100 ", " 100 ; ").encode(),
    "twins": f"{GOOD}\n{GOOD}".encode(),
    "markup": with_field(3, "[bold]x[/]").encode(),
    "markup that is none": with_field(3, "[/red]").encode(),
    "a terminal's commands": with_field(3, "\x1b[31m").encode(),
    "a field of a line": with_field(3, "1\\n2").encode(),
    **{
        f"field {at} {value}": with_field(at, value).encode()
        for at in (0, 1, 3, 4, 8)
        for value in WRONG
        if (at, value) != (8, "-2")  # a missing estimate
    },
    **{f"field {at} above": with_field(at, str(2**63)).encode() for at in (0, 1, 3, 4, 8)},
    "a comment without end": b"; " + b"x" * 1_000_000 + b"\n" + GOOD.encode(),
    "no gzip.gz": GOOD.encode(),
    "empty.gz": b"",
    "cut.gz": gzip.compress(GOOD.encode(), mtime=0)[:-4],
    "head.gz": gzip.compress(GOOD.encode(), mtime=0)[:5],
    "sum.gz": gzip.compress(GOOD.encode(), mtime=0)[:-8] + bytes(8),
    "tail.gz": gzip.compress(GOOD.encode(), mtime=0) + b"tail",
    "gzip in gzip.gz": gzip.compress(gzip.compress(GOOD.encode(), mtime=0), mtime=0),
    "bzip2.gz": b"BZh91AY&SY" + bytes(40),
}
ACCEPTED: dict[str, bytes] = {
    "byte order mark": f"\ufeff; MaxProcs: 8\n{GOOD}".encode(),
    "byte order mark at a job": f"\ufeff{GOOD}\n".encode(),
    "old Macintosh": f"; MaxProcs: 8\r{GOOD}\r{with_field(0, '2')}".encode(),
    "tabs": GOOD.replace(" ", "\t\t").encode(),
    "extremes": f"{GOOD}\n2{with_field(3, '1e10')[1:]}\n3{with_field(1, '1e10')[1:]}".encode(),
    "smallest": with_field(3, "1e-300").encode(),
    "memory": with_field(6, "1e308").replace("200 -1", "200 1e308").encode(),
    "a long comment": b"; " + b"x" * 65_000 + b"\n" + GOOD.encode(),
    **{
        f"field {at} {value}": f"; MaxProcs: 8\n{with_field(at, value)}{ANOTHER}".encode()
        for at, values in (*((at, WRONG) for at in (2, 5, 7, 10, 11, 12, 17)), (8, ("-2",)))
        for value in values
    },
    **{f"field {at} above": f"; MaxProcs: 8\n{with_field(at, str(2**63))}{ANOTHER}".encode() for at in (2, 7, 10, 11, 12)},
    "markup in the header": f"; Computer: [/red] \x1b[31m \\\n{GOOD}".encode(),
    "members.gz": gzip.compress(b"; MaxProcs: 8\n", mtime=0) + gzip.compress(GOOD.encode(), mtime=0),
    **{
        f"header {number}": f"; MaxProcs: {value}\n; MaxProcs:\n; MaxNodes: {value}\n; MaxNodes:\n{GOOD}".encode()
        for number, value in enumerate(
            ("", "nonsense", "-1", "0", "1e3", "1_000", "\u0663", "\u00b2", "9" * 30, "9" * 5000, *BEYOND, "\0", "\u2028")
        )
    },
}


def file_of(folder: Path, name: str, data: bytes) -> Path:
    path = folder / ("jobs.swf.gz" if name.endswith(".gz") else "jobs.swf")
    path.write_bytes(data)
    return path


@pytest.fixture
def quiet(command_line: Callable[..., Finished], tmp_path: Path) -> Callable[..., Finished]:
    """Run a command that must succeed, or be refused in one line on standard error and nothing on standard output."""

    def run(*arguments: object) -> Finished:
        finished = command_line(*arguments)
        assert "Traceback" not in finished.out + finished.err
        if finished.code:
            assert finished.code == 2
            assert finished.out == ""
            assert finished.err.startswith("clustermodel: error: ")
            assert len(finished.err.splitlines()) == 1
            assert finished.err.rstrip("\n").isprintable()
            assert len(finished.err) < len(str(tmp_path)) + 250
        return finished

    return run


COMMANDS = (
    ("trace", "info"),
    ("trace", "info", "--json"),
    ("run", "--nodes", 8, "--policy", "easy", "--trace"),
    ("trace", "fit"),
)


@pytest.mark.parametrize("name", REFUSED)
def test_the_worst_files_are_refused_in_one_line(quiet: Callable[..., Finished], tmp_path: Path, name: str) -> None:
    path = file_of(tmp_path, name, REFUSED[name])
    complaints = {quiet(*command, path) for command in COMMANDS}
    assert len(complaints) == 1  # by all commands alike
    assert complaints.pop().err.startswith(f"clustermodel: error: {path}:")


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.long
def test_odd_files_that_are_traces_all_the_same_are_read(quiet: Callable[..., Finished], tmp_path: Path, name: str) -> None:
    path = file_of(tmp_path, name, ACCEPTED[name])
    for command in COMMANDS[:3]:
        assert quiet(*command, path).code == 0
    finished = quiet("run", "--policy", "fcfs", "--trace", path)  # the machine of the header, if it names one
    assert finished.code == 0 or "neither MaxProcs nor MaxNodes" in finished.err
    quiet("trace", "fit", path)
