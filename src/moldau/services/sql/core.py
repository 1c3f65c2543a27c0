"""SqlCore: the engine with its cluster, its queries and its commands. Called from threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.client.admin import Admin
from moldau.client.errors import KafkaError
from moldau.data.errors import DataError
from moldau.data.schema_language import SchemaError
from moldau.serde.registry_client import SchemaRegistryClient
from moldau.services.sql.access import AccessValidator
from moldau.services.sql.assertions import Assertions
from moldau.services.sql.cluster import ClusterTopics, RemoteRegistry
from moldau.services.sql.commands import Command, CommandConflict, CommandLog
from moldau.services.sql.config import INSERTS_DISABLED, INSERTS_ENABLED, SqlConfig
from moldau.services.sql.connectors import Connectors
from moldau.services.sql.descriptions import Descriptions
from moldau.services.sql.hosting import QueryHost
from moldau.services.sql.machine import entities
from moldau.services.sql.machine.entities import Entity
from moldau.services.sql.machine.errors import (
    BAD_STATEMENT,
    SERVER_ERROR,
    KsqlHttpError,
    statement_error,
)
from moldau.services.sql.peers import Peers
from moldau.services.sql.row_writing import RowWriter
from moldau.services.sql.spark_tables import SparkTables
from moldau.services.sql.stream_reads import StreamReads
from moldau.services.sql.trials import Trials
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
from moldau.sql.engine.settings import VARIABLES_ENABLED
from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import FunctionRegistry, built_in
from moldau.sql.functions.sandbox.loading import add_extensions
from moldau.sql.ports import SchemaRegistry
from moldau.sql.syntax.parser import ParsedStatement
from moldau.sql.syntax.statements import (
    AssertSchema,
    AssertTopic,
    ControlQuery,
    CreateAsSelect,
    CreateConnector,
    Describe,
    DropConnector,
    DropSource,
    Explain,
    InsertInto,
    InsertValues,
    PrintTopic,
    Query,
    Show,
    Statement,
)
from moldau.sql.syntax.variables import substitute
from moldau.sql.types import quoted

__all__ = ["PreparedQuery", "SqlCore"]

logger = logging.getLogger(__name__)
processing_log = logging.getLogger("moldau.sql.processing")

#: How often commands of other servers are looked for.
_FOLLOW_S = 0.3
_CLOSE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query of a request, ready to be run."""

    query: Query | PrintTopic
    text: str
    session: Session
    #: What the client sent, for servers that the query is passed on to.
    authorization: str | None = field(default=None, repr=False)


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
        self.topics = ClusterTopics(self.admin)
        url = config["ksql.schema.registry.url"]
        self.registry_client = SchemaRegistryClient(url) if url else None
        if registry is None and self.registry_client is not None:
            registry = RemoteRegistry(self.registry_client)
        self._registry = registry
        engine_settings = config.engine_settings()
        self._functions = functions or add_extensions(built_in(engine_settings), engine_settings)
        self.engine = self._new_engine()
        self.rows = RowWriter(settings, lambda: self.engine)
        self.spark_tables = SparkTables(
            config["ksql.spark.remote"], config["ksql.spark.tables"], self.rows, self.topics
        )
        self.host = QueryHost(config, self.admin)
        self.peers = Peers(config, self.host)
        self.access = AccessValidator(config["ksql.access.validator.enable"], self.admin)
        self._connectors = Connectors(config["ksql.connect.url"])
        self._trials = Trials(config, self.access, self.host)
        self._descriptions = Descriptions(self.admin, self.host)
        self.reads = StreamReads(self.admin, self.topics, self.host)
        self._assertions = Assertions(config, self.topics, self.registry_client)
        self._commands: CommandLog | None = None
        self._following: threading.Thread | None = None
        self._closing = threading.Event()
        self.lock = threading.RLock()

    def _new_engine(self) -> KsqlEngine:
        settings = self.config.engine_settings()
        return KsqlEngine(
            functions=self._functions,
            formats=format_for,
            topics=self.topics,
            registry=self._registry,
            config=settings,
            log=_log_row,
        )

    def open(self, address: str = "") -> None:
        """Execute what the command topic or the file of queries says, and start the queries.

        `address` is where other servers of the service id reach this one.
        """
        self.host.address = address
        path = self.config["ksql.queries.file"]
        if path:
            self._run_file(path)
            return
        self._commands = CommandLog(self.config, self.topics)
        with self.lock:
            self._replay(self._commands.read())
            for query in list(self.engine.queries.values()):
                self._start(query, query.settings)
        self._following = threading.Thread(
            target=self._follow, name="sql-command-runner", daemon=True
        )
        self._following.start()

    def _replay(self, commands: Iterable[Command], *, starts: bool = False) -> None:
        """Execute commands; `starts` also does in the cluster what they want done."""
        for command in commands:
            self.engine.number_queries_from(command.offset)
            session = Session(properties=dict(command.properties))
            try:
                with self.topics.keeping():
                    results = self.engine.execute_script(command.statement, session)
                for result in results:
                    self._after(result, session, replayed=not starts)
            except KsqlException as error:
                logger.error("Command %d failed: %s", command.offset, error)

    def _follow(self) -> None:
        """Execute what other servers of the service id write."""
        while not self._closing.wait(_FOLLOW_S):
            try:
                self._catch_up()
            except Exception as error:
                logger.warning("The command topic could not be read: %s", error)

    @property
    def is_following(self) -> bool:
        """Whether commands are executed; without a command topic there are none."""
        return self._following is None or self._following.is_alive()

    def _catch_up(self) -> None:
        with self.lock:
            if self._commands is not None and not self._closing.is_set():
                self._replay(self._commands.read(), starts=True)

    def _see_others(self) -> None:
        """A trial must know what other servers have written; without the topic it uses what is
        known, and writing the statement fails."""
        try:
            self._catch_up()
        except (KafkaError, TimeoutError) as error:
            logger.warning("The command topic could not be read: %s", error)

    def _rebuild(self) -> None:
        """Begin again with what the command topic says: a decision of this server was overtaken."""
        logger.warning("Another server wrote a command first; all commands are executed again")
        with self.lock:
            if self._commands is not None:
                self._commands.close()
            self.engine = self._new_engine()
            self._commands = CommandLog(self.config, self.topics)
            self._replay(self._commands.read())
            self._stop_unknown()
            for query in list(self.engine.queries.values()):
                if self.host.streams(query.id) is None:
                    self._start(query, query.settings)

    def _run_file(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            script = file.read()
        session = Session()
        for result in self.engine.execute_script(script, session):
            self._after(result, session)
        if not self.engine.queries:
            raise KsqlException(
                f"The SQL file {path} does not contain any persistent queries. i.e. it contains no "
                "'INSERT INTO', 'CREATE TABLE x AS SELECT' or 'CREATE STREAM x AS SELECT' style "
                "statements."
            )

    def close(self) -> None:
        self._closing.set()
        self.peers.close()
        if self._following is not None:
            self._following.join(_CLOSE_TIMEOUT_S)
        self.host.close()
        with self.lock:
            if self._commands is not None:
                self._commands.close()
        if self.registry_client is not None:
            self.registry_client.close()
        self.spark_tables.close()
        self.rows.close()
        self.admin.close()

    # Statements.

    def execute(
        self, script: str, properties: Mapping[str, Any], variables: Mapping[str, str]
    ) -> list[Entity]:
        """Execute the statements of a request; KsqlHttpError for the first that fails."""
        session = self._trials.session(properties, variables)
        done: list[Entity] = []
        with self.lock:
            parsed = self._parsed(script, session)
        copied = self.spark_tables.copied(
            parsed,
            self.engine,
            session,
            self.lock,
            lambda sql: self.execute(sql, session.properties, {}),
        )
        if copied is not None:
            return [copied]
        with self.lock:
            if self._trials.are_due(parsed):
                self._see_others()
                self._trials.run(self.engine, parsed, session)
            for each in parsed:
                try:
                    statement = self.engine.prepare(each)
                    done += self._executed(statement, each.text, session)
                except KsqlHttpError:
                    raise
                except (KsqlException, DataError, SchemaError) as error:
                    raise statement_error(error, each.text, done) from error
        return done

    def _parsed(self, script: str, session: Session) -> list[ParsedStatement]:
        enabled = self.engine.settings.with_overrides(session.properties).flag(VARIABLES_ENABLED)
        try:
            return self.engine.parse(substitute(script, session.variables) if enabled else script)
        except KsqlException as error:
            raise statement_error(error, script) from error

    def _executed(self, statement: Statement, text: str, session: Session) -> list[Entity]:
        if isinstance(statement, Show | Describe | Explain):
            return [self._listed(statement, text, session)]
        self.access.check(statement, text, self.engine.metastore)
        _check_room(statement, len(self.engine.queries), self.config)
        if isinstance(statement, InsertValues) and not self.config[INSERTS_ENABLED]:
            raise KsqlException(INSERTS_DISABLED)
        elsewhere = self._elsewhere(statement, text)
        if elsewhere is not None:
            return [elsewhere]
        command = entities.command_id(statement)
        if command is None or self._commands is None:
            result = self.engine.execute(statement, text, session)
            self._after(result, session)
            if command is None:
                return []
            return [_status(text, command, result, -1)]
        return [self._commanded(self._commands, statement, text, command, session)]

    def _commanded(
        self, log: CommandLog, statement: Statement, text: str, command: str, session: Session
    ) -> Entity:
        """Execute a statement here, and write it for all other servers and later starts."""
        try:
            writer = log.writer()
        except KafkaError as error:
            raise KsqlException(f"The command topic cannot be written: {error}") from error
        try:
            self._replay(log.read(), starts=True)
            self.engine.number_queries_from(log.position())
            result = self.engine.execute(statement, text, session)
            try:
                sequence = writer.append(command, _kept(statement, text), session.properties)
            except CommandConflict as error:
                self._rebuild()
                raise KsqlHttpError(
                    500, str(error), error_code=SERVER_ERROR, statement=text
                ) from error
            log.skip_to(sequence + 1)
        finally:
            writer.close()
        self._after(result, session)
        return _status(text, command, result, sequence)

    def _elsewhere(self, statement: Statement, text: str) -> Entity | None:
        """What statements are answered with that the engine does not know."""
        match statement:
            case CreateConnector():
                return self._connectors.create(statement, text)
            case DropConnector():
                return self._connectors.drop(statement, text)
            case AssertTopic():
                return self._assertions.topic(statement, text)
            case AssertSchema():
                return self._assertions.schema(statement, text)
            case ControlQuery(action="TERMINATE", query_id=str(query_id)):
                pushed = self.host.push_query_id(query_id)
                if pushed is None:
                    return None
                self.host.stop(pushed)
                return entities.terminated(text, pushed)
            case _:
                return None

    def _listed(self, statement: Show | Describe | Explain, text: str, session: Session) -> Entity:
        if isinstance(statement, Show) and statement.what.startswith("CONNECTOR"):
            return self._connectors.listed(statement, text)
        if isinstance(statement, Describe) and statement.what == "CONNECTOR":
            engine = self.engine
            return self._connectors.described(statement, text, engine.metastore, engine.lister)
        for query in self.engine.queries.values():
            query.state = self.host.state(query.id)
        found = self.engine.execute(statement, text, session)
        if not isinstance(found, Listing):
            raise KsqlException("nothing was listed")
        listed = entities.listing(text, found, session.properties)
        self._descriptions.complete(listed)
        return listed

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
                self.rows.insert(result)
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

    # Queries.

    def prepare_query(
        self, script: str, properties: Mapping[str, Any], variables: Mapping[str, str]
    ) -> PreparedQuery:
        """The only statement of a request to /query; KsqlHttpError if it is none."""
        session = self._trials.session(properties, variables)
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
        self.access.check(statement, text, self.engine.metastore)
        return PreparedQuery(statement, text, session)

    def push(
        self, prepared: PreparedQuery, on_row: Callable[[Any, Any, int], None]
    ) -> PersistentQuery:
        """Start a push query whose rows go to a function, in a thread of the query."""
        query = prepared.query
        if not isinstance(query, Query):
            raise KsqlStatementException("PRINT is not a query", prepared.text)
        is_scalable = _is_scalable(query, prepared.session, self.config)
        with self.lock:
            source = self.engine.metastore.source(query.source.name)
            if is_scalable and source is not None and source.schema.key:
                on_row = _with_key(on_row)
            try:
                started = self.engine.push_query(query, on_row, prepared.text, prepared.session)
            except KsqlException as error:
                raise statement_error(error, prepared.text) from error
        if is_scalable:
            started = replace(started, id=f"SCALABLE_PUSH_QUERY_{started.id}")
        self.host.start(started, prepared.session.properties, transient=True)
        return started


def _is_scalable(query: Query, session: Session, config: SqlConfig) -> bool:
    """Whether ksqlDB's second version of push queries runs it: it shows rows from now on."""
    overrides = config.streams_settings(session.properties)
    plain = not query.joins and query.window is None and query.group_by is None
    return bool(
        plain
        and query.partition_by is None
        and config["ksql.query.push.v2.enabled"]
        and overrides.get("auto.offset.reset", "latest") == "latest"
    )


def _with_key(on_row: Callable[[Any, Any, int], None]) -> Callable[[Any, Any, int], None]:
    """ksqlDB's second version of push queries does not show rows without a key."""

    def keyed(key: Any, row: Any, timestamp: int) -> None:
        parts = key if isinstance(key, tuple) else (key,)
        if any(each is not None for each in parts):
            on_row(key, row, timestamp)

    return keyed


def _check_room(statement: Statement, count: int, config: SqlConfig) -> None:
    limit = config["ksql.query.persistent.active.limit"]
    if isinstance(statement, CreateAsSelect | InsertInto) and count >= limit:
        raise KsqlException(
            "Not executing statement(s) as it would cause the number of active, persistent queries "
            "to exceed the configured limit. Use the TERMINATE command to terminate existing "
            "queries, or increase the 'ksql.query.persistent.active.limit' setting via the "
            "'ksql-server.properties' file. Current persistent query count: "
            f"{count}. Configured limit: {limit}."
        )


def _kept(statement: Statement, text: str) -> str:
    """What is written of a statement. That a topic was deleted is not repeated: by the time another
    server reads it, the topic may be somebody else's."""
    if isinstance(statement, DropSource) and statement.delete_topic:
        exists = "IF EXISTS " if statement.if_exists else ""
        return f"DROP {statement.kind} {exists}{quoted(statement.name)};"
    return text


def _status(text: str, command: str, result: Result, sequence: int) -> Entity:
    message, query_id = _said(result)
    return entities.current_status(text, command, message, query_id, sequence)


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
