"""The broker's log levels as a config resource that can be changed while it runs.

Names are those of Python's loggers with `root` for all; levels are Kafka's words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from moldau.broker.config import validate_logger_changes

_LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
SET, DELETE = 0, 1


class BrokerLoggers:
    def __init__(self, on_changed: Callable[[], None] = lambda: None) -> None:
        self._on_changed = on_changed

    def levels(self) -> dict[str, str]:
        """Every logger of Moldau and the level it really has."""
        known = logging.root.manager.loggerDict
        names = sorted(name for name in known if name.split(".", 1)[0] == "moldau")
        levels = {"root": _word(logging.root.getEffectiveLevel())}
        for name in names:
            levels[name] = _word(logging.getLogger(name).getEffectiveLevel())
        return levels

    def alter(self, changes: Sequence[tuple[str, int, str | None]], *, validate_only: bool) -> None:
        """Check all changes, then make them: all or none."""
        validate_logger_changes(changes, self.levels())
        if validate_only:
            return
        for name, operation, level in changes:
            logger = logging.getLogger(None if name == "root" else name)
            logger.setLevel(_LEVELS[level] if operation == SET and level else logging.NOTSET)
        self._on_changed()


def _word(level: int) -> str:
    at_most = [word for word, number in _LEVELS.items() if number <= level]
    return at_most[-1] if at_most else "TRACE"
