"""Functions of CEL expressions, beside those of confluent-kafka."""

from __future__ import annotations

import json
import struct
from typing import Any

import celpy
import pytest
from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2
from confluent_kafka.schema_registry.confluent.type.variant_utils import VariantBuilder
from confluent_kafka.schema_registry.rules.cel.cel_executor import msg_to_cel
from confluent_kafka.schema_registry.rules.cel.cel_field_presence import InterpretedRunner
from confluent_kafka.schema_registry.rules.cel.extra_func import EXTRA_FUNCS
from google.protobuf import timestamp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.data.variant import Variant
from moldau.serde.rules.cel import _Runner
from moldau.serde.rules.cel_functions import FUNCTIONS
from moldau.serde.rules.cel_values import cel_of
from support.examples import examples

THEIRS = celpy.Environment(runner_class=InterpretedRunner)
OURS = celpy.Environment(runner_class=_Runner)
#: Generated modules, which say nothing of their classes.
THEIR_TYPES: tuple[Any, Any] = (decimal_pb2, variant_pb2)
ADDRESSES = ["a@b.co", "a@b", "a", "a b@c.de", "a@b@c.de", ""]
HOSTS = ["example.com", "-a.b", "a_b.c", "a.1", "x." * 140, "a", "b-.c", "com."]
NUMBERS = ["1.2.3.4", "::1", "1.2.3", "fe80::1", "256.1.1.1", "x"]
URIS = ["http://a/b", "http://a", "a/b", "#x", "urn:x:y", "/a#b", "http://a/b#c"]
UUIDS = ["123e4567-e89b-12d3-a456-426614174000", "123", ""]
MOMENT = timestamp_pb2.Timestamp(seconds=1_700_000_000, nanos=123_456_789)
AMOUNT = THEIR_TYPES[0].Decimal(value=b"\x04\xd2", precision=4, scale=2)


def their_outcome(expression: str, **values: Any) -> Any:
    program = THEIRS.program(THEIRS.compile(expression), functions=EXTRA_FUNCS)
    return _outcome(program, {name: msg_to_cel(each) for name, each in values.items()})


def our_outcome(expression: str, **values: Any) -> Any:
    program = OURS.program(OURS.compile(expression), functions=FUNCTIONS)
    return _outcome(program, {name: cel_of(each) for name, each in values.items()})


def _outcome(program: Any, values: dict[str, Any]) -> Any:
    try:
        found = program.evaluate(values)
    except Exception:  # Theirs lets some of Python's errors out.
        return "error"
    if hasattr(found, "standalone_value_bytes"):
        return "variant", found.standalone_value_bytes(), found.metadata
    if isinstance(found, Variant):
        return "variant", found.value, found.metadata
    return type(found), str(found), found


def test_all_of_their_functions_are_there() -> None:
    assert EXTRA_FUNCS.keys() - FUNCTIONS.keys() == set()


def test_the_comparison_sees_results_and_errors() -> None:
    assert our_outcome("string(decimals.add(decimal('1.50'), 2))")[1] == "3.50"
    assert our_outcome("variants.toJson(variants.parseJson('[1, 2.5]'))")[1] == "[1,2.5]"
    assert our_outcome("decimals.div(1, 0)") == "error"


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
        "'%s %s %s %f'.format([2.0, b'ab', [1, 'a\"'], 3])",
        "'100%%'.format([])",
        "'%s'.format([])",
        "'%s'.format([1, 2])",
        "'%d'.format(['x'])",
        "'%q'.format([1])",
    ],
)
def test_texts(expression: str) -> None:
    assert our_outcome(expression) == their_outcome(expression)


def test_values_are_formatted_as_cel_writes_them() -> None:
    """confluent-kafka writes Python's True and None."""
    assert our_outcome("'%s %s'.format([true, null])")[1] == "true null"


WORDS = (
    "decimal('12.340')",
    "decimal('-7')",
    "decimal('0.00')",
    "decimal('1e30')",
    "3",
    "2.5",
    "'4'",
)


@pytest.mark.parametrize(
    "expression",
    [
        *(
            f"string(decimals.{name}({one}, {other}))"
            for name in ("add", "sub", "mul", "div", "mod", "greatest", "least")
            for one in WORDS
            for other in WORDS
        ),
        *(
            f"decimals.{name}({one}, {other})"
            for name in ("eq", "lt", "le", "gt", "ge")
            for one in WORDS
            for other in WORDS
        ),
        *(
            f"string(decimals.{name}({one}))"
            for name in ("sqrt", "neg", "abs", "round", "trunc", "floor", "ceil")
            for one in (*WORDS, "decimal('-1.5')", "decimal('9.0')", "decimal('4e4')")
        ),
        *(
            f"string(decimals.{name}(decimal('{number}'), {scale}))"
            for name in ("round", "trunc")
            for number in ("1.255", "-1.255", "1e-9", "1234.5", "0")
            for scale in (-3, -1, 0, 1, 2, 5)
        ),
        *(f"decimals.sign({one})" for one in WORDS),
        *(
            f"decimal({value})"
            for value in (
                "'NaN'",
                "'1_000'",
                "' 1'",
                "'-0'",
                "'-0.00'",
                "true",
                "1u",
                "null",
                "b'1'",
                "b'\\x04\\xd2', 2",
                "b'', 3",
                "b'\\xff', -2",
                "b'1', 2.0",
                "b'1', 3000000000",
                "'1e2147483648'",
                "1.0 / 0.0",
                "'1', 2",
                "[1]",
            )
        ),
        "string(decimal('1e-12'))",
        "double(decimal('12.5'))",
        "double(true)",
        "double('1.5')",
        "string(true)",
        "string(1.0)",
        "string(b'ab')",
        "string(null)",
        "string([1])",
        "string(duration('90s'))",
        "decimal('1.0') == decimal('1.00')",
        "decimal('1.0') != decimal('1.00')",
        "decimal('1.0') == 1",
        "[decimal('1.0')] == [decimal('1.00')]",
        "{'a': decimal('1.0')} == {'a': decimal('1')}",
        "decimal('2.0') in [1, decimal('2')]",
        "decimal('2.0') in ['2']",
        "1 in [1, 2]",
        "decimals.add(decimal('1e2147483647'), 1)",
        "decimals.mod(decimal('1e2147483647'), 3)",
        "decimals.round(decimal('1'), 100000000)",
        "decimals.sqrt(decimal('2'))",
        "decimals.round(decimal('1.5'), 1u)",
        "decimals.nothing(1)",
    ],
)
def test_decimals(expression: str) -> None:
    assert our_outcome(expression) == their_outcome(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "string(timestamp('2023-11-14T22:13:20.123Z'))",
        "string(timestamp(1700000000))",
        *(f"string(timestamp(1700000000123456, {digits}))" for digits in (0, 3, 6, 9)),
        "string(timestamp(-1, 9))",
        "timestamp(1, 2)",
        "timestamp(1, 3u)",
        "timestamp(true)",
        "timestamp(1u)",
        "timestamp(null)",
        "timestamp(99999999999999)",
        "string(timestamp(2009, 2, 13))",
        "string(timestamp(moment))",
        "timestamp(moment) > timestamp('2023-01-01T00:00:00Z')",
        "string(timestamp('2023-11-14T22:13:20+02:00') + duration('1h'))",
        "string(amount)",
        "amount == decimal('12.34')",
        "decimals.add(amount, 1)",
        "double(amount)",
    ],
)
def test_times_and_messages(expression: str) -> None:
    values = {"moment": MOMENT, "amount": AMOUNT}
    assert our_outcome(expression, **values) == their_outcome(expression, **values)


DOCUMENT = '{"a": {"b": [1, 2.5, "x", null, true]}, "long": 12345678901, "é b": "%s"}' % ("y" * 70)
ONES = (0, 1, 2, 3, 4, 9)
PATHS = ["$", "$.a", "$.a.b[2]", "$.a.b[9]", "$.a[0]", '$["é b"]', "$['é b']", "$.a.b[-1]", "a",
         "$.", "$[", "$.a.b[99999999999]", '$["a\\\\n"]', "$.0", "$.a.b[3]"]  # fmt: skip


@pytest.mark.parametrize(
    "expression",
    [
        *(f"variants.path(variants.parseJson(text), r'''{path}''')" for path in PATHS),
        *(
            f"variants.{name}(variants.path(variants.parseJson(text), '$.a.b[{index}]'), '{type}')"
            for name in ("as", "tryAs")
            for index in range(5)
            for type in ("string", "int", "double", "boolean", "decimal", "bytes", "date", "x")
        ),
        *(
            f"variants.type(variants.path(variants.parseJson(text), '$.a.b[{n}]'))"
            for n in range(6)
        ),
        *(
            f"variants.isNull({value})"
            for value in ("null", "1", "variants.parseJson('null')", "{'value': b'1'}")
        ),
        "variants.toJson(variants.parseJson(text))",
        "variants.toJson(null)",
        "variants.parseJson('{')",
        "variants.tryParseJson('{')",
        "variants.tryParseJson(1)",
        "variants.parseJson('1' + '0000000000000000000000')",
        "variants.field(variants.parseJson(text), 'long')",
        "variants.field(variants.parseJson(text), 1)",
        "variants.index(variants.parseJson('[1, 2]'), 1)",
        "variants.index(variants.parseJson('[1, 2]'), 1.0)",
        "variants.index(variants.parseJson('{}'), 1)",
        "variants.as(variants.parseJson('1'), 1)",
        "variant(null)",
        "variant('x')",
        "variant({'value': b'\\x00', 'metadata': b'\\x01\\x00\\x00'})",
        "variant({'value': b'\\x00'})",
        "variant({'value': b'\\x00', 'metadata': b''})",
        "variant(b'\\x00', b'')",
        "variant(b'\\x00', b'\\x01\\x00\\x00')",
        "variant(b'\\x00', b'\\x02\\x00\\x00')",
        "variants.type(proto)",
        "variants.parseJson('1') == variants.parseJson('1')",
    ],
)
def test_variants(expression: str) -> None:
    made = VariantBuilder()
    made.append_timestamp_tz(1_700_000_000_123_456)
    built = made.build()
    proto = THEIR_TYPES[1].Variant(metadata=built.metadata, value=built.value)
    values = {"text": DOCUMENT, "proto": proto}
    assert our_outcome(expression, **values) == their_outcome(expression, **values)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=300) | st.dictionaries(st.text(), inner, max_size=300),
    max_leaves=20,
)


@settings(max_examples=examples(100), deadline=None)
@given(_JSON)
def test_any_json_becomes_the_same_variant_and_the_same_text(value: Any) -> None:
    text = json.dumps(value)
    for expression in ("variants.parseJson(text)", "variants.toJson(variants.parseJson(text))"):
        assert our_outcome(expression, text=text) == their_outcome(expression, text=text)


def test_every_type_of_a_variant_reads_the_same() -> None:
    made = VariantBuilder()
    made.start_array()
    for value in (0.1, -0.0, 3.0, 1e20, float("nan"), float("inf")):
        made.append_float(struct.unpack("<f", struct.pack("<f", value))[0])
        made.append_double(value)
    for number in (-1, 0, 1, 1_700_000_000_123_456):
        made.append_timestamp_tz(number)
        made.append_timestamp_ntz(number)
        made.append_timestamp_nanos_tz(number)
        made.append_timestamp_nanos_ntz(number)
    for number in (0, 1, 86_399_999_999, -1, 86_400_000_000):
        made.append_time(number)
    for number in (0, -719_162, 2_932_896, 2_932_897):
        made.append_date(number)
    for unscaled, scale in ((1234, 2), (-1, 9), (10**17, 18), (10**37, 38)):
        made.append_decimal(unscaled, scale)
    made.append_binary(b"ab")
    made.append_uuid(bytes(range(16)))
    made.append_timestamp_tz(2**62)
    made.end_array()
    built = made.build()
    values = {"v": {"value": built.value, "metadata": built.metadata}}
    for index in range(built.num_array_elements()):
        node = f"variants.index(v, {index})"
        for expression in (
            f"variants.toJson({node})",
            f"variants.type({node})",
            *(f"variants.tryAs({node}, '{each}')" for each in ("timestamp", "decimal", "double")),
        ):
            ours, theirs = our_outcome(expression, **values), their_outcome(expression, **values)
            assert repr(ours) == repr(theirs), expression
