"""One event is one line of the log, whatever a client put into the names that it shows."""

from __future__ import annotations

import logging
import sys

import pytest

from moldau.broker.log_lines import LineFormatter


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("orders", "orders"),
        ("Größe 日本語", "Größe 日本語"),
        ("a\n[2026-11-17 05:00:00,000] INFO all is well", "a\\n[2026-11-17 05:00:00,000] INFO all"),
        ("a\r\x1b[2Jb", "a\\r\\x1b[2Jb"),
        ("a\x00b\x85c\u2028d", "a\\x00b\\x85c\\u2028d"),
    ],
)
def test_control_characters_of_a_name_are_escaped(name: str, shown: str) -> None:
    record = logging.LogRecord("moldau", logging.INFO, "", 0, "topic %s", (name,), None)
    line = LineFormatter().format(record)
    assert shown in line
    assert len(line.splitlines()) == 1


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        record = logging.LogRecord("moldau", logging.ERROR, "", 0, "failed", (), sys.exc_info())
    assert "\nValueError: wrong" in LineFormatter().format(record)
