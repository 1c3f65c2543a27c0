"""Levels of loggers, by Log4j's names, for /admin/loggers."""

from __future__ import annotations

import logging
import time
from typing import Any

_LEVELS = {
    "ALL": logging.NOTSET + 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_NAMES = {number: name for name, number in _LEVELS.items()}
_modified: dict[str, int] = {}


def is_level(text: str) -> bool:
    return text.upper() in _LEVELS


def _name(level: int) -> str:
    return _NAMES.get(level) or _NAMES[min(_NAMES, key=lambda each: abs(each - level))]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == "root" else logging.getLogger(name)


def level_of(name: str) -> dict[str, Any] | None:
    """The effective level; None for a logger that does not exist."""
    if name != "root" and name not in logging.Logger.manager.loggerDict:
        return None
    return {
        "level": _name(_logger(name).getEffectiveLevel()),
        "last_modified": _modified.get(name),
    }


def all_levels() -> dict[str, dict[str, Any]]:
    """The loggers with a level of their own, and the root."""
    found = {"root": level_of("root") or {}}
    for name, each in sorted(logging.Logger.manager.loggerDict.items()):
        if isinstance(each, logging.Logger) and each.level:
            found[name] = level_of(name) or {}
    return found


def set_level(namespace: str, level: str) -> list[str]:
    """The loggers that were changed: this one and those below it with a level of their own."""
    number = _LEVELS.get(level.upper())
    if number is None:
        return []
    changed = [namespace]
    _logger(namespace).setLevel(number)
    below = "" if namespace == "root" else namespace + "."
    for name, each in sorted(logging.Logger.manager.loggerDict.items()):
        if isinstance(each, logging.Logger) and name.startswith(below) and each.level:
            each.setLevel(number)
            changed.append(name)
    now_ms = int(time.time() * 1000)
    for name in changed:
        _modified[name] = now_ms
    return sorted(set(changed))
