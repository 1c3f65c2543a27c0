"""Databases that the tests of connectors share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.elasticsearch import Elasticsearch, elasticsearch_missing, running_elasticsearch
from support.mariadb import MariaDb, mariadb_missing, running_mariadb
from support.minio import Minio, minio_missing, running_minio
from support.postgres import Postgres, postgres_missing, running_postgres
from support.redis import RedisServer, redis_missing, running_redis


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    if missing := postgres_missing():
        pytest.skip(missing)
    with running_postgres() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    if missing := mariadb_missing():
        pytest.skip(missing)
    options = ("--log-bin", "--server-id=1", "--binlog-format=ROW", "--binlog-row-metadata=FULL")
    with running_mariadb(*options) as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[Elasticsearch]:
    if missing := elasticsearch_missing():
        pytest.skip(missing)
    with running_elasticsearch() as server:
        yield server


@pytest.fixture(scope="session")
def minio() -> Iterator[Minio]:
    if missing := minio_missing():
        pytest.skip(missing)
    with running_minio() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    if missing := redis_missing():
        pytest.skip(missing)
    with running_redis() as server:
        yield server
