"""The names in a certificate: its subject as Java prints it (X500Principal.getName, RFC 2253), and
its alternative names.

Mapping rules and ACLs are written for that text, so it is made from the certificate itself: the
last relative name first, Java's eight keywords, everything else by its number and encoded value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["InvalidCertificate", "alternative_names", "subject_name"]

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
#: How the string types of ASN.1 are decoded; values of other types are printed in hexadecimal.
_ENCODINGS: Final = {
    0x0C: "utf-8",  # UTF8String
    0x13: "ascii",  # PrintableString
    0x14: "latin-1",  # TeletexString
    0x16: "ascii",  # IA5String
    0x1B: "ascii",  # GeneralString
    0x1C: "utf-32-be",  # UniversalString
    0x1E: "utf-16-be",  # BMPString
}
_ESCAPED: Final = frozenset(',+"\\<>;=#')


class InvalidCertificate(ValueError):
    """Not a certificate in DER."""


def subject_name(certificate: bytes) -> str:
    """The distinguished name of the subject of a certificate in DER."""
    try:
        return ",".join(reversed([_relative_name(each) for each in _subject(certificate)]))
    except (IndexError, StopIteration, UnicodeDecodeError) as error:
        raise InvalidCertificate(f"not a certificate in DER: {error}") from None


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """The subject's alternative names, as they are encoded: enough to compare them."""
    try:
        for part in _signed_parts(certificate):
            if part.tag == _EXTENSIONS:
                for extension in _elements(next(_elements(part.content)).content):
                    number, *_, value = _elements(extension.content)
                    if _object_id(number.content) == _ALTERNATIVE_NAMES:
                        names = next(_elements(value.content))
                        return frozenset(each.encoded for each in _elements(names.content))
    except (IndexError, StopIteration) as error:
        raise InvalidCertificate(f"not a certificate in DER: {error}") from None
    return frozenset()


class _Value:
    """One element: its tag, its content and its whole encoding."""

    __slots__ = ("content", "encoded", "tag")

    def __init__(self, tag: int, content: bytes, encoded: bytes) -> None:
        self.tag = tag
        self.content = content
        self.encoded = encoded


def _elements(data: bytes) -> Iterator[_Value]:
    position = 0
    while position < len(data):
        tag, size, start = data[position], data[position + 1], position + 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[start : start + count], "big")
            start += count
        end = start + size
        if end > len(data):
            raise InvalidCertificate("not a certificate in DER: it is cut off")
        yield _Value(tag, data[start:end], data[position:end])
        position = end


def _signed_parts(certificate: bytes) -> list[_Value]:
    """What the CA has signed, without the version."""
    whole = next(_elements(certificate))
    signed = list(_elements(next(_elements(whole.content)).content))
    return signed[1:] if signed[0].tag == _VERSION else signed


def _subject(certificate: bytes) -> list[_Value]:
    """The relative names: serial, signature, issuer and validity come before."""
    subject = _signed_parts(certificate)[4]
    if subject.tag != _SEQUENCE:
        raise InvalidCertificate("not a certificate in DER: it has no subject")
    return list(_elements(subject.content))


def _relative_name(value: _Value) -> str:
    return "+".join(_attribute(each) for each in _elements(value.content))


def _attribute(value: _Value) -> str:
    kind, text = _elements(value.content)
    number = _object_id(kind.content)
    keyword = _KEYWORDS.get(number)
    encoding = _ENCODINGS.get(text.tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{text.encoded.hex()}"
    return f"{keyword}={_escaped(text.content.decode(encoding))}"


def _object_id(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = (number << 7) | (byte & 0x7F)
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _escaped(text: str) -> str:
    parts = ["\\00" if each == "\0" else f"\\{each}" if each in _ESCAPED else each for each in text]
    leading = len(text) - len(text.lstrip(" \r"))
    trailing = len(text.rstrip(" \r"))
    for index, each in enumerate(text):
        if each in " \r" and (index < leading or index >= trailing):
            parts[index] = f"\\{each}"
    return "".join(parts)
