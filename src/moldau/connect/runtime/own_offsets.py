"""Offsets of a connector in a topic of its own (`offsets.storage.topic`), as Connect keeps them.

The own topic counts; the worker's store answers for what it does not have, and gets a copy of every
offset, so that a connector can be moved to a topic of its own and back. An offset that goes is
removed from the worker's store first: otherwise a crash in between would bring it back.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.connect.api import SourcePartition
from moldau.connect.machine.source_offsets import SourceOffsets
from moldau.connect.runtime.clients import connector_client
from moldau.connect.runtime.offset_stores import Offsets, OffsetStore, TopicOffsets
from moldau.connect.runtime.state_topics import connector_offset_log
from moldau.connect.runtime.topic_log import TopicLog
from moldau.connect.runtime.worker_config import WorkerConfig

__all__ = ["Lease", "OffsetStores", "OwnOffsets"]

logger = logging.getLogger(__name__)


class OwnOffsets:
    """A connector's own store before the worker's."""

    def __init__(self, own: OffsetStore, worker: OffsetStore) -> None:
        self._own = own
        self._worker = worker

    def get(
        self, connector: str, partition: Mapping[str, Any], *, wait: bool = True
    ) -> dict[str, Any] | None:
        found = self._own.get(connector, partition, wait=wait)
        return self._worker.get(connector, partition, wait=wait) if found is None else found

    def all(self, connector: str) -> dict[SourcePartition, dict[str, Any]]:
        return {**self._worker.all(connector), **self._own.all(connector)}

    def put(self, connector: str, offsets: Offsets, timeout_s: float) -> None:
        removed = {each: None for each, offset in offsets.items() if offset is None}
        if removed:
            self._worker.put(connector, removed, timeout_s)
        self._own.put(connector, offsets, timeout_s)
        self.copy(connector, offsets)

    def send(self, connector: str, offsets: Offsets) -> None:
        self._own.send(connector, offsets)
        self.copy(connector, offsets)

    def copy(self, connector: str, offsets: Offsets) -> None:
        """Give the worker's store what the own topic has. Nobody waits for that."""
        kept = {each: offset for each, offset in offsets.items() if offset is not None}
        if kept:
            self._worker.send(connector, kept)


@dataclass(slots=True)
class _Open:
    log: TopicLog
    store: OwnOffsets
    users: int = 0


class Lease:
    """A store while somebody uses it; `topic` is where a transaction writes the offsets."""

    def __init__(
        self, store: OffsetStore, topic: str | None, give_back: Callable[[], None] | None = None
    ) -> None:
        self.store = store
        self.topic = topic
        self._give_back = give_back

    def copy(self, connector: str, offsets: Offsets) -> None:
        if isinstance(self.store, OwnOffsets):
            self.store.copy(connector, offsets)

    def close(self) -> None:
        """Once or more often."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OffsetStores:
    """The worker's store, and those of connectors with own topics: one per topic and cluster,
    opened by its first user and closed by its last. May be called from any thread."""

    def __init__(self, config: WorkerConfig, worker: OffsetStore) -> None:
        self._config = config
        self.worker = worker
        self._open: dict[Any, _Open] = {}
        self._lock = threading.Lock()

    def lease(self, connector: Mapping[str, str]) -> Lease:
        """The store of a source connector; ConnectError if its topic cannot be read."""
        shared = self._config.values.get("offset.storage.topic")
        wanted = connector.get("offsets.storage.topic")
        if shared is None:
            if wanted:
                logger.warning(
                    "offsets.storage.topic=%s is not used: a standalone worker has one file for "
                    "all offsets",
                    wanted,
                )
            return Lease(self.worker, None)
        topic = wanted or shared
        clients = self._clients(connector)
        if not (wanted or self._config.exactly_once) or self._is_shared(topic, clients):
            return Lease(self.worker, shared)
        key = (topic, *(frozenset(each.items()) for each in clients.values()))
        store = self._opened(key, topic, clients)
        return Lease(store, topic, lambda: self._give_back(key))

    def _clients(self, connector: Mapping[str, str]) -> dict[str, dict[str, str]]:
        settings = self._config.settings
        found = {
            kind: connector_client(settings, kind, connector, defaults={})
            for kind in ("producer", "consumer", "admin")
        }
        # The producer of the log is not the task's: it has no transactions.
        found["producer"].pop("transactional.id", None)
        found["consumer"].pop("group.id", None)
        found["consumer"].setdefault("isolation.level", "read_committed")
        if self._config.exactly_once:
            found["consumer"]["isolation.level"] = "read_committed"
        return found

    def _is_shared(self, topic: str, clients: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether it is the worker's topic in the worker's cluster, as far as the names say."""
        if topic != self._config.values["offset.storage.topic"]:
            return False
        given = clients["producer"].get("bootstrap.servers", "")
        servers = {each.strip() for each in given.split(",")}
        return servers == set(self._config.values["bootstrap.servers"])

    def _opened(self, key: Any, topic: str, clients: Mapping[str, Mapping[str, str]]) -> OwnOffsets:
        with self._lock:
            found = self._open.get(key)
            if found is None:
                offsets = SourceOffsets()
                log = connector_offset_log(
                    self._config, topic, lambda k, v, _: offsets.replay(k, v), clients
                )
                try:
                    log.start()
                except BaseException:
                    log.stop()
                    raise
                store = OwnOffsets(TopicOffsets(log, offsets), self.worker)
                found = self._open[key] = _Open(log, store)
            found.users += 1
            return found.store

    def _give_back(self, key: Any) -> None:
        with self._lock:
            found = self._open[key]
            found.users -= 1
            if found.users:
                return
            del self._open[key]
        found.log.stop()
