"""The stores of a task: how they are created, restored, flushed and closed.

A store on disk is durable up to a checkpoint: the offset of its changelog up to which it has
everything. Writes after the checkpoint are either made durable with a later one, or lost and
restored from the changelog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from moldau.streams.errors import StreamsError
from moldau.streams.records import TaskCore
from moldau.streams.stores._cache import RecordCache, StoreCache
from moldau.streams.stores.base import (
    ChangelogRecord,
    Drop,
    Log,
    Meter,
    Storage,
    StoreBuilder,
    StoreContext,
    TaskState,
)
from moldau.streams.stores.memory import MemoryStorage


class Changelog(NamedTuple):
    """What a host has to read before a task can run."""

    store: str
    topic: str
    #: Where to begin: the store has everything before it. `None` stands for the beginning.
    checkpoint: int | None
    #: The topic is one of the task's input topics, which is read up to the committed offset only.
    is_source: bool


class TaskStores:
    """Creates stores from their builders, in memory or in the task's local state."""

    def __init__(
        self,
        state: TaskState | None,
        persistent_default: bool,
        cache: RecordCache | None,
        runtime: TaskCore,
        meter: Meter | None = None,
        headers_default: bool = False,
    ) -> None:
        self._headers_default = headers_default
        self._state = state
        self._cache = cache
        self._runtime = runtime
        self._meter = meter
        self._caches: list[StoreCache] = []
        self._persistent_default = persistent_default
        self._checkpoints: dict[str, int] = {}
        self._changelogs: dict[str, tuple[str, bool]] = {}
        self._persistent: set[str] = set()
        self.by_name: dict[str, Any] = {}

    def _is_persistent(self, builder: StoreBuilder) -> bool:
        persistent = builder.persistent
        return self._persistent_default if persistent is None else persistent

    def has_headers(self, builder: StoreBuilder) -> bool:
        """Whether values of a store have headers.

        `dsl.store.format` gives them to stores on disk only, as in Kafka Streams, and not to those
        that have a place of their own.
        """
        if builder.headers is not None:
            return builder.headers
        return self._headers_default and self._is_persistent(builder) and builder.storage is None

    def _check_format(self, state: TaskState, name: str, *, headers: bool) -> None:
        try:
            state.check_format(name, headers=headers)
        except StreamsError:
            # No task comes of this, so nobody else closes the state.
            self.close()
            raise

    def create(
        self,
        builder: StoreBuilder,
        log: Log,
        drop: Drop,
        changelog: tuple[str, bool] | None,
        topic: str,
    ) -> None:
        """Create a store; `changelog` is its topic, and whether that is an input topic."""
        name = builder.name
        state = None
        if self._is_persistent(builder) and builder.storage is None:
            state = self._state
        headers = self.has_headers(builder)
        if state is not None:
            self._check_format(state, name, headers=headers)
        storage: Storage
        if builder.storage is not None:
            storage = builder.storage(name)
        else:
            storage = MemoryStorage() if state is None else state.storage(name)
        if self._meter is not None:
            storage = self._meter.storage(name, storage)
        if changelog is not None:
            self._changelogs[name] = changelog
        cache = None
        # Without room no store is cached, which also sends the tombstones of rows that never were.
        if builder.caching and self._cache is not None and self._cache.bytes_max > 0:
            if self._meter is not None:
                cache = self._meter.cache(name, self._cache, self._runtime)
            else:
                cache = StoreCache(self._cache, self._runtime)
            self._caches.append(cache)
        context = StoreContext(
            topic=topic, log=log, drop=drop, storage=storage, cache=cache, headers=headers
        )
        store = self.by_name[name] = builder.create(context)
        if state is not None and storage.is_used:
            self._persistent.add(name)
        if self._meter is not None:
            self._meter.created(name, store, persistent=name in self._persistent)

    def changelogs(self) -> list[Changelog]:
        """The changelogs of all stores that have one."""
        return [
            Changelog(name, topic, self._checkpoint(name), is_source)
            for name, (topic, is_source) in self._changelogs.items()
        ]

    def _checkpoint(self, name: str) -> int | None:
        if self._state is None or name not in self._persistent:
            return None
        return self._state.checkpoint(name)

    def restore(self, name: str, records: Iterable[ChangelogRecord], next_offset: int) -> None:
        """Apply records of a changelog, which ends before `next_offset`."""
        changelog = self._changelogs.get(name)
        if changelog is not None and changelog[1]:
            # A table skips records without a key, and so does its restore.
            records = [record for record in records if record[0] is not None]
        store = self.by_name[name]
        if self._meter is not None:
            self._meter.run(name, "restore", lambda: store.restore(records))
        else:
            store.restore(records)
        self.checkpoint({name: next_offset})

    def flush(self) -> None:
        """Write what is held back; what a store passes on may then wait in the next one."""
        while True:
            for name, store in self.by_name.items():
                if self._meter is not None:
                    self._meter.run(name, "flush", store.flush)
                else:
                    store.flush()
            if not any(self._caches):
                return

    def checkpoint(self, offsets: Mapping[str, int], *, force: bool = False) -> None:
        """All writes are committed; the changelogs end at these offsets."""
        self._checkpoints.update(
            (name, offset) for name, offset in offsets.items() if name in self._persistent
        )
        if self._state is not None:
            self._state.commit(self._checkpoints, force=force)

    def close(self) -> None:
        for cache in self._caches:
            cache.discard()
        for store in self.by_name.values():
            store.close()
        if self._state is not None:
            self._state.close()
