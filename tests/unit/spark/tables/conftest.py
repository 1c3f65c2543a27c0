"""Tables of every kind, each test its own; one server of each database for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mariadb import MariaDb, mariadb_missing, running_mariadb
from support.postgres import Postgres, postgres_missing, running_postgres
from support.table_stage import KINDS, Table, make_table


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgres]:
    if reason := postgres_missing():
        pytest.skip(reason)
    with running_postgres() as running:
        yield running


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    if reason := mariadb_missing():
        pytest.skip(reason)
    with running_mariadb() as running:
        yield running


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return make_table(request.param, tmp_path, request.getfixturevalue)


@pytest.fixture
def of_kind(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A table of the kind that the test names."""
    return lambda kind: make_table(kind, tmp_path, request.getfixturevalue)
