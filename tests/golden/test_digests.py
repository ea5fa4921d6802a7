"""A few of the digests of :mod:`tests.golden.digests`; the command compares all of them."""

import json

import pytest

from tests.golden.digests import STORED, TRACES, Case, cases, digest
from tests.shared_data import trace_path

CHOSEN = [
    Case("kth", False, "easy:predictor=last"),
    Case("kth", True, "pv-easy:mode=suspend"),
    Case("blue-pacific", False, "conservative:predictor=last-two"),
    Case("blue-pacific", True, "adaptive"),
    Case("blue-pacific", False, "backfilling:speculation=0.9,test_runs=true"),
    pytest.param(Case("ctc", False, "slack"), marks=pytest.mark.long),
    pytest.param(Case("ctc", True, "mbgs"), marks=pytest.mark.long),
]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_job_table_and_ledger_are_those_that_were_stored(case: Case) -> None:
    if case.workload in TRACES:
        trace_path(TRACES[case.workload][0].removesuffix(".swf.gz"))  # or skip
    assert digest(case) == json.loads(STORED.read_text())[case.name]


def test_every_registered_policy_has_its_digests() -> None:
    assert {case.name for case in cases()} <= json.loads(STORED.read_text()).keys()
