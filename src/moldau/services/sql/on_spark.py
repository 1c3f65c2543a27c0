"""SparkQuery: a query with ENGINE='spark-sql' as a streaming query of a Spark server.

To the host it looks like an application of Streams that has no stores. Its place in the source is
in Spark's checkpoint, so that PAUSE stops it and RESUME starts it where it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from moldau.sql.errors import KsqlException
from moldau.sql.sparksql.compiler import SparkPlan
from moldau.streams import State

__all__ = ["SparkQuery", "SparkSessions"]

logger = logging.getLogger(__name__)

#: How long what Spark said about a query is taken for true.
_STATE_S: Final = 1.0
_CLIENT: Final = ("bootstrap.servers", "sasl.", "security.", "ssl.")


@dataclass(frozen=True, slots=True)
class Identity:
    application_id: str


class SparkSessions:
    """One session for all queries of a server, made when it is first needed."""

    def __init__(self, remote: str) -> None:
        self._remote = remote
        self._session: Any = None
        self._lock = threading.Lock()

    def get(self) -> Any:
        with self._lock:
            if self._session is None:
                from moldau.spark import session

                self._session = session(self._remote)
                # Sums wrap around, as in ksqlDB.
                self._session.conf.set("spark.sql.ansi.enabled", "false")
            return self._session

    def close(self) -> None:
        with self._lock:
            made, self._session = self._session, None
        if made is not None:
            made.stop()


class SparkQuery:
    """See the module. `settings` are those of the application that it is for the host."""

    def __init__(
        self,
        plan: SparkPlan,
        settings: Mapping[str, Any],
        *,
        sessions: SparkSessions,
        checkpoints: str,
    ) -> None:
        self.settings = Identity(str(settings["application.id"]))
        self._plan = plan
        self._given = dict(settings)
        self._sessions = sessions
        self._checkpoint = f"{checkpoints.rstrip('/')}/{self.settings.application_id}"
        self._query: Any = None
        self._lock = threading.Lock()
        self._state = State.CREATED
        self._looked_s = 0.0
        self.error: BaseException | None = None
        self.is_paused = False

    # Beginning and end.

    def start(self) -> None:
        """Errors of the start are the query's: its host starts it again after a while."""
        with self._lock:
            try:
                self._query = self._started(self._sessions.get())
                self._state = State.RUNNING
            except Exception as error:  # Spark and its client have errors of their own.
                logger.warning(
                    "%s does not start on Spark: %s", self.settings.application_id, error
                )
                self._state, self.error = State.ERROR, error

    def _started(self, spark: Any) -> Any:
        from moldau.sql.sparksql.frames import run

        plan, given = self._plan, self._given
        if plan.sink is None:
            raise KsqlException("The query writes to no topic")
        client = {
            f"kafka.{name}": str(value) for name, value in given.items() if name.startswith(_CLIENT)
        }
        reset = str(given.get("auto.offset.reset", "latest"))
        records = (
            spark.readStream.format("moldau")
            .options(**client, subscribe=plan.source.topic, startingOffsets=reset)
            .load()
        )
        written = run(plan, records).selectExpr(
            "key", "value", "timestamp_millis(timestamp) AS timestamp"
        )
        return (
            written.writeStream.format("moldau")
            .queryName(self.settings.application_id)
            .options(**client, topic=plan.sink.topic, checkpointLocation=self._checkpoint)
            .start()
        )

    def close(self, timeout_s: float | None = None) -> bool:
        with self._lock:
            query, self._query = self._query, None
            if self._state is not State.ERROR:
                self._state = State.NOT_RUNNING
        return query is None or self._asked(query.stop)

    def pause(self) -> None:
        self.is_paused = True
        with self._lock:
            query, self._query = self._query, None
        if query is not None:
            self._asked(query.stop)

    def resume(self) -> None:
        self.is_paused = False
        self.start()

    # What is said about it.

    @property
    def state(self) -> State:
        with self._lock:
            query, now_s = self._query, time.monotonic()
            if query is None or now_s < self._looked_s + _STATE_S:
                return self._state
            self._looked_s = now_s
        try:
            failed = query.exception()
            ended = not query.isActive
        except Exception as error:  # The server has gone, and the query with it.
            failed, ended = error, True
        with self._lock:
            if self._query is query and ended:
                self._state = State.ERROR
                self.error = failed or RuntimeError("the query ended on Spark")
            return self._state

    def wait_for(self, state: State, timeout_s: float) -> bool:
        return self.state is state

    def _asked(self, ask: Callable[[], Any]) -> bool:
        try:
            ask()
        except Exception as error:  # It ends with its server, too.
            logger.warning("%s: %s", self.settings.application_id, error)
            return False
        return True

    # It has no stores, and other servers have no part of it.

    def metadata_for_all_streams_clients(self) -> list[Any]:
        return []

    def all_local_store_partition_lags(self) -> dict[Any, Any]:
        return {}

    def streams_metadata_for_store(self, name: str) -> list[Any]:
        return []

    def active_partitions(self, store: str) -> dict[str, frozenset[int]]:
        return {}

    def store(self, name: str, *, stale: bool = False, partitions: Any = None) -> NoReturn:
        raise KsqlException(f"The query runs on Spark and has no store {name}")
