"""The Datagen source: records at random intervals, from a quick start or a schema of one's own."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConfigValue,
    ConnectError,
    Header,
    Importance,
    Kind,
    Range,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.datagen.machine.quickstarts import QUICKSTARTS, quickstart
from moldau.connect.connectors.datagen.machine.values import value_maker
from moldau.data import builders
from moldau.data.avro.connect_data import AvroData
from moldau.data.avro.language import AvroLanguage
from moldau.data.avro.to_connect import connect_value
from moldau.data.errors import DataError
from moldau.data.schema_language import SchemaError

_TASK: Final = "task.id"
_GENERATION: Final = "task.generation"
_ITERATION: Final = "current.iteration"
#: With an interval of nothing this many records are made at once.
BATCH: Final = 1000

CONFIG: Final = (
    ConfigDef()
    .define("kafka.topic", Kind.STRING, importance=Importance.HIGH, doc="Topic to write to")
    .define("max.interval", Kind.LONG, 500, validator=Range(-1), importance=Importance.HIGH,
            doc="Longest wait between records in ms; 0 or -1: none")
    .define("iterations", Kind.INT, -1, importance=Importance.HIGH,
            doc="How many records a task writes before it fails, as the original's does; less "
            "than 1: without end")
    .define("quickstart", Kind.STRING, None, importance=Importance.HIGH,
            doc=f"One of {', '.join(sorted(QUICKSTARTS))}")
    .define("schema.filename", Kind.STRING, None, importance=Importance.HIGH,
            doc="File with an Avro schema with hints, instead of a quick start")
    .define("schema.string", Kind.STRING, None, importance=Importance.HIGH, doc="Its text instead")
    .define("schema.keyfield", Kind.STRING, None, importance=Importance.HIGH,
            doc="Field that becomes the key")
    .define("random.seed", Kind.LONG, None, doc="Begin of the random numbers; the same gives the "
            "same records")
    .define("generate.timeout", Kind.LONG, None, doc="Not used: a value never takes long")
)  # fmt: skip


def _read_schema(config: Mapping[str, Any]) -> tuple[str | None, Any]:
    """The key's field and the Avro schema with its hints."""
    given = [
        name
        for name in ("quickstart", "schema.filename", "schema.string")
        if config[name] is not None
    ]
    if len(given) != 1:
        raise ConfigError.invalid(
            "quickstart", config["quickstart"],
            "set exactly one of quickstart, schema.filename and schema.string",
        )  # fmt: skip
    if given == ["quickstart"]:
        name = str(config["quickstart"]).lower()
        if name not in QUICKSTARTS:
            raise ConfigError.invalid(
                "quickstart", name, f"must be one of {', '.join(sorted(QUICKSTARTS))}"
            )
        key, schema = quickstart(name)
        return config["schema.keyfield"] or key, schema
    text = config["schema.string"]
    if text is None:
        try:
            text = Path(config["schema.filename"]).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError.invalid(
                "schema.filename", config["schema.filename"], str(error.strerror)
            ) from None
    try:
        return config["schema.keyfield"], json.loads(text)
    except ValueError as error:
        raise ConfigError.invalid(given[0], text[:100], f"is not JSON: {error}") from None


class DatagenConnector(SourceConnector):
    DESCRIPTION = "Made-up records, for demonstrations and tests"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        by_name = {each.name: each for each in values}
        if not any(each.errors for each in values):
            try:
                _Maker({name: each.value for name, each in by_name.items()})
            except ConfigError as error:
                by_name[error.key if error.key in by_name else "quickstart"].errors.append(
                    str(error)
                )
        return values

    def start(self, props: Mapping[str, str]) -> None:
        CONFIG.parse(props)
        self._props = dict(props)

    def task_class(self) -> type[SourceTask]:
        return DatagenTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self._props, _TASK: str(number)} for number in range(max_tasks)]


class _Maker:
    """Makes structs with their schema."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.key, schema = _read_schema(config)
        self.make = value_maker(schema)
        try:
            self._avro = AvroLanguage().parse(json.dumps(schema), strict=False)
            self.schema = AvroData().connect_schema(self._avro)
        except (SchemaError, DataError) as error:
            raise ConfigError.invalid("schema.string", "", str(error)) from None
        if self.schema is None or not self.schema.fields:
            raise ConfigError.invalid("schema.string", "", "must be a record")
        self.key_schema = builders.OPTIONAL_STRING
        if self.key is not None:
            field = self.schema.field(self.key)
            if field is None:
                names = ", ".join(each.name for each in self.schema.fields)
                raise ConfigError.invalid("schema.keyfield", self.key, f"must be one of {names}")
            self.key_schema = field.schema

    def value(self, source: random.Random) -> Any:
        return connect_value(self.schema, self._avro.root, self.make(source)).value


class DatagenTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._made = 0

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._maker = _Maker(config)
        self._partition = {_TASK: int(props.get(_TASK, "0"))}
        seed = config["random.seed"]
        self._random = random.Random(None if seed is None else seed + self._partition[_TASK])
        stored = self.context.offset_storage_reader.offset(self._partition) or {}
        self._generation = int(stored.get(_GENERATION, 0))
        for _ in range(int(stored.get(_ITERATION, 0))):
            # Iterations and seeded values continue where they were.
            self._maker.make(self._random)
            self._made += 1

    def poll(self) -> Sequence[SourceRecord] | None:
        interval_ms, limit = self._config["max.interval"], self._config["iterations"]
        if 0 < limit <= self._made:
            raise ConnectError(
                f"Stopping connector: generated the configured {self._made} number of messages"
            )
        count = 1
        if interval_ms > 0:
            self._stopped.wait(random.random() * interval_ms / 1000)
        else:
            count = BATCH
        if limit > 0:
            count = min(count, limit - self._made)
        if self._stopped.is_set():
            return None
        return [self._record() for _ in range(count)]

    def _record(self) -> SourceRecord:
        maker = self._maker
        try:
            value = maker.value(self._random)
        except DataError as error:
            raise ConnectError(f"the hints do not fit the schema: {error}") from error
        numbers = {
            _GENERATION: self._generation,
            _TASK: self._partition[_TASK],
            _ITERATION: self._made,
        }
        self._made += 1
        return SourceRecord(
            self._partition,
            {_GENERATION: self._generation + 1, _ITERATION: self._made},
            self._config["kafka.topic"],
            key=None if maker.key is None else value.get(maker.key),
            key_schema=maker.key_schema,
            value=value,
            value_schema=maker.schema,
            headers=[Header(name, number, builders.INT64) for name, number in numbers.items()],
        )

    def stop(self) -> None:
        self._stopped.set()
