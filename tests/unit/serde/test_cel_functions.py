"""Functions of CEL expressions, beside those of confluent-kafka."""

from __future__ import annotations

from typing import Any

import celpy
import pytest
from confluent_kafka.schema_registry.rules.cel.extra_func import EXTRA_FUNCS

from moldau.serde.rules.cel import _FUNCTIONS

ADDRESSES = ["a@b.co", "a@b", "a", "a b@c.de", "a@b@c.de", ""]
HOSTS = ["example.com", "-a.b", "a_b.c", "a.1", "x." * 140, "a", "b-.c", "com."]
NUMBERS = ["1.2.3.4", "::1", "1.2.3", "fe80::1", "256.1.1.1", "x"]
URIS = ["http://a/b", "http://a", "a/b", "#x", "urn:x:y", "/a#b", "http://a/b#c"]
UUIDS = ["123e4567-e89b-12d3-a456-426614174000", "123", ""]


def outcome(functions: dict[str, Any], expression: str) -> Any:
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression), functions=functions)
    try:
        return program.evaluate({})
    except celpy.CELEvalError:
        return "error"


@pytest.mark.parametrize(
    "expression",
    [
        *(f"'{each}'.isEmail()" for each in ADDRESSES),
        *(f"'{each}'.isHostname()" for each in HOSTS),
        *(f"'{each}'.isIpv{n}()" for each in NUMBERS for n in (4, 6)),
        *(f"'{each}'.{name}()" for each in URIS for name in ("isUri", "isUriRef")),
        *(f"'{each}'.isUuid()" for each in UUIDS),
        "b'\\x7f\\x00\\x00\\x01'.isIpv4()",
        "isEmail(1)",
        "'%s has %d'.format(['ada', 3])",
        "'%.2f and %e'.format([1.5, 2.0])",
        "'%x %X %o %b'.format([255, 255, 8, 5])",
        "'100%%'.format([])",
        "'%s'.format([])",
        "'%d'.format(['x'])",
        "'%q'.format([1])",
    ],
)
def test_functions_answer_as_confluents(expression: str) -> None:
    assert outcome(_FUNCTIONS, expression) == outcome(EXTRA_FUNCS, expression)


def test_values_are_formatted_as_cel_writes_them() -> None:
    """confluent-kafka writes Python's True."""
    assert outcome(_FUNCTIONS, "'%s %s %s'.format([true, null, [1, 'a']])") == "true null [1, a]"
