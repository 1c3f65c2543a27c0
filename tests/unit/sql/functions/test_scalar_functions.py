"""Each built-in function on some values, NULLs among them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from moldau.sql.errors import KsqlException
from moldau.sql.functions.registry import built_in
from moldau.sql.ports import Argument, IntervalUnitArgument, LambdaArgument
from moldau.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values.casts import cast

FUNCTIONS = built_in()
INTS, STRINGS = ArrayType(INTEGER), ArrayType(STRING)
S, N, L, D = STRING, INTEGER, BIGINT, DOUBLE
SECONDS = IntervalUnitArgument("SECONDS")
DAYS = IntervalUnitArgument("DAYS")


def call(name: str, types: list[Argument], *values: Any, result_of_lambda: SqlType = BIGINT) -> Any:
    """As the compiler calls: arguments are cast to the parameters' types first."""
    found = FUNCTIONS.scalar(name, types, lambda index, inputs: result_of_lambda)
    given = [
        cast(kind, target)(value) if target is not None else value  # type: ignore[arg-type]
        for kind, target, value in zip(types, found.parameters, values, strict=True)
    ]
    return found.evaluate(*given)


CASES: list[tuple[str, list[Argument], list[Any], Any]] = [
    # Numbers.
    ("ABS", [N], [-3], 3),
    ("ABS", [N], [-(2**31)], -(2**31)),
    ("ABS", [DecimalType(4, 2)], [Decimal("-1.20")], Decimal("1.20")),
    ("ABS", [D], [None], None),
    ("CEIL", [DecimalType(4, 2)], [Decimal("1.20")], Decimal("2.00")),
    ("CEIL", [D], [-1.5], -1.0),
    ("FLOOR", [D], [-1.5], -2.0),
    ("FLOOR", [DecimalType(4, 2)], [Decimal("-1.20")], Decimal("-2.00")),
    ("ROUND", [D], [1.5], 2),
    ("ROUND", [D], [-1.5], -1),
    ("ROUND", [D], [0.49999999999999994], 0),
    ("ROUND", [D, N], [1.25, 1], 1.3),
    ("ROUND", [D, N], [-1.25, 1], -1.2),
    ("ROUND", [D, N], [1234.5, -2], 1200.0),
    ("ROUND", [DecimalType(5, 2), N], [Decimal("123.45"), 1], Decimal("123.50")),
    ("ROUND", [DecimalType(5, 2)], [Decimal("-123.50")], Decimal("-123")),
    ("TRUNC", [D], [-1.9], -1),
    ("TRUNC", [D, N], [1.29, 1], 1.2),
    ("TRUNC", [DecimalType(5, 2), N], [Decimal("123.45"), 1], Decimal("123.40")),
    ("SIGN", [D], [-0.5], -1),
    ("SQRT", [N], [9], 3.0),
    ("LN", [D], [0.0], -math.inf),
    ("LOG", [N, N], [2, 8], 3.0),
    ("LOG", [D], [1.0], 0.0),
    ("EXP", [N], [1000], math.inf),
    ("POWER", [N, N], [2, 10], 1024.0),
    ("POWER", [D, D], [0.0, -1.0], math.inf),
    ("CBRT", [N], [-27], -3.0),
    ("COT", [D], [0.0], math.inf),
    ("DEGREES", [D], [math.pi], 180.0),
    ("RADIANS", [N], [180], math.pi),
    ("ATAN2", [D, D], [1.0, 0.0], math.pi / 2),
    ("GREATEST", [N, N, N], [1, None, 3], 3),
    (
        "GREATEST",
        [DecimalType(4, 2), DecimalType(6, 1)],
        [Decimal("1.10"), Decimal("3.1")],
        Decimal("3.10"),
    ),
    ("LEAST", [S, S], ["b", "a"], "a"),
    ("GEO_DISTANCE", [D, D, D, D], [0.0, 0.0, 0.0, 90.0], 6371 * math.pi / 2),
    ("GEO_DISTANCE", [D, D, D, D, S], [0.0, 0.0, 90.0, 0.0, "MILES"], 3959 * math.pi / 2),
    # Texts.
    ("CHR", [N], [75], "K"),
    ("CHR", [S], ["\\u004b"], "K"),
    ("CHR", [S], ["\\ud83d\\ude00"], "😀"),
    ("CHR", [N], [-1], None),
    ("CONCAT", [S, S, S], ["a", None, "c"], "ac"),
    ("CONCAT", [BYTES, BYTES], [b"a", b"b"], b"ab"),
    ("CONCAT_WS", [S, S, S, S], ["-", "a", None, "c"], "a-c"),
    ("ELT", [N, S, S], [2, "a", "b"], "b"),
    ("ELT", [N, S], [2, "a"], None),
    ("FIELD", [S, S, S], ["b", "a", "b"], 2),
    ("FIELD", [S, S], [None, "a"], 0),
    ("INITCAP", [S], ["the  QUICK fox"], "The  Quick Fox"),
    ("INSTR", [S, S], ["CORPORATE FLOOR", "OR"], 2),
    ("INSTR", [S, S, N], ["CORPORATE FLOOR", "OR", 3], 5),
    ("INSTR", [S, S, N, N], ["CORPORATE FLOOR", "OR", 3, 2], 14),
    ("INSTR", [S, S, N], ["CORPORATE FLOOR", "OR", -3], 5),
    ("INSTR", [S, S], ["x", "MISSING"], 0),
    ("LCASE", [S], ["AbC"], "abc"),
    ("UCASE", [S], ["AbC"], "ABC"),
    ("LEN", [S], ["a😀"], 3),
    ("LEN", [BYTES], [b"abc"], 3),
    ("LPAD", [S, N, S], ["foo", 7, "Bar"], "BarBfoo"),
    ("LPAD", [S, N, S], ["foobar", 3, "x"], "foo"),
    ("LPAD", [S, N, S], ["foo", 5, ""], None),
    ("RPAD", [S, N, S], ["foo", 7, "Bar"], "fooBarB"),
    ("RPAD", [BYTES, N, BYTES], [b"a", 3, b"z"], b"azz"),
    ("MD5", [S], ["a"], "0cc175b9c0f1b6a831c399e269772661"),
    ("MASK", [S], ["AbC#$123xy Z"], "XxX--nnnxx-X"),
    ("MASK", [S, S, S, S, S], ["AbC#1", "u", None, "9", "o"], "ubuo9"),
    ("MASK_LEFT", [S, N], ["AbCd#", 3], "XxXd#"),
    ("MASK_RIGHT", [S, N], ["AbCd#", 3], "AbXx-"),
    ("MASK_KEEP_LEFT", [S, N], ["AbCd#", 3], "AbCx-"),
    ("MASK_KEEP_RIGHT", [S, N], ["AbCd#", 3], "XxCd#"),
    ("REPLACE", [S, S, S], ["aXbX", "X", "-"], "a-b-"),
    ("SPLIT", [S, S], ["a,b,,c", ","], ["a", "b", "", "c"]),
    ("SPLIT", [S, S], ["abc", ""], ["a", "b", "c"]),
    ("SPLIT", [BYTES, BYTES], [b"a,b", b","], [b"a", b"b"]),
    ("SPLIT_TO_MAP", [S, S, S], ["a=1&b=2&c", "&", "="], {"a": "1", "b": "2"}),
    ("SUBSTRING", [S, N], ["stream", 4], "eam"),
    ("SUBSTRING", [S, N, N], ["stream", 3, 2], "re"),
    ("SUBSTRING", [S, N], ["stream", -3], "eam"),
    ("SUBSTRING", [S, N, N], ["stream", 20, 2], ""),
    ("TRIM", [S], ["\t a \n"], "a"),
    ("REGEXP_EXTRACT", [S, S, N], ["(.*) (.*)", "hello there", 2], "there"),
    ("REGEXP_EXTRACT", [S, S, N], ["(.*)", "x", 3], None),
    ("REGEXP_EXTRACT", [S, S], ["(?<first>\\p{Alpha}+)", "12ab"], "ab"),
    ("REGEXP_EXTRACT_ALL", [S, S], ["[0-9]+", "a1b22"], ["1", "22"]),
    ("REGEXP_REPLACE", [S, S, S], ["cat hat", "([a-z])at", "$1og"], "cog hog"),
    ("REGEXP_REPLACE", [S, S, S], ["a.b", "\\Q.\\E", "\\$"], "a$b"),
    ("REGEXP_SPLIT_TO_ARRAY", [S, S], ["x-y--z", "-"], ["x", "y", "", "z"]),
    ("REGEXP_SPLIT_TO_ARRAY", [S, S], ["aXbxc", "(x|X)"], ["a", "b", "c"]),
    ("REGEXP_SPLIT_TO_ARRAY", [S, S], ["abc", ""], ["a", "b", "c"]),
    # Bytes.
    ("ENCODE", [S, S, S], ["0x4b", "hex", "ascii"], "K"),
    ("ENCODE", [S, S, S], ["K", "utf8", "base64"], "Sw=="),
    ("ENCODE", [S, S, S], ["Sw", "base64", "hex"], "4b"),
    ("FROM_BYTES", [BYTES, S], [b"\x1f\x2a", "hex"], "1F2A"),
    ("TO_BYTES", [S, S], ["1f2A", "hex"], b"\x1f\x2a"),
    ("INT_FROM_BYTES", [BYTES], [b"\x00\x00\x10\xf9"], 4345),
    ("BIGINT_FROM_BYTES", [BYTES, S], [b"\xf9\x10" + b"\x00" * 6, "LITTLE_ENDIAN"], 4345),
    ("DOUBLE_FROM_BYTES", [BYTES], [b"\x40\xb0\xf9" + b"\x00" * 5], 4345.0),
    ("UUID", [BYTES], [b"\x00" * 15 + b"\x01"], "00000000-0000-0000-0000-000000000001"),
    # Arrays and maps.
    ("ARRAY_CONCAT", [INTS, INTS], [[1], None], [1]),
    ("ARRAY_DISTINCT", [INTS], [[1, None, 1]], [1, None]),
    ("ARRAY_DISTINCT", [ArrayType(INTS)], [[[1], [1], [2]]], [[1], [2]]),
    ("ARRAY_EXCEPT", [INTS, INTS], [[1, 2, 2, 3], [3]], [1, 2]),
    ("ARRAY_INTERSECT", [INTS, INTS], [[3, 2, 1], [1, 2]], [2, 1]),
    ("ARRAY_UNION", [INTS, INTS], [[1, 1], [2]], [1, 2]),
    ("ARRAY_JOIN", [ArrayType(D), S], [[1.0, None, 1e10], ";"], "1.0;null;1.0E10"),
    ("ARRAY_JOIN", [ArrayType(BOOLEAN)], [[True, False]], "true,false"),
    ("ARRAY_LENGTH", [INTS], [[1, 2]], 2),
    ("ARRAY_MAX", [INTS], [[1, None, 3]], 3),
    ("ARRAY_MIN", [INTS], [[None]], None),
    ("ARRAY_REMOVE", [INTS, N], [[1, None, 2], None], [1, 2]),
    ("ARRAY_SORT", [INTS], [[2, None, 1]], [1, 2, None]),
    ("ARRAY_SORT", [INTS, S], [[2, None, 3], "desc"], [3, 2, None]),
    ("ARRAY_SORT", [INTS, S], [[2], "sideways"], None),
    ("ARRAY_CONTAINS", [INTS, N], [[1, 2], 2], True),
    ("ARRAY_CONTAINS", [INTS, N], [None, 2], False),
    ("SLICE", [INTS, N, N], [[1, 2, 3], 2, None], [2, 3]),
    ("SLICE", [INTS, N, N], [[1, 2, 3], 1, 4], None),
    ("ENTRIES", [MapType(S, N), BOOLEAN], [{"b": 2, "a": 1}, True], [("a", 1), ("b", 2)]),
    ("GENERATE_SERIES", [N, N], [3, 1], [3, 2, 1]),
    ("GENERATE_SERIES", [L, L, N], [1, 6, 2], [1, 3, 5]),
    ("AS_MAP", [STRINGS, INTS], [["a", "b"], [1]], {"a": 1, "b": None}),
    ("MAP_KEYS", [MapType(S, N)], [{"a": 1}], ["a"]),
    ("MAP_VALUES", [MapType(S, N)], [{"a": 1}], [1]),
    ("MAP_UNION", [MapType(S, N), MapType(S, N)], [{"a": 1}, {"a": 2}], {"a": 2}),
    ("COALESCE", [N, N], [None, 2], 2),
    ("IFNULL", [S, S], [None, "x"], "x"),
    ("NULLIF", [S, S], ["x", "x"], None),
    # JSON.
    ("IS_JSON_STRING", [S], ["[1, 2"], False),
    ("IS_JSON_STRING", [S], ["{} rest"], True),
    ("IS_JSON_STRING", [S], [""], False),
    ("JSON_ARRAY_CONTAINS", [S, N], ["[1, 2]", 2], True),
    ("JSON_ARRAY_CONTAINS", [S, D], ["[1, 2.0]", 2.0], True),
    ("JSON_ARRAY_CONTAINS", [S, S], ["[1]", "1"], False),
    ("JSON_ARRAY_LENGTH", [S], ["[1, {}]"], 2),
    ("JSON_ARRAY_LENGTH", [S], ["{}"], None),
    ("JSON_CONCAT", [S, S], ['{"a":1}', '{"a":2,"b":1.50}'], '{"a":2,"b":1.50}'),
    ("JSON_CONCAT", [S, S], ["[1]", '{"a":2}'], '[1,{"a":2}]'),
    ("EXTRACTJSONFIELD", [S, S], ['{"a":{"b":[10,"x"]}}', "$.a.b[1]"], "x"),
    ("EXTRACTJSONFIELD", [S, S], ['{"a b":{"c":1.50}}', '$["a b"]'], '{"c":1.50}'),
    ("EXTRACTJSONFIELD", [S, S], ['{"a":1}', "$.b"], None),
    ("JSON_ITEMS", [S], ['[1, "x", {"a":2}]'], ["1", '"x"', '{"a":2}']),
    ("JSON_KEYS", [S], ['{"a":1,"b":2}'], ["a", "b"]),
    ("JSON_RECORDS", [S], ['{"a":"x","b":[1]}'], {"a": "x", "b": "[1]"}),
    (
        "TO_JSON_STRING",
        [StructType((("B", D), ("A", STRINGS)))],
        [(1.0, ["x", None])],
        '{"A":["x",null],"B":1.0}',
    ),
    ("TO_JSON_STRING", [TIMESTAMP], [0], '"1970-01-01T00:00:00.000"'),
    ("TO_JSON_STRING", [S], [None], "null"),
    # URLs.
    ("URL_DECODE_PARAM", [S], ["a+b%21"], "a b!"),
    ("URL_ENCODE_PARAM", [S], ["a b!~*"], "a+b%21%7E*"),
    ("URL_EXTRACT_FRAGMENT", [S], ["http://h/p#f%20x"], "f x"),
    ("URL_EXTRACT_HOST", [S], ["http://u@h.example:80/p"], "h.example"),
    ("URL_EXTRACT_PARAMETER", [S, S], ["http://h/?a=1&b", "b"], ""),
    ("URL_EXTRACT_PARAMETER", [S, S], ["http://h/?a=1=2", "a"], "1=2"),
    ("URL_EXTRACT_PATH", [S], ["http://h/a%20b/c?q"], "/a b/c"),
    ("URL_EXTRACT_PORT", [S], ["http://h:8080/"], 8080),
    ("URL_EXTRACT_PORT", [S], ["http://h/"], None),
    ("URL_EXTRACT_PROTOCOL", [S], ["https://h/"], "https"),
    ("URL_EXTRACT_QUERY", [S], ["https://h/?a=1#f"], "a=1"),
    # Times.
    ("CONVERT_TZ", [TIMESTAMP, S, S], [0, "UTC", "+0200"], 7_200_000),
    ("DATEADD", [DAYS, N, DATE], ["DAYS", 3, 10], 13),
    ("DATESUB", [DAYS, N, DATE], ["DAYS", 3, 10], 7),
    ("TIMEADD", [SECONDS, N, TIME], ["SECONDS", 5, 86_399_000], 4_000),
    ("TIMESUB", [SECONDS, N, TIME], ["SECONDS", 5, 4_000], 86_399_000),
    ("TIMESTAMPADD", [SECONDS, N, TIMESTAMP], ["SECONDS", 5, 0], 5_000),
    ("TIMESTAMPSUB", [SECONDS, N, TIMESTAMP], ["SECONDS", 5, 0], -5_000),
    ("DATETOSTRING", [N, S], [18_000, "yyyy-MM-dd"], "2019-04-14"),
    ("FORMAT_DATE", [DATE, S], [18_000, "dd.MM.yy"], "14.04.19"),
    ("FORMAT_TIME", [TIME, S], [3_723_000, "HH:mm:ss"], "01:02:03"),
    ("FORMAT_TIMESTAMP", [TIMESTAMP, S, S], [0, "HH:mm XXX", "+01:00"], "01:00 +01:00"),
    ("FROM_DAYS", [N], [18_000], 18_000),
    ("FROM_UNIXTIME", [L], [5], 5),
    ("PARSE_DATE", [S, S], ["14.04.2019", "dd.MM.yyyy"], 18_000),
    ("PARSE_TIME", [S, S], ["01:02:03", "HH:mm:ss"], 3_723_000),
    ("PARSE_TIMESTAMP", [S, S, S], ["1970-01-01 01", "yyyy-MM-dd HH", "+01:00"], 0),
    ("STRINGTODATE", [S, S], ["2019-04-14", "yyyy-MM-dd"], 18_000),
    ("STRINGTOTIMESTAMP", [S, S, S], ["1970-01-01", "yyyy-MM-dd", "UTC"], 0),
    ("TIMESTAMPTOSTRING", [L, S, S], [0, "yyyy", "UTC"], "1970"),
    ("UNIX_DATE", [DATE], [18_000], 18_000),
    ("UNIX_TIMESTAMP", [TIMESTAMP], [7], 7),
    # What is cast on the way.
    ("SUBSTRING", [S, N], [None, 1], None),
    ("SQRT", [DecimalType(4, 2)], [Decimal("9.00")], 3.0),
    ("FORMAT_DATE", [S, S], ["2019-04-14", "yyyy"], "2019"),
]


@pytest.mark.parametrize(("name", "types", "values", "expected"), CASES)
def test_a_function_gives_what_ksqldb_gives(
    name: str, types: list[Argument], values: list[Any], expected: Any
) -> None:
    found = call(name, types, *values)
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6)
        return
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(expected, Decimal):
        assert found.as_tuple() == expected.as_tuple()


@pytest.mark.parametrize(
    ("name", "types", "values", "reason"),
    [
        ("GENERATE_SERIES", [N, N, N], [1, 2, 0], "step cannot be zero"),
        ("GENERATE_SERIES", [N, N, N], [1, 2, -1], "step has wrong sign"),
        ("CONCAT_WS", [S], ["a"], "at least two"),
        ("JSON_KEYS", [S], ["{oops"], "Invalid JSON format:{oops"),
        ("EXTRACTJSONFIELD", [S, S], ["{}", "a.b"], "Invalid JSON path: 'a.b'"),
        ("FORMAT_DATE", [DATE, S], [0, "HH"], "Failed to format date 0 with formatter 'HH'"),
        ("PARSE_DATE", [S, S], ["2019-04-14 1", "yyyy-MM-dd HH"], "contains time field"),
        ("PARSE_TIME", [S, S], ["2019", "yyyy"], "contains date field"),
        ("PARSE_TIMESTAMP", [S, S], ["x", "yyyy"], "Failed to parse timestamp 'x'"),
        ("CONVERT_TZ", [TIMESTAMP, S, S], [0, "UTC", "Moon/Base"], "Invalid time zone"),
        ("MASK", [S, S, S, S, S], ["x", "ab", "c", "d", "e"], "Invalid mask character"),
        ("MASK_LEFT", [S, N], ["x", -1], "non-negative number"),
        ("REGEXP_EXTRACT", [S, S], ["(", "x"], "Invalid regular expression pattern: ("),
        ("TO_BYTES", [S, S], ["zz", "hex"], "illegal character"),
        ("TO_BYTES", [S, S], ["zz", "rot13"], "Unknown encoding type 'rot13'"),
        ("INT_FROM_BYTES", [BYTES], [b"1"], "Number of bytes must be equal to 4, but found 1"),
        ("GEO_DISTANCE", [D, D, D, D], [91.0, 0.0, 0.0, 0.0], "latitude"),
        ("URL_EXTRACT_HOST", [S], ["ht tp://x"], "URL input has invalid syntax"),
        ("ARRAY_JOIN", [ArrayType(INTS)], [[[1]]], "not supported"),
    ],
)
def test_a_function_says_what_is_wrong(
    name: str, types: list[Argument], values: list[Any], reason: str
) -> None:
    with pytest.raises(KsqlException) as caught:
        call(name, types, *values)
    assert reason in str(caught.value)


def test_lambdas_are_typed_by_what_comes_before_them() -> None:
    seen: list[tuple[int, tuple[SqlType, ...]]] = []

    def resolve(index: int, inputs: tuple[SqlType, ...]) -> SqlType:
        seen.append((index, inputs))
        return STRING

    found = FUNCTIONS.scalar("TRANSFORM", [INTS, LambdaArgument(1)], resolve)
    assert found.result == STRINGS
    assert found.evaluate([1, 2], str) == ["1", "2"]
    found = FUNCTIONS.scalar(
        "TRANSFORM", [MapType(S, N), LambdaArgument(2), LambdaArgument(2)], resolve
    )
    assert found.result == MapType(STRING, STRING)
    assert seen == [(1, (INTEGER,)), (1, (STRING, INTEGER)), (2, (STRING, INTEGER))]


def test_reduce_and_filter_run_their_lambdas() -> None:
    assert call("REDUCE", [INTS, L, LambdaArgument(2)], [1, 2], 10, lambda s, x: s + x) == 13
    assert call("REDUCE", [INTS, L, LambdaArgument(2)], None, 10, lambda s, x: s + x) == 10
    kept = call(
        "FILTER",
        [MapType(S, N), LambdaArgument(2)],
        {"a": 1, "b": 2},
        lambda key, value: value > 1,
        result_of_lambda=BOOLEAN,
    )
    assert kept == {"b": 2}


def test_functions_of_clock_and_chance() -> None:
    assert 0 <= call("RANDOM", []) < 1
    assert len(call("UUID", [])) == 36
    assert call("UNIX_TIMESTAMP", []) > 1_600_000_000_000
    assert call("UNIX_DATE", []) > 18_000


def test_every_function_of_ksqldb_is_there_with_its_description() -> None:
    found = FUNCTIONS.declarations()
    assert len(found) == 149
    for _, declaration in found:
        assert declaration.description.endswith(".")
        assert declaration.example
