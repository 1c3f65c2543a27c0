"""Both forms of the column modules: the plain files, and the compiled ones if built."""

from __future__ import annotations

from types import ModuleType

import pytest

import moldau.spark.columns
from moldau.spark.columns import _decoder, _rows
from support.plain import load_plain

DECODERS = {"plain": load_plain(moldau.spark.columns, "_decoder")}
if _decoder.COMPILED:
    DECODERS["compiled"] = _decoder
ROWS = {"plain": load_plain(moldau.spark.columns, "_rows")}
if _rows.COMPILED:
    ROWS["compiled"] = _rows


@pytest.fixture(scope="session", params=list(DECODERS))
def decoder_module(request: pytest.FixtureRequest) -> ModuleType:
    return DECODERS[request.param]


@pytest.fixture(scope="session", params=list(ROWS))
def rows_module(request: pytest.FixtureRequest) -> ModuleType:
    return ROWS[request.param]
