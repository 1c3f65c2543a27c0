"""Bytes as texts and numbers, and distances on the earth."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable
from typing import Any

from moldau.sql.errors import KsqlException
from moldau.sql.functions.declarations import Overload, overload, scalar
from moldau.sql.functions.errors import FunctionError


def _ascii_text(value: bytes) -> str:
    return value.decode("ascii", "replace")


def _ascii_bytes(text: str) -> bytes:
    # Java writes ? for what ASCII has not got.
    return text.encode("ascii", "replace")


def _utf8_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _base64_bytes(text: str) -> bytes:
    try:
        padded = text if "=" in text else text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FunctionError(f"Illegal base64: {error}") from None


def _hex_bytes(text: str) -> bytes:
    if len(text) % 2:
        raise FunctionError(f"hexBinary needs to be even-length: {text}")
    if not re.fullmatch("[0-9A-Fa-f]*", text):
        raise FunctionError(f"contains illegal character for hexBinary: {text}")
    return bytes.fromhex(text)


def _base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


_TO_TEXT: dict[str, Callable[[bytes], str]] = {
    "hex": lambda value: value.hex().upper(),
    "utf8": _utf8_text,
    "ascii": _ascii_text,
    "base64": _base64_text,
}
_TO_BYTES: dict[str, Callable[[str], bytes]] = {
    "hex": _hex_bytes,
    "utf8": str.encode,
    "ascii": _ascii_bytes,
    "base64": _base64_bytes,
}


def _known(encoding: str) -> str:
    if encoding.lower() not in _TO_TEXT:
        raise FunctionError(
            f"Unknown encoding type '{encoding}'. "
            "Supported formats are 'hex', 'utf8', 'ascii', and 'base64'."
        )
    return encoding.lower()


def _lenient_base64(text: str) -> bytes:
    """commons-codec's decoder: what is no base64 is passed over."""
    kept = re.sub("[^A-Za-z0-9+/_-]", "", text.split("=")[0]).replace("-", "+").replace("_", "/")
    if len(kept) % 4 == 1:
        kept = kept[:-1]
    return base64.b64decode(kept + "=" * (-len(kept) % 4))


def _stripped_hex(text: str) -> str:
    if text.startswith("0x"):
        return "0" + text[2:] if len(text) % 2 else text[2:]
    if re.fullmatch("[xX]'.*'", text):
        return text[2:-1]
    return text


def _encode_hex(text: str) -> bytes:
    digits = _stripped_hex(text)
    if len(digits) % 2:
        raise FunctionError("Odd number of characters.")
    if not re.fullmatch("[0-9A-Fa-f]*", digits):
        raise FunctionError(f"Illegal hexadecimal character in {digits}")
    return bytes.fromhex(digits)


_DECODERS: dict[str, Callable[[str], bytes]] = {
    "hex": _encode_hex,
    "utf8": str.encode,
    "ascii": _ascii_bytes,
    "base64": _lenient_base64,
}
_ENCODERS: dict[str, Callable[[bytes], str]] = {**_TO_TEXT, "hex": bytes.hex}


def _encode(text: str, source: str, target: str) -> str:
    read, write = source.lower(), target.lower()
    if read not in _DECODERS or write not in _ENCODERS or read == write:
        raise FunctionError("Supported input and output encodings are: hex, utf8, ascii and base64")
    return _ENCODERS[write](_DECODERS[read](text))


def _number(size: int, code: str) -> Callable[..., Any]:
    big, little = struct.Struct(">" + code), struct.Struct("<" + code)

    def read(value: bytes, order: str = "BIG_ENDIAN") -> Any:
        upper = order.upper()
        if upper not in ("BIG_ENDIAN", "LITTLE_ENDIAN"):
            raise KsqlException(
                f"Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. Unknown byte order '{order}'."
            )
        if len(value) != size:
            raise KsqlException(f"Number of bytes must be equal to {size}, but found {len(value)}")
        return (big if upper == "BIG_ENDIAN" else little).unpack(value)[0]

    return read


def _from_bytes(result: str, size: int, code: str) -> list[Overload]:
    read = _number(size, code)
    return [
        overload(f"(BYTES value) -> {result}", read),
        overload(f"(BYTES value, STRING byteOrder) -> {result}", read),
    ]


_MILES = ("mi", "mile", "miles")
_KILOMETRES = ("km", "kilometer", "kilometers", "kilometre", "kilometres")
_RADIUS_KM = 6371
_RADIUS_MILES = 3959


def _distance(
    lat1: float | None,
    lon1: float | None,
    lat2: float | None,
    lon2: float | None,
    units: str | None = "km",
) -> float | None:
    if lat1 is None or lon1 is None or lat2 is None or lon2 is None:
        return None
    if not (-90 <= lat1 <= 90 and -90 <= lat2 <= 90):
        raise FunctionError(
            "valid latitude values for GeoDistance function are in the range of -90 to 90"
            " decimal degrees"
        )
    if not (-180 <= lon1 <= 180 and -180 <= lon2 <= 180):
        raise FunctionError(
            "valid longitude values for GeoDistance function are in the range of -180 to +180"
            " decimal degrees"
        )
    radius = _radius((units or "").strip().lower())
    haversine = math.sin(math.radians(lat2 - lat1) / 2) ** 2 + math.sin(
        math.radians(lon2 - lon1) / 2
    ) ** 2 * math.cos(math.radians(lat1)) * math.cos(math.radians(lat2))
    return 2 * math.asin(math.sqrt(haversine)) * radius


def _radius(units: str) -> float:
    if units in _MILES:
        return _RADIUS_MILES
    if not units or units in _KILOMETRES:
        return _RADIUS_KM
    names = [*_MILES, *_KILOMETRES]
    raise FunctionError(
        f"GeoDistance function units parameter must be one of {', '.join(names[:-1])} or "
        f"{names[-1]}. Values are case-insensitive."
    )


FUNCTIONS = [
    scalar(
        "bigint_from_bytes",
        "CONVERSIONS",
        "The BIGINT in 8 bytes.",
        "BIGINT_FROM_BYTES(b, 'LITTLE_ENDIAN')",
        *_from_bytes("BIGINT", 8, "q"),
    ),
    scalar(
        "double_from_bytes",
        "CONVERSIONS",
        "The DOUBLE in 8 bytes.",
        "DOUBLE_FROM_BYTES(b)",
        *_from_bytes("DOUBLE", 8, "d"),
    ),
    scalar(
        "int_from_bytes",
        "CONVERSIONS",
        "The INT in 4 bytes.",
        "INT_FROM_BYTES(b)",
        *_from_bytes("INT", 4, "i"),
    ),
    scalar(
        "encode",
        "STRING",
        "A text in another encoding: hex, utf8, ascii or base64.",
        "ENCODE('4b', 'hex', 'ascii') -> 'K'",
        overload("(STRING str, STRING inputEncoding, STRING outputEncoding) -> STRING", _encode),
    ),
    scalar(
        "from_bytes",
        "STRING",
        "Bytes as a text: in hex, utf8, ascii or base64.",
        "FROM_BYTES(b, 'utf8')",
        overload(
            "(BYTES value, STRING encoding) -> STRING",
            lambda value, encoding: _TO_TEXT[_known(encoding)](value),
        ),
    ),
    scalar(
        "to_bytes",
        "STRING",
        "The bytes that a text in hex, utf8, ascii or base64 stands for.",
        "TO_BYTES('4B', 'hex')",
        overload(
            "(STRING value, STRING encoding) -> BYTES",
            lambda text, encoding: _TO_BYTES[_known(encoding)](text),
        ),
    ),
    scalar(
        "geo_distance",
        "GEO",
        "The distance of two points on the earth, in kilometres or miles.",
        "GEO_DISTANCE(50.08, 14.43, 53.55, 9.99, 'km')",
        overload(
            "(DOUBLE lat1, DOUBLE lon1, DOUBLE lat2, DOUBLE lon2, STRING units) -> DOUBLE",
            _distance,
            nulls=True,
        ),
        overload(
            "(DOUBLE lat1, DOUBLE lon1, DOUBLE lat2, DOUBLE lon2) -> DOUBLE",
            _distance,
            nulls=True,
        ),
    ),
]
