"""Both forms of the record codec: the plain file always, the compiled module where it was built."""

from __future__ import annotations

from types import ModuleType

import pytest

import moldau.wire
from moldau.wire import _record_codec
from support.plain import load_plain

PLAIN = load_plain(moldau.wire, "_record_codec")
FORMS = {"plain": PLAIN}
if _record_codec.COMPILED:
    FORMS["compiled"] = _record_codec


@pytest.fixture(scope="session", params=list(FORMS))
def codec(request: pytest.FixtureRequest) -> ModuleType:
    return FORMS[request.param]


@pytest.fixture(scope="session")
def plain_codec() -> ModuleType:
    return PLAIN
