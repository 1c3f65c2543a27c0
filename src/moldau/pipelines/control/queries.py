"""Acts on Spark: the sessions and queries of pipelines, each call bounded in time.

A pipeline has a session of its own for each start: it shares its views, settings and code with no
other, and closing it ends all of its queries, even one that is being started.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.machine.records import PipelineRecord, QueryRecord
from moldau.pipelines.tasks.machine.choosing import begun_by_task
from moldau.pipelines.tasks.offsets import continued
from moldau.spark.hosting.machine.beats import Summary

__all__ = ["USER_ID", "Look", "Sessions", "is_gone"]

USER_ID: Final = "moldau"
# Spark's client tries for ten minutes to reach a server; whether it lives is looked at elsewhere.
_RETRIES_MAX: Final = 4
_RETRY_MS_MAX: Final = 1_000
STOP_TIMEOUT: Final = "30s"
# A closed session or an unknown query: nothing of it can run.
_GONE: Final = ("SESSION_CLOSED", "SESSION_NOT_FOUND", "STREAMING_QUERY_NOT_FOUND")
_SECURITY_KEYS: Final = ("config.providers", "sasl.", "security.", "ssl.")


@dataclass(frozen=True, slots=True)
class Look:
    """What a pipeline's queries did when they were last asked."""

    active: tuple[bool, ...]
    error: BaseException | None
    #: Of the main query, as Spark's JSON and in Spark's words.
    progress: Mapping[str, Any] | None
    activity: str | None = None
    #: Of a hosted application.
    summary: Summary | None = None
    #: Why a pipeline without Spark has to move to Spark.
    handover: str | None = None


def is_gone(error: BaseException) -> bool:
    return any(name in str(error) for name in _GONE)


class Sessions:
    """The sessions that this loop has; a pipeline is used by one thread at a time."""

    def __init__(self, bootstrap_servers: str, config: Mapping[str, str], secrets: Path) -> None:
        """`secrets` is where the pipelines' passwords are for Spark's workers."""
        self._bootstrap_servers = bootstrap_servers
        self._secrets = secrets
        self._security = {
            key: value for key, value in config.items() if key.startswith(_SECURITY_KEYS)
        }
        self._sessions: dict[str, Any] = {}
        self._queries: dict[str, list[Any]] = {}
        _quieten_spark()

    def start(
        self, record: PipelineRecord, url: str, session_id: str
    ) -> tuple[tuple[QueryRecord, ...], str | None]:
        """Its queries, and the connector that they read and write topics with."""
        from moldau.pipelines import build
        from moldau.spark.sessions import topic_format

        definition = self.definition(record)
        if begun_by_task(record.settings):
            definition = continued(definition, record, self._bootstrap_servers)
        session = self.open(record.name, url, session_id)
        session.conf.set("spark.sql.streaming.stopTimeout", STOP_TIMEOUT)
        queries = build.start(
            session,
            definition,
            bootstrap=self._bootstrap_servers,
            checkpoint=record.checkpoint,
            secrets=self._secrets / record.name,
        )
        self.keep(record.name, queries)
        records = tuple(
            QueryRecord(query.name or record.name, str(query.id), str(query.runId))
            for query in queries
        )
        return records, topic_format(session, definition.connector)

    def keep(self, name: str, queries: Sequence[Any]) -> None:
        """The queries that were started in its session."""
        self._queries[name] = list(queries)

    def definition(self, record: PipelineRecord) -> Any:
        """The definition, with the deployment's ways into the cluster where it has none."""
        from moldau.pipelines.definition import Definition

        fields = dict(record.definition)
        if self._security:
            fields["kafka"] = {**self._security, **(fields.get("kafka") or {})}
        return Definition.from_json(fields)

    def reattach(
        self, name: str, url: str, session_id: str, queries: Sequence[QueryRecord]
    ) -> bool:
        """Take over queries that another loop started; whether all are known to the server."""
        from pyspark.sql.connect.streaming.query import StreamingQuery

        session = self.open(name, url, session_id)
        found = [StreamingQuery(session, query.id, query.run_id, query.name) for query in queries]
        try:
            for query in found:
                _ = query.isActive
        except Exception as error:
            if is_gone(error):
                return False
            raise
        self._queries[name] = found
        return bool(found)

    def look(self, name: str) -> Look:
        """Raises where the server cannot be asked."""
        queries = self._queries.get(name, [])
        try:
            # `isActive` and `status` would each ask for the same.
            found = [query._fetch_status() for query in queries]
            active = tuple(bool(each.is_active) for each in found)
            errors = [
                query.exception() for query, runs in zip(queries, active, strict=True) if not runs
            ]
            progress = queries[0].lastProgress if queries else None
            activity = str(found[0].status_message) if found else None
        except Exception as error:
            if is_gone(error):
                return Look((False,), None, None)
            raise
        failure = next((each for each in errors if each is not None), None)
        fields = None if progress is None else _as_json(progress)
        return Look(active, failure, fields, activity)

    def close(self, name: str, url: str, session_id: str, queries: Sequence[QueryRecord]) -> None:
        """Stop its queries in their order, then end its session; nothing of it runs afterwards."""
        if name not in self._queries and queries:
            try:
                self.reattach(name, url, session_id, queries)
            except Exception as error:
                if not is_gone(error):
                    raise
        session = self._sessions.get(name) or self.open(name, url, session_id)
        try:
            for query in self._queries.get(name, []):
                query.stop()
        except Exception as error:
            if not is_gone(error):
                raise
        try:
            session.client.release_session()
        except Exception as error:
            if not is_gone(error):
                raise
        self.forget(name)

    def forget(self, name: str) -> None:
        """Let go of what is known of it, without asking the server."""
        self._queries.pop(name, None)
        session = self._sessions.pop(name, None)
        if session is not None:
            session.client.close()

    def open(self, name: str, url: str, session_id: str) -> Any:
        """Its session, for the queries that are to be started or found in it."""
        from pyspark.sql.connect.client.retries import DefaultPolicy

        from moldau.spark.sessions import session as connect

        self.forget(name)
        session = connect(url, user_id=USER_ID, session_id=session_id)
        policy = DefaultPolicy(max_retries=_RETRIES_MAX, max_backoff=_RETRY_MS_MAX)
        session.client.set_retry_policies([policy])
        self._sessions[name] = session
        return session


def _quieten_spark() -> None:
    """Spark's client logs every error by itself; ours are in the pipelines' logs.

    It makes these loggers when it first needs them, in a way that fails in several threads.
    """
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _as_json(progress: Any) -> dict[str, Any]:
    text = progress.json
    parsed = json.loads(text() if callable(text) else text)
    return parsed if isinstance(parsed, dict) else {}
