"""PostgreSQL's logical replication messages (protocol version 1 of pgoutput), read from bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from moldau.connect.connectors.capture.machine.envelope import Absent
from moldau.data.errors import DataError

#: Microseconds from 1970 to 2000, where PostgreSQL's time begins.
EPOCH_US: Final = 946_684_800_000_000


#: Texts as the database writes them; None is null.
Value: TypeAlias = str | Absent | None
Row: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class RelationColumn:
    name: str
    type_oid: int
    modifier: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it was when the changes after this message were made."""

    oid: int
    schema: str
    table: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Begin:
    final_lsn: int
    commit_us: int
    """Microseconds since 1970."""
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    commit_lsn: int
    end_lsn: int
    commit_us: int


@dataclass(frozen=True, slots=True)
class Change:
    """`op` is c, u or d. `old` is the row before, or only its key, or None."""

    op: str
    relation_oid: int
    old: Row | None
    new: Row | None


@dataclass(frozen=True, slots=True)
class Truncate:
    relation_oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """A message without a change of data."""


Message: TypeAlias = Relation | Begin | Commit | Change | Truncate | Other


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        found = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return found

    def letter(self) -> str:
        self._at += 1
        return chr(self._data[self._at - 1])

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end].decode()
        self._at = end + 1
        return found

    def row(self) -> Row:
        (count,) = self.take(_I16)
        return tuple(self._value() for _ in range(count))

    def _value(self) -> Value:
        match self.letter():
            case "n":
                return None
            case "u":
                return Absent.UNCHANGED
            case _:
                (size,) = self.take(_I32)
                self._at += size
                return self._data[self._at - size : self._at].decode()


_I8: Final = struct.Struct(">b")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_U32: Final = struct.Struct(">I")
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">bQQq")
_COLUMN: Final = struct.Struct(">Ii")


def read_message(data: bytes) -> Message:
    """One message of the stream; DataError for bytes that are none."""
    reader = _Reader(data)
    try:
        return _read(reader.letter(), reader)
    except (struct.error, IndexError, ValueError) as error:
        raise DataError(f"not a message of pgoutput: {data[:40]!r}: {error}") from None


def _read(kind: str, reader: _Reader) -> Message:
    match kind:
        case "B":
            lsn, moment, xid = reader.take(_BEGIN)
            return Begin(lsn, moment + EPOCH_US, xid)
        case "C":
            _, lsn, end, moment = reader.take(_COMMIT)
            return Commit(lsn, end, moment + EPOCH_US)
        case "R":
            return _relation(reader)
        case "I":
            (oid,) = reader.take(_U32)
            reader.letter()
            return Change("c", oid, None, reader.row())
        case "U":
            return _update(reader)
        case "D":
            (oid,) = reader.take(_U32)
            reader.letter()
            return Change("d", oid, reader.row(), None)
        case "T":
            (count,) = reader.take(_I32)
            reader.take(_I8)
            return Truncate(tuple(reader.take(_U32)[0] for _ in range(count)))
        case _:
            return Other()


def _relation(reader: _Reader) -> Relation:
    (oid,) = reader.take(_U32)
    schema, table = reader.text(), reader.text()
    reader.letter()
    (count,) = reader.take(_I16)
    columns = []
    for _ in range(count):
        (flags,) = reader.take(_I8)
        name = reader.text()
        type_oid, modifier = reader.take(_COLUMN)
        columns.append(RelationColumn(name, type_oid, modifier, bool(flags & 1)))
    return Relation(oid, schema or "pg_catalog", table, tuple(columns))


def _update(reader: _Reader) -> Change:
    (oid,) = reader.take(_U32)
    old = None
    kind = reader.letter()
    if kind in "KO":
        old = reader.row()
        reader.letter()
    return Change("u", oid, old, reader.row())
