"""`moldau.metrics.*`: where a process serves and pushes its metrics. Kafka has no such keys."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

__all__ = ["PREFIX", "MetricsSettings", "SettingsError", "metrics_settings"]

PREFIX: Final = "moldau.metrics."
_KEYS: Final = (
    "port",
    "host",
    "otlp.endpoint",
    "otlp.interval.ms",
    "otlp.headers",
    "otlp.username",
    "otlp.password",
    "otlp.bearer.token",
    "otlp.ssl.ca.location",
    "otlp.ssl.certificate.location",
    "history.interval.ms",
    "history.slots",
)
INTERVAL_MS: Final = 60_000
#: A day of minutes.
HISTORY_SLOTS: Final = 1_440

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class SettingsError(ValueError):
    """A value is wrong; `key` names it."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    #: None: no HTTP port. 0: any free one.
    port: int | None = None
    host: str = "127.0.0.1"
    #: Where OTLP is pushed, such as http://127.0.0.1:4318/v1/metrics; empty: nowhere.
    otlp_endpoint: str = ""
    otlp_interval_ms: int = INTERVAL_MS
    #: What each push carries beside the metrics: a login, a tenant.
    otlp_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: PEM files: whom to trust (empty: whom the system trusts), and this client's key and chain.
    otlp_ca: str = ""
    otlp_certificate: str = ""
    #: How often a reading is written to `__moldau_metrics`; 0: never.
    history_interval_ms: int = 0
    history_slots: int = HISTORY_SLOTS


def metrics_settings(settings: Mapping[str, str]) -> MetricsSettings:
    """Raises SettingsError, which names the key."""
    for name in settings:
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in _KEYS:
            known = ", ".join(PREFIX + each for each in _KEYS)
            raise SettingsError(f"Unknown configuration {name}: use one of {known}", name)
    port = settings.get(PREFIX + "port", "").strip()
    return MetricsSettings(
        port=_number(settings, "port", 0, at_least=0, at_most=65_535) if port else None,
        host=settings.get(PREFIX + "host", "").strip() or "127.0.0.1",
        otlp_endpoint=_endpoint(settings),
        otlp_interval_ms=_number(settings, "otlp.interval.ms", INTERVAL_MS, at_least=100),
        otlp_headers=_headers(settings),
        otlp_ca=_file(settings, "otlp.ssl.ca.location"),
        otlp_certificate=_file(settings, "otlp.ssl.certificate.location"),
        history_interval_ms=_number(settings, "history.interval.ms", 0, at_least=0),
        history_slots=_number(settings, "history.slots", HISTORY_SLOTS, at_least=1),
    )


def _headers(settings: Mapping[str, str]) -> dict[str, str]:
    """`name=value,...` with values percent-encoded, as OpenTelemetry's own variable has them, and
    the header of a login."""
    found: dict[str, str] = {}
    text = settings.get(PREFIX + "otlp.headers", "").strip()
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or not _HEADER.fullmatch(name.strip()) or "\n" in unquote(value):
            raise SettingsError(
                f"{PREFIX}otlp.headers has a part that is no header: write name=value,name=value",
                PREFIX + "otlp.headers",
            )
        found[name.strip()] = unquote(value.strip())
    user = settings.get(PREFIX + "otlp.username", "")
    token = settings.get(PREFIX + "otlp.bearer.token", "").strip()
    if user and token:
        raise SettingsError(
            f"{PREFIX}otlp.username and {PREFIX}otlp.bearer.token are two logins: set one of them",
            PREFIX + "otlp.bearer.token",
        )
    if user:
        pair = f"{user}:{settings.get(PREFIX + 'otlp.password', '')}"
        found["Authorization"] = "Basic " + b64encode(pair.encode()).decode()
    elif token:
        found["Authorization"] = f"Bearer {token}"
    return found


def _file(settings: Mapping[str, str], name: str) -> str:
    path = settings.get(PREFIX + name, "").strip()
    if path and not Path(path).is_file():
        raise SettingsError(f"{PREFIX}{name}: there is no file {path}", PREFIX + name)
    return path


def _endpoint(settings: Mapping[str, str]) -> str:
    text = settings.get(PREFIX + "otlp.endpoint", "").strip()
    if text and not text.startswith(("http://", "https://")):
        raise SettingsError(
            f"{PREFIX}otlp.endpoint is {text!r}: write http://HOST:PORT/v1/metrics",
            PREFIX + "otlp.endpoint",
        )
    return text


def _number(
    settings: Mapping[str, str], name: str, default: int, *, at_least: int, at_most: int = 2**31
) -> int:
    text = settings.get(PREFIX + name, "").strip()
    if not text:
        return default
    if not text.isdigit() or not at_least <= int(text) <= at_most:
        raise SettingsError(
            f"{PREFIX}{name} is {text!r}: write a number from {at_least} to {at_most}",
            PREFIX + name,
        )
    return int(text)
