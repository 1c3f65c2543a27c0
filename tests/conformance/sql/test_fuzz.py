"""Random requests are answered with one clear error; `make sql-fuzz` sends many more."""

from __future__ import annotations

from support.ksql.cases import FOLDER, cases
from support.ksql.server_fuzz import Fuzzer, run, without_hosting
from support.sql_server import SqlServer


def test_random_requests_are_answered(server: SqlServer) -> None:
    without_hosting(server.service.service.core.host)
    found = [each for each in cases() if len(each.script) < 1500] if FOLDER.exists() else []
    statuses = run(server, Fuzzer(20261117, found), 250)
    assert statuses[400] > 100, statuses
