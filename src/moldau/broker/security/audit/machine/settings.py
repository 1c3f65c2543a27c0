"""The settings of the audit log: `moldau.audit.*`, which Kafka does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.broker.security.audit.machine.events import Kind
from moldau.broker.security.audit.machine.selection import Selection
from moldau.config.errors import ConfigError

PREFIX: Final = "moldau.audit."
_KEYS: Final = (
    "file",
    "events",
    "operations",
    "resources",
    "principals",
    "exclude.principals",
    "sample.every",
)


@dataclass(frozen=True, slots=True)
class AuditSettings:
    path: str
    selection: Selection


def audit_settings(settings: Mapping[str, str]) -> AuditSettings | None:
    """None if nothing is to be audited; raises ConfigError that names the key."""
    for name in settings:
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in _KEYS:
            known = ", ".join(PREFIX + each for each in _KEYS)
            raise ConfigError(f"Unknown configuration {name}: use one of {known}", key=name)
    path = settings.get(PREFIX + "file", "").strip()
    if not path:
        return None
    return AuditSettings(
        path,
        Selection(
            kinds=_kinds(settings),
            operations=[each.upper() for each in _list(settings, "operations")],
            resources=_list(settings, "resources"),
            principals=_list(settings, "principals"),
            excluded_principals=_list(settings, "exclude.principals"),
            every=_every(settings),
        ),
    )


def _list(settings: Mapping[str, str], name: str) -> list[str]:
    return [each.strip() for each in settings.get(PREFIX + name, "").split(",") if each.strip()]


def _kinds(settings: Mapping[str, str]) -> frozenset[Kind]:
    names = _list(settings, "events")
    known = {kind.value: kind for kind in Kind}
    for name in names:
        if name not in known:
            raise ConfigError.invalid(PREFIX + "events", name, f"use one of {', '.join(known)}")
    return frozenset(known[name] for name in names) or frozenset(Kind)


def _every(settings: Mapping[str, str]) -> int:
    text = settings.get(PREFIX + "sample.every", "1").strip()
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError.invalid(PREFIX + "sample.every", text, "must be at least 1")
    return int(text)
