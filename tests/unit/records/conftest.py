"""Both forms of the record codec: the plain file always, the compiled module where it was built."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import moldau.wire
from moldau.wire import _record_codec


def load_plain_codec() -> ModuleType:
    path = Path(moldau.wire.__file__).parent / "_record_codec.py"
    spec = importlib.util.spec_from_file_location("plain_record_codec", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain_record_codec"] = module
    spec.loader.exec_module(module)
    return module


PLAIN = load_plain_codec()
FORMS = {"plain": PLAIN}
if _record_codec.COMPILED:
    FORMS["compiled"] = _record_codec


@pytest.fixture(scope="session", params=list(FORMS))
def codec(request: pytest.FixtureRequest) -> ModuleType:
    return FORMS[request.param]


@pytest.fixture(scope="session")
def plain_codec() -> ModuleType:
    return PLAIN
