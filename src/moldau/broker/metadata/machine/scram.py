"""SCRAM credentials as the storage tool takes them: SCRAM-SHA-256=[name=alice,password=secret].

The password itself is never stored, only what RFC 5802 lets a server check it with.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

from moldau.security.machine.scram import ScramMechanism, credential_of, salted_password
from moldau.wire.messages import UserScramCredentialRecord

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384

_ARGUMENT = re.compile(r"\s*([^=\s]+)\s*=\s*\[(.*)\]\s*")
_KEYS = ("name", "password", "salt", "iterations", "saltedpassword")


class ScramError(ValueError):
    """An --add-scram argument that cannot be used."""


def parse_scram(argument: str, random_salt: Callable[[], bytes]) -> UserScramCredentialRecord:
    found = _ARGUMENT.fullmatch(argument)
    if found is None:
        raise ScramError(
            "Failed to parse an add-scram argument: write it as"
            " SCRAM-SHA-256=[name=alice,password=alice-secret]"
        )
    mechanism_name = found[1]
    mechanism = ScramMechanism.named(mechanism_name)
    if mechanism is None:
        raise ScramError(
            f"The add-scram mechanism {mechanism_name} is not supported; use one of"
            f" {', '.join(each.mechanism_name for each in ScramMechanism)}"
        )
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
        salted = salted_password(mechanism, values["password"].encode(), salt, iterations)
    credential = credential_of(mechanism, salted, salt, iterations)
    return UserScramCredentialRecord(
        name=values["name"],
        mechanism=mechanism.value,
        salt=salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=iterations,
    )


def _parse_values(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    rest = text.strip()
    while rest:
        found = re.match(r'\s*([a-z]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,]*)\s*(?:,|$)', rest)
        if found is None or found[1] not in _KEYS:
            # Only what stands before the value, which may be a password.
            name = rest.partition("=")[0].strip() if "=" in rest else "a part without '='"
            raise ScramError(f"add-scram cannot use {name}; the keys are {', '.join(_KEYS)}")
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
        raise ScramError(f"the value of add-scram {name} is not base64") from None
