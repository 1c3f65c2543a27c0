"""Queries: planned, built and kept by their ids."""

from __future__ import annotations

from dataclasses import replace

from moldau.sql.analysis.analysis import Into, analyze
from moldau.sql.analysis.plain_selects import with_selected_keys
from moldau.sql.analysis.sanitizer import sanitized
from moldau.sql.engine import settings as names
from moldau.sql.engine.inference import Inference
from moldau.sql.engine.ports import Topics
from moldau.sql.engine.results import PersistentQuery, Started
from moldau.sql.engine.settings import Settings
from moldau.sql.errors import KsqlException
from moldau.sql.planning.formats import Formats
from moldau.sql.planning.node import PlanContext
from moldau.sql.planning.planner import PlanSettings, QueryPlan, QueryPlanner
from moldau.sql.planning.steps import AggregateStep, walk
from moldau.sql.planning.unions import united
from moldau.sql.planning.upgrades import check_upgrade
from moldau.sql.ports import Functions, SchemaRegistry
from moldau.sql.pull.executor import PullQuery, not_queryable
from moldau.sql.pull.ordering import check_no_ordering
from moldau.sql.pull.planner import PullSettings, plan_pull
from moldau.sql.sources.data_source import DataSource
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.sources.properties import (
    SourceProperties,
    check_cleanup_policy,
    check_retention,
)
from moldau.sql.syntax.statements import Query
from moldau.sql.topology.builder import (
    BuildContext,
    BuiltTopology,
    OnRow,
    ProcessingLog,
    build_topology,
)
from moldau.sql.topology.holders import Materialization

#: Seven days, as brokers have it.
_RETENTION_MS_DEFAULT = 604_800_000


class Queries:
    """The persistent queries of an engine, and what plans new ones."""

    def __init__(
        self,
        *,
        metastore: MetaStore,
        functions: Functions,
        formats: Formats,
        topics: Topics,
        registry: SchemaRegistry | None,
        log: ProcessingLog,
    ) -> None:
        self.by_id: dict[str, PersistentQuery] = {}
        self._metastore = metastore
        self._functions = functions
        self._formats = formats
        self._topics = topics
        self._registry = registry
        self._log = log
        self._inference = Inference(formats, registry)
        self._next_id = 0
        self._transient = 0

    def new_sink_id(self, plan: QueryPlan, sink: DataSource) -> str:
        """The id of a query that creates a source, or of the one that it replaces."""
        writers = [each.id for each in self.by_id.values() if each.sink == sink.name]
        if len(writers) > 1:
            raise KsqlException(
                f"REPLACE for sink `{sink.name}` is not supported because there are multiple "
                f"queries writing into it: [{', '.join(writers)}]"
            )
        if writers:
            return writers[0]
        prefix = "CTAS" if plan.kind == "TABLE" else "CSAS"
        return f"{prefix}_{sink.name.upper()}_{self.new_id()}"

    def register_sink(
        self, plan: QueryPlan, sink: DataSource, properties: SourceProperties
    ) -> None:
        """Register the schemas of a sink's topic, and create the topic."""
        key, value = sink.key_format, sink.value_format
        for is_key, columns, info in (
            (True, sink.schema.key, key.format),
            (False, sink.schema.value, value.format),
        ):
            schema_id = properties.get("KEY_SCHEMA_ID" if is_key else "VALUE_SCHEMA_ID")
            self._inference.check_schema_id(
                columns, schema_id, sink.topic, info, properties, is_key=is_key
            )
        self._inference.register(sink.topic, sink.schema, key, value, if_missing=False)
        source_topic = plan.sources[0].topic
        partitions = properties.get("PARTITIONS") or self._topics.partitions(source_topic) or 1
        self._topics.create(
            sink.topic,
            partitions,
            properties.get("REPLICAS") or -1,
            _topic_config(plan, properties),
        )

    def number_from(self, number: int) -> None:
        """The number that the next query takes."""
        self._next_id = number

    def new_id(self) -> int:
        """Queries are numbered in the order they are created."""
        self._next_id += 1
        return self._next_id - 1

    def plan(self, query: Query, into: Into | None, settings: Settings) -> QueryPlan:
        """The plan of a persistent or a push query."""
        check_no_ordering(query)
        first = self._plan_one(query, into, settings)
        if not query.unions:
            return first
        target = into
        if into is not None and first.sink is not None:
            # What the first side creates is there for the others.
            target = replace(into, existing=first.sink)
        others = [self._plan_one(each, target, settings) for each in query.unions]
        return united([first, *others])

    def _plan_one(self, query: Query, into: Into | None, settings: Settings) -> QueryPlan:
        explicit = sanitized(query, self._metastore)
        analysis = analyze(explicit, self._metastore, self._functions, into)
        if into is not None and settings.flag(names.NEW_PLANNER_ENABLED):
            explicit = with_selected_keys(explicit, analysis.first.source)
            analysis = analyze(explicit, self._metastore, self._functions, into)
        context = PlanContext(
            functions=self._functions,
            formats=self._formats,
            default_key_format=settings.text(names.DEFAULT_KEY_FORMAT),
        )
        plan_settings = PlanSettings(
            topic_prefix=settings.text(names.TOPIC_PREFIX),
            wrap_single_values=settings.optional_flag(names.WRAP_SINGLE_VALUES),
            suppress_enabled=settings.flag(names.SUPPRESS_ENABLED),
            partitions=self._topics.partitions,
        )
        return QueryPlanner(analysis, context, plan_settings).plan()

    def _build_context(self, settings: Settings, application_id: str) -> BuildContext:
        return BuildContext(
            application_id=application_id,
            functions=self._functions,
            formats=self._formats,
            registry=self._registry,
            log=self._log,
            timestamp_throws=settings.flag(names.TIMESTAMP_THROWS),
        )

    def _built(
        self, plan: QueryPlan, settings: Settings, application_id: str, on_row: OnRow | None = None
    ) -> BuiltTopology:
        try:
            return build_topology(plan.step, self._build_context(settings, application_id), on_row)
        except ValueError as error:
            # Streams refuses sizes of windows, retention times and the like.
            raise KsqlException(str(error)) from error

    def start(
        self, query_id: str, sql: str, plan: QueryPlan, settings: Settings, *, sink: str | None
    ) -> Started:
        """Keep a persistent query; one with the same id goes on with the new plan."""
        before = self.by_id.get(query_id)
        if before is not None:
            check_upgrade(before.plan.step, plan.step)
        prefix = settings.text(names.SERVICE_ID) + settings.text(names.QUERY_PREFIX)
        application_id = f"_confluent-ksql-{prefix}{query_id}"
        built = self._built(plan, settings, application_id)
        query = PersistentQuery(
            id=query_id,
            sql=sql,
            plan=plan,
            built=built,
            application_id=application_id,
            sink=sink,
            settings=settings.values,
            overrides=settings.overrides,
        )
        self.by_id[query_id] = query
        return Started(query, before)

    def push(self, query: Query, on_row: OnRow, sql: str, settings: Settings) -> PersistentQuery:
        """A query that is not kept, and whose rows go to a function."""
        plan = self.plan(query, None, settings)
        self._transient += 1
        query_id = f"transient_{plan.sources[0].name}_{self._transient}"
        application_id = f"_confluent-ksql-{settings.text(names.SERVICE_ID)}{query_id}"
        built = self._built(plan, settings, application_id, on_row)
        return PersistentQuery(
            id=query_id,
            sql=sql,
            plan=plan,
            built=built,
            application_id=application_id,
            sink=None,
        )

    def pull(self, query: Query, settings: Settings) -> PullQuery:
        """A query over what a table holds now."""
        explicit = sanitized(query, self._metastore)
        analysis = analyze(explicit, self._metastore, self._functions, None)
        options = PullSettings(
            table_scans=settings.flag(names.TABLE_SCAN_ENABLED),
            range_scans=settings.flag(names.RANGE_SCAN_ENABLED),
            limits=settings.flag(names.PULL_LIMIT_ENABLED),
        )
        plan = plan_pull(analysis, self._functions, options)
        keeper, found = self._materialized(plan.source)
        return PullQuery(plan, keeper.id, found)

    def _materialized(self, source: DataSource) -> tuple[PersistentQuery, Materialization]:
        """The query that keeps a table, and the store it keeps it in."""
        name = source.name
        for query in self.by_id.values():
            writes = query.sink == name or (query.sink is None and name in _names(query))
            if writes and query.built.materialization is not None and source.kind == "TABLE":
                return query, query.built.materialization
        raise not_queryable(source)


def _topic_config(plan: QueryPlan, properties: SourceProperties) -> dict[str, str]:
    """A table's topic is compacted; the windows of one are deleted, too."""
    check_cleanup_policy(properties)
    windows = [each.window for each in walk(plan.step) if isinstance(each, AggregateStep)]
    window = windows[0] if windows else None
    policy = "delete"
    if plan.kind == "TABLE":
        policy = "compact" if window is None else "compact,delete"
    retention_ms = properties.get("RETENTION_MS")
    check_retention(policy, retention_ms)
    if window is not None and window.retention is not None:
        retention_ms = max(retention_ms or _RETENTION_MS_DEFAULT, window.retention.ms)
    config = {"cleanup.policy": policy}
    if retention_ms is not None:
        config["retention.ms"] = str(retention_ms)
    return config


def _names(query: PersistentQuery) -> list[str]:
    return [each.name for each in query.sources]
