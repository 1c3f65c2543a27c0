"""JAAS lines as users of Kafka write them: `<login module> required name="value" ...;`.

Decided here: which login modules are known, and what their options are. A module is named by its
Java class, in full or by its last part. As in Kafka a line may name several modules; clients use
exactly one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from moldau.config.errors import ConfigError

__all__ = [
    "PASSWORD_MECHANISMS",
    "JaasEntry",
    "example_line",
    "find_entry",
    "jaas_line",
    "parse_jaas",
]

KERBEROS_MODULE: Final = "Krb5LoginModule"
MODULE_OF_MECHANISM: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "GSSAPI": KERBEROS_MODULE,
}
#: Those that log in with a user name and a password.
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_EXAMPLES: Final = {
    "PlainLoginModule": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="alice" password="...";'
    ),
    "ScramLoginModule": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="alice" password="...";'
    ),
    "OAuthBearerLoginModule": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    ),
    KERBEROS_MODULE: (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
        'keyTab="/path/to/file.keytab" principal="alice@REALM";'
    ),
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/"
    r'|"(?P<double>(?:[^"\\]|\\.)*)"'
    r"|'(?P<single>(?:[^'\\]|\\.)*)'"
    r"|(?P<mark>[=;{}])"
    r"|(?P<word>[^\s=;{}\"']+)",
    re.DOTALL,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """One login module; its options are never printed, since they hold passwords."""

    module: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def short_module(self) -> str:
        return self.module.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_mark: bool


def example_line(mechanism: str) -> str:
    """A JAAS line for a mechanism, for error messages."""
    return _EXAMPLES[MODULE_OF_MECHANISM.get(mechanism, "PlainLoginModule")]


def jaas_line(mechanism: str, options: Mapping[str, str]) -> str:
    """The line that `parse_jaas` reads back."""
    module = example_line(mechanism).partition(" ")[0]
    written = "".join(f' {name}="{_escaped(value)}"' for name, value in options.items())
    return f"{module} required{written};"


def _escaped(value: str) -> str:
    for character, letter in (("\\", "\\"), ('"', '"'), ("\n", "n"), ("\r", "r"), ("\t", "t")):
        value = value.replace(character, f"\\{letter}")
    return value


def parse_jaas(key: str, text: str) -> tuple[JaasEntry, ...]:
    """The entries of a line; raises ConfigError, which names `key` and shows no option's value."""
    tokens = _tokens(key, text)
    entries: list[JaasEntry] = []
    position = 0
    while position < len(tokens):
        entry, position = _entry(key, tokens, position)
        entries.append(entry)
    if not entries:
        raise _invalid(key, "it is empty")
    return tuple(entries)


def find_entry(key: str, text: str, mechanism: str) -> JaasEntry:
    """The entry that a mechanism uses; a module of the user's own class fits every mechanism."""
    entries = parse_jaas(key, text)
    wanted = MODULE_OF_MECHANISM.get(mechanism)
    known = set(MODULE_OF_MECHANISM.values())
    for entry in entries:
        if entry.short_module == wanted or entry.short_module not in known:
            return entry
    raise ConfigError(
        f"{key} has the login module {entries[0].short_module}, which {mechanism} does not use. "
        f"Write: {example_line(mechanism)}",
        key=key,
    )


def _tokens(key: str, text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _invalid(key, "a quotation mark is not closed")
        position = found.end()
        for group in ("double", "single"):
            if found[group] is not None:
                tokens.append(_Token(_unescape(found[group]), False))
        if found["mark"] is not None:
            tokens.append(_Token(found["mark"], True))
        elif found["word"] is not None:
            tokens.append(_Token(found["word"], False))
    return tokens


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


def _entry(key: str, tokens: Sequence[_Token], position: int) -> tuple[JaasEntry, int]:
    def word(what: str) -> str:
        nonlocal position
        if position >= len(tokens) or tokens[position].is_mark:
            raise _invalid(key, f"{what} is missing")
        position += 1
        return tokens[position - 1].text

    def mark(text: str) -> bool:
        nonlocal position
        if position < len(tokens) and tokens[position] == _Token(text, True):
            position += 1
            return True
        return False

    module = word("the login module")
    flag = word("the control flag").lower()
    if flag not in _FLAGS:
        raise _invalid(key, f"the control flag must be one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    while not mark(";"):
        if position >= len(tokens):
            raise _invalid(key, "the semicolon at the end is missing")
        name = word("the name of an option")
        if not mark("="):
            raise _invalid(key, f"the option {name} has no value")
        options[name] = word(f"the value of {name}")
    return JaasEntry(module, flag, options), position


def _invalid(key: str, problem: str) -> ConfigError:
    return ConfigError(
        f"Invalid value [hidden] for configuration {key}: {problem}. "
        f"An example: {_EXAMPLES['ScramLoginModule']}",
        key=key,
    )
