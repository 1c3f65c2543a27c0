"""Names of Kerberos principals, and how they become names of users.

Decided here: `sasl.kerberos.principal.to.local.rules`. The first rule that applies gives the name;
DEFAULT takes the first part of a principal of the default realm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from moldau.config.errors import ConfigError

__all__ = ["KerberosName", "NoMatchingRule", "PrincipalRule", "parse_rules", "short_name"]

_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)|"
    r"RULE:\[(?P<count>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<global>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER: Final = re.compile(r"([^$]*)(?:\$(\d*))?")
_NON_SIMPLE: Final = re.compile(r"[/@]")


class NoMatchingRule(Exception):
    """No rule applies to a principal, or the one that does gives no simple name."""


class KerberosName(NamedTuple):
    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, principal: str) -> KerberosName:
        found = _NAME.fullmatch(principal)
        if found is not None:
            return cls(found[1], found[2], found[3])
        if "@" in principal:
            raise ValueError(f"Malformed Kerberos name: {principal}")
        return cls(principal, None, None)

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        realm = "" if self.realm is None else f"@{self.realm}"
        return f"{self.service}{host}{realm}"


class PrincipalRule(NamedTuple):
    text: str
    is_default: bool = False
    component_count: int = 0
    format: str = ""
    match: str | None = None
    from_pattern: str | None = None
    to_pattern: str | None = None
    repeat: bool = False
    to_lower: bool = False
    to_upper: bool = False


def parse_rules(key: str, texts: Sequence[str]) -> tuple[PrincipalRule, ...]:
    rules = []
    for text in texts or ("DEFAULT",):
        found = _RULE.fullmatch(text.strip())
        if found is None:
            raise ConfigError.invalid(
                key, text, "a rule is DEFAULT or RULE:[n:format](regex)s/pattern/replacement/g/L"
            )
        if found["default"]:
            rules.append(PrincipalRule(text.strip(), is_default=True))
            continue
        for part in ("match", "from"):
            try:
                re.compile(found[part] or "")
            except re.error as error:
                raise ConfigError.invalid(
                    key, text, f"{found[part]} is no regular expression: {error}"
                ) from None
        rules.append(
            PrincipalRule(
                text.strip(),
                component_count=int(found["count"] or 0),
                format=found["format"],
                match=found["match"],
                from_pattern=found["from"],
                to_pattern=found["to"],
                repeat=found["global"] == "g",
                to_lower=found["case"] == "L",
                to_upper=found["case"] == "U",
            )
        )
    return tuple(rules)


def short_name(rules: Sequence[PrincipalRule], default_realm: str, principal: str) -> str:
    """The user that a principal stands for; raises NoMatchingRule or ValueError."""
    name = KerberosName.parse(principal)
    if name.realm is None and name.host is None:
        return name.service
    parameters = [name.realm or "", name.service]
    if name.host is not None:
        parameters.append(name.host)
    for rule in rules:
        result = _apply(rule, default_realm, parameters)
        if result is not None:
            return result
    shown = ", ".join(rule.text for rule in rules)
    raise NoMatchingRule(f"No rules apply to {name}, rules [{shown}]")


def _apply(rule: PrincipalRule, default_realm: str, parameters: Sequence[str]) -> str | None:
    result: str | None = None
    if rule.is_default:
        if parameters[0] == default_realm:
            result = parameters[1]
    elif len(parameters) - 1 == rule.component_count:
        base = _replace_parameters(rule.format, parameters)
        if rule.match is None or re.fullmatch(rule.match, base):
            result = base if rule.from_pattern is None else _substitute(rule, base)
    if result is None:
        return None
    if _NON_SIMPLE.search(result):
        raise NoMatchingRule(f"Non-simple name {result} after auth_to_local rule {rule.text}")
    if rule.to_lower:
        return result.lower()
    return result.upper() if rule.to_upper else result


def _replace_parameters(text: str, parameters: Sequence[str]) -> str:
    result = []
    for found in _PARAMETER.finditer(text):
        result.append(found[1])
        if found[2]:
            index = int(found[2])
            if index >= len(parameters):
                raise NoMatchingRule(f"index {index} from {text} is outside of the valid range")
            result.append(parameters[index])
    return "".join(result)


def _substitute(rule: PrincipalRule, base: str) -> str:
    """With Java's replacement syntax: $1 is a group, a backslash takes the next one literally."""
    template = rule.to_pattern or ""
    count = 0 if rule.repeat else 1

    def expand(found: re.Match[str]) -> str:
        def part(token: re.Match[str]) -> str:
            if token[1] is not None:
                return token[1]
            return found[int(token[2])] or ""

        return re.sub(r"\\(.)|\$(\d)", part, template)

    return re.sub(rule.from_pattern or "", expand, base, count=count)
