"""The sentence that answers a question: never more certain than its numbers."""

from math import isnan

import numpy as np
import pytest

from clustermodel.measure.answers import Answer, answer_of_log, answer_of_resamples

DAY_S = 86_400.0
RNG = np.random.default_rng(1)
WAITS = RNG.exponential(4 * 3600, 20_000)
SHORTER = WAITS * RNG.uniform(0.1, 0.5, 20_000)


def answer(before: object = WAITS, after: object = SHORTER, days: float = 300) -> Answer:
    return answer_of_log("q", "With 72 nodes", np.asarray(before, float), np.asarray(after, float), days * DAY_S)


def test_a_certain_answer_has_both_means_and_the_interval_of_their_difference() -> None:
    found = answer()
    assert found.certain
    assert found.difference.mean == pytest.approx(SHORTER.mean() - WAITS.mean())
    assert found.sentence == "With 72 nodes the mean wait falls from 4.0 to 1.2 h (95 %: by 2.76 to 2.84 h)."
    assert answer(SHORTER, WAITS).sentence.startswith("With 72 nodes the mean wait rises from 1.2 to 4.0 h (95 %: by 2.76 to")


def test_waits_that_stay_alike_for_long_make_nothing_certain() -> None:
    walk = 3600 + 600 * np.abs(np.cumsum(np.random.default_rng(5).normal(size=2000)))
    found = answer(walk, 0.9 * walk, days=14)
    assert found.difference.excludes(0)
    assert not found.certain
    assert (
        "which is not certain. A log of 14 d is too short for its interval to hold: a longer one tells more." in found.sentence
    )
    assert "or resampled weeks (--resample weeks) tells more." in answer(walk, 0.9 * walk, days=60).sentence


def test_a_difference_that_noise_hides_is_not_certain() -> None:
    found = answer(WAITS, np.random.default_rng(3).permutation(WAITS))
    assert not found.certain
    assert (
        "which is not certain. The difference is small beside how much waits vary; a longer log tells more." in found.sentence
    )
    assert " less to " in found.sentence
    assert found.sentence.count(" more)") == 1


def test_the_same_waits_are_no_difference_and_no_certainty() -> None:
    found = answer(WAITS, WAITS)
    assert not found.certain
    assert found.sentence == "With 72 nodes nothing changes for any job of the log: the mean wait stays 4.0 h."


def test_few_jobs_have_no_interval() -> None:
    found = answer(WAITS[:20], SHORTER[:20])
    assert isnan(found.difference.half)
    assert not found.certain
    assert found.sentence.endswith("on this log; 20 jobs are too few to say how certain that is.")
    assert (found.as_json()["low"], found.as_json()["high"]) == (None, None)


def test_jobs_that_start_in_one_case_only_are_not_compared() -> None:
    before, after = WAITS.copy(), SHORTER.copy()
    before[::2] = np.nan
    assert answer(before, after).before_s == pytest.approx(WAITS[1::2].mean())
    before[:] = np.nan
    assert answer(before, after).sentence.startswith("With 72 nodes nothing can be said: no job started both")
    assert answer(before, after).as_json()["from"] is None


@pytest.mark.parametrize(("weeks", "certain"), [(2, False), (7, False), (8, True), (50, True)])
def test_resamples_of_few_weeks_make_nothing_certain(weeks: int, certain: bool) -> None:
    log = answer(days=7 * weeks)
    before = np.array([4.6, 4.1, 5.2, 4.4, 4.7, 5.0]) * 3600
    found = answer_of_resamples(log, before, 0.3 * before, weeks)
    assert found.certain is certain
    assert ("which is not certain" in found.sentence) is not certain
    if not certain:
        assert found.sentence.endswith(f"The log has {weeks} weeks: others could be unlike them.")


def test_more_resamples_of_one_log_do_not_make_a_small_difference_certain() -> None:
    rng = np.random.default_rng(2)
    before = rng.normal(5, 1, 1000) * 3600
    found = answer_of_resamples(answer(), before, before + rng.normal(-0.1, 1, 1000) * 3600, 50)
    assert not found.certain
    assert "can have the reverse; a longer log tells more." in found.sentence


def test_the_plain_form_is_in_seconds() -> None:
    found = answer().as_json()
    assert [*found] == ["question", "sentence", "from", "to", "estimate", "low", "high", "certain", "measure"]
    low, estimate, high = (found[name] for name in ("low", "estimate", "high"))
    assert isinstance(low, float) and isinstance(estimate, float) and isinstance(high, float)  # noqa: PT018
    assert low < estimate < high < 0
