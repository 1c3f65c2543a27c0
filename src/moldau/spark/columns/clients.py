"""The clients that read ranges of topics: one per configuration, shared by the process's readers.

Invariants: a reader that has a client on lease has a lane of it to itself; a client asks for the
metadata of those topics only that are read.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from moldau.client.cluster import ClusterClient
from moldau.client.config import CONSUMER_KEYS, parse_settings
from moldau.client.loop_thread import LoopThread
from moldau.client.network_settings import NetworkSettings
from moldau.spark.client_cache import ClientCache

__all__ = ["IDLE_MAX", "PooledClient", "clients", "lease"]

IDLE_MAX: Final = 4

# What only concerns groups, whose members these clients never are, and what is done with records.
_NOT_OURS = ("group.", "auto.", "enable.auto", "key.deserializer", "value.deserializer")


class PooledClient:
    """A cluster's client on a thread of its own. Whoever has it on lease has a lane to itself, for
    brokers answer a connection's requests one after the other and may hold a Fetch back."""

    def __init__(self, config: Mapping[str, str]) -> None:
        given = {name: value for name, value in config.items() if not name.startswith(_NOT_OURS)}
        self.values: Mapping[str, Any] = parse_settings(CONSUMER_KEYS, given)
        #: Keys that were given, so that a default of ours can take the place of Kafka's.
        self.given = frozenset(given)
        client_id = self.values["client.id"] or f"moldau-columns-{os.getpid()}"
        network = NetworkSettings.of(
            self.values,
            client_id=client_id,
            # The system's own measure grows with what is received.
            receive_buffer_bytes=(
                self.values["receive.buffer.bytes"] if "receive.buffer.bytes" in given else -1
            ),
        )
        self.thread = LoopThread(client_id)
        self.cluster = ClusterClient(network)
        self._lock = threading.Lock()
        self._topics: Counter[str] = Counter()
        self._lanes: list[int] = []
        self._lane_count = 0

    def take(self, topic: str) -> str:
        """The lane of a new user."""
        with self._lock:
            self._topics[topic] += 1
            if not self._lanes:
                self._lanes.append(self._lane_count)
                self._lane_count += 1
            return f"fetch-{self._lanes.pop()}"

    def give_back(self, topic: str, lane: str) -> None:
        with self._lock:
            self._lanes.append(int(lane.removeprefix("fetch-")))
            self._topics[topic] -= 1
            if self._topics[topic]:
                return
            del self._topics[topic]
        # Who reads many topics in turn does not ask for all of them for ever.
        self.thread.soon(self._forget, topic)

    def _forget(self, topic: str) -> None:
        wanted = self.cluster.wanted_topics
        if wanted is not None and topic not in self._topics:
            wanted.discard(topic)

    def close(self) -> None:
        try:
            self.thread.call(self.cluster.close())
        finally:
            self.thread.stop()


clients: Final = ClientCache(PooledClient, PooledClient.close, idle_max=IDLE_MAX, shared=True)


@contextmanager
def lease(config: Mapping[str, str], topic: str) -> Iterator[tuple[PooledClient, str]]:
    """A client and a lane of it, for reading a topic."""
    with clients.lease(config) as client:
        lane = client.take(topic)
        pid = os.getpid()
        try:
            yield client, lane
        finally:
            # A generator that was copied by a fork and is collected in the child gives nothing
            # back.
            if pid == os.getpid():
                client.give_back(topic, lane)
