"""The monitor's file: what is watched, what is promised, and where alerts go.

cluster: {bootstrap.servers: "127.0.0.1:9092"}
interval_seconds: 10
lag: {stuck_after_seconds: 60, seconds_max: 300, exclude: "^console-"}
canary: {interval_seconds: 1, timeout_ms: 5000}
history: {nodes: ["http://127.0.0.1:9644/metrics"], interval_seconds: 60, slots: 1440}
objectives:
  - {name: writes, kind: availability, target: 99.9}
  - {name: fast, kind: latency, target: 99, threshold_ms: 100}
  - {name: fresh, kind: lag, target: 99, threshold_seconds: 30, group: payments}
alerts:
  holds_seconds: 30
  webhook: {url: "http://127.0.0.1:9093/api/v2/alerts"}
  command: {run: ["/usr/local/bin/page", "--team", "data"]}
  email: {host: 127.0.0.1, port: 25, from: moldau@example.com, to: [ops@example.com]}
  topic: {name: alerts}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.monitoring.machine.objectives import Objective

__all__ = ["MonitorConfig", "MonitorConfigError", "read_config"]


class MonitorConfigError(ValueError):
    """The file is wrong; the message says where and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailTarget:
    host: str
    port: int
    sender: str
    recipients: tuple[str, ...]
    user: str = ""
    password: str = ""
    starttls: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTargets:
    holds_s: float = 0.0
    webhook: str = ""
    command: tuple[str, ...] = ()
    email: EmailTarget | None = None
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorConfig:
    cluster: Mapping[str, str] = field(default_factory=dict)
    interval_s: float = 10.0
    stuck_after_s: float = 60.0
    #: A group further behind than this is an alert; None: no limit.
    lag_seconds_max: float | None = None
    exclude: re.Pattern[str] | None = None
    #: None: no canary.
    canary_interval_s: float | None = None
    canary_topic: str = "__moldau_canary"
    canary_timeout_ms: int = 5_000
    #: Addresses of `/metrics` whose readings go to `__moldau_metrics`.
    history_nodes: tuple[str, ...] = ()
    history_interval_s: float = 60.0
    history_slots: int = 1_440
    objectives: tuple[Objective, ...] = ()
    targets: AlertTargets = AlertTargets()


class _Section:
    """Reads a mapping, and knows what is left over."""

    def __init__(self, value: Any, where: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise MonitorConfigError(f"{where}: write a mapping of names to values")
        self._values = dict(value)
        self._where = where

    def take(self, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        value = self._values.pop(name, default)
        if value is default:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and bool not in _kinds(kind)):
            names = " or ".join(each.__name__ for each in _kinds(kind))
            raise MonitorConfigError(f"{self._where}.{name} is {value!r}: write {names}")
        return value

    def number(self, name: str, default: float | None, at_least: float = 0.0) -> Any:
        value = self.take(name, (int, float), default)
        if value is not None and value < at_least:
            raise MonitorConfigError(f"{self._where}.{name} is {value}: at least {at_least:g}")
        return value

    def section(self, name: str) -> _Section | None:
        if name not in self._values:
            return None
        return _Section(self._values.pop(name), f"{self._where}.{name}")

    def need(self, name: str, kind: type | tuple[type, ...]) -> Any:
        value = self.take(name, kind)
        if value is None:
            raise MonitorConfigError(f"{self._where}.{name} is missing")
        return value

    def end(self) -> None:
        if self._values:
            names = ", ".join(map(str, self._values))
            raise MonitorConfigError(f"{self._where}: unknown: {names}")


def _kinds(kind: type | tuple[type, ...]) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def read_config(data: Any) -> MonitorConfig:
    """From the file's content, as plain data."""
    top = _Section(data, "monitor")
    lag = top.section("lag") or _Section({}, "monitor.lag")
    canary = top.section("canary")
    history = top.section("history") or _Section({"nodes": []}, "monitor.history")
    exclude = lag.take("exclude", str)
    try:
        pattern = None if exclude is None else re.compile(exclude)
    except re.error as error:
        raise MonitorConfigError(f"monitor.lag.exclude is not a pattern: {error}") from None
    found = MonitorConfig(
        cluster={
            str(key): str(value) for key, value in (top.take("cluster", dict, {}) or {}).items()
        },
        interval_s=top.number("interval_seconds", 10.0, 0.1),
        stuck_after_s=lag.number("stuck_after_seconds", 60.0),
        lag_seconds_max=lag.number("seconds_max", None),
        exclude=pattern,
        canary_interval_s=None if canary is None else canary.number("interval_seconds", 1.0, 0.05),
        canary_topic="__moldau_canary" if canary is None else canary.take(
            "topic", str, "__moldau_canary"
        ),
        canary_timeout_ms=5_000 if canary is None else int(canary.number("timeout_ms", 5_000, 1)),
        history_nodes=tuple(map(str, history.need("nodes", list))),
        history_interval_s=history.number("interval_seconds", 60.0, 1.0),
        history_slots=int(history.number("slots", 1_440, 1)),
        objectives=_objectives(top.take("objectives", list, [])),
        targets=_targets(top.section("alerts")),
    )  # fmt: skip
    for section in (lag, canary, history, top):
        if section is not None:
            section.end()
    needs_canary = any(each.kind != "lag" for each in found.objectives)
    if needs_canary and found.canary_interval_s is None:
        raise MonitorConfigError(
            "monitor.objectives: availability and latency need the canary: add canary: {}"
        )
    return found


def _objectives(items: list[Any]) -> tuple[Objective, ...]:
    found = []
    for number, item in enumerate(items):
        section = _Section(item, f"monitor.objectives[{number}]")
        kind = section.need("kind", str)
        if kind not in ("availability", "latency", "lag"):
            raise MonitorConfigError(
                f"monitor.objectives[{number}].kind is {kind!r}: write availability, latency or lag"
            )
        target = section.need("target", (int, float))
        if not 0 < target < 100:
            raise MonitorConfigError(
                f"monitor.objectives[{number}].target is {target}: a percentage below 100"
            )
        threshold = {
            "latency": lambda s=section: s.need("threshold_ms", (int, float)),
            "lag": lambda s=section: s.need("threshold_seconds", (int, float)),
        }.get(kind, lambda: 0.0)()
        found.append(
            Objective(
                name=section.need("name", str),
                kind=kind,
                target=target / 100,
                period_s=section.number("period_days", 30.0, 0.0001) * 86_400,
                threshold=threshold,
                group=section.take("group", str, ""),
                long_window_s=section.number("long_window_seconds", 3_600.0, 1.0),
                short_window_s=section.number("short_window_seconds", 300.0, 1.0),
            )
        )
        section.end()
    return tuple(found)


def _targets(section: _Section | None) -> AlertTargets:
    if section is None:
        return AlertTargets()
    webhook, command = section.section("webhook"), section.section("command")
    email, topic = section.section("email"), section.section("topic")
    mail = None
    if email is not None:
        recipients = email.need("to", list)
        mail = EmailTarget(
            host=email.need("host", str),
            port=int(email.number("port", 25, 1)),
            sender=email.need("from", str),
            recipients=tuple(map(str, recipients)),
            user=email.take("user", str, ""),
            password=email.take("password", str, ""),
            starttls=email.take("starttls", bool, False),
        )
    found = AlertTargets(
        holds_s=section.number("holds_seconds", 0.0),
        webhook="" if webhook is None else webhook.need("url", str),
        command=() if command is None else tuple(map(str, command.need("run", list))),
        email=mail,
        topic="" if topic is None else topic.need("name", str),
    )
    for each in (webhook, command, email, topic, section):
        if each is not None:
            each.end()
    return found
