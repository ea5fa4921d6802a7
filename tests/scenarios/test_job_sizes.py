"""The study of large and small jobs runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/job_sizes.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/job_sizes.json``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.scenarios.conftest import FIGURES, Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("job_sizes")
    assert study.figure.stat().st_size > 10_000
    assert study.printed.count("Figure 11") == 2
    for row in study.runs.rows:
        for kept, name in (("slowdown", "mean_bounded_slowdown"), ("wait_s", "mean_wait_s")):
            small, large = (row[f"{name}_{size}"] for size in study.script.SIZES)
            assert min(small, large) <= row[kept] <= max(small, large)


def test_what_002_says_of_figure_11(load: Callable[[str], object]) -> None:
    """BGS-5 is better for both sizes, and the difference between their waits is smaller, in every workload (section 5.3)."""
    load("job_sizes")
    runs = load("reporting").read(FIGURES / "job_sizes.json")
    for factor in runs.distinct("factor"):
        bf, bgs = (runs.at(policy=policy, factor=factor) for policy in ("bf", "bgs"))
        for name in ("mean_bounded_slowdown", "mean_wait_s"):
            for size in ("small", "large"):
                assert bgs.values(f"{name}_{size}").mean() < bf.values(f"{name}_{size}").mean()
        apart = [(one.values("mean_wait_s_large") - one.values("mean_wait_s_small")).mean() for one in (bf, bgs)]
        assert apart[1] < apart[0]


def test_the_table_for_figures(load: Callable[[str], object]) -> None:
    script = load("job_sizes")
    runs = load("reporting").read(FIGURES / "job_sizes.json")
    table = script.by_class(runs)
    assert len(table) == 2 * len(runs.rows)
    there = table[(table["jobs of"] == "BGS, large") & (table["workload"] == 1.4)]
    assert there["mean_wait_s"].mean() == pytest.approx(runs.at(policy="bgs", factor=1.4).values("mean_wait_s_large").mean())
