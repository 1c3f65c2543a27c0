"""How the console producer turns lines into records: Kafka's line reader, and custom ones.

A reader is a class without arguments with `configure(settings)` (strings by name, among them
`topic`), `read_records(input_stream)` (an iterator over records; the stream gives bytes) and
`close()`. `--line-reader` takes the name of Kafka's class or the dotted path of a Python class.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.cli.console.formatters import load_class, python_path

__all__ = ["LineError", "LineMessageReader", "LineRecord", "RecordReader", "make_reader"]

Headers = tuple[tuple[str, bytes | None], ...]


class LineError(ValueError):
    """A line that is not a record, or settings of the reader that contradict each other."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """The content of a line. Custom readers may return any object with these attributes."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None


class RecordReader(Protocol):
    def configure(self, settings: Mapping[str, str]) -> None: ...

    def read_records(self, input_stream: Iterable[bytes]) -> Iterator[Any]: ...

    def close(self) -> None: ...


class LineMessageReader:
    """One record per line: [headers DELIMITER] [key SEPARATOR] value."""

    def __init__(self) -> None:
        self._topic = ""
        self._settings: dict[str, str] = {}
        self._parse_key = self._parse_headers = self._ignore_error = False
        self._null_marker: str | None = None
        # Only a terminal needs a prompt.
        self._prompt = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()

    def configure(self, settings: Mapping[str, str]) -> None:
        self._topic = settings["topic"]
        self._parse_key = _is_true(settings, "parse.key")
        self._parse_headers = _is_true(settings, "parse.headers")
        self._ignore_error = _is_true(settings, "ignore.error")
        self._key_separator = settings.get("key.separator", "\t")
        self._headers_delimiter = settings.get("headers.delimiter", "\t")
        self._headers_separator = settings.get("headers.separator", ",")
        self._headers_key_separator = settings.get("headers.key.separator", ":")
        self._null_marker = settings.get("null.marker")
        self._check_separators()
        try:
            self._split_headers = re.compile(self._headers_separator)
        except re.error as error:
            raise LineError(
                f"headers.separator '{self._headers_separator}' is not a regular expression: "
                f"{error}"
            ) from None

    def _check_separators(self) -> None:
        delimiter = ("headers.delimiter", self._headers_delimiter)
        separator = ("headers.separator", self._headers_separator)
        key_separator = ("headers.key.separator", self._headers_key_separator)
        marker = ("null.marker", self._null_marker)
        for (first, a), (second, b) in (
            (delimiter, separator),
            (delimiter, key_separator),
            (separator, key_separator),
            (marker, ("key.separator", self._key_separator)),
            (marker, separator),
            (marker, delimiter),
            (marker, key_separator),
        ):
            if a == b:
                raise LineError(f"{first} and {second} may not be equal")

    def read_records(self, input_stream: Iterable[bytes]) -> Iterator[LineRecord]:
        lines = iter(input_stream)
        number = 0
        while True:
            number += 1
            if self._prompt:
                print(">", end="", flush=True)
            raw = next(lines, None)
            if raw is None:
                return
            line = raw.removesuffix(b"\n").removesuffix(b"\r").decode(errors="replace")
            yield self.parse(line, number)

    def parse(self, line: str, number: int) -> LineRecord:
        """The record of a line; raises LineError if a separator is missing."""
        headers = key = None
        rest = line
        if self._parse_headers:
            headers, rest = self._cut(rest, self._headers_delimiter, "headers delimiter", number)
        if self._parse_key:
            key, rest = self._cut(rest, self._key_separator, "key separator", number, line)
        return LineRecord(
            self._topic,
            None if key is None else self._bytes(key),
            self._bytes(rest),
            () if headers is None else self._parsed_headers(headers, number),
        )

    def close(self) -> None:
        pass

    def _cut(
        self, text: str, separator: str, name: str, number: int, line: str | None = None
    ) -> tuple[str | None, str]:
        before, found, after = text.partition(separator)
        if found:
            return before, after
        if self._ignore_error:
            return None, text
        shown = text if line is None else line
        raise LineError(f"No {name} found on line number {number}: '{shown}'")

    def _bytes(self, text: str) -> bytes | None:
        return None if text == self._null_marker else text.encode()

    def _parsed_headers(self, text: str, number: int) -> Headers:
        if text == self._null_marker:
            return ()
        pairs = self._split_headers.split(text)
        # Java drops empty pieces at the end.
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        headers: list[tuple[str, bytes | None]] = []
        for pair in pairs:
            name, found, value = pair.partition(self._headers_key_separator)
            if not found:
                if not self._ignore_error:
                    raise LineError(
                        f"No header key separator found in pair '{pair}' on line number {number}"
                    )
                headers.append((pair, None))
                continue
            if name == self._null_marker:
                raise LineError(
                    f"Header keys should not be equal to the null marker '{self._null_marker}' "
                    "as they can't be null"
                )
            headers.append((name, self._bytes(value)))
        return tuple(headers)


def make_reader(name: str, settings: Mapping[str, str]) -> RecordReader:
    """The reader of that name, configured; raises ValueError if there is none."""
    known = ("org.apache.kafka.tools.LineMessageReader", "LineMessageReader")
    path = python_path(name)
    kind = LineMessageReader if name in known else load_class(path, known, "line reader")
    reader: RecordReader = kind()
    reader.configure(settings)
    return reader


def _is_true(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "false").strip().lower() == "true"
