"""Validators that only client keys need."""

from __future__ import annotations

from typing import Any

from moldau.config.durations import parse_duration_ms
from moldau.config.errors import ConfigError
from moldau.config.validators import Validator

__all__ = ["RULES"]


class _OffsetReset:
    allowed = "[latest, earliest, none, by_duration:PnDTnHnMn.nS]"

    def check(self, key: str, value: Any) -> None:
        if value in ("latest", "earliest", "none"):
            return
        prefix, _, duration = value.partition(":")
        if prefix == "by_duration" and parse_duration_ms(duration) is not None:
            return
        raise ConfigError.invalid(key, value, f"must be one of {self.allowed}")


RULES: dict[str, Validator] = {"offset_reset": _OffsetReset()}
