"""A whole pipeline, checked.

A `Pipeline` that exists has been checked: its constructor raises `DefinitionError` with every
mistake it finds, so that what builds and runs pipelines need not check again.
`Pipeline.from_json(pipeline.to_json()) == pipeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moldau.pipelines.definition import documents
from moldau.pipelines.definition.checks import check, mistakes
from moldau.pipelines.definition.model import (
    APPEND,
    FAIL,
    INPUT,
    Python,
    Sink,
    Source,
    Sql,
    Step,
    with_place,
)
from moldau.pipelines.definition.outputs import Output, ends_of, outputs_of
from moldau.pipelines.definition.places import Place, place_of_caller
from moldau.pipelines.definition.reading import Places, Reading, in_order, parts_of
from moldau.pipelines.definition.triggers import Trigger, trigger_of
from moldau.pipelines.errors import PipelineError

__all__ = ["Draft", "Pipeline", "draft_of", "loads", "mistakes_of", "of_document"]


def loads(
    text: str,
    *,
    file: str = "pipeline.yaml",
    base: Path | None = None,
    variables: Mapping[str, object] | None = None,
) -> Pipeline:
    """The pipeline of a YAML text; `file` is the name that mistakes are reported with."""
    return of_document(documents.parse(text, file=file, base=base, variables=variables))


def of_document(document: documents.Document) -> Pipeline:
    """The pipeline of a document; raises all of its mistakes at once."""
    reading = document.arguments()
    found = mistakes_of(reading, document.place)
    if found:
        raise in_order(found)
    return Pipeline(**reading.arguments)


def mistakes_of(reading: Reading, places: Places) -> list[PipelineError]:
    """Those in how it is written, and those of what could be read."""
    if not reading.mistakes:
        return list(mistakes(draft_of(reading), places))
    # What is missing because it could not be read has been reported.
    silent = (
        "name: ''",
        "source: missing",
        "sink: missing",
        "source: none is streaming",
        "steps: several sources",
    )
    found = mistakes(draft_of(reading), places)
    return [*reading.mistakes, *(one for one in found if not one.message.startswith(silent))]


def draft_of(reading: Reading) -> Draft:
    """As much of a pipeline as could be read."""
    arguments = reading.arguments
    source = arguments["source"]
    named = {} if source is None else {INPUT: source}
    return Draft(
        name=arguments["name"],
        sources={**named, **arguments["sources"]},
        steps=reading.steps,
        sink=arguments["sink"],
        sinks=arguments["sinks"],
        output_mode=arguments["output_mode"],
        dead_letter=arguments["dead_letter"],
        errors=arguments["errors"],
        connector=arguments["connector"],
        engine=arguments["engine"],
        kafka=arguments["kafka"],
        place=arguments["place"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the checks need of a pipeline; it may be incomplete."""

    name: str
    sources: Mapping[str, Source]
    steps: tuple[Step | None, ...]
    sink: Sink | None
    sinks: Mapping[str, Output]
    output_mode: str
    dead_letter: str | None
    errors: str
    connector: str
    engine: str
    kafka: Mapping[str, str]
    place: Place | None

    def ends(self) -> dict[str, Sink]:
        return ends_of(self.sink, self.sinks)


@dataclass(frozen=True, slots=True, init=False)
class Pipeline:
    """A flow of data from sources through steps into a sink, or several."""

    name: str
    sources: Mapping[str, Source]
    steps: tuple[Step, ...]
    sink: Sink | None
    """None if there are several."""
    sinks: Mapping[str, Output]
    trigger: Trigger
    output_mode: str
    dead_letter: str | None
    errors: str
    connector: str
    engine: str
    kafka: Mapping[str, str]
    checkpoint: str | None
    base: str
    """The folder that relative paths of the definition start from."""
    place: Place | None = field(default=None, compare=False, kw_only=True, repr=False)

    def __init__(
        self,
        name: str,
        *,
        source: Source | None = None,
        sources: Mapping[str, Source] | None = None,
        steps: Sequence[Step | str | Callable[..., Any]] = (),
        sink: Sink | None = None,
        sinks: Mapping[str, Output | Sink] | None = None,
        trigger: Trigger | str | Mapping[str, Any] | None = None,
        output_mode: str = APPEND,
        dead_letter: str | None = None,
        errors: str = FAIL,
        connector: str = "auto",
        engine: str = "auto",
        kafka: Mapping[str, Any] | None = None,
        checkpoint: str | None = None,
        base: str | Path | None = None,
        place: Place | None = None,
    ) -> None:
        put = object.__setattr__
        named = dict(sources or {})
        if source is not None:
            named = {INPUT: source, **named}
        put(self, "name", name)
        put(self, "sources", named)
        put(self, "steps", tuple(_as_step(step) for step in steps))
        put(self, "sink", sink)
        put(self, "sinks", outputs_of(sinks))
        put(self, "trigger", trigger if isinstance(trigger, Trigger) else trigger_of(trigger))
        put(self, "output_mode", output_mode)
        put(self, "dead_letter", dead_letter)
        put(self, "errors", errors)
        put(self, "connector", connector)
        put(self, "engine", engine)
        put(self, "kafka", {key: str(value) for key, value in (kafka or {}).items()})
        put(self, "checkpoint", checkpoint)
        put(self, "base", str(Path(base).absolute() if base is not None else Path.cwd()))
        put(self, "place", place or place_of_caller())
        check(self)

    def ends(self) -> dict[str, Sink]:
        """Every sink, by where it is in the definition: `sink`, or `sinks.NAME`."""
        return ends_of(self.sink, self.sinks)

    @property
    def finite(self) -> bool:
        return self.trigger.finite

    @classmethod
    def load(cls, path: str | Path, variables: Mapping[str, object] | None = None) -> Pipeline:
        """The pipeline of a YAML file; `variables` replace `${name}`."""
        return of_document(documents.read(Path(path), variables))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Pipeline:
        return cls(**parts_of(fields).checked())

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": self.name}
        if list(self.sources) == [INPUT]:
            fields["source"] = self.sources[INPUT].to_json()
        else:
            fields["sources"] = {name: one.to_json() for name, one in self.sources.items()}
        fields["steps"] = [step.to_json() for step in self.steps]
        if self.sink is not None:
            fields["sink"] = self.sink.to_json()
        if self.sinks:
            fields["sinks"] = {name: one.to_json() for name, one in self.sinks.items()}
        fields["trigger"] = self.trigger.to_json()
        fields["outputMode"] = self.output_mode
        fields["errors"] = self.errors
        fields["connector"] = self.connector
        if self.engine != "auto":
            fields["engine"] = self.engine
        if self.dead_letter is not None:
            fields["dead_letter"] = self.dead_letter
        if self.kafka:
            fields["kafka"] = dict(self.kafka)
        if self.checkpoint is not None:
            fields["checkpoint"] = self.checkpoint
        fields["base"] = self.base
        return with_place(fields, self.place)


def _as_step(step: Step | str | Callable[..., Any]) -> Step:
    if isinstance(step, str):
        return Sql(step)
    return Python(step) if callable(step) else step  # type: ignore[arg-type]
