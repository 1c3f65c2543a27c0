"""From a definition to DataFrames: good records on their way, bad records beside them.

A flow is a DataFrame with what is known about its columns. While a flow is tagged, its bad records
are rows like the others, marked by `__error`; a step that can let them pass keeps it tagged. Before
a step that cannot (grouping, joining, a user's function), and before a sink that has no place for
them, bad records leave the flow:

- as a branch of the plan, if nothing of the user's own code ran before: then the branch gives the
  same verdict for each record as the flow does;
- sent by the worker itself, if a row step ran before: working it out a second time in a branch
  might end differently, and a record could end up in neither place or in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.pipelines.build import lookups, records, relations, transforms
from moldau.pipelines.build.headers import writes_headers
from moldau.pipelines.build.letters import letter
from moldau.pipelines.build.machine.names import (
    COORDINATES,
    HEADERS,
    LETTER,
    METADATA,
    ORIGIN,
    carried,
    visible,
)
from moldau.pipelines.build.machine.sql_text import ERROR, mentions, plain_select
from moldau.pipelines.build.rows import TAG, LetterSender, RowRunner
from moldau.pipelines.build.scoring import scored
from moldau.pipelines.definition import (
    Cast,
    ColumnsToHeaders,
    Deduplicate,
    Drop,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
    Pipeline,
    Python,
    Rename,
    RowStep,
    Source,
    Sql,
    Step,
    Topic,
    Watermark,
)
from moldau.pipelines.definition.model import FAIL, IGNORE, INPUT, Shapes
from moldau.pipelines.definition.relations import Join, Lookup, Window
from moldau.pipelines.definition.scoring import Score
from moldau.pipelines.definition.topic_options import consumer_config, producer_config
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.explaining import BAD_RECORD, explain, short


@dataclass(frozen=True)
class Flow:
    """Rows on their way. `implicit` are metadata columns that the definition does not name."""

    frame: Any
    implicit: frozenset[str] = frozenset()
    tagged: bool = False
    ran_user_code: bool = False
    columns: tuple[str, ...] = ()

    def over(self, frame: Any, **changes: Any) -> Flow:
        return replace(self, frame=frame, columns=tuple(frame.columns), **changes)

    @property
    def visible(self) -> list[str]:
        return visible(self.columns, self.implicit)


@dataclass
class Flows:
    """Builds the flows of one pipeline; `letters` are the branches with bad records."""

    spark: Any
    pipeline: Pipeline
    bootstrap: str
    read: Any
    """Gives a source's DataFrame."""
    letters: list[Any] = field(default_factory=list)

    def build(self) -> Flow:
        """The flow that goes to the sink, perhaps still tagged."""
        views = {name: self._source(one) for name, one in self.pipeline.sources.items()}
        current = views.get(INPUT) or next(iter(views.values()))
        if INPUT not in views and len(views) > 1:
            views = {name: self.untagged(flow) for name, flow in views.items()}
        elif INPUT not in views:
            views[INPUT] = current
        for index, step in enumerate(self.pipeline.steps):
            before = views[step.source] if step.source not in (None, INPUT) else current
            try:
                current = self._step(index, step, before, views)
            except PipelineError:
                raise
            except Exception as failure:
                raise explain(failure, self.pipeline, step=step) from None
            views[INPUT] = current
            if step.name is not None:
                # What is read several times must not bring its bad records several times.
                current = self.untagged(current) if self._read_later(step.name, index) else current
                views[step.name] = views[INPUT] = current
        return current

    def untagged(self, flow: Flow) -> Flow:
        """The flow without its bad records, which take a way of their own."""
        from pyspark.sql import functions as F

        if not flow.tagged:
            return flow
        name = self.pipeline.name
        if self.pipeline.dead_letter is None:
            return self._without_bad(flow)
        written = letter(list(flow.columns), flow.implicit, pipeline=name)
        if flow.ran_user_code:
            frame = flow.frame.withColumn(LETTER, written).drop(ERROR)
            sender = LetterSender(
                producer_config(self.pipeline.kafka, bootstrap=self.bootstrap),
                self.pipeline.dead_letter,
                LETTER,
            )
            good = frame.mapInArrow(sender, flow.frame.drop(ERROR).schema)
            return flow.over(good, tagged=False)
        bad = flow.frame.where(_once(F.col(ERROR).isNotNull()))
        self.letters.append(bad.select(written.alias(LETTER)))
        good = flow.frame.where(_once(F.col(ERROR).isNull())).drop(ERROR)
        return flow.over(good, tagged=False)

    def _without_bad(self, flow: Flow) -> Flow:
        """Nobody takes bad records: they end the query, or are left out."""
        from pyspark.sql import functions as F

        good = F.col(ERROR).isNull()
        if self.pipeline.errors == FAIL:
            named = [F.col(name).cast("string") for name in COORDINATES if name in flow.columns]
            at = (
                F.concat(
                    F.lit("record "), named[0], F.lit("-"), named[1], F.lit(" at offset "), named[2]
                )
                if len(named) == len(COORDINATES)
                else F.lit("a record")
            )
            message = F.concat(F.lit(BAD_RECORD), at, F.lit(": "), F.col(ERROR)["message"])
            good = F.when(good, F.lit(True)).otherwise(F.raise_error(message).cast("boolean"))
        return flow.over(flow.frame.where(_once(good)).drop(ERROR), tagged=False)

    # Sources

    def _source(self, source: Source) -> Flow:
        frame = self.read(source)
        if not isinstance(source, Topic):
            flow = Flow(frame).over(frame)
        else:
            rows = records.parsed(
                self.spark,
                frame,
                source,
                keep_value=self._keeps_values(),
                base=self.pipeline.base,
            )
            metadata = [name for name in METADATA if name in rows.columns]
            flow = Flow(rows, frozenset(metadata), tagged=True).over(rows)
            if source.format == "binary" or not self._linear():
                flow = self.untagged(flow) if source.format != "binary" else _never_bad(flow)
        if source.watermark:
            flow = self._watermark(source.watermark, flow)
        return flow if self.pipeline.dead_letter is not None else self.untagged(flow)

    def _keeps_values(self) -> bool:
        """The record's own bytes are only carried along where they are needed."""
        if self.pipeline.dead_letter is not None:
            return True
        texts = [step.query for step in self.pipeline.steps if isinstance(step, Sql)]
        texts += [output.sql for output in self.pipeline.sinks.values() if output.sql is not None]
        return any(mentions(text, "_value") for text in texts)

    def _linear(self) -> bool:
        """One source, and no step but the next reads what a step gives."""
        steps = self.pipeline.steps
        names = {step.name for step in steps if step.name is not None} | set(self.pipeline.sources)
        return len(self.pipeline.sources) == 1 and not any(
            step.source is not None
            or isinstance(step, Join)
            or (isinstance(step, Sql) and any(mentions(step.query, n) for n in names - {INPUT}))
            for step in steps
        )

    def _read_later(self, name: str, index: int) -> bool:
        return any(
            step.source == name
            or (isinstance(step, Join) and step.other == name)
            or (isinstance(step, Sql) and mentions(step.query, name))
            for step in self.pipeline.steps[index + 1 :]
        )

    # Steps

    def _step(self, index: int, step: Step, flow: Flow, views: Mapping[str, Flow]) -> Flow:
        match step:
            case Watermark():
                return self._watermark(step, flow)
            case Sql():
                return self.sql(step, views)
            case Python():
                return self._python(step, self.untagged(flow))
            case RowStep():
                return self._row(step, flow)
            case Cast():
                return self._cast(step, flow)
            case Drop():
                self._has(flow, step.columns, step)
                return flow.over(flow.frame.drop(*step.columns))
            case Rename():
                self._has(flow, step.columns, step)
                named = flow.implicit - set(step.columns)
                return flow.over(flow.frame.withColumnsRenamed(dict(step.columns)), implicit=named)
            case Window():
                good = self.untagged(flow)
                self._has(good, [step.time, *step.by], step)
                frame = relations.windowed(step, good.frame)
                return Flow(frame, ran_user_code=good.ran_user_code).over(frame)
            case Join():
                return self._join(step, self.untagged(flow), self.untagged(views[step.other]))
            case Lookup():
                return self._lookup(step, flow)
            case _:
                return self._transform(step, flow)

    def _join(self, step: Join, left: Flow, right: Flow) -> Flow:
        """Of the records themselves nothing is left, as a row has two of them."""
        frames = [one.frame.select(*[f"`{name}`" for name in one.visible]) for one in (left, right)]
        frame = relations.joined(step, *frames)
        return Flow(frame, ran_user_code=left.ran_user_code or right.ran_user_code).over(frame)

    def _lookup(self, step: Lookup, flow: Flow) -> Flow:
        config = consumer_config(self.pipeline.kafka, bootstrap=self.bootstrap)
        frame = lookups.looked_up(self.spark, step, flow.frame, config)
        # What a key has depends on when it is asked.
        result = flow.over(frame, tagged=True, ran_user_code=True)
        return result if self.pipeline.dead_letter is not None else self.untagged(result)

    def _transform(self, step: Shapes, flow: Flow) -> Flow:
        match step:
            case Flatten():
                self._has(flow, step.columns, step)
                return flow.over(transforms.flattened(step, flow.frame))
            case Mask():
                self._has(flow, step.columns, step)
                return flow.over(transforms.masked(step, flow.frame))
            case Explode():
                self._has(flow, [step.column], step)
                return flow.over(transforms.exploded(step, flow.frame))
            case HeadersToColumns():
                return flow.over(transforms.with_columns(step, flow.frame))
            case ColumnsToHeaders():
                self._has(flow, step.columns, step)
                headers = flow.implicit | {HEADERS}
                return flow.over(transforms.with_headers(step, flow.frame), implicit=headers)
            case Score():
                self._has(flow, step.columns, step)
                return flow.over(scored(step, flow.frame, self.pipeline.base))
            case Deduplicate():
                self._has(flow, step.keys, step)
                if step.watermark is not None:
                    self._has(flow, [step.watermark.column], step)
                good = self.untagged(flow)
                return good.over(transforms.deduplicated(step, good.frame))

    def _watermark(self, step: Watermark, flow: Flow) -> Flow:
        self._has(flow, [step.column], step)
        return flow.over(flow.frame.withWatermark(step.column, step.delay))

    def sql(self, step: Sql, views: Mapping[str, Flow]) -> Flow:
        used = {name: flow for name, flow in views.items() if mentions(step.query, name)}
        flow = used.get(INPUT)
        if len(used) == 1 and flow is not None:
            passed = self._sql_with_origin(step, flow)
            if passed is not None:
                return passed
        used = {name: self.untagged(one) for name, one in used.items()}
        frame = self._selected(step.query, used)
        implicit = frozenset().union(*(one.implicit for one in used.values()))
        ran = any(one.ran_user_code for one in used.values())
        return Flow(
            frame, self._not_named(implicit, frame.columns, step.query), ran_user_code=ran
        ).over(frame)

    def _sql_with_origin(self, step: Sql, flow: Flow) -> Flow | None:
        """A plain SELECT that also carries the record's origin; None if it is not so plain."""
        wanted = [name for name in (*ORIGIN, "_headers") if name in flow.columns]
        if flow.tagged:
            wanted.append(ERROR)
        elif not wanted or not (self._row_steps_follow(step) or writes_headers(self.pipeline)):
            return None
        select = plain_select(step.query, INPUT)
        if select is None:
            return None
        good = replace(flow, frame=flow.frame.drop(ERROR), tagged=False)
        # The user's own text is analysed first: mistakes are reported in its words and lines.
        result = [one for one in self._selected(step.query, {INPUT: good}).columns if one != ERROR]
        if select.has_star:
            wanted = [name for name in wanted if name != ERROR]  # the star brings it
        query = select.with_columns(wanted, result=result, guard=flow.tagged)
        from pyspark.errors import AnalysisException

        # Only what Spark says of the text counts: a server that is away for a moment must not make
        # another plan, whose sources the checkpoint of an earlier start would not know.
        try:
            frame = self._selected(query, {INPUT: flow})
            columns = frame.columns
        except AnalysisException:
            return None
        if len(set(columns)) != len(columns) or (flow.tagged and ERROR not in columns):
            return None
        implicit = self._not_named(flow.implicit, columns, step.query)
        return flow.over(frame, implicit=implicit)

    def _row_steps_follow(self, step: Step) -> bool:
        steps = self.pipeline.steps
        # The SQL of one of several sinks is none of the steps.
        later = steps[steps.index(step) + 1 :] if step in steps else ()
        return any(isinstance(one, RowStep | Cast) for one in later)

    def _not_named(
        self, implicit: frozenset[str], columns: list[str], query: str
    ) -> frozenset[str]:
        """The metadata columns of the result that came along, by a star or by us."""
        select = plain_select(query, INPUT)
        named = select.names if select else (lambda name: mentions(query, name))
        return frozenset(name for name in implicit if name in columns and not named(name))

    def _selected(self, query: str, views: Mapping[str, Flow]) -> Any:
        """The statement's DataFrame; each view is meant as it is now, not when the query starts."""
        from pyspark.sql.connect.dataframe import DataFrame
        from pyspark.sql.connect.plan import SQL, SubqueryAlias

        aliases = [SubqueryAlias(flow.frame._plan, name) for name, flow in views.items()]
        frame = DataFrame(SQL(query.rstrip().rstrip(";"), None, None, aliases), self.spark)
        _ = frame.schema
        return frame

    def _python(self, step: Python, flow: Flow) -> Flow:
        function = step.function.load()
        frame = function(flow.frame, **step.args)
        if not hasattr(frame, "mapInArrow"):
            raise PipelineError(
                f"{step.function} must return a DataFrame, not {type(frame).__name__}",
                where=_where(step.function.place or step.place),
            )
        columns = frame.columns
        implicit = frozenset(name for name in flow.implicit if name in columns)
        return flow.over(frame, implicit=implicit, ran_user_code=True)

    def _row(self, step: RowStep, flow: Flow) -> Flow:
        from pyspark.sql.types import StructType

        step.function.load()  # errors in it are raised now, not by the first worker
        along = carried(flow.columns)
        if self.pipeline.dead_letter is not None and ERROR not in along:
            flow = flow.over(flow.frame.withColumn(ERROR, records.no_error()))
            along.append(ERROR)
        before = {one.name: one for one in flow.frame.schema.fields}
        own = (
            self._ddl(step)
            if step.schema is not None
            else [before[name] for name in flow.columns if name not in along]
        )
        along = [name for name in along if name not in {one.name for one in own}]
        fields = [*own, *[before[name] for name in along]]
        schema = StructType.fromJson(StructType(fields).jsonValue())
        for one in schema.fields:
            one.nullable = True
        tag = self.pipeline.dead_letter is not None
        runner = RowRunner(
            code=step.function.to_json(),
            args=dict(step.args),
            on_error=TAG if tag else IGNORE if self.pipeline.errors == IGNORE else FAIL,
            schema_json=schema.json(),
            columns=tuple(one.name for one in own),
            carried=tuple(along),
        )
        frame = flow.frame.mapInArrow(runner, schema)
        implicit = frozenset(name for name in flow.implicit if name in along)
        return flow.over(frame, implicit=implicit, tagged=tag, ran_user_code=True)

    def _ddl(self, step: RowStep) -> list[Any]:
        try:
            return list(self.spark.createDataFrame([], str(step.schema)).schema.fields)
        except Exception as failure:
            raise PipelineError(
                f"schema: {short(failure)}", where=_where(step.place), detail=str(failure)
            ) from None

    def _cast(self, step: Cast, flow: Flow) -> Flow:
        self._has(flow, step.columns, step)
        result = flow.over(transforms.cast(step, flow.frame), tagged=True)
        return result if self.pipeline.dead_letter is not None else self.untagged(result)

    def _has(self, flow: Flow, names: Any, step: Step) -> None:
        for name in names:
            if name not in flow.columns and "." not in name:
                raise PipelineError(
                    f"there is no column {name!r}; there are {', '.join(flow.visible)}",
                    where=_where(step.place),
                )


def _where(place: Any) -> str | None:
    return str(place) if place else None


def _never_bad(flow: Flow) -> Flow:
    return flow.over(flow.frame.drop(ERROR), tagged=False)


def _once(condition: Any) -> Any:
    """The condition, tied to its place in the plan.

    Spark would push a filter below the parsing and so parse each record twice, and might ask a
    user's condition before ours. It does neither with a condition that is not deterministic.
    """
    from pyspark.sql import functions as F

    return condition & (F.spark_partition_id() >= 0)
