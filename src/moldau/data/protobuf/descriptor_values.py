"""How a descriptor writes names and defaults: small rules of protoc, exactly."""

from __future__ import annotations

import math
import struct

from moldau.data.protobuf.model import Text, Value, Word

_UNSIGNED = frozenset(("uint32", "uint64", "fixed32", "fixed64"))
_INTEGERS = _UNSIGNED | {"int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64"}
_ESCAPES = {
    ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord('"'): '\\"', ord("'"): "\\'",
    ord("\\"): "\\\\",
}  # fmt: skip
_DIGITS_MAX = 400


def json_name(name: str) -> str:
    """`my_field` as `myField`."""
    first, *others = name.split("_")
    return first + "".join(_capital(part) for part in others)


def map_entry_name(name: str) -> str:
    """The name of the message that holds an entry of the map field."""
    return "".join(_capital(part) for part in name.split("_")) + "Entry"


def _capital(part: str) -> str:
    return part[:1].upper() + part[1:]


def escaped(data: bytes) -> str:
    """Bytes as a descriptor writes them: everything but printable ASCII in octal."""
    return "".join(
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in data
    )


def default_text(type_name: str, value: Value) -> str:
    """The default of a field as a descriptor has it; ValueError if it is not of the type."""
    match value:
        case Text(data) if type_name == "string":
            return data.decode()
        case Text(data) if type_name == "bytes":
            return escaped(data)
        case Word(_, text) if type_name == "bool" and text in ("true", "false"):
            return text
        case Word(_, text) if type_name in _INTEGERS:
            return str(_integer(text, type_name))
        case Word(_, text) if type_name in ("float", "double"):
            return _float(text, type_name)
        case _:
            raise ValueError(f"the default is no {type_name}")


def _integer(text: str, type_name: str) -> int:
    digits = text.removeprefix("-")
    if len(digits) > _DIGITS_MAX:
        raise ValueError(f"the default is out of the range of {type_name}")
    is_octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    number = int(digits, 8) if is_octal else int(digits, 0)
    number = -number if text.startswith("-") else number
    bits = 32 if type_name.endswith("32") else 64
    low, high = (0, 2**bits) if type_name in _UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not low <= number < high:
        raise ValueError(f"the default {text} is out of the range of {type_name}")
    return number


def _float(text: str, type_name: str) -> str:
    if text[:3] in ("0x", "0X"):
        number = float(int(text, 16))
    else:
        number = float(text.lower() if text[-3:] in ("inf", "nan") else text.rstrip("fF"))
    if math.isnan(number):
        return "nan"
    if type_name == "float":
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number = math.copysign(math.inf, number)
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    for precision in (6, 9) if type_name == "float" else (15, 17):
        shown = f"{number:.{precision}g}"
        read = float(shown)
        if type_name == "float":
            read = struct.unpack("f", struct.pack("f", read))[0]
        if read == number:
            break
    return shown
