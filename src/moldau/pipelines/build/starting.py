"""Starting a pipeline's queries, checking that they could be started, and showing their plan."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moldau.pipelines.build import several, sinks
from moldau.pipelines.build.environment import with_environment, with_references
from moldau.pipelines.build.frames import Flow, Flows
from moldau.pipelines.build.routing import routed
from moldau.pipelines.build.scoring import load_model
from moldau.pipelines.build.sources import Sources
from moldau.pipelines.build.topics import make_topics
from moldau.pipelines.definition import Pipeline, Python, RowStep, Topic
from moldau.pipelines.definition.scoring import Score
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.explaining import explain as explained
from moldau.spark.sessions import has_local_workers

DEAD_LETTER = "dead-letter"


@dataclass(frozen=True)
class _Built:
    """The DataFrames that are written: the sink's, and that of a second query for dead letters."""

    main: Any
    letters: Any | None
    sources: tuple[Sources, ...]
    #: What is known of the rows that go to several sinks.
    flow: Flow | None = None
    #: The pipeline, where its only sink is written as one of several.
    pipeline: Pipeline | None = None

    def close(self) -> None:
        for sources in self.sources:
            sources.close()


def start(
    spark: Any,
    definition: Pipeline,
    *,
    bootstrap: str,
    checkpoint: str,
    secrets: Path | None = None,
) -> list[Any]:
    """The pipeline's queries, running.

    `checkpoint` is a folder for this pipeline alone; a definition that names its own has the last
    word. `secrets` is a folder of its own too: Spark's workers, if they are on this machine, read
    passwords there, so that Spark itself gets none. If one of two queries cannot be started, the
    other is stopped again.
    """
    pipeline = with_environment(definition)
    if secrets is not None and has_local_workers(spark):
        pipeline = with_references(pipeline, secrets)
    folder = _checkpoint(pipeline, checkpoint)
    with _quiet(), _explaining(pipeline), closing(_build(spark, pipeline, bootstrap)) as built:
        make_topics(pipeline, bootstrap=bootstrap)
        started = [_start(spark, built, pipeline, bootstrap, f"{folder}/query")]
        if built.letters is None:
            return started
        try:
            query = sinks.start_letters(
                spark, built.letters, pipeline, bootstrap, f"{folder}/{DEAD_LETTER}"
            )
        except BaseException:
            started[0].stop()
            raise
        return [*started, query]


def _start(spark: Any, built: _Built, pipeline: Pipeline, bootstrap: str, checkpoint: str) -> Any:
    if built.flow is not None:
        given = built.pipeline or pipeline
        return several.start(built.main, built.flow, given, bootstrap, checkpoint)
    return sinks.start(spark, built.main, pipeline, bootstrap, checkpoint)


def check(definition: Pipeline, spark: Any = None, *, bootstrap: str = "127.0.0.1:9092") -> None:
    """Raises `PipelineError` if the pipeline cannot work.

    Without Spark its functions are loaded, with Spark also its schemas and statements are analysed.
    """
    for step in definition.steps:
        if isinstance(step, Python | RowStep):
            with _explaining(definition):
                step.function.load()
        if isinstance(step, Score):
            load_model(step, definition.base)
    if spark is None:
        return
    pipeline = with_environment(definition)
    with _quiet(), _explaining(pipeline), closing(_build(spark, pipeline, bootstrap)) as built:
        for frame in (built.main, built.letters):
            if frame is not None:
                _ = frame.schema


def explain(spark: Any, definition: Pipeline, *, bootstrap: str = "127.0.0.1:9092") -> str:
    """Spark's plan of the pipeline, as `DataFrame.explain` shows it."""
    pipeline = with_environment(definition)
    with _quiet(), _explaining(pipeline), closing(_build(spark, pipeline, bootstrap)) as built:
        plans = [built.main._explain_string(extended=True)]
        if built.letters is not None:
            plans += [f"== {pipeline.name}.{DEAD_LETTER} ==", built.letters._explain_string()]
        return "\n".join(plans)


def _build(spark: Any, pipeline: Pipeline, bootstrap: str) -> _Built:
    sources = Sources(spark, pipeline, bootstrap, group=pipeline.name)
    flows = Flows(spark, pipeline, bootstrap, sources.read)
    flow = flows.build()
    if pipeline.sinks:
        several.check_sinks(flows, flow)
        return _Built(several.rows_of(flows, flow), None, (sources,), flow)
    if isinstance(pipeline.sink, Topic):
        flow = routed(flows, flow, pipeline.sink)
        records = sinks.records(flow, pipeline.sink, pipeline)
        return _Built(sinks.with_letters(records, flows.letters, pipeline), None, (sources,))
    if (one := several.with_letters(flow, pipeline, bootstrap)) is not None:
        return _Built(several.rows_of(flows, flow), None, (sources,), flow, one)
    flow = flows.untagged(flow)
    main = flow.frame.select(*[f"`{name}`" for name in flow.visible])
    if not flows.letters:
        return _Built(main, None, (sources,))
    # The second query reads the source by itself, and is to be seen as a group of its own.
    second = Sources(spark, pipeline, bootstrap, group=f"{pipeline.name}.{DEAD_LETTER}")
    again = Flows(spark, pipeline, bootstrap, second.read)
    again.untagged(again.build())
    return _Built(main, sinks.letters(again.letters, pipeline), (sources, second))


def _checkpoint(pipeline: Pipeline, given: str) -> str:
    own = pipeline.checkpoint
    if own is None:
        return given.rstrip("/")
    return own.rstrip("/") if "://" in own else str(Path(pipeline.base, own))


@contextmanager
def _explaining(pipeline: Pipeline) -> Iterator[None]:
    """Spark's errors are raised in the user's terms; transient ones are left alone."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as failure:
        found = explained(failure, pipeline)
        if found.retriable:
            raise
        raise found from None


class _Silence:
    """Spark's client prints each mistake in a statement with a page of Java before raising it.

    Several pipelines may be built at once: the last to leave lets it speak again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        from pyspark.logger import PySparkLogger

        with self._lock:
            self._depth += change
            for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
                PySparkLogger.getLogger(name).disabled = self._depth > 0


_quiet = _Silence()
