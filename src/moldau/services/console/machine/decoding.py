"""Bytes as people read them: JSON, text, numbers, records of coordinators, or bytes.

`auto` tries JSON, then text, then shows bytes in base64. Values with a schema are decoded outside
(`values.py`), because the schema has to be fetched. What is nested too deeply to be looked into is
text, and so is what has NaN, which JSON does not know. `fitted` is what can be sent: records come
from anybody, and one of them must not break the page of all.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from typing import Any, Final, NamedTuple, NoReturn

from moldau.wire.errors import WireError
from moldau.wire.message_json import message_to_json
from moldau.wire.record_values import Family, UnknownRecordTypeError, decode_coordinator_record

__all__ = ["FORMATS", "Decoded", "decode_internal", "decode_plain", "encode_plain", "fitted"]


class Decoded(NamedTuple):
    """`kind` says what was found, `value` is what JSON can express."""

    kind: str
    value: Any
    note: str | None = None
    schema_id: int | None = None


NULL: Final = Decoded("null", None)
FORMATS: Final = ("auto", "json", "string", "bytes", "hex", "int", "long", "float", "double")
_NUMBERS: Final = {"int": ">i", "long": ">q", "float": ">f", "double": ">d"}
_FAMILIES: Final[dict[str, Family]] = {
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__share_group_state": "share",
}
_JSON_STARTS: Final = frozenset(b'{["-0123456789tfn \t\r\n')
DEPTH_MAX: Final = 200


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_read_json: Final = json.JSONDecoder(parse_constant=_refuse).decode


def _parsed(data: bytes) -> Any:
    """Raises ValueError."""
    try:
        value = _read_json(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX and _is_deep(value):
        raise ValueError("it is nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def fitted(value: Any, bytes_max: int | None) -> tuple[Any, str | None]:
    """What of a decoded value can be sent as JSON, and a note if that is not all of it."""
    if value is None or isinstance(value, bool | int):
        return value, None
    note = None
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        data = text.encode()
    except ValueError:
        # Half of a surrogate pair, or a number that JSON does not have.
        value = text = json.dumps(value)
        data, note = text.encode(), "shown as text: it has what JSON cannot express"
    if bytes_max is None or len(data) <= bytes_max:
        return value, note
    data = value.encode() if isinstance(value, str) else data
    return data[:bytes_max].decode(errors="ignore"), f"the first {bytes_max:,} bytes"


def decode_plain(data: bytes | None, format: str = "auto") -> Decoded:
    """What cannot be read in the wanted format is shown as bytes, with a note."""
    if data is None:
        return NULL
    if format == "auto":
        return _automatic(data)
    try:
        if format == "json":
            return Decoded("json", _parsed(data))
        if format == "string":
            return Decoded("string", data.decode())
        if format in _NUMBERS:
            number = struct.unpack(_NUMBERS[format], data)[0]
            # NaN and infinity as text, which `encode_plain` reads.
            return Decoded(format, number if math.isfinite(number) else str(number))
    except (ValueError, struct.error) as error:
        return _bytes(data, f"not {format}: {error}")
    if format == "hex":
        return Decoded("hex", data.hex(" "))
    return _bytes(data)


def _automatic(data: bytes) -> Decoded:
    if data and data[0] in _JSON_STARTS:
        try:
            return Decoded("json", _parsed(data))
        except ValueError:
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _bytes(data)
    if any(ord(each) < 32 and each not in "\t\r\n" for each in text):
        return _bytes(data)
    return Decoded("string", text)


def _bytes(data: bytes, note: str | None = None) -> Decoded:
    return Decoded("bytes", base64.b64encode(data).decode(), note)


def decode_internal(
    topic: str, key: bytes | None, value: bytes | None
) -> tuple[Decoded, Decoded] | None:
    """Key and value of a coordinator's topic; None for other topics and unknown records."""
    family = _FAMILIES.get(topic)
    if family is None or key is None:
        return None
    try:
        key_message, value_message = decode_coordinator_record(family, key, value)
    except (UnknownRecordTypeError, WireError, ValueError):
        return None
    kind = type(key_message).__name__.removesuffix("Key")
    shown_key = Decoded("internal", {"type": kind, **message_to_json(key_message, 0)})
    if value_message is None or value is None:
        return shown_key, NULL
    version = int.from_bytes(value[:2], "big", signed=True)
    return shown_key, Decoded("internal", message_to_json(value_message, version))


def encode_plain(format: str, value: Any) -> bytes | None:
    """What `decode_plain` reads. Raises ValueError."""
    if value is None:
        return None
    if format == "json":
        return json.dumps(value, ensure_ascii=False).encode()
    if format in ("string", "auto"):
        return (value if isinstance(value, str) else json.dumps(value)).encode()
    try:
        if format == "hex":
            return bytes.fromhex(str(value))
        if format in _NUMBERS:
            number = float(value) if format in ("float", "double") else int(value)
            return struct.pack(_NUMBERS[format], number)
        if format == "bytes":
            return base64.b64decode(str(value), validate=True)
    except (struct.error, binascii.Error, ValueError, TypeError) as error:
        raise ValueError(f"{value!r} is not {format}: {error}") from None
    raise ValueError(f"unknown format {format}: use one of {', '.join(FORMATS)}")
