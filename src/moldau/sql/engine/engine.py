"""`KsqlEngine`: the metastore, the persistent queries, and what each statement does to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.sql.analysis.analysis import Into
from moldau.sql.analysis.nesting import flattened
from moldau.sql.analysis.sanitizer import check_insert_target, sanitized
from moldau.sql.engine import settings as names
from moldau.sql.engine.ddl import Ddl
from moldau.sql.engine.inference import Inference
from moldau.sql.engine.inserts import insert_values
from moldau.sql.engine.listing import Lister
from moldau.sql.engine.ports import Topics
from moldau.sql.engine.queries import Queries
from moldau.sql.engine.results import (
    Done,
    Inserted,
    PersistentQuery,
    Result,
    Stopped,
)
from moldau.sql.engine.sandbox import SandboxRegistry, SandboxTopics
from moldau.sql.engine.settings import Settings
from moldau.sql.errors import (
    TOO_LARGE,
    KsqlException,
    KsqlStatementException,
    ParseFailedException,
)
from moldau.sql.planning.formats import Formats
from moldau.sql.planning.planner import QueryPlan
from moldau.sql.ports import FormatFactory, Functions, SchemaRegistry
from moldau.sql.pull.executor import PullQuery
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.metastore import MetaStore, already_exists
from moldau.sql.sources.properties import SourceProperties, insert_query_id, own_properties
from moldau.sql.sparksql.compiler import SparkPlan, compiled
from moldau.sql.syntax import parser
from moldau.sql.syntax.expressions import ColumnRef
from moldau.sql.syntax.parser import ParsedStatement
from moldau.sql.syntax.statement_formatting import formatted
from moldau.sql.syntax.statements import (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateSource,
    CreateType,
    DefineVariable,
    Describe,
    DropSource,
    DropType,
    Explain,
    InsertInto,
    InsertValues,
    Query,
    Relation,
    SetProperty,
    Show,
    SingleColumn,
    Statement,
    UndefineVariable,
    UnsetProperty,
)
from moldau.sql.syntax.variables import substitute
from moldau.sql.topology.builder import OnRow, ProcessingLog
from moldau.sql.topology.serdes import Serdes
from moldau.sql.types import DecimalType, Namespace, SqlType


def _check_no_sources(statement: InsertValues) -> None:
    """Values belong to no source: there is none that a column could be of."""
    for each in statement.values:
        if isinstance(each, ColumnRef) and each.source is not None:
            raise KsqlException(f"'{each.source}' is not a valid stream/table name or alias.")


def _ignored(step: str, message: str, error: Exception, row: Any) -> None:
    """Without a processing log, what cannot be computed is not noted anywhere."""


@dataclass(slots=True)
class Session:
    """What SET and DEFINE change for the statements that follow."""

    properties: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


class KsqlEngine:
    """Executes statements one after another. It starts nothing: hosts run the topologies."""

    def __init__(
        self,
        *,
        functions: Functions,
        formats: FormatFactory,
        topics: Topics,
        registry: SchemaRegistry | None = None,
        config: Mapping[str, Any] | None = None,
        log: ProcessingLog = _ignored,
        metastore: MetaStore | None = None,
    ) -> None:
        self.metastore = MetaStore() if metastore is None else metastore
        self._format_factory = formats
        self._registry = registry
        self.settings = Settings(config)
        self.functions = functions
        self.formats = Formats(formats)
        self.topics = topics
        self.serdes = Serdes(self.formats, registry)
        self._inference = Inference(self.formats, registry)
        self._ddl = Ddl(self.metastore, self.formats, registry, topics)
        self._queries = Queries(
            metastore=self.metastore,
            functions=functions,
            formats=self.formats,
            topics=topics,
            registry=registry,
            log=log,
        )
        self.lister = Lister(
            metastore=self.metastore,
            queries=self._queries.by_id,
            functions=functions,
            topics=topics,
        )
        self._rules: dict[type[Statement], Callable[[Any, str, Session], Result]] = {
            CreateSource: self._create_source,
            CreateAsSelect: self._create_as_select,
            InsertInto: self._insert_into,
            InsertValues: self._insert_values,
            DropSource: lambda each, sql, session: self._drop(each),
            AlterSource: lambda each, sql, session: self._ddl.alter(each, sql),
            CreateType: lambda each, sql, session: self._ddl.create_type(each),
            DropType: lambda each, sql, session: self._ddl.drop_type(each),
            ControlQuery: lambda each, sql, session: self._control(each),
            SetProperty: self._set,
            UnsetProperty: self._unset,
            DefineVariable: self._define,
            UndefineVariable: self._undefine,
            Show: self._show,
            Describe: lambda each, sql, session: self.lister.describe(each),
            Explain: self._explain,
        }

    @property
    def queries(self) -> dict[str, PersistentQuery]:
        """The persistent queries by id."""
        return self._queries.by_id

    def sandbox(self) -> KsqlEngine:
        """An engine that knows what this one knows, to try statements in without any effect."""
        other = KsqlEngine(
            functions=self.functions,
            formats=self._format_factory,
            topics=SandboxTopics(self.topics),
            registry=None if self._registry is None else SandboxRegistry(self._registry),
            config=self.settings.values,
            metastore=self.metastore.copy(),
        )
        other.queries.update({name: replace(each) for name, each in self.queries.items()})
        return other

    # Statements.

    def parse(self, sql: str, *, test_statements: bool = False) -> list[ParsedStatement]:
        """The statements of a script, or the first error of its grammar."""
        return parser.parse(sql, test_statements=test_statements)

    def prepare(self, parsed: ParsedStatement, *, test_statements: bool = False) -> Statement:
        """The tree of a statement, with its WITH clause checked."""
        resolve: Callable[[str], SqlType | None] = self.metastore.resolve_type
        statement = parser.prepare(parsed, resolve, test_statements=test_statements)
        try:
            if isinstance(statement, CreateSource):
                SourceProperties(statement.properties, is_query=False)
            elif isinstance(statement, CreateAsSelect):
                SourceProperties(own_properties(statement), is_query=True)
            elif isinstance(statement, InsertValues):
                _check_no_sources(statement)
        except KsqlException as error:
            raise ParseFailedException(
                f"Failed to prepare statement: {error}", parsed.text
            ) from error
        with _as_statement_error(parsed.text):
            return flattened(statement, self.metastore, self.functions)

    def execute(self, statement: Statement, sql: str, session: Session | None = None) -> Result:
        """Do what a statement says. Queries that are not persistent have methods of their own."""
        rule = self._rules.get(type(statement))
        if rule is None:
            raise KsqlStatementException("Statement not executable", sql)
        with _as_statement_error(sql, lambda: self._formatted(statement, sql)):
            return rule(statement, sql, session or Session())

    def _formatted(self, statement: Statement, sql: str) -> str:
        """A query as errors quote it: with all of its names, as far as they are known."""
        if not isinstance(statement, CreateAsSelect | InsertInto):
            return sql
        with contextlib.suppress(KsqlException):
            explicit = replace(statement, query=sanitized(statement.query, self.metastore))
            return formatted(explicit) or sql
        return sql

    def execute_script(self, sql: str, session: Session | None = None) -> list[Result]:
        """Execute all statements of a script; variables are replaced as they are defined."""
        session = session or Session()
        results = []
        for parsed in self.parse(substitute(sql, session.variables)):
            statement = self.prepare(parsed)
            results.append(self.execute(statement, parsed.text, session))
        return results

    def _settings(self, session: Session) -> Settings:
        return self.settings.with_overrides(session.properties)

    # Sources.

    def _create_source(self, statement: CreateSource, sql: str, session: Session) -> Result:
        settings = self._settings(session)
        source = self._ddl.create_source(statement, settings, sql)
        if isinstance(source, Done):
            return source
        if not (source.is_source and source.kind == "TABLE"):
            self.metastore.put(source, replace=statement.or_replace)
            return Done(f"{source.kind.capitalize()} created")
        if not settings.flag(names.SOURCE_TABLES_ENABLED):
            raise KsqlException(
                "Cannot execute command because source table materialization is disabled."
            )
        self.metastore.put(source)
        plan = self._queries.plan(_all_values(source), None, settings)
        query_id = f"CST_{source.name.upper()}_{self._queries.new_id()}"
        return self._queries.start(query_id, sql, plan, settings, sink=None)

    def _drop(self, statement: DropSource) -> Result:
        name = statement.name
        writers = [each for each in self.queries.values() if each.sink == name]
        creating = [each for each in writers if not each.is_insert]
        readers = [
            each
            for each in self.queries.values()
            if each not in creating and name in (s.name for s in each.sources)
        ]
        inserting = [each for each in writers if each.is_insert]
        own = [each for each in self.queries.values() if each.id.startswith(f"CST_{name}_")]
        blocking = [each for each in readers if each not in own and each.is_insert]
        if (blocking or inserting) and self.metastore.source(name) is not None:
            reading = ", ".join(sorted(each.id for each in blocking))
            writing = ", ".join(sorted(each.id for each in inserting))
            raise KsqlException(
                f"Cannot drop {name}.\nThe following queries read from this source: [{reading}].\n"
                f"The following queries write into this source: [{writing}].\n"
                f"You need to terminate them before dropping {name}."
            )
        source = self.metastore.source(name)
        if statement.delete_topic and source and self.settings.is_read_only(source.topic):
            raise KsqlException(f"Cannot delete read-only topic: {source.topic}")
        done = self._ddl.drop(statement)
        for query in [*creating, *own]:
            self.queries.pop(query.id, None)
        return done

    # Queries.

    def _create_as_select(self, statement: CreateAsSelect, sql: str, session: Session) -> Result:
        settings = self._settings(session)
        properties = SourceProperties(statement.properties, is_query=True)
        into = Into(name=statement.name, properties=properties, or_replace=statement.or_replace)
        plan = self._queries.plan(statement.query, into, settings)
        sink = plan.sink
        if sink is None:
            raise KsqlException("a query without a sink")
        before = self.metastore.source(sink.name)
        if before is not None and not statement.or_replace:
            if statement.if_not_exists:
                return Done(
                    f"Cannot add {plan.kind.lower()} `{sink.name}`: A {before.kind.lower()} with "
                    "the same name already exists."
                )
            raise already_exists(plan.kind, sink.name, before.kind)
        _check_kind(statement, plan)
        if self.settings.is_read_only(sink.topic):
            raise KsqlException(f"Cannot write to read-only topic: {sink.topic}")
        spark = self._spark_plan(properties, plan)
        self._queries.register_sink(plan, sink, properties)
        self.metastore.put(replace(sink, sql=sql), replace=statement.or_replace)
        self.metastore.add_reads(sink.name, [each.name for each in plan.sources])
        try:
            started = self._queries.start(
                self._queries.new_sink_id(plan, sink), sql, plan, settings, sink=sink.name
            )
            started.query.spark = spark
            return started
        except KsqlException:
            if before is None:
                self.metastore.delete(sink.name)
            raise

    def _spark_plan(self, properties: SourceProperties, plan: QueryPlan) -> SparkPlan | None:
        """With ENGINE='spark-sql': the query for Spark, or the reason why it is not the same."""
        if str(properties.get("ENGINE") or "").lower() != "spark-sql":
            return None
        return compiled(plan.step, self.functions)

    def _insert_into(self, statement: InsertInto, sql: str, session: Session) -> Result:
        settings = self._settings(session)
        check_insert_target(statement, self.metastore)
        target = self.metastore.source(statement.target)
        if target is None:
            raise KsqlException(f"{statement.target} does not exist.")
        if self.settings.is_read_only(target.topic):
            raise KsqlException(f"Cannot insert into read-only topic: {target.topic}")
        into = Into(
            name=target.name, properties=SourceProperties({}, is_query=True), existing=target
        )
        plan = self._queries.plan(statement.query, into, settings)
        if target.is_source:
            raise KsqlException(
                f"Cannot insert into read-only {target.kind.lower()}: {target.name}"
            )
        if plan.kind != target.kind:
            raise KsqlException(
                f"Incompatible data sink and query result. Data sink ({target.name}) type is "
                f"K{target.kind} but select query result is K{plan.kind}."
            )
        _check_compatible(plan, target)
        wanted = insert_query_id(statement.properties)
        query_id = f"INSERTQUERY_{self._queries.new_id()}" if wanted is None else wanted
        if query_id in self.queries:
            raise KsqlException(f"Query ID '{query_id}' already exists.")
        started = self._queries.start(query_id, sql, plan, settings, sink=target.name)
        started.query.is_insert = True
        return started

    def number_queries_from(self, number: int) -> None:
        """The next query has this number in its id: a server takes it from the command topic."""
        self._queries.number_from(number)

    def push_query(
        self, query: Query, on_row: OnRow, sql: str, session: Session | None = None
    ) -> PersistentQuery:
        """A transient query: it is not kept, and its rows go to a function."""
        with _as_statement_error(sql):
            return self._queries.push(query, on_row, sql, self._settings(session or Session()))

    def pull_query(self, query: Query, sql: str, session: Session | None = None) -> PullQuery:
        """A pull query over a table that a persistent query keeps in a store."""
        with _as_statement_error(sql, quotes_part=True):
            return self._queries.pull(query, self._settings(session or Session()))

    # Values, queries that run, and the session.

    def _insert_values(self, statement: InsertValues, sql: str, session: Session) -> Inserted:
        try:
            return insert_values(
                statement,
                self.metastore,
                self.functions,
                self.serdes,
                self.settings,
                self._inference.check_insert,
            )
        except KsqlException as error:
            target = statement.target
            raise KsqlException(f"Failed to insert values into '{target}'. {error}") from error

    def _control(self, statement: ControlQuery) -> Result:
        if statement.query_id is None:
            chosen = list(self.queries.values())
        elif statement.query_id in self.queries:
            chosen = [self.queries[statement.query_id]]
            if chosen[0].sink is None:
                raise KsqlException(
                    f"Cannot {statement.action.lower()} query '{statement.query_id}' because it is "
                    "linked to a source table."
                )
        else:
            raise KsqlException(f"Unknown queryId: {statement.query_id}")
        for query in chosen:
            if statement.action == "TERMINATE":
                del self.queries[query.id]
            else:
                query.state = "PAUSED" if statement.action == "PAUSE" else "RUNNING"
        return Stopped(statement.action, chosen)

    def _show(self, statement: Show, sql: str, session: Session) -> Result:
        return self.lister.show(statement, self._settings(session), session.variables)

    def _explain(self, statement: Explain, sql: str, session: Session) -> Result:
        if statement.query_id is not None:
            query = self.queries.get(statement.query_id)
            if query is None:
                raise KsqlException(
                    f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view "
                    "the full set of queries."
                )
            return self.lister.explain(query)
        inner = statement.statement
        if not isinstance(inner, Query | CreateAsSelect | InsertInto):
            raise KsqlException("The provided statement does not run a ksql query")
        query_of = inner if isinstance(inner, Query) else inner.query
        planned = self._queries.push(
            replace(query_of, emit=query_of.emit or "CHANGES"),
            lambda key, row, timestamp: None,
            sql,
            self._settings(session),
        )
        if isinstance(inner, CreateAsSelect):
            properties = SourceProperties(inner.properties, is_query=True)
            planned.spark = self._spark_plan(properties, planned.plan)
        return self.lister.explain(planned)

    def _set(self, statement: SetProperty, sql: str, session: Session) -> Result:
        if statement.is_system:
            # Each query runs by itself here, as it does in ksqlDB by default.
            raise KsqlException(
                "Cannot alter system configs when KSQL_SHARED_RUNTIME_ENABLED is turned off."
            )
        session.properties[statement.name] = statement.value
        return Done(f"Successfully changed local property '{statement.name}'")

    def _unset(self, statement: UnsetProperty, sql: str, session: Session) -> Result:
        session.properties.pop(statement.name, None)
        return Done(f"Successfully unset local property '{statement.name}'")

    def _define(self, statement: DefineVariable, sql: str, session: Session) -> Result:
        session.variables[statement.name] = statement.value
        return Done("")

    def _undefine(self, statement: UndefineVariable, sql: str, session: Session) -> Result:
        session.variables.pop(statement.name, None)
        return Done("")


class _as_statement_error:
    """Turns errors inside into those of a statement."""

    def __init__(
        self, sql: str, shown: Callable[[], str] | None = None, *, quotes_part: bool = False
    ) -> None:
        """`shown` is the statement as errors quote it.

        `quotes_part`: an error in an expression quotes that, then the statement.
        """
        self._sql = sql
        self._shown = shown or (lambda: sql)
        self._quotes_part = quotes_part

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KsqlStatementException):
            if error.statement == self._sql:
                return
            detail = error.unlogged if self._quotes_part else error.raw_unlogged
            raise KsqlStatementException(str(error), self._shown(), detail) from error
        if isinstance(error, KsqlException):
            raise KsqlStatementException(str(error), self._shown()) from error
        if isinstance(error, RecursionError):
            raise KsqlStatementException(TOO_LARGE, self._sql) from error


def _all_values(source: DataSource) -> Query:
    """What a source table shows: all of its columns but the key."""
    items = tuple(
        SingleColumn(ColumnRef(each.name), each.name)
        for each in source.schema.columns
        if each.namespace is not Namespace.KEY
    )
    return Query(select=items, source=Relation(source.name, source.name), emit="CHANGES")


def _check_kind(statement: CreateAsSelect, plan: QueryPlan) -> None:
    if statement.kind == plan.kind:
        return
    raise KsqlException(
        f"Invalid result type. Your SELECT query produces a {plan.kind}. Please use CREATE "
        f"{plan.kind} AS SELECT statement instead."
    )


def _check_compatible(plan: QueryPlan, target: DataSource) -> None:
    mine, theirs = plan.schema.columns, target.schema.columns
    fits = len(mine) == len(theirs) and all(
        one.name == other.name and one.namespace is other.namespace and _casts(one.type, other.type)
        for one, other in zip(mine, theirs, strict=True)
    )
    if not fits:
        raise KsqlException(
            "Incompatible schema between results and sink.\n"
            f"Result schema is {plan.schema}\nSink schema is {target.schema}"
        )


def _casts(source: SqlType, target: SqlType) -> bool:
    """A DECIMAL goes into a wider one; other types must be the same."""
    if isinstance(source, DecimalType) and isinstance(target, DecimalType):
        whole = source.precision - source.scale
        return source.scale <= target.scale and whole <= target.precision - target.scale
    return source == target
