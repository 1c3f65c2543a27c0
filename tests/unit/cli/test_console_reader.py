"""How lines become records."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.console.reader import LineError, LineMessageReader, LineRecord, make_reader


def reader(**settings: str) -> LineMessageReader:
    made = LineMessageReader()
    made.configure(
        {"topic": "t", **{key.replace("_", "."): each for key, each in settings.items()}}
    )
    return made


@pytest.mark.parametrize(
    ("settings", "line", "expected"),
    [
        pytest.param({}, "a\tb", (None, b"a\tb", ()), id="plain"),
        pytest.param({}, "", (None, b"", ()), id="an empty line is an empty value"),
        pytest.param({"parse_key": "true"}, "k\tv\tw", (b"k", b"v\tw", ()), id="key"),
        pytest.param(
            {"parse_key": "true", "key_separator": "::"}, "k::v", (b"k", b"v", ()), id="separator"
        ),
        pytest.param(
            {"parse_headers": "true", "parse_key": "true"},
            "h:1,i:2\tk\tv",
            (b"k", b"v", (("h", b"1"), ("i", b"2"))),
            id="headers and key",
        ),
        pytest.param(
            {"parse_headers": "true", "null_marker": "NULL"},
            "NULL\tNULL",
            (None, None, ()),
            id="null headers and value",
        ),
        pytest.param(
            {"parse_headers": "true", "parse_key": "true", "null_marker": "NULL"},
            "h:NULL\tNULL\tv",
            (None, b"v", (("h", None),)),
            id="null key and header value",
        ),
        pytest.param(
            {"parse_headers": "true", "headers_separator": "[;|]"},
            "a:1;b:2|c:3\tv",
            (None, b"v", (("a", b"1"), ("b", b"2"), ("c", b"3"))),
            id="the separator of headers is a pattern",
        ),
        pytest.param(
            {"parse_key": "true", "ignore_error": "true"},
            "no key here",
            (None, b"no key here", ()),
            id="missing key ignored",
        ),
        pytest.param(
            {"parse_headers": "true", "ignore_error": "true"},
            "novalue\tv",
            (None, b"v", (("novalue", None),)),
            id="header without a value ignored",
        ),
    ],
)
def test_lines(settings: dict[str, str], line: str, expected: tuple[Any, ...]) -> None:
    key, value, headers = expected
    assert reader(**settings).parse(line, 1) == LineRecord("t", key, value, headers)


@pytest.mark.parametrize(
    ("settings", "line", "problem"),
    [
        ({"parse_key": "true"}, "nokey", "No key separator found on line number 3: 'nokey'"),
        (
            {"parse_headers": "true"},
            "nothing",
            "No headers delimiter found on line number 3: 'nothing'",
        ),
        (
            {"parse_headers": "true", "parse_key": "true"},
            "h:1\tnokey",
            "No key separator found on line number 3: 'h:1\tnokey'",
        ),
        (
            {"parse_headers": "true"},
            "h\tv",
            "No header key separator found in pair 'h' on line number 3",
        ),
        (
            {"parse_headers": "true", "null_marker": "N"},
            "N:1\tv",
            "Header keys should not be equal to the null marker 'N' as they can't be null",
        ),
    ],
)
def test_bad_lines_are_named(settings: dict[str, str], line: str, problem: str) -> None:
    with pytest.raises(LineError) as raised:
        reader(**settings).parse(line, 3)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"headers_delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
        (
            {"headers_separator": ":"},
            "headers.separator and headers.key.separator may not be equal",
        ),
        ({"null_marker": "\t"}, "null.marker and key.separator may not be equal"),
    ],
)
def test_separators_that_cannot_be_told_apart(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(LineError) as raised:
        reader(**settings)
    assert str(raised.value) == problem


def test_a_stream_is_read_line_by_line_whatever_ends_them() -> None:
    lines = iter([b"a\n", b"b\r\n", b"c"])
    assert [each.value for each in reader().read_records(lines)] == [b"a", b"b", b"c"]


class Doubling:
    """A reader of a user's own."""

    def configure(self, settings: dict[str, str]) -> None:
        self.topic = settings["topic"]

    def read_records(self, input_stream: Any) -> Any:
        for line in input_stream:
            yield LineRecord(self.topic, None, line * 2)

    def close(self) -> None:
        pass


def test_own_reader_by_dotted_path() -> None:
    made = make_reader(f"{__name__}.Doubling", {"topic": "t"})
    assert [each.value for each in made.read_records([b"x"])] == [b"xx"]
    with pytest.raises(ValueError, match="LineMessageReader"):
        make_reader("LineMesageReader", {"topic": "t"})
