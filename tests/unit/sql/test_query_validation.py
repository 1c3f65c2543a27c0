"""ksqlDB's own query cases: all pass but those listed, and the list may only shrink."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ksql.cases import FOLDER, Case, cases
from support.ksql.runner import run_case

KNOWN = Path(__file__).with_name("query_validation_failures.txt")


def known_failures() -> dict[str, str]:
    """Ids of cases that fail, with the reason: lines of "id | reason"."""
    lines = [each for each in KNOWN.read_text().splitlines() if each and each[0] != "#"]
    return {name: reason for name, _, reason in (each.partition(" | ") for each in lines)}


_KNOWN = known_failures()
_CASES = list(cases()) if FOLDER.exists() else []


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    if case.id not in _KNOWN:
        run_case(case)
        return
    try:
        run_case(case)
    except Exception:  # it fails for the reason that is listed
        return
    pytest.fail(f"{case.id} passes now: take it off {KNOWN.name}")


@pytest.mark.skipif(not _CASES, reason="the shared vectors are not there")
def test_every_known_failure_is_a_case() -> None:
    assert set(_KNOWN) <= {case.id for case in _CASES}
    assert all(_KNOWN.values()), "every known failure has a reason"
