"""Where configurations and states are kept: in memory (standalone) or in topics (distributed).

`write` returns when the records are applied, so that whoever asks next sees them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from moldau.connect.machine.config_state import Change, ConfigState
from moldau.connect.machine.status_state import StatusState
from moldau.connect.runtime.topic_log import TopicLog

Record = tuple[str, bytes | None]
OnChange = Callable[[Change], None]


class ConfigStore(Protocol):
    state: ConfigState

    def write(self, records: Sequence[Record]) -> None: ...

    def refresh(self) -> None: ...


class StatusStore(Protocol):
    state: StatusState

    def send(self, record: Record) -> None: ...


class MemoryConfig:
    """`on_change` is called in the thread that writes."""

    def __init__(self, on_change: OnChange) -> None:
        self.state = ConfigState()
        self._on_change = on_change
        self._lock = threading.Lock()

    def write(self, records: Sequence[Record]) -> None:
        changes = []
        with self._lock:
            for key, value in records:
                change = self.state.replay(key, value, self.state.offset)
                if change is not None:
                    changes.append(change)
        for each in changes:
            self._on_change(each)

    def refresh(self) -> None: ...


class TopicConfig:
    """`on_change` is called in the thread that reads the topic, after the start."""

    def __init__(self, on_change: OnChange) -> None:
        self.state = ConfigState()
        self._on_change = on_change
        self.log: TopicLog | None = None
        self.started = False

    def apply(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        change = self.state.replay(None if key is None else key.decode(), value, offset)
        if change is not None and self.started:
            self._on_change(change)

    def write(self, records: Sequence[Record]) -> None:
        log = self._open()
        log.write(list(records))
        log.read_to_end()

    def refresh(self) -> None:
        self._open().read_to_end()

    def _open(self) -> TopicLog:
        if self.log is None:
            raise RuntimeError("the config topic is not open")
        return self.log


class MemoryStatus:
    def __init__(self) -> None:
        self.state = StatusState()

    def send(self, record: Record) -> None:
        self.state.replay(*record)


class TopicStatus:
    """A worker's own states count at once, others' when the topic has them."""

    def __init__(self) -> None:
        self.state = StatusState()
        self.log: TopicLog | None = None

    def apply(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        self.state.replay(None if key is None else key.decode(), value)

    def send(self, record: Record) -> None:
        self.state.replay(*record)
        if self.log is not None:
            self.log.send(*record)
