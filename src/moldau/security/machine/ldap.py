"""The little of LDAP (RFC 4511) that a login needs: StartTLS, a simple bind, and their results.

Decided here: the bytes of requests, which results mean a wrong name or password, and which names
are accepted. A directory compares names without regard to case, spaces and forms of characters, and
ACLs do not: a user must not become another principal by another spelling.
"""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = [
    "LdapError",
    "bind_name",
    "bind_request",
    "is_canonical",
    "length_of",
    "result_of",
    "start_tls_request",
    "unbind_request",
]

#: No result of a bind is longer, unless something else than a directory answers.
MESSAGE_BYTES_MAX: Final = 64 * 1024
_LENGTH_BYTES_MAX: Final = 4

_SEQUENCE: Final = 0x30
_INTEGER: Final = 0x02
_OCTET_STRING: Final = 0x04
_ENUMERATED: Final = 0x0A
_BIND_REQUEST: Final = 0x60
_BIND_RESPONSE: Final = 0x61
_EXTENDED_REQUEST: Final = 0x77
_EXTENDED_RESPONSE: Final = 0x78
_UNBIND_REQUEST: Final = 0x42
_SIMPLE: Final = 0x80
_OID: Final = 0x80
_VERSION: Final = 3
_START_TLS: Final = b"1.3.6.1.4.1.1466.20037"

_SUCCESS: Final = 0
#: noSuchObject, invalidDNSyntax, inappropriateAuthentication, invalidCredentials: what directories
#: return for a user that does not exist, a name that cannot be one, a user without a password, and
#: a wrong password.
_WRONG: Final = frozenset({32, 34, 48, 49})


class LdapError(Exception):
    """The directory cannot be asked, or its answer is no yes and no no."""


def bind_name(template: str, user: str) -> str:
    """The template with `{user}` replaced. In a distinguished name every character that might mean
    something is escaped (RFC 4514): nobody can name another branch of the directory."""
    if "=" in template:
        user = "".join(each if each.isalnum() or each in "-_." else _escaped(each) for each in user)
    return template.replace("{user}", user)


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02x}" for byte in character.encode())


def is_canonical(user: str) -> bool:
    """Whether a directory that ignores case, spaces and forms of characters knows the user by no
    shorter or simpler name."""
    simple = " ".join(unicodedata.normalize("NFKC", user).casefold().split())
    return bool(user) and user == simple


def bind_request(message_id: int, name: str, password: str) -> bytes:
    """A simple bind. The password must not be empty: that would be an anonymous bind, which
    succeeds."""
    body = (
        _element(_INTEGER, bytes([_VERSION]))
        + _element(_OCTET_STRING, name.encode())
        + _element(_SIMPLE, password.encode())
    )
    return _message(message_id, _element(_BIND_REQUEST, body))


def start_tls_request(message_id: int) -> bytes:
    return _message(message_id, _element(_EXTENDED_REQUEST, _element(_OID, _START_TLS)))


def unbind_request(message_id: int) -> bytes:
    return _message(message_id, _element(_UNBIND_REQUEST, b""))


def length_of(header: bytes) -> int | None:
    """How much of a message follows its header; None if the header is not complete. Raises
    LdapError."""
    if len(header) < 2:
        return None
    if header[0] != _SEQUENCE:
        raise LdapError("what answers is no LDAP server")
    length = header[1]
    if length & 0x80:
        count = length & 0x7F
        if not 0 < count <= _LENGTH_BYTES_MAX:
            raise LdapError("a message of the LDAP server has an impossible length")
        if len(header) < 2 + count:
            return None
        length = int.from_bytes(header[2:], "big")
    if length > MESSAGE_BYTES_MAX:
        raise LdapError(f"a message of the LDAP server has {length} bytes")
    return length


def result_of(body: bytes, message_id: int) -> bool:
    """Whether a bind or StartTLS succeeded; `body` is a message without its header. Raises
    LdapError for results that say nothing about the user."""
    tag, found_id, rest = _take(body)
    response, content, _ = _take(rest)
    if tag != _INTEGER or int.from_bytes(found_id, "big") != message_id:
        raise LdapError("the LDAP server answers another request")
    if response not in (_BIND_RESPONSE, _EXTENDED_RESPONSE):
        raise LdapError("the LDAP server does not answer the request")
    tag, code_bytes, rest = _take(content)
    if tag != _ENUMERATED:
        raise LdapError("the LDAP server does not answer the request")
    code = int.from_bytes(code_bytes, "big")
    if code == _SUCCESS:
        return True
    if response == _BIND_RESPONSE and code in _WRONG:
        return False
    _, _, rest = _take(rest)
    _, message, _ = _take(rest)
    raise LdapError(f"result {code}: {message.decode(errors='replace')}".rstrip(": "))


def _take(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag and content of the first element, and what follows it."""
    if len(data) < 2:
        raise LdapError("a message of the LDAP server is cut off")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if start + length > len(data):
        raise LdapError("a message of the LDAP server is cut off")
    return data[0], data[start : start + length], data[start + length :]


def _message(message_id: int, operation: bytes) -> bytes:
    return _element(_SEQUENCE, _element(_INTEGER, bytes([message_id])) + operation)


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
