"""JSON as services write and read it: UTF-8, no spaces, strict, whatever the bytes are.

The standard library's codec: it keeps integers of any size, which faster ones turn into floats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

from moldau.http.machine.errors import bad_json

__all__ = ["dump_json", "encode_json", "load_all_json", "load_json"]

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


def _encoder() -> Callable[[Any], str]:
    """As `json.dumps` without spaces. The encoder in C is made once: `json.dumps` makes one for
    each call, which takes longer than to encode a small value."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

    def refuse(value: Any) -> NoReturn:
        raise TypeError(f"{type(value).__name__} is not JSON")

    encode = make(None, refuse, json.encoder.encode_basestring, None, ":", ",", False, False, True)

    def encoded(value: Any) -> str:
        return "".join(encode(value, 0))

    return encoded


encode_json = _encoder()


def dump_json(value: Any) -> bytes:
    return encode_json(value).encode()


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def load_json(data: bytes) -> Any:
    """Raises HttpError with 400."""
    if not data.strip():
        raise bad_json("it is empty")
    return _guarded(data, _decoder.decode)


def load_all_json(data: bytes) -> list[Any]:
    """The values of concatenated JSON, or the elements of one array. Raises HttpError with 400."""
    found: list[Any] = _guarded(data, _decode_all)
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _decode_all(text: str) -> list[Any]:
    found, at, end = [], 0, len(text)
    while (at := _SPACE.match(text, at).end()) < end:  # type: ignore[union-attr]
        value, at = _decoder.raw_decode(text, at)
        found.append(value)
    return found


def _guarded(data: bytes, decode: Callable[[str], Any]) -> Any:
    try:
        value = decode(data.decode())
        if _SURROGATE.search(data):
            # A half of a surrogate pair is no text: it could not be written anywhere.
            dump_json(value)
    except UnicodeError:
        raise bad_json("it is not UTF-8") from None
    except RecursionError:
        raise bad_json("it is nested too deeply") from None
    except ValueError as error:
        raise bad_json(str(error)[:200]) from None
    return value
