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
    "topic.enable",
    "topic.partitions",
    "topic.replication.factor",
    "topic.retention.ms",
    "events",
    "operations",
    "resources",
    "principals",
    "exclude.principals",
    "sample.every",
)


DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTopicSettings:
    """How the topic is created; one that exists stays as it is."""

    partitions: int
    #: None: offsets.topic.replication.factor.
    replication_factor: int | None
    retention_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    #: Empty: no file.
    path: str
    #: None: not to the topic.
    topic: AuditTopicSettings | None
    selection: Selection


def audit_settings(settings: Mapping[str, str]) -> AuditSettings | None:
    """None if nothing is to be audited; raises ConfigError that names the key."""
    for name in settings:
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in _KEYS:
            known = ", ".join(PREFIX + each for each in _KEYS)
            raise ConfigError(f"Unknown configuration {name}: use one of {known}", key=name)
    path = settings.get(PREFIX + "file", "").strip()
    topic = _topic(settings)
    if not path and topic is None:
        return None
    return AuditSettings(
        path=path,
        topic=topic,
        selection=Selection(
            kinds=_kinds(settings),
            operations=[each.upper() for each in _list(settings, "operations")],
            resources=_list(settings, "resources"),
            principals=_list(settings, "principals"),
            excluded_principals=_list(settings, "exclude.principals"),
            every=_number(settings, "sample.every", 1),
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


def _topic(settings: Mapping[str, str]) -> AuditTopicSettings | None:
    name = PREFIX + "topic.enable"
    text = settings.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise ConfigError.invalid(name, text, "use true or false")
    factor = "topic.replication.factor"
    topic = AuditTopicSettings(
        partitions=_number(settings, "topic.partitions", 3),
        replication_factor=_number(settings, factor, 1) if PREFIX + factor in settings else None,
        retention_ms=_number(settings, "topic.retention.ms", 7 * DAY_MS),
    )
    return topic if text == "true" else None


def _number(settings: Mapping[str, str], name: str, default: int) -> int:
    text = settings.get(PREFIX + name, str(default)).strip()
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError.invalid(PREFIX + name, text, "must be at least 1")
    return int(text)
