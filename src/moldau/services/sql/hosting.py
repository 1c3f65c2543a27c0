"""QueryHost: runs queries as Streams applications in this process."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Mapping
from typing import Any, Final

from moldau.client.admin import Admin
from moldau.client.errors import KafkaError
from moldau.services.sql.config import SqlConfig
from moldau.sql.engine.results import PersistentQuery
from moldau.streams import KafkaStreams, State

__all__ = ["QueryHost"]

logger = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S: Final = 10.0
_START_TIMEOUT_S: Final = 10.0
#: ksqlDB's own defaults where they differ from Kafka Streams'.
_DEFAULTS: Final[Mapping[str, Any]] = {
    # As ksqlDB's: members of consumer groups get their tasks at once. Those of streams groups get
    # them with the heartbeat after group.streams.initial.rebalance.delay.ms, 5 s later by default.
    "group.protocol": "classic",
    "auto.offset.reset": "latest",
    "commit.interval.ms": 2000,
    "processing.guarantee": "at_least_once",
}
_TRANSIENT: Final[Mapping[str, Any]] = {
    "commit.interval.ms": 100,
    "statestore.cache.max.bytes": 0,
}


class QueryHost:
    """Applications by the ids of their queries. Each runs on its own, and so do their errors."""

    def __init__(self, config: SqlConfig, admin: Admin) -> None:
        self._config = config
        self._admin = admin
        self._running: dict[str, KafkaStreams] = {}
        self._transient: set[str] = set()
        self._lock = threading.Lock()

    def start(
        self, query: PersistentQuery, overrides: Mapping[str, Any], *, transient: bool = False
    ) -> None:
        """Start a query, or replace it with another topology."""
        self.stop(query.id)
        settings: dict[str, Any] = {**_DEFAULTS}
        if transient:
            settings.update(_TRANSIENT)
        settings.update(self._config.streams_settings(overrides))
        # A request's query is never continued: what another one has committed must not count.
        unique = f"_{uuid.uuid4().hex}" if transient else ""
        settings["application.id"] = query.application_id + unique
        streams = KafkaStreams(query.built.topology, settings)
        with self._lock:
            self._running[query.id] = streams
            if transient:
                self._transient.add(query.id)
        streams.start()
        if transient:
            # A client that has the header may rely on seeing what is written from then on.
            streams.wait_for(State.RUNNING, _START_TIMEOUT_S)

    def stop(self, query_id: str, *, for_good: bool = False) -> None:
        """End a query. Unless `for_good`, its group and internal topics stay for it to go on."""
        with self._lock:
            streams = self._running.pop(query_id, None)
            is_transient = query_id in self._transient
            self._transient.discard(query_id)
        if streams is None:
            return
        if not streams.close(_CLOSE_TIMEOUT_S):
            logger.warning("%s did not end within %s s", query_id, _CLOSE_TIMEOUT_S)
        if for_good or is_transient:
            self._clean(streams.settings.application_id)

    def _clean(self, application_id: str) -> None:
        """Delete what a query leaves behind in the cluster."""
        try:
            self._admin.delete_consumer_groups([application_id], check=False)
            own = [
                name
                for name in self._admin.list_topics(list_internal=True)
                if name.startswith(f"{application_id}-")
            ]
            if own:
                self._admin.delete_topics(own, check=False)
        except KafkaError as error:
            logger.warning("%s could not be cleaned up: %s", application_id, error)

    def persistent_ids(self) -> list[str]:
        """Queries that statements have created, and not those of requests."""
        with self._lock:
            return [each for each in self._running if each not in self._transient]

    def control(self, action: str, query_id: str) -> None:
        """TERMINATE, PAUSE or RESUME."""
        if action == "TERMINATE":
            self.stop(query_id, for_good=True)
            return
        with self._lock:
            streams = self._running.get(query_id)
        if streams is None:
            return
        if action == "PAUSE":
            streams.pause()
        else:
            streams.resume()

    def streams(self, query_id: str) -> KafkaStreams | None:
        with self._lock:
            return self._running.get(query_id)

    def state(self, query_id: str) -> str:
        """As SHOW QUERIES names it."""
        streams = self.streams(query_id)
        if streams is None:
            return "NOT_RUNNING"
        if streams.state in (State.PENDING_ERROR, State.ERROR):
            return "ERROR"
        return "PAUSED" if streams.is_paused else "RUNNING"

    def error(self, query_id: str) -> BaseException | None:
        streams = self.streams(query_id)
        return None if streams is None else streams.error

    def close(self) -> None:
        with self._lock:
            ids = list(self._running)
        for each in ids:
            self.stop(each)
