"""Stores on disk: one LMDB environment per task, with a database per store.

Writes wait in memory until they are committed and worth a transaction. That transaction also holds
the checkpoints, so data and offsets are always of the same moment, whenever the process dies. What
waits is lost with the process, and restored from the changelogs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from moldau.streams.errors import StreamsError
from moldau.streams.stores._maps import DiskMap, OrderedMap
from moldau.streams.stores.base import Drop, SegmentedMap

if TYPE_CHECKING:
    from moldau.streams.stores.disk_segments import DiskSegments

#: LMDB's own limit of a key; longer ones are cut, and told apart by a hash.
KEY_SIZE_MAX = 511
_HASH_SIZE = 32
_CUT = KEY_SIZE_MAX - _HASH_SIZE
_STORES_MAX = 1024
_FORMAT = b"1"
#: How much waits in memory, in estimated bytes, before a commit is written.
BATCH_BYTES = 32 * 1024 * 1024
_MAP_SIZE = 1024**3
_CHUNK_FIRST, _CHUNK = 16, 256


def lmdb_module() -> ModuleType:
    """LMDB's binding, which the extra `streams` installs."""
    try:
        import lmdb
    except ImportError as error:
        from moldau.installation import pip_install

        raise StreamsError(
            f"stores on disk need the package lmdb: {pip_install('streams')}, or keep stores "
            "in memory with default.dsl.store=in_memory"
        ) from error
    module: ModuleType = lmdb
    return module


def _physical(key: bytes) -> bytes:
    if 0 < len(key) <= _CUT:
        return key
    if not key:
        # LMDB has no empty key. One zero byte would be another key, so this one is cut, too.
        return b"\x00" + bytes(_CUT - 1) + bytes(_HASH_SIZE)
    from hashlib import sha256

    return key[:_CUT] + sha256(key).digest()


class Table:
    """The entries of one store that are on disk. Keys may have any size and are in order.

    Its database is created with its first entries: a task that starts waits for no disk.
    """

    def __init__(self, state: DiskState, name: str) -> None:
        self._state = state
        self.name = name
        self.db: Any = state.opened(self)

    def get(self, key: bytes) -> bytes | None:
        if self.db is None:
            return None
        if 0 < len(key) <= _CUT:
            found: bytes | None = self._state.reader.get(key, db=self.db)
            return found
        cut = self._state.reader.get(_physical(key), db=self.db)
        return None if cut is None else _uncut(cut)[1]

    def count(self) -> int:
        return 0 if self.db is None else int(self._state.reader.stat(self.db)["entries"])

    def scan(self, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """The entries from `start` to `end`, both included.

        Reads by chunks and takes up behind the last key, so a commit in between does no harm.
        """
        if self.db is None:
            return
        if start == b"":
            empty = self.get(b"")
            if empty is not None:
                yield b"", empty
        position, size, skips = start[:_CUT] or b"\x00", _CHUNK_FIRST, False
        while True:
            with self._state.reader.cursor(db=self.db) as cursor:
                if not cursor.set_range(position):
                    return
                entries = list(islice(cursor.iternext(), size))
            if skips and entries and entries[0][0] == position:
                del entries[0]
            if not entries:
                return
            for key, value in self._in_order(entries):
                if end is not None and key > end:
                    return
                if key and key >= start:
                    yield key, value
            position, size, skips = entries[-1][0], _CHUNK, True

    def _in_order(self, entries: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Whole keys; those that share a cut prefix are in the order of their hashes on disk."""
        if all(len(key) < KEY_SIZE_MAX for key, _ in entries):
            return entries
        last = entries[-1][0]
        if len(last) == KEY_SIZE_MAX:
            with self._state.reader.cursor(db=self.db) as cursor:
                cursor.set_key(last)
                for key, value in islice(cursor.iternext(), 1, None):
                    if key[:_CUT] != last[:_CUT]:
                        break
                    entries.append((key, value))
        whole = [_uncut(data) if len(key) == KEY_SIZE_MAX else (key, data) for key, data in entries]
        return sorted(whole)

    def write(self, transaction: Any, changes: Mapping[bytes, bytes | None]) -> None:
        """Apply changes; `None` deletes."""
        puts: Any = sorted(changes.items())
        sizes = set(map(len, changes))
        if None in changes.values() or 0 in sizes or max(sizes, default=0) > _CUT:
            # All of it first: what is deleted must not move the cursor that puts.
            puts = list(self._placed(transaction, puts))
        with transaction.cursor(db=self.db) as cursor:
            cursor.putmulti(puts)

    def _placed(
        self, transaction: Any, changes: Iterable[tuple[bytes, bytes | None]]
    ) -> Iterator[tuple[bytes, bytes]]:
        """What is to be put, by its place; deletes what has no value."""
        for key, value in changes:
            place = _physical(key)
            if value is None:
                transaction.delete(place, db=self.db)
            elif place is key:
                yield key, value
            else:
                yield place, len(key).to_bytes(4) + key + value

    def delete_before(self, transaction: Any, end: bytes) -> None:
        """Delete all entries whose key is smaller."""
        with transaction.cursor(db=self.db) as cursor:
            more = cursor.first()
            while more and cursor.key() < end:
                more = cursor.delete()


def _uncut(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:4])
    return data[4 : 4 + size], data[4 + size :]


class DiskStorage:
    """Where one store keeps its entries."""

    def __init__(self, state: DiskState, name: str) -> None:
        self._state = state
        self.name = name
        self.observed_ms = state.number(f"observed/{name}", -1)
        self.parts: list[DiskMap | DiskSegments] = []

    @property
    def is_used(self) -> bool:
        """Whether the store keeps anything here."""
        return bool(self.parts)

    def map(self) -> OrderedMap:
        made = DiskMap(Table(self._state, f"{self.name}/map"), self._state.grow)
        self.parts.append(made)
        return made

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap:
        # Imported here: most programs have no windows.
        from moldau.streams.stores.disk_segments import DiskSegments

        table = Table(self._state, f"{self.name}/segments")
        made = DiskSegments(table, self, retention_ms, drop, self._state.grow)
        self.parts.append(made)
        return made


class DiskState:
    """The local state of one task."""

    def __init__(self, directory: Path, batch_bytes: int = BATCH_BYTES) -> None:
        self._lmdb = lmdb_module()
        self._batch_bytes = batch_bytes
        self._pending_bytes = 0
        self._storages: dict[str, DiskStorage] = {}
        #: Those whose values have headers.
        self._with_headers: set[str] = set()
        directory.mkdir(parents=True, exist_ok=True)
        self._env = self._lmdb.open(
            str(directory),
            map_size=_MAP_SIZE,
            max_dbs=_STORES_MAX,
            readahead=False,
            meminit=False,
            metasync=True,
        )
        self.reader = self._env.begin()
        self._tables: list[Table] = []
        self._meta = Table(self, "meta")
        if (self._meta.get(b"format") or _FORMAT) != _FORMAT:
            self.close()
            raise self._lmdb.InvalidError("state of another format")

    def opened(self, table: Table) -> Any:
        """The database of a new table; `None` if it has to be created."""
        self._tables.append(table)
        self.reader.abort()
        try:
            return self._env.open_db(table.name.encode(), create=False)
        except self._lmdb.NotFoundError:
            return None
        finally:
            self.reader = self._env.begin()

    def _create_databases(self) -> None:
        self.reader.abort()
        try:
            for table in self._tables:
                if table.db is None:
                    table.db = self._env.open_db(table.name.encode())
        finally:
            self.reader = self._env.begin()

    def number(self, name: str, default: int | None) -> Any:
        """A number that is kept under a name."""
        data = self._meta.get(name.encode())
        return default if data is None else int.from_bytes(data, signed=True)

    def grow(self, size: int) -> None:
        """Something more waits in memory."""
        self._pending_bytes += size

    def storage(self, store: str) -> DiskStorage:
        """The place of one store; each has one."""
        return self._storages.setdefault(store, DiskStorage(self, store))

    def check_format(self, store: str, *, headers: bool) -> None:
        """A store with headers stays one: what it has on disk cannot be read without them."""
        if headers:
            self._with_headers.add(store)
        elif self.number(f"headers/{store}", 0):
            raise StreamsError(
                f"store {store} has headers on disk, and is opened without them: set "
                f"dsl.store.format=HEADERS (or headers=True) again, or delete the local state with "
                f"clean_up(), so that it is restored from its changelog"
            )

    def checkpoint(self, store: str) -> int | None:
        """The changelog offset up to which the store has everything; `None` if unknown."""
        found: int | None = self.number(f"checkpoint/{store}", None)
        return found

    def commit(self, checkpoints: Mapping[str, int], *, force: bool = False) -> None:
        """What was written so far is committed: write it, if it is enough or has to be."""
        if not force and self._pending_bytes < self._batch_bytes:
            return
        while True:
            try:
                self._create_databases()
                self._write(checkpoints)
                break
            except self._lmdb.MapFullError:
                self.reader.abort()
                self._env.set_mapsize(self._env.info()["map_size"] * 2)
                self.reader = self._env.begin()
        self._pending_bytes = 0
        self.reader.abort()
        self.reader = self._env.begin()
        for storage in self._storages.values():
            for part in storage.parts:
                part.written()

    def _write(self, checkpoints: Mapping[str, int]) -> None:
        meta = self._meta.db
        with self._env.begin(write=True) as transaction:
            for name, storage in self._storages.items():
                for part in storage.parts:
                    part.write(transaction)
                observed = storage.observed_ms.to_bytes(8, signed=True)
                transaction.put(f"observed/{name}".encode(), observed, db=meta)
            for name, offset in checkpoints.items():
                place = f"checkpoint/{name}".encode()
                transaction.put(place, offset.to_bytes(8, signed=True), db=meta)
            for name in self._with_headers:
                transaction.put(f"headers/{name}".encode(), b"\x01", db=meta)
            transaction.put(b"format", _FORMAT, db=meta)

    def close(self) -> None:
        """What was not committed, or not written yet, is gone."""
        self.reader.abort()
        self._env.close()


def open_state(directory: Path, *, batch_bytes: int = BATCH_BYTES) -> DiskState:
    """The local state of a task; one that cannot be read is deleted, and restored from changelogs.

    state = open_state(Path("/var/lib/app/0_0"))
    """
    lmdb = lmdb_module()
    try:
        return DiskState(directory, batch_bytes)
    except (lmdb.CorruptedError, lmdb.InvalidError, lmdb.VersionMismatchError):
        from shutil import rmtree

        rmtree(directory)
        return DiskState(directory, batch_bytes)
