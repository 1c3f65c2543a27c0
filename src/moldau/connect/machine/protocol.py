"""What workers send each other in the group protocol of the type `connect`.

`default` (V0, eager) has a worker's URL and how far it has read the config topic, and gets its
whole assignment. `compatible` (V1, incremental) adds what the worker runs now, and gets what is
new, what to give up, and a delay. `sessioned` (V2) is the same, and says that internal requests
are signed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.connect.machine.ids import TaskId

PROTOCOL_TYPE = "connect"
EAGER, COMPATIBLE, SESSIONED = "default", "compatible", "sessioned"
VERSIONS = {EAGER: 0, COMPATIBLE: 1, SESSIONED: 2}
#: The setting `connect.protocol` by name, and which protocols a worker offers, best first.
OFFERED = {
    "eager": (EAGER,),
    "compatible": (COMPATIBLE, EAGER),
    "sessioned": (SESSIONED, COMPATIBLE, EAGER),
}
CONNECTOR_TASK = -1
NO_ERROR, CONFIG_MISMATCH = 0, 1


class ProtocolError(ValueError):
    """Bytes that no worker has sent."""


@dataclass(frozen=True, slots=True)
class Work:
    """Connectors and tasks."""

    connectors: frozenset[str] = frozenset()
    tasks: frozenset[TaskId] = frozenset()

    def __or__(self, other: Work) -> Work:
        return Work(self.connectors | other.connectors, self.tasks | other.tasks)

    def __sub__(self, other: Work) -> Work:
        return Work(self.connectors - other.connectors, self.tasks - other.tasks)

    def __and__(self, other: Work) -> Work:
        return Work(self.connectors & other.connectors, self.tasks & other.tasks)

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __len__(self) -> int:
        return len(self.connectors) + len(self.tasks)


NOTHING = Work()


@dataclass(frozen=True, slots=True)
class Assignment:
    version: int
    error: int = NO_ERROR
    leader: str | None = None
    leader_url: str | None = None
    offset: int = -1
    work: Work = NOTHING
    revoked: Work = NOTHING
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class WorkerState:
    """What a worker says when it joins."""

    url: str
    offset: int
    assignment: Assignment = field(default_factory=lambda: Assignment(1))


class _Writer:
    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def pack(self, layout: str, *values: int) -> None:
        self._parts.append(struct.pack(layout, *values))

    def text(self, value: str | None) -> None:
        if value is None:
            self.pack(">h", -1)
            return
        data = value.encode()
        self.pack(">h", len(data))
        self._parts.append(data)

    def work(self, work: Work) -> None:
        by_connector: dict[str, list[int]] = {
            name: [CONNECTOR_TASK] for name in sorted(work.connectors)
        }
        for task in sorted(work.tasks):
            by_connector.setdefault(task.connector, []).append(task.task)
        self.pack(">i", len(by_connector))
        for name, tasks in by_connector.items():
            self.text(name)
            self.pack(f">i{len(tasks)}i", len(tasks), *tasks)

    def data(self) -> bytes:
        return b"".join(self._parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unpack(self, layout: str) -> int:
        try:
            (value,) = struct.unpack_from(layout, self._data, self._at)
        except struct.error as error:
            raise ProtocolError(f"the data ends too early: {error}") from None
        self._at += struct.calcsize(layout)
        found: int = value
        return found

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._data):
            raise ProtocolError("the data ends too early")
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def text(self) -> str | None:
        size = self.unpack(">h")
        try:
            return None if size < 0 else self.take(size).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(str(error)) from None

    def work(self) -> Work:
        count = self.unpack(">i")
        connectors: set[str] = set()
        tasks: set[TaskId] = set()
        for _ in range(max(count, 0)):
            name = self.text() or ""
            for _ in range(max(self.unpack(">i"), 0)):
                task = self.unpack(">i")
                if task == CONNECTOR_TASK:
                    connectors.add(name)
                else:
                    tasks.add(TaskId(name, task))
        return Work(frozenset(connectors), frozenset(tasks))


def encode_state(state: WorkerState, protocol: str) -> bytes:
    version = VERSIONS[protocol]
    writer = _Writer()
    writer.pack(">h", version)
    writer.text(state.url)
    writer.pack(">q", state.offset)
    if version > 0:
        nothing = not state.assignment.work and not state.assignment.revoked
        if nothing and state.assignment.leader is None:
            writer.pack(">i", -1)
        else:
            data = encode_assignment(state.assignment, version)
            return writer.data() + struct.pack(">i", len(data)) + data
    return writer.data()


def decode_state(data: bytes) -> WorkerState:
    reader = _Reader(data)
    version = reader.unpack(">h")
    url, offset = reader.text() or "", reader.unpack(">q")
    if version == 0:
        return WorkerState(url, offset)
    size = reader.unpack(">i")
    if size <= 0:
        return WorkerState(url, offset)
    return WorkerState(url, offset, decode_assignment(reader.take(size)))


def encode_assignment(assignment: Assignment, version: int) -> bytes:
    writer = _Writer()
    writer.pack(">hh", version, assignment.error)
    writer.text(assignment.leader)
    writer.text(assignment.leader_url)
    writer.pack(">q", assignment.offset)
    writer.work(assignment.work)
    if version > 0:
        writer.work(assignment.revoked)
        writer.pack(">i", assignment.delay_ms)
    return writer.data()


def decode_assignment(data: bytes) -> Assignment:
    if not data:
        raise ProtocolError("an empty assignment")
    reader = _Reader(data)
    version, error = reader.unpack(">h"), reader.unpack(">h")
    leader, url, offset = reader.text(), reader.text(), reader.unpack(">q")
    work = reader.work()
    if version == 0:
        return Assignment(version, error, leader, url, offset, work)
    return Assignment(version, error, leader, url, offset, work, reader.work(), reader.unpack(">i"))


def work_of(connectors: Iterable[str], tasks: Iterable[TaskId]) -> Work:
    return Work(frozenset(connectors), frozenset(tasks))
