"""Syslog messages of RFC 5424 and RFC 3164, and how they stand in a stream (RFC 6587)."""

from __future__ import annotations

import datetime
import re
from typing import Any, Final

_RFC5424: Final = re.compile(
    r"<(\d{1,3})>(\d{1,2}) (\S+) (\S+) (\S+) (\S+) (\S+) (-|(?:\[(?:[^\]\\]|\\.)*\])+) ?(.*)",
    re.DOTALL,
)
_RFC3164: Final = re.compile(
    r"<(\d{1,3})>([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (\S+) ([^:\[ ]*)(?:\[(\d+)\])?:? ?(.*)",
    re.DOTALL,
)
_PRIORITY: Final = re.compile(r"<(\d{1,3})>(.*)", re.DOTALL)
_ELEMENT: Final = re.compile(r'\[(\S+?)((?: \S+?="(?:[^"\\\]]|\\.)*")*)\]')
_PARAMETER: Final = re.compile(r' (\S+?)="((?:[^"\\\]]|\\.)*)"')
_ESCAPED: Final = re.compile(r'\\(["\\\]])')
#: A message that is longer is cut off.
BYTES_MAX: Final = 256 * 1024


def parse(text: str, *, year: int) -> dict[str, Any]:
    """The parts of a message; what cannot be read is its `message`. RFC 3164 has no year."""
    text = text.rstrip("\r\n\0").removeprefix("\ufeff")
    if match := _RFC5424.fullmatch(text):
        return _new(match)
    if match := _RFC3164.fullmatch(text):
        return _old(match, year)
    if (match := _PRIORITY.fullmatch(text)) and int(match[1]) <= 191:
        return {**_priority(int(match[1])), "type": "UNKNOWN", "message": match[2]}
    return {"type": "UNKNOWN", "message": text}


def _priority(number: int) -> dict[str, int]:
    return {"facility": number >> 3, "level": number & 7}


def _given(text: str) -> str | None:
    return None if text == "-" else text


def _new(match: re.Match[str]) -> dict[str, Any]:
    priority, version, moment, host, app, process, message_id, data, message = match.groups()
    return {
        **_priority(int(priority)),
        "type": "RFC5424",
        "version": int(version),
        "date": _milliseconds(moment),
        "host": _given(host),
        "appName": _given(app),
        "processId": _given(process),
        "messageId": _given(message_id),
        "structuredData": {} if data == "-" else _structured(data),
        "message": message.removeprefix("\ufeff"),
    }


def _milliseconds(text: str) -> int | None:
    if text == "-":
        return None
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(moment.timestamp() * 1000) if moment.tzinfo else None


def _structured(text: str) -> dict[str, dict[str, str]]:
    return {
        element[1]: {
            name: _ESCAPED.sub(r"\1", value) for name, value in _PARAMETER.findall(element[2])
        }
        for element in _ELEMENT.finditer(text)
    }


def _old(match: re.Match[str], year: int) -> dict[str, Any]:
    priority, moment, host, tag, process, message = match.groups()
    try:
        parsed = datetime.datetime.strptime(f"{year} {moment}", "%Y %b %d %H:%M:%S")
        date = int(parsed.replace(tzinfo=datetime.UTC).timestamp() * 1000)
    except ValueError:
        date = None
    return {
        **_priority(int(priority)),
        "type": "RFC3164",
        "date": date,
        "host": host,
        "appName": tag or None,
        "processId": process,
        "message": message,
    }


class Frames:
    """Cuts a stream into messages: by a length in front, or by line ends."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> list[bytes]:
        self._rest += data
        found = []
        while (frame := self._next()) is not None:
            found.append(frame)
        return found

    def _next(self) -> bytes | None:
        rest = self._rest
        if rest[:1].isdigit():
            length, space, body = rest.partition(b" ")
            if not space or not length.isdigit():
                return self._cut(rest.find(b"\n"), 1) if len(rest) > 10 else None
            size = min(int(length), BYTES_MAX)
            if len(body) < size:
                return None
            self._rest = body[size:].removeprefix(b"\n")
            return body[:size]
        end = rest.find(b"\n")
        if end < 0 and len(rest) > BYTES_MAX:
            return self._cut(BYTES_MAX, 0)
        return self._cut(end, 1)

    def _cut(self, end: int, skipped: int) -> bytes | None:
        if end < 0:
            return None
        found, self._rest = self._rest[:end], self._rest[end + skipped :]
        return found
