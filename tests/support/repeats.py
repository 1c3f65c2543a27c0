"""Values of a parametrized test of which `make test` tries some and `make test-long` all others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_long(values: Iterable[Any], reason: str, keep: int | Collection[Any] = 1) -> list[Any]:
    """All values, marked long except the first `keep`, or except those that `keep` names.

    A value may be a `pytest.param`; `keep` then names its first value.
    """
    marked = []
    for number, value in enumerate(values):
        param = value if isinstance(value, _ParameterSet) else pytest.param(value)
        kept = number < keep if isinstance(keep, int) else param.values[0] in keep
        marks = param.marks if kept else [*param.marks, pytest.mark.long(reason)]
        marked.append(pytest.param(*param.values, id=param.id, marks=marks))
    return marked


_ParameterSet = type(pytest.param(None))
