"""Producers without transactions, kept for the next writer with the same settings.

A streaming query makes a writer for every batch and task; a producer made anew would connect, ask
for metadata and for a producer id every time. What always holds: who is given a producer has it
alone, and none that has failed or has something left to send is given on; a producer is used in the
process that made it only; at most `IDLE_MAX` wait for somebody, the ones used last.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from moldau.client.producer import Producer

__all__ = ["IDLE_MAX", "close_idle", "give_back", "take"]

IDLE_MAX = 2

_Key = frozenset[tuple[str, str]]

_lock = threading.Lock()
# The one that was used last comes last.
_idle: list[tuple[_Key, Producer]] = []
# Producers of the process that this one was forked from are never touched, not even collected.
_inherited: list[list[tuple[_Key, Producer]]] = []


def _after_fork() -> None:
    global _idle, _lock
    _lock = threading.Lock()
    if _idle:
        _inherited.append(_idle)
        _idle = []


os.register_at_fork(after_in_child=_after_fork)


def take(settings: Mapping[str, Any]) -> Producer:
    """One that waits, or a new one."""
    key = _key(settings)
    with _lock:
        for index in reversed(range(len(_idle))):
            if _idle[index][0] == key:
                return _idle.pop(index)[1]
    return Producer(settings)


def give_back(settings: Mapping[str, Any], producer: Producer) -> None:
    """Of a producer that is sound, and has sent all that it was given."""
    with _lock:
        _idle.append((_key(settings), producer))
        surplus = _idle[: max(0, len(_idle) - IDLE_MAX)]
        del _idle[: len(surplus)]
    for _, each in surplus:
        each.close(0)


def close_idle() -> None:
    """Close every producer that nobody uses now."""
    with _lock:
        surplus = list(_idle)
        _idle.clear()
    for _, each in surplus:
        each.close(0)


def _key(settings: Mapping[str, Any]) -> _Key:
    return frozenset((name, str(value)) for name, value in settings.items())
