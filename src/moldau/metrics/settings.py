"""`moldau.metrics.*`: where a process serves and pushes its metrics. Kafka has no such keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["PREFIX", "MetricsSettings", "SettingsError", "metrics_settings"]

PREFIX: Final = "moldau.metrics."
_KEYS: Final = ("port", "host", "otlp.endpoint", "otlp.interval.ms")
INTERVAL_MS: Final = 60_000


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
    )


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
