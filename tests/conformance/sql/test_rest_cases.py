"""ksqlDB's REST cases against a server, over HTTP: every tenth here, all in `make sql-rest`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ksql.rest import RestCase, RestRunner, rest_cases
from support.processes import BrokerProcess
from support.repeats import mostly_long
from support.shared_vectors import FOLDER

_STEP = 10
KNOWN = {
    line.rpartition(": ")[0]
    for line in (Path(__file__).parent / "rest_failures.txt").read_text().splitlines()
    if line and not line.startswith("#")
}


def chosen() -> list[RestCase]:
    if not FOLDER.is_dir():
        return []
    found = list(rest_cases())
    return found if os.environ.get("MOLDAU_SQL_REST") == "all" else found[::_STEP]


@pytest.fixture(scope="module")
def runner(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestRunner]:
    found = RestRunner(broker.bootstrap, tmp_path_factory.mktemp("state"))
    yield found
    found.close()


@pytest.mark.parametrize(
    "case",
    mostly_long(chosen(), "`make sql-rest` runs all cases", keep=10),
    ids=lambda case: case.id,
)
def test_a_case_comes_out_as_in_ksqldb(runner: RestRunner, case: RestCase) -> None:
    if case.id not in KNOWN:
        runner.run(case)
        return
    with pytest.raises(AssertionError):
        runner.run(case)
