"""SqlCore: the engine with its cluster, its queries and its commands. Called from threads."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.client import Producer
from moldau.client.admin import Admin, OffsetSpec
from moldau.client.topics import TopicPartition
from moldau.data.errors import DataError
from moldau.data.schema_language import SchemaError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.services.sql.cluster import ClusterTopics, RemoteRegistry
from moldau.services.sql.commands import CommandLog
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.hosting import QueryHost
from moldau.services.sql.machine import entities
from moldau.services.sql.machine.entities import Entity
from moldau.services.sql.machine.errors import (
    BAD_STATEMENT,
    QUERY_ENDPOINT,
    KsqlHttpError,
    statement_error,
)
from moldau.sql.engine.engine import KsqlEngine, Session
from moldau.sql.engine.results import (
    Done,
    Inserted,
    Listing,
    PersistentQuery,
    Result,
    Started,
    Stopped,
)
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.formats import format_for
from moldau.sql.formats.errors import Misfit
from moldau.sql.formats.json_reading import by_rules, parse
from moldau.sql.functions.registry import FunctionRegistry, built_in
from moldau.sql.functions.sandbox.loading import add_extensions
from moldau.sql.ports import SchemaRegistry
from moldau.sql.syntax.parser import substitute
from moldau.sql.syntax.statements import (
    Describe,
    Explain,
    PrintTopic,
    Query,
    Show,
    Statement,
)
from moldau.sql.types import StructType

__all__ = ["PreparedQuery", "SqlCore"]

logger = logging.getLogger(__name__)
processing_log = logging.getLogger("moldau.sql.processing")

_INSERT_TIMEOUT_S = 30
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query of a request, ready to be run."""

    query: Query | PrintTopic
    text: str
    session: Session


def _log_row(step: str, message: str, error: Exception, row: Any) -> None:
    # Rows may hold what nobody should read in a log; ksqlDB leaves them out by default, too.
    processing_log.warning("%s: %s: %s", step, message, error)


class SqlCore:
    """One statement at a time: the engine is not made for several threads."""

    def __init__(
        self,
        config: SqlConfig,
        *,
        functions: FunctionRegistry | None = None,
        registry: SchemaRegistry | None = None,
    ) -> None:
        """`registry` instead of the one at `ksql.schema.registry.url`."""
        self.config = config
        settings = config.client_settings()
        self.admin = Admin(settings)
        self._producer = Producer(settings, acks="all", linger_ms=0)
        self.topics = ClusterTopics(self.admin)
        url = config["ksql.schema.registry.url"]
        self._registry_client = SchemaRegistryClient(url) if url else None
        if registry is None and self._registry_client is not None:
            registry = RemoteRegistry(self._registry_client)
        engine_settings = config.engine_settings()
        known = functions or add_extensions(built_in(engine_settings), engine_settings)
        self.engine = KsqlEngine(
            functions=known,
            formats=format_for,
            topics=self.topics,
            registry=registry,
            config=engine_settings,
            log=_log_row,
        )
        self.host = QueryHost(config, self.admin)
        self._commands: CommandLog | None = None
        self.lock = threading.RLock()

    def open(self) -> None:
        """Execute what the command topic or the file of queries says, and start the queries."""
        path = self.config["ksql.queries.file"]
        if path:
            self._run_file(path)
            return
        self._commands = CommandLog(self.config, self.topics)
        for command in self._commands.read():
            self.engine.number_queries_from(command.offset)
            session = Session(properties=dict(command.properties))
            try:
                for result in self.engine.execute_script(command.statement, session):
                    self._after(result, session, replayed=True)
            except KsqlException as error:
                logger.error("Command %d failed again: %s", command.offset, error)
        for query in list(self.engine.queries.values()):
            self._start(query, query.settings)

    def _run_file(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            script = file.read()
        session = Session()
        for result in self.engine.execute_script(script, session):
            self._after(result, session)

    def close(self) -> None:
        self.host.close()
        if self._commands is not None:
            self._commands.close()
        if self._registry_client is not None:
            self._registry_client.close()
        self._producer.close(timeout=5)
        self.admin.close()

    # Statements.

    def execute(
        self, script: str, properties: Mapping[str, Any], variables: Mapping[str, str]
    ) -> list[Entity]:
        """Execute the statements of a request; KsqlHttpError for the first that fails."""
        session = Session(dict(properties), dict(variables))
        done: list[Entity] = []
        with self.lock:
            parsed = self._parsed(script, session)
            for each in parsed:
                try:
                    statement = self.engine.prepare(each)
                    done += self._executed(statement, each.text, session)
                except KsqlHttpError:
                    raise
                except (KsqlException, DataError, SchemaError) as error:
                    raise statement_error(error, each.text, done) from error
        return done

    def _parsed(self, script: str, session: Session) -> list[Any]:
        try:
            return self.engine.parse(substitute(script, session.variables))
        except KsqlException as error:
            raise statement_error(error, script) from error

    def _executed(self, statement: Statement, text: str, session: Session) -> list[Entity]:
        if isinstance(statement, Query | PrintTopic):
            raise KsqlHttpError(
                400,
                "The following statement types should be issued to the websocket endpoint "
                "'/query':\n\t* PRINT\n\t* SELECT",
                error_code=QUERY_ENDPOINT,
                statement=text,
            )
        if isinstance(statement, Show | Describe | Explain):
            return [self._listed(statement, text, session)]
        command = entities.command_id(statement)
        if command is not None and self._commands is not None:
            self.engine.number_queries_from(self._commands.next_offset)
        result = self.engine.execute(statement, text, session)
        sequence = -1
        if command is not None and self._commands is not None:
            sequence = self._commands.append(command, text, session.properties)
        self._after(result, session)
        if command is None:
            return []
        message, query_id = _said(result)
        return [entities.current_status(text, command, message, query_id, sequence)]

    def _listed(self, statement: Show | Describe | Explain, text: str, session: Session) -> Entity:
        for query in self.engine.queries.values():
            query.state = self.host.state(query.id)
        found = self.engine.execute(statement, text, session)
        if not isinstance(found, Listing):
            raise KsqlException("nothing was listed")
        return entities.listing(text, found, session.properties)

    def _after(self, result: Result, session: Session, *, replayed: bool = False) -> None:
        """Do in the cluster what a statement wants done."""
        match result:
            case Started():
                if not replayed:
                    self._start(result.query, session.properties)
            case Stopped():
                for query in result.queries:
                    self.host.control(result.action, query.id)
            case Inserted() if not replayed:
                self._insert(result)
            case _:
                # Queries of a source that was dropped end with it.
                self._stop_unknown()

    def _start(self, query: PersistentQuery, properties: Mapping[str, Any]) -> None:
        try:
            self.host.start(query, properties)
        except Exception:
            logger.exception("%s could not be started", query.id)

    def _stop_unknown(self) -> None:
        for query_id in self.host.persistent_ids():
            if query_id not in self.engine.queries:
                self.host.stop(query_id, for_good=True)

    def _insert(self, record: Inserted) -> None:
        self._producer.send(
            record.topic, record.value, key=record.key, timestamp=record.timestamp
        ).result(timeout=_INSERT_TIMEOUT_S)

    def insert_row(self, target: str, row: Mapping[str, Any]) -> None:
        """Write a row that came as JSON; names match as they do in JSON topics."""
        with self.lock:
            source = self.engine.metastore.source(_name(target))
            if source is None:
                raise KsqlException(f"Cannot insert values into an unknown stream: {target}")
            if source.kind != "STREAM":
                raise KsqlException(f"Cannot insert into a table: {target}")
            schema = source.schema
            columns = (*schema.key, *schema.value)
            unknown = [name for name in row if schema.find(_name(name)) is None]
            if unknown:
                raise KsqlException(f"Column name `{unknown[0]}` does not exist.")
            read = by_rules(StructType(tuple((each.name, each.type) for each in columns)))
            try:
                values = read(parse(json.dumps(row).encode()))
            except Misfit as misfit:
                raise KsqlException(str(misfit)) from None
            count = len(schema.key)
            serdes, value = self.engine.serdes, source.value_format
            record = Inserted(
                topic=source.topic,
                key=serdes.key(source.key_format, schema).serialize(source.topic, values[:count]),
                value=serdes.value(value.format, schema, value.features).serialize(
                    source.topic, values[count:]
                ),
                timestamp=None,
            )
        self._insert(record)

    # Queries.

    def prepare_query(
        self, script: str, properties: Mapping[str, Any], variables: Mapping[str, str]
    ) -> PreparedQuery:
        """The only statement of a request to /query; KsqlHttpError if it is none."""
        session = Session(dict(properties), dict(variables))
        with self.lock:
            parsed = self._parsed(script, session)
            if len(parsed) != 1:
                raise KsqlHttpError(
                    400,
                    f"Expected exactly one KSQL statement; found {len(parsed)} instead",
                    error_code=BAD_STATEMENT,
                    statement=script,
                )
            text = parsed[0].text
            try:
                statement = self.engine.prepare(parsed[0])
            except KsqlException as error:
                raise statement_error(error, text) from error
        if not isinstance(statement, Query | PrintTopic):
            raise KsqlHttpError(
                400,
                f"Statement type `{type(statement).__name__}' not supported for this resource",
                error_code=BAD_STATEMENT,
                statement=text,
            )
        return PreparedQuery(statement, text, session)

    def ends_of(self, topic: str) -> dict[TopicPartition, int]:
        """Where the partitions of a topic end now."""
        count = self.topics.partitions(topic) or 0
        partitions = [TopicPartition(topic, index) for index in range(count)]
        found = self.admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest()))
        return {each: found[each].offset for each in partitions}

    def wait_until_read(self, query: PersistentQuery, ends: Mapping[TopicPartition, int]) -> None:
        """Wait until a query has committed so much of its input."""
        left = {each: end for each, end in ends.items() if end > 0}
        streams = self.host.streams(query.id)
        deadline = time.monotonic() + _READ_TIMEOUT_S
        while left and streams is not None:
            if streams.error is not None or time.monotonic() > deadline:
                raise KsqlException(f"The stream could not be read: {streams.error or 'timeout'}")
            group = streams.settings.application_id
            found = self.admin.list_consumer_group_offsets(group)[group]
            read = {each: 0 if at is None else at.offset for each, at in found.items()}
            left = {each: end for each, end in left.items() if read.get(each, 0) < end}
            if left:
                time.sleep(_POLL_S)

    def push(
        self, prepared: PreparedQuery, on_row: Callable[[Any, Any, int], None]
    ) -> PersistentQuery:
        """Start a push query whose rows go to a function, in a thread of the query."""
        query = prepared.query
        if not isinstance(query, Query):
            raise KsqlStatementException("PRINT is not a query", prepared.text)
        with self.lock:
            try:
                started = self.engine.push_query(query, on_row, prepared.text, prepared.session)
            except KsqlException as error:
                raise statement_error(error, prepared.text) from error
        if self._is_scalable(query, prepared.session):
            started = replace(started, id=f"SCALABLE_PUSH_QUERY_{started.id}")
        self.host.start(started, prepared.session.properties, transient=True)
        return started

    def _is_scalable(self, query: Query, session: Session) -> bool:
        """Whether ksqlDB's second version of push queries runs it: it shows rows from now on."""
        overrides = self.config.streams_settings(session.properties)
        plain = not query.joins and query.window is None and query.group_by is None
        return bool(
            plain
            and query.partition_by is None
            and self.config["ksql.query.push.v2.enabled"]
            and overrides.get("auto.offset.reset", "latest") == "latest"
        )


#: How long a pull query over a stream may take.
_READ_TIMEOUT_S = 60.0


def _name(text: str) -> str:
    """An identifier as a client writes it: in capitals unless it is quoted."""
    return text[1:-1] if text[:1] == "`" == text[-1:] else text.upper()


def _said(result: Result) -> tuple[str, str | None]:
    """The message of a command, and the id of the query it has started."""
    match result:
        case Done():
            return result.message, None
        case Started():
            return f"Created query with ID {result.query.id}", result.query.id
        case Stopped():
            word = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}
            return f"Query {word[result.action]}.", None
        case _:
            return "", None
