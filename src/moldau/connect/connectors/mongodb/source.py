"""The MongoDB source: the change stream of a collection, a database or all; documents first if
`startup.mode=copy_existing`.

The offset is the stream's resume token, so no change is missing as long as the server's log goes
back that far. Servers without change streams, such as FerretDB, are read by the order of a field
(`poll.by.field`): the offset is the last value, with the document's id where several have it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConfigError,
    ConfigValue,
    ExactlyOnceSupport,
    Kind,
    OneOf,
    Range,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.mongodb.client import MongoDb, define_mongodb
from moldau.connect.connectors.mongodb.machine import changes
from moldau.connect.connectors.support.plain import SingleSource
from moldau.data import json_text
from moldau.data.builders import STRING


def _check_map(key: str, value: Any) -> None:
    changes.namespace_map(value)


def _check_formatter(key: str, value: Any) -> None:
    if value.rpartition(".")[2] not in changes.FORMATTERS:
        raise ValueError(f"must be one of {', '.join(changes.FORMATTERS)}")


CONFIG: Final = (
    define_mongodb(ConfigDef())
    .define("topic.prefix", Kind.STRING, "", group="Records",
            doc="Prefix of topics: PREFIX.DATABASE.COLLECTION.SUFFIX")
    .define("topic.suffix", Kind.STRING, "", group="Records", doc="Suffix of topics")
    .define("topic.separator", Kind.STRING, ".", group="Records",
            doc="Between the parts of a topic's name")
    .define("topic.namespace.map", Kind.STRING, "", group="Records",
            validator=CheckedBy(_check_map, "a JSON object"),
            doc='Topics by namespace: {"db": "topic", "db.collection": "other", "*": "rest"}')
    .define("pipeline", Kind.STRING, "[]", group="Records",
            doc="Stages that changes go through, as a JSON array")
    .define("output.json.formatter", Kind.STRING, "DefaultJson", group="Records",
            validator=CheckedBy(_check_formatter, ", ".join(changes.FORMATTERS)),
            doc="How BSON becomes JSON: ExtendedJson, canonical; SimplifiedJson, without types")
    .define("publish.full.document.only", Kind.BOOLEAN, False, group="Records",
            doc="Whether a record is the document instead of the change")
    .define("change.stream.full.document", Kind.STRING, "default", group="Records",
            validator=OneOf(("default", "updateLookup", "whenAvailable", "required")),
            doc="Whether an update has the whole document")
    .define("startup.mode", Kind.STRING, "latest", group="Records",
            validator=OneOf(("latest", "copy_existing")),
            doc="Where to begin: latest, or copy_existing")
    .define("poll.by.field", Kind.STRING, "", group="Records",
            doc="Moldau only, for servers without change streams: read the collection in the order "
            "of this field, such as _id. New values of it are found; other changes are not")
    .define("poll.max.batch.size", Kind.INT, 1000, validator=Range(1), group="Records",
            doc="How many records one poll returns")
    .define("poll.await.time.ms", Kind.LONG, 5000, validator=Range(1), group="Records",
            doc="How long the server waits for changes")
)  # fmt: skip


class MongoSourceConnector(SingleSource):
    DESCRIPTION = "Changes of MongoDB's collections to topics"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return MongoSourceTask

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        by_name = {each.name: each for each in values}
        if by_name["poll.by.field"].value:
            for name in ("database", "collection"):
                if not by_name[name].value:
                    by_name[name].errors.append(f"poll.by.field needs a {name}")
        pipeline = by_name["pipeline"]
        if not _is_empty(pipeline.value):
            try:
                changes.pipeline_stages(pipeline.value, json_text.parse(pipeline.value))
            except ValueError as error:
                pipeline.errors.append(f"pipeline {error}")
            if by_name["poll.by.field"].value or by_name["startup.mode"].value == "copy_existing":
                pipeline.errors.append(
                    "pipeline is for changes only, not with poll.by.field or copy_existing"
                )
        return values

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        config = CONFIG.parse(props)
        copies = config["startup.mode"] == "copy_existing" and not config["poll.by.field"]
        return ExactlyOnceSupport.UNSUPPORTED if copies else ExactlyOnceSupport.SUPPORTED


def _is_empty(pipeline: str | None) -> bool:
    return "".join((pipeline or "").split()) in ("", "[]")


class MongoSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._stream: Any = None
        self._copy: Iterator[SourceRecord] | None = None
        self._token: Any = None

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._mongo = MongoDb(config)
        names = [name for name in (config["database"], config["collection"]) if name]
        self._partition = {"ns": ".".join(names) or "*"}
        self._mapped = changes.namespace_map(config["topic.namespace.map"])
        self._formatter = config["output.json.formatter"].rpartition(".")[2]

    def _watched(self) -> Any:
        found = self._mongo.client
        for name in (self._config["database"], self._config["collection"]):
            found = found[name] if name else found
        return found

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            if field := self._config["poll.by.field"]:
                return self._in_order_of(field)
            if self._stream is None:
                self._begin()
            return self._next() or None
        except Exception as error:
            if self._stopped.is_set():
                return None
            if self._mongo.is_own(error):
                self._stream = None
                raise self._mongo.failure(error, f"reading {self._partition['ns']}") from error
            raise

    def _in_order_of(self, field: str) -> list[SourceRecord] | None:
        if self._token is None:
            stored = self.context.offset_storage_reader.offset(self._partition) or {}
            self._token = stored.get("last")
        wanted: dict[str, Any] = {field: {"$exists": True}}
        if self._token is not None:
            value, document_id = self._mongo.json.loads(self._token)
            wanted = {"$or": [{field: {"$gt": value}}, {field: value, "_id": {"$gt": document_id}}]}
            if field == "_id":
                wanted = {"_id": {"$gt": value}}
        order = list(dict.fromkeys([(field, 1), ("_id", 1)]))
        size = self._config["poll.max.batch.size"]
        found = list(self._watched().find(wanted).sort(order).limit(size))
        if not found:
            self._stopped.wait(self._config["poll.await.time.ms"] / 1000)
            return None
        records = []
        for document in found:
            self._token = self._mongo.json.dumps([document[field], document["_id"]])
            change = self._inserted(self._config["collection"], document)
            records.append(self._record(change, {"last": self._token}))
        return records

    def _begin(self) -> None:
        stored = self.context.offset_storage_reader.offset(self._partition) or {}
        token = self._token or stored.get("_id")
        options: dict[str, Any] = {"max_await_time_ms": self._config["poll.await.time.ms"]}
        if isinstance(token, str):
            options["resume_after"] = self._mongo.json.loads(token)
        if self._config["change.stream.full.document"] != "default":
            options["full_document"] = self._config["change.stream.full.document"]
        stages = None
        if not _is_empty(self._config["pipeline"]):
            stages = self._stages(self._config["pipeline"])
        self._stream = self._watched().watch(stages, **options)
        if token is None and self._config["startup.mode"] == "copy_existing":
            # The stream is open already, so nothing is missed in between.
            self._copy = self._existing()

    def _stages(self, text: str) -> list[dict[str, Any]]:
        try:
            return changes.pipeline_stages(text, self._mongo.json.loads(text))
        except (ValueError, TypeError) as error:
            raise ConfigError.invalid("pipeline", text, str(error)) from None

    def _json(self, value: Any) -> str:
        if self._formatter == "SimplifiedJson":
            return json_text.compact(changes.simplified(value))
        if self._formatter == "ExtendedJson":
            return str(
                self._mongo.json.dumps(value, json_options=self._mongo.json.CANONICAL_JSON_OPTIONS)
            )
        return str(self._mongo.json.dumps(value))

    def _existing(self) -> Iterator[SourceRecord]:
        database = self._mongo.client[self._config["database"]]
        names = [self._config["collection"]] if self._config["collection"] else None
        for name in names or database.list_collection_names():
            for document in database[name].find():
                yield self._record(self._inserted(name, document), None)

    def _inserted(self, collection: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """As a change stream shows a new document."""
        return {
            "operationType": "insert",
            "ns": {"db": self._config["database"], "coll": collection},
            "documentKey": {"_id": document["_id"]},
            "fullDocument": document,
        }

    def _next(self) -> list[SourceRecord]:
        found: list[SourceRecord] = []
        size = self._config["poll.max.batch.size"]
        if self._copy is not None:
            for record in self._copy:
                found.append(record)
                if len(found) >= size:
                    return found
            self._copy = None
            return found
        while len(found) < size and (change := self._stream.try_next()) is not None:
            self._token = self._mongo.json.dumps(change["_id"])
            record = self._record(change, {"_id": self._token})
            if record.value is not None or not self._config["publish.full.document.only"]:
                found.append(record)
        return found

    def _record(self, change: Mapping[str, Any], offset: Mapping[str, Any] | None) -> SourceRecord:
        config, place = self._config, change.get("ns") or {}
        shown: Any = change
        if config["publish.full.document.only"]:
            shown = change.get("fullDocument")
        # A change of a stream has its resume token as the key.
        key = {"_id": change["_id"]} if "_id" in change else change.get("documentKey") or {}
        return SourceRecord(
            self._partition,
            offset,
            changes.topic_name(
                place.get("db"),
                place.get("coll"),
                prefix=config["topic.prefix"],
                suffix=config["topic.suffix"],
                separator=config["topic.separator"],
                mapped=self._mapped,
            ),
            key=self._json(key),
            key_schema=STRING,
            value=None if shown is None else self._json(shown),
            value_schema=None if shown is None else STRING,
        )

    def stop(self) -> None:
        self._stopped.set()
        self._mongo.close()
