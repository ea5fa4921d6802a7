"""Lines of the Standard Workload Format as no archive has them: good ones, made here, and changed at random from a seed."""

import re
from collections.abc import Callable, Iterator
from random import Random

EXTREMES = (
    "-0", "-1", "-2", "-0.5", "-1.5", "-1e-400", "1e-400", "0.0000001", "0.5", "2.5", "1e2", "1e10", "10000000000.5",
    "1e11", "1e19", "1e300", "1e308", "1e400", "-1e400", "nan", "-nan", "inf", "-inf", "Infinity", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "1_000", "1__0", "_1", "0x10", "0b1", "1e", "1e+",
    "e5", ".5", "5.", ".", "+", "-", "--", "+7", "++7", "1,5", "1:30", "007", "None", "?", ";", "1;2", "\"1\"", "1d2",
    "1e1e1", "%s", "\\n", "\u0663", "\uff11\uff12", "\u00bd", "\u00b2", "\u2212",
)  # fmt: skip
"""Words to stand in place of a number."""
USUAL = ("-1", "0", "1", "2", "7", "64", "7.5", "3600", "86400.25", "1e3", "+5", "12.0")
"""Words that nearly every field may have."""
SEPARATORS = (
    *(b"\t", b"  ", b" \t ", b"", b",", b";", b"\0", b"\r", b"\n", b"\r\n"),
    *(b"\x0b", b"\x0c", b"\x1c", b"\x1f", b"\x08", b"\x1b[31m"),
    *(b"\x85", b"\xa0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f"),  # no UTF-8
    *(text.encode() for text in ("\x85", "\xa0", "\u2028", "\u2029", "\u3000", "\u200b", "\ufeff", "\u202e")),
)
"""What may stand between two numbers."""
HEADERS = (b"; MaxNodes: nonsense", b"; MaxProcs: " + b"9" * 30, b";MaxProcs:", b";", b";;;", b"; a: b: c", b"", b"   ", b"\t")


def good_line(rng: Random, number: int, submit: int) -> bytes:
    """Return a line of a job that can run, 18 numbers, some of them unknown."""
    run, nodes = rng.randrange(1, 50_000), 2 ** rng.randrange(8)
    estimate = rng.choice((-1, run, 2 * run, 3600))
    requested = rng.choice((-1, nodes))
    fields = (number, submit, -1, run, nodes, -1, -1, requested, estimate, -1, 1, rng.randrange(1, 9), 1, -1, 1, -1, -1, -1)
    return " ".join(map(str, fields)).encode()


def _at(rng: Random, words: list[bytes]) -> int:
    return rng.randrange(len(words))


def flip_bit(rng: Random, line: bytes) -> bytes:
    at = rng.randrange(len(line))
    return line[:at] + bytes([line[at] ^ 1 << rng.randrange(8)]) + line[at + 1 :]


def flip_byte(rng: Random, line: bytes) -> bytes:
    at = rng.randrange(len(line))
    return line[:at] + bytes([rng.randrange(256)]) + line[at + 1 :]


def delete_field(rng: Random, line: bytes) -> bytes:
    words = line.split(b" ")
    del words[_at(rng, words)]
    return b" ".join(words)


def double_field(rng: Random, line: bytes) -> bytes:
    words = line.split(b" ")
    at = _at(rng, words)
    words[at:at] = words[at : at + 1]
    return b" ".join(words)


def swap_fields(rng: Random, line: bytes) -> bytes:
    words = line.split(b" ")
    one, other = _at(rng, words), _at(rng, words)
    words[one], words[other] = words[other], words[one]
    return b" ".join(words)


def _put(rng: Random, line: bytes, word: str) -> bytes:
    words = line.split(b" ")
    words[_at(rng, words)] = word.encode()
    return b" ".join(words)


def extreme(rng: Random, line: bytes) -> bytes:
    return _put(rng, line, rng.choice(EXTREMES))


def usual(rng: Random, line: bytes) -> bytes:
    return _put(rng, line, rng.choice(USUAL))


def unknown(rng: Random, line: bytes) -> bytes:
    """Make one of the fields that count missing: submission, run time, processors."""
    words = line.split(b" ")
    for at in rng.choice(((1,), (3,), (4,), (7,), (8,), (4, 7))):
        if at < len(words):
            words[at] = rng.choice((b"-1", b"0", b"-1.0", b"-0", b"0e5"))
    return b" ".join(words)


def separator(rng: Random, line: bytes) -> bytes:
    words = line.split(b" ")
    at = _at(rng, words)
    return b" ".join(words[:at]) + rng.choice(SEPARATORS) + b" ".join(words[at:])


def margin(rng: Random, line: bytes) -> bytes:
    odd = rng.choice(SEPARATORS)
    return odd + line if rng.random() < 0.5 else line + odd


def cut(rng: Random, line: bytes) -> bytes:
    return line[: rng.randrange(len(line) + 1)]


def comment(rng: Random, line: bytes) -> bytes:
    at = rng.choice((0, rng.randrange(len(line))))
    return line[:at] + b";" + line[at:]


def header(rng: Random, line: bytes) -> bytes:
    return rng.choice(HEADERS)


def out_of_order(rng: Random, line: bytes) -> bytes:
    words = line.split(b" ")
    words[1:2] = [str(rng.randrange(10_000)).encode()]
    return b" ".join(words)


def huge(rng: Random, line: bytes) -> bytes:
    words = line.split(b" ")
    at = _at(rng, words)
    words[at] = rng.choice((words[at] * 3000, b"0" * 4000 + words[at], b"x" * 9000, b" ".join(words * 200), b"\0" * 5000))
    return b" ".join(words)


def twin(rng: Random, line: bytes) -> bytes:
    """Take the number of another job: that of the line above, or some lines above."""
    number, space, rest = line.partition(b" ")
    above = int(number) - rng.randrange(1, 6) if number.isdigit() and len(number) < 9 else 1
    return str(max(above, 0)).encode() + space + rest


def _none(rng: Random, line: bytes) -> bytes:
    return line


MUTATIONS: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(_none, usual, usual, usual, unknown, unknown, swap_fields, separator, extreme, extreme, out_of_order),
    *(flip_bit, flip_byte, delete_field, double_field, margin, cut, comment, header, twin),
)


def mutated_lines(rng: Random, jobs: int) -> Iterator[bytes]:
    """Yield ``jobs`` mutated lines, or a few more, because a line end may be among the mutations; none has one in it."""
    submit = 0
    for number in range(1, jobs + 1):
        submit += rng.randrange(600)
        line = good_line(rng, number, submit)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if line:
                line = rng.choice(MUTATIONS)(rng, line)
        if line and rng.random() < 0.003:
            line = huge(rng, line)
        yield from re.split(rb"\r\n|\r|\n", line)
