"""SCRAM credentials as the storage tool takes them: SCRAM-SHA-256=[name=alice,password=secret].

The password itself is never stored, only what RFC 5802 lets a server check it with.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable

from moldau.wire.messages import UserScramCredentialRecord

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384

_ARGUMENT = re.compile(r"\s*([^=\s]+)\s*=\s*\[(.*)\]\s*")
_MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
_KEYS = ("name", "password", "salt", "iterations", "saltedpassword")


class ScramError(ValueError):
    """An --add-scram argument that cannot be used."""


def parse_scram(argument: str, random_salt: Callable[[], bytes]) -> UserScramCredentialRecord:
    found = _ARGUMENT.fullmatch(argument)
    if found is None:
        raise ScramError(
            f"Failed to parse the add-scram argument {argument!r}: write it as"
            " SCRAM-SHA-256=[name=alice,password=alice-secret]"
        )
    mechanism_name = found[1]
    if mechanism_name not in _MECHANISMS:
        raise ScramError(
            f"The add-scram mechanism {mechanism_name} is not supported; use one of"
            f" {', '.join(_MECHANISMS)}"
        )
    mechanism, digest = _MECHANISMS[mechanism_name]
    values = _parse_values(found[2])
    if "name" not in values:
        raise ScramError("You must supply 'name' to add-scram")
    iterations = _iterations(mechanism_name, values.get("iterations"))
    salt = _base64("salt", values["salt"]) if "salt" in values else random_salt()
    if ("password" in values) == ("saltedpassword" in values):
        raise ScramError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "saltedpassword" in values:
        if "salt" not in values:
            raise ScramError("You must supply 'salt' with 'saltedpassword' to add-scram")
        salted = _base64("saltedpassword", values["saltedpassword"])
    else:
        salted = hashlib.pbkdf2_hmac(digest, values["password"].encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    return UserScramCredentialRecord(
        name=values["name"],
        mechanism=mechanism,
        salt=salt,
        stored_key=hashlib.new(digest, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", digest),
        iterations=iterations,
    )


def _parse_values(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    rest = text.strip()
    while rest:
        found = re.match(r'\s*([a-z]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,]*)\s*(?:,|$)', rest)
        if found is None or found[1] not in _KEYS:
            raise ScramError(f"add-scram cannot use {rest!r}; the keys are {', '.join(_KEYS)}")
        if found[1] in values:
            raise ScramError(f"add-scram has '{found[1]}' twice")
        value = found[2].strip()
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        values[found[1]] = value
        rest = rest[found.end() :]
    return values


def _iterations(mechanism_name: str, text: str | None) -> int:
    if text is None:
        return ITERATIONS_MIN
    try:
        count = int(text)
    except ValueError:
        raise ScramError(f"add-scram iterations={text!r} is not a number") from None
    if not ITERATIONS_MIN <= count <= ITERATIONS_MAX:
        raise ScramError(
            f"The 'iterations' value must be between {ITERATIONS_MIN} and {ITERATIONS_MAX} for"
            f" add-scram {mechanism_name}, not {count}"
        )
    return count


def _base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ScramError(f"add-scram {name}={text!r} is not base64") from None
