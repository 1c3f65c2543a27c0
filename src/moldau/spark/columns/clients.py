"""One client per process and configuration, kept for the next who asks.

Spark calls a reader again and again in the same worker process, each time for a moment: a client
made anew would connect and ask for metadata every time. What always holds: a client is used in the
process that made it only (Spark's daemon forks its workers); at most `IDLE_MAX` that nobody uses
are kept, the ones used last.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moldau.client.cluster import ClusterClient
from moldau.client.config import CONSUMER_KEYS, parse_settings
from moldau.client.loop_thread import LoopThread
from moldau.client.network_settings import NetworkSettings

__all__ = ["IDLE_MAX", "PooledClient", "close_idle", "lease"]

IDLE_MAX = 4

_Key = frozenset[tuple[str, str]]

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
        self.user_count = 0
        self._topics: Counter[str] = Counter()
        self._lanes: list[int] = []
        self._lane_count = 0

    def take(self, topic: str) -> str:
        """The lane of a new user."""
        self.user_count += 1
        self._topics[topic] += 1
        if not self._lanes:
            self._lanes.append(self._lane_count)
            self._lane_count += 1
        return f"fetch-{self._lanes.pop()}"

    def give_back(self, topic: str, lane: str) -> None:
        self.user_count -= 1
        self._lanes.append(int(lane.removeprefix("fetch-")))
        self._topics[topic] -= 1
        if not self._topics[topic]:
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


_lock = threading.Lock()
# The one that was used last comes last.
_clients: dict[_Key, PooledClient] = {}
# Clients of the process that this one was forked from. They are never touched: even to collect
# them would reach into the event loop that the parent still uses.
_inherited: list[dict[_Key, PooledClient]] = []


def _after_fork() -> None:
    global _clients, _lock
    _lock = threading.Lock()
    if _clients:
        _inherited.append(_clients)
        _clients = {}


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def lease(config: Mapping[str, str], topic: str) -> Iterator[tuple[PooledClient, str]]:
    """A client and a lane of it, for reading a topic."""
    key = frozenset((name, str(value)) for name, value in config.items())
    with _lock:
        client = _clients.pop(key, None)
        if client is None:
            client = PooledClient(config)
        _clients[key] = client
        lane = client.take(topic)
    pid = os.getpid()
    try:
        yield client, lane
    finally:
        # A generator that was copied by a fork and is collected in the child gives nothing back.
        if pid == os.getpid():
            with _lock:
                client.give_back(topic, lane)
                surplus = _surplus(IDLE_MAX)
            for each in surplus:
                each.close()


def close_idle() -> None:
    """Close every client that nobody uses now."""
    with _lock:
        surplus = _surplus(0)
    for each in surplus:
        each.close()


def _surplus(idle_max: int) -> list[PooledClient]:
    idle = [key for key, each in _clients.items() if each.user_count == 0]
    return [_clients.pop(key) for key in idle[: max(0, len(idle) - idle_max)]]
