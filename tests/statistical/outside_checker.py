"""Random scenarios under every policy, features in combination, checked from the tables of their results alone.

``python -m tests.statistical.outside_checker --cases 20000 --seed 41`` prints each case that fails or differs, made smaller, as
a script that repeats it; then how many runs had which features.  :mod:`tests.outside_cases` draws the cases, and
:mod:`tests.outside` has the rules.  ``--only SEED:NUMBER`` repeats a case.
"""

import argparse
import re
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from multiprocessing import Pool
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from clustermodel import SpecificationError
from clustermodel.errors import StrandedJobsError
from tests.gang_runs import seen_in_time
from tests.outside_cases import Case, drawn, smaller

LONGEST_S: Final = 30
"""After which a run counts as endless, seconds of the processor."""
_REPLAYED: Final = 5  # one case in so many, with nodes that are shared in time, is run in the slow mode too


class Outcome(NamedTuple):
    """What a case has shown: nothing, ``"refused"``, or what is wrong, in words."""

    verdict: str
    words: tuple[str, ...] = ()

    @property
    def kinds(self) -> list[str]:
        """The kinds of what is wrong, the first one first."""
        return list(dict.fromkeys(f"{self.verdict}: {re.split('[:(]', words)[0]}" for words in self.words))


class _EndlessError(BaseException):
    """A run has taken too long."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise _EndlessError

    before = signal.signal(signal.SIGVTALRM, ring)  # of the processor: other programs may have it meanwhile
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def outcome(case: Case, *, replayed: bool = False, longest_s: float = LONGEST_S) -> Outcome:
    """Run a case; return what it shows."""
    try:
        with _within(longest_s):
            try:
                result, found = case.checked()
                if replayed and result.slices is not None and seen_in_time(result) != seen_in_time(case.run(fidelity="node")):
                    found.append("slow mode: it differs")
            except SpecificationError as problem:
                return Outcome("refused", (" ".join(str(problem).split()),))
            except StrandedJobsError as problem:
                return Outcome("stranded", (" ".join(str(problem).split()),))
            except Exception as problem:  # of whatever kind: it is reported with its case
                where = traceback.extract_tb(problem.__traceback__)[-1]
                place = f"{Path(where.filename).name}, {where.name}"
                return Outcome("crash", (f"{type(problem).__name__} in {place}: {' '.join(str(problem).split())}",))
    except _EndlessError:
        return Outcome("endless", (f"it does not end within {longest_s:g} s",))
    return Outcome("differs", tuple(found)) if found else Outcome("holds")


def small(case: Case, found: Outcome, *, replayed: bool) -> Case:
    """Return the case made smaller, which still fails in the same way."""
    longest = LONGEST_S / 5 if found.verdict == "endless" else LONGEST_S
    attempts = 60 if found.verdict == "endless" else 400
    return smaller(
        case, lambda other: found.kinds[0] in outcome(other, replayed=replayed, longest_s=longest).kinds, attempts=attempts
    )


class Seen(NamedTuple):
    """A case that was run."""

    name: str
    policy: str
    features: frozenset[str]
    outcome: Outcome
    script: str


def seen(name: str, *, shrink: bool = True, without: Sequence[str] = ()) -> Seen:
    """Draw the case of a name, run it, and return what it shows."""
    case = drawn(name, without=without)
    replayed = int(name.partition(":")[2]) % _REPLAYED == 0
    found = outcome(case, replayed=replayed)
    script = ""
    if found.verdict not in ("holds", "refused"):
        less = small(case, found, replayed=replayed) if shrink else case
        script = less.script([f"{name}, {less.policy}", *outcome(less, replayed=replayed).words[:3]])
    return Seen(name, case.policy, case.features, found, script)


def _reason(words: str) -> str:
    """Return why a case was refused, without numbers and names of its own."""
    return re.sub(r"\d[\d,.e-]*", "N", re.sub(r"^policy [^:]*(:[^ ]*)?: ", "policy: ", words))[:140]


def table(runs: list[Seen]) -> str:
    """Return how many runs had which features, how many at once, in which pairs, and of which policies they were."""
    ran = [each for each in runs if each.outcome.verdict != "refused"]
    of_feature = Counter(feature for each in ran for feature in each.features)
    lines = ["", f"{'feature':<28}{'runs':>8}{'  with 3 or more others':>24}"]
    for feature, number in of_feature.most_common():
        many = sum(feature in each.features and len(each.features) > 3 for each in ran)
        lines.append(f"{feature:<28}{number:>8,}{many:>24,}")
    lines += ["", "features at once: runs"]
    at_once = Counter(len(each.features) for each in ran)
    lines += [f"{number:>4}: {at_once[number]:,}" for number in sorted(at_once)]
    pairs = Counter(pair for each in ran for pair in combinations(sorted(each.features), 2))
    possible = len(of_feature) * (len(of_feature) - 1) // 2
    rare = ", ".join(f"{a} + {b} {number:,}" for (a, b), number in sorted(pairs.items(), key=lambda item: item[1])[:8])
    lines += ["", f"pairs of features: {len(pairs):,} of {possible:,} have run together; the rarest: {rare}"]
    lines += ["", "policy: runs, refused, that differ or fail"]
    by_policy: dict[str, Counter[str]] = {}
    for each in runs:
        by_policy.setdefault(each.policy, Counter())[each.outcome.verdict] += 1
    for policy, of in sorted(by_policy.items()):
        bad = sum(number for verdict, number in of.items() if verdict not in ("holds", "refused"))
        lines.append(f"  {policy}: {sum(of.values()) - of['refused']:,}, {of['refused']:,}, {bad:,}")
    refused = Counter(_reason(each.outcome.words[0]) for each in runs if each.outcome.verdict == "refused")
    lines += ["", "refused, why: cases", *(f"  {why}: {number:,}" for why, number in refused.most_common(25))]
    kinds = Counter(kind for each in runs if each.outcome.verdict not in ("holds", "refused") for kind in each.outcome.kinds)
    lines += ["", *(f"  {kind}: {number:,}" for kind, number in kinds.most_common())]
    verdicts = Counter(each.outcome.verdict for each in runs)
    words = ", ".join(f"{verdicts[name]:,} {name}" for name in ("refused", "differs", "crash", "stranded", "endless"))
    return "\n".join([*lines, f"{len(runs):,} cases, {words}"])


def main() -> None:
    """Check random scenarios of every policy from the tables of their results."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many; the default is 20,000")
    parser.add_argument("--seed", type=int, default=1, help="of the cases")
    parser.add_argument("--processes", type=int, default=1, help="how many; the default is 1")
    parser.add_argument("--only", help="one case, as 41:17")
    parser.add_argument("--scripts", type=Path, help="a folder for scripts that repeat failing cases")
    parser.add_argument("--without", action="append", default=[], help="a feature that no case has")
    parser.add_argument("--as-drawn", action="store_true", help="do not make failing cases smaller")
    asked = parser.parse_args()
    names = [asked.only] if asked.only else [f"{asked.seed}:{number}" for number in range(1, asked.cases + 1)]
    runs: list[Seen] = []

    def take(each: Seen) -> None:
        runs.append(each)
        if each.script:
            words = "; ".join(each.outcome.words[:3])
            print(f"--only {each.name}, {each.policy}: {each.outcome.verdict}: {words}\n{each.script}", flush=True)
            if asked.scripts is not None:
                asked.scripts.mkdir(parents=True, exist_ok=True)
                (asked.scripts / f"case_{each.name.replace(':', '_')}.py").write_text(each.script)

    check = partial(seen, shrink=not asked.as_drawn, without=asked.without)
    try:
        if asked.processes > 1:
            with Pool(asked.processes) as pool:
                for each in pool.imap_unordered(check, names, chunksize=20):
                    take(each)
        else:
            for name in names:
                take(check(name))
    except KeyboardInterrupt:
        print(f"stopped after {len(runs):,} cases", file=sys.stderr)
    print(table(runs))
    raise SystemExit(any(each.outcome.verdict not in ("holds", "refused") for each in runs))


if __name__ == "__main__":
    main()
