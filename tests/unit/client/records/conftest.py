"""Both forms of the client's record modules: the plain files, and the compiled modules if built."""

from __future__ import annotations

from types import ModuleType

import pytest

import moldau.client
from moldau.client import _batch_builder, _records
from moldau.client import _fetch_reader as fetch_reader
from support.plain import load_plain

READERS = {"plain": load_plain(moldau.client, "_records")}
if _records.COMPILED:
    READERS["compiled"] = _records
FETCH_READERS = {"plain": load_plain(moldau.client, "_fetch_reader")}
if not fetch_reader.__file__.endswith(".py"):
    FETCH_READERS["compiled"] = fetch_reader
BUILDERS = {"plain": load_plain(moldau.client, "_batch_builder")}
if _batch_builder.COMPILED:
    BUILDERS["compiled"] = _batch_builder


@pytest.fixture(scope="session", params=list(READERS))
def records_module(request: pytest.FixtureRequest) -> ModuleType:
    return READERS[request.param]


@pytest.fixture(scope="session", params=list(BUILDERS))
def builder_module(request: pytest.FixtureRequest) -> ModuleType:
    return BUILDERS[request.param]


@pytest.fixture(scope="session", params=list(FETCH_READERS))
def fetch_reader_module(request: pytest.FixtureRequest) -> ModuleType:
    return FETCH_READERS[request.param]
