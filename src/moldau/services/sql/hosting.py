"""QueryHost: runs queries as Streams applications in this process.

A persistent query that fails is stopped alone, and started again after a wait that doubles
(`ksql.query.retry.backoff.initial.ms` to `.max.ms`). Its last errors are kept.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.client.admin import Admin
from moldau.client.errors import KafkaError
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.machine.retries import Failures, QueryFailure, classified, explained
from moldau.services.sql.metering import Metering
from moldau.services.sql.on_spark import SparkQuery, SparkSessions
from moldau.sql.engine.results import PersistentQuery
from moldau.streams import KafkaStreams, State

__all__ = ["QueryHost"]

logger = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S: Final = 10.0
_START_TIMEOUT_S: Final = 10.0
_WATCH_S: Final = 0.25
_SAMPLE_S: Final = 2.0
_FAILED: Final = (State.PENDING_ERROR, State.ERROR)
#: ksqlDB's own defaults where they differ from Kafka Streams'.
_DEFAULTS: Final[Mapping[str, Any]] = {
    # As ksqlDB's: members of consumer groups get their tasks at once. Those of streams groups get
    # them with a heartbeat, group.streams.heartbeat.interval.ms (5 s) later.
    "group.protocol": "classic",
    "auto.offset.reset": "latest",
    "commit.interval.ms": 2000,
    "processing.guarantee": "at_least_once",
}
_FAIL_ON_UNREADABLE: Final = "ksql.fail.on.deserialization.error"
_UNREADABLE: Final = "deserialization.exception.handler"
_TRANSIENT: Final[Mapping[str, Any]] = {
    "commit.interval.ms": 100,
    "statestore.cache.max.bytes": 0,
}


#: What runs a query.
Application = KafkaStreams | SparkQuery


@dataclass(slots=True)
class _Hosted:
    """A query and the application that runs it now."""

    query: PersistentQuery
    settings: dict[str, Any]
    streams: Application
    failures: Failures
    is_transient: bool


class QueryHost:
    """Applications by the ids of their queries. Each runs on its own, and so do their errors."""

    def __init__(self, config: SqlConfig, admin: Admin) -> None:
        self._config = config
        self._admin = admin
        self._running: dict[str, _Hosted] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._watching: threading.Thread | None = None
        remote = config["ksql.spark.remote"]
        self._spark = SparkSessions(remote) if remote else None
        self.metering = Metering()
        self._sampled_at = 0.0
        #: Where other servers reach this one, as host:port; empty for a server without others.
        self.address = ""

    def start(
        self, query: PersistentQuery, overrides: Mapping[str, Any], *, transient: bool = False
    ) -> None:
        """Start a query, or replace it with another topology."""
        self.stop(query.id)
        settings = self._settings(query, overrides, transient=transient)
        streams = self._application(query, settings)
        config = self._config
        failures = Failures(
            initial_ms=config["ksql.query.retry.backoff.initial.ms"],
            max_ms=config["ksql.query.retry.backoff.max.ms"],
            kept_max=config["ksql.query.error.max.queue.size"],
        )
        hosted = _Hosted(query, settings, streams, failures, transient)
        with self._lock:
            self._running[query.id] = hosted
            if self._watching is None:
                self._watching = threading.Thread(
                    target=self._watch, name="sql-query-watch", daemon=True
                )
                self._watching.start()
        streams.start()
        if transient:
            # A client that has the header may rely on seeing what is written from then on.
            streams.wait_for(State.RUNNING, _START_TIMEOUT_S)

    def _application(self, query: PersistentQuery, settings: dict[str, Any]) -> Application:
        """On Spark if the query is for it and the server has one."""
        if query.spark is None or self._spark is None:
            return KafkaStreams(query.built.topology, settings)
        return SparkQuery(
            query.spark,
            settings,
            sessions=self._spark,
            checkpoints=self._config["ksql.spark.checkpoint.dir"],
        )

    def _settings(
        self, query: PersistentQuery, overrides: Mapping[str, Any], *, transient: bool
    ) -> dict[str, Any]:
        settings: dict[str, Any] = {**_DEFAULTS}
        if transient:
            settings.update(_TRANSIENT)
        elif self.address:
            settings["application.server"] = self.address
        given = self._config.streams_settings(overrides)
        if not any(name.endswith(_UNREADABLE) for name in given):
            settings[_UNREADABLE] = self._unreadable(query, overrides)
        settings.update(given)
        # A request's query is never continued: what another one has committed must not count.
        unique = f"_{uuid.uuid4().hex}" if transient else ""
        settings["application.id"] = query.application_id + unique
        return settings

    def _unreadable(self, query: PersistentQuery, overrides: Mapping[str, Any]) -> Any:
        """As in ksqlDB a record that cannot be read is passed over, unless the server or the
        statement wants the query to fail."""
        fails = overrides.get(_FAIL_ON_UNREADABLE, self._config[_FAIL_ON_UNREADABLE])
        is_fatal = str(fails).strip().lower() == "true"
        return self.metering.unreadable(query.id, "fail" if is_fatal else "continue")

    # What runs.

    def _watch(self) -> None:
        while not self._closing.wait(_WATCH_S):
            with self._lock:
                persistent = [each for each in self._running.values() if not each.is_transient]
            for each in persistent:
                try:
                    self._look_at(each)
                except Exception:
                    logger.exception("%s could not be started again", each.query.id)
            if time.monotonic() >= self._sampled_at + _SAMPLE_S:
                try:
                    self.sample()
                except Exception:
                    logger.exception("Statistics could not be taken")

    def sample(self) -> None:
        """Take the statistics of all queries as they are now."""
        self._sampled_at = time.monotonic()
        with self._lock:
            running = [(key, each.streams) for key, each in self._running.items()]
        for query_id, streams in running:
            self.metering.sample(query_id, streams)

    def _look_at(self, hosted: _Hosted) -> None:
        now_ms = time.monotonic_ns() // 1_000_000
        failures, query_id = hosted.failures, hosted.query.id
        if hosted.streams.state in _FAILED and failures.due_ms is None:
            error = hosted.streams.error or RuntimeError("the query ended")
            message = explained(error)
            failure = QueryFailure(time.time_ns() // 1_000_000, message, classified(error))
            failures.failed(failure, now_ms)
            logger.error("%s failed (%s): %s", query_id, failure.kind, message)
        elif failures.is_due(now_ms):
            hosted.streams.close(_CLOSE_TIMEOUT_S)
            self.metering.ended(query_id)
            with self._lock:
                if self._running.get(query_id) is not hosted:
                    return
                hosted.streams = self._application(hosted.query, hosted.settings)
                failures.restarted()
            logger.info("%s is started again", query_id)
            hosted.streams.start()

    def failures(self, query_id: str) -> list[QueryFailure]:
        """The last errors of a query, oldest first."""
        with self._lock:
            hosted = self._running.get(query_id)
        return [] if hosted is None else list(hosted.failures.errors)

    # The end.

    def stop(self, query_id: str, *, for_good: bool = False) -> None:
        """End a query. Unless `for_good`, its group and internal topics stay for it to go on."""
        with self._lock:
            hosted = self._running.pop(query_id, None)
        if hosted is None:
            return
        self.metering.sample(query_id, hosted.streams)
        self.metering.ended(query_id)
        if not hosted.streams.close(_CLOSE_TIMEOUT_S):
            logger.warning("%s did not end within %s s", query_id, _CLOSE_TIMEOUT_S)
        if for_good or hosted.is_transient:
            self._clean(hosted.streams.settings.application_id)

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
            return [key for key, each in self._running.items() if not each.is_transient]

    def push_queries(self) -> list[tuple[PersistentQuery, str]]:
        """The queries of requests that run now, with their states."""
        with self._lock:
            found = [each.query for each in self._running.values() if each.is_transient]
        return [(each, self.state(each.id)) for each in found]

    def push_query_id(self, name: str) -> str | None:
        """The id of a push query, which statements may write in capitals."""
        found = (query.id for query, _ in self.push_queries())
        return next((each for each in found if each.upper() == name.upper()), None)

    def control(self, action: str, query_id: str) -> None:
        """TERMINATE, PAUSE or RESUME."""
        if action == "TERMINATE":
            self.stop(query_id, for_good=True)
            return
        streams = self.streams(query_id)
        if streams is None:
            return
        if action == "PAUSE":
            streams.pause()
        else:
            streams.resume()

    def streams(self, query_id: str) -> Application | None:
        with self._lock:
            hosted = self._running.get(query_id)
        return None if hosted is None else hosted.streams

    def state(self, query_id: str) -> str:
        """As SHOW QUERIES names it."""
        streams = self.streams(query_id)
        if streams is None:
            return "NOT_RUNNING"
        if streams.state in _FAILED:
            return "ERROR"
        return "PAUSED" if streams.is_paused else "RUNNING"

    def error(self, query_id: str) -> BaseException | None:
        streams = self.streams(query_id)
        return None if streams is None else streams.error

    def close(self) -> None:
        self._closing.set()
        if self._watching is not None:
            self._watching.join(_CLOSE_TIMEOUT_S)
        with self._lock:
            ids = list(self._running)
        for each in ids:
            self.stop(each)
        if self._spark is not None:
            self._spark.close()
