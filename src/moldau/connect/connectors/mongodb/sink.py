"""The MongoDB sink. With ids from the record, one that comes twice replaces its own document."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    DataError,
    Kind,
    OneOf,
    Range,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.mongodb.client import MongoDb, define_mongodb
from moldau.connect.connectors.support.plain import PlainSink
from moldau.data.struct import Struct

_STRATEGIES: Final = (
    "BsonOidStrategy", "KafkaMetaDataStrategy", "FullKeyStrategy", "ProvidedInKeyStrategy",
    "ProvidedInValueStrategy",
)  # fmt: skip

CONFIG: Final = (
    define_mongodb(ConfigDef())
    .define("document.id.strategy", Kind.STRING, "BsonOidStrategy", group="Documents",
            doc=f"Where the id comes from, with or without its package: {', '.join(_STRATEGIES)}")
    .define("delete.on.null.values", Kind.BOOLEAN, False, group="Documents",
            doc="Whether a record without a value deletes; needs an id from the key")
    .define("writemodel.strategy", Kind.STRING, "ReplaceOneDefaultStrategy", group="Documents",
            doc="ReplaceOneDefaultStrategy, or UpdateOneDefaultStrategy, which merges fields")
    .define("max.batch.size", Kind.INT, 0, validator=Range(0), group="Documents",
            doc="How many documents one request has; 0: all")
    .define("mongo.errors.tolerance", Kind.STRING, "none", group="Documents",
            validator=OneOf(("none", "all"), ignore_case=True),
            doc="all: documents that the server refuses are reported, and the others are written")
)  # fmt: skip


class MongoSinkConnector(PlainSink):
    DESCRIPTION = "Records to documents of MongoDB"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[Any]:
        values = super().validate(props)
        for each in values:
            if each.name == "document.id.strategy" and not each.errors:
                short = str(each.value).rpartition(".")[2]
                if short not in _STRATEGIES:
                    each.errors.append(f"{short} is none of {', '.join(_STRATEGIES)}")
            if each.name == "database" and not each.value:
                each.errors.append("database must be set")
        return values

    def task_class(self) -> type[SinkTask]:
        return MongoSinkTask


class MongoSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._mongo = MongoDb(config)
        self._strategy = config["document.id.strategy"].rpartition(".")[2]
        self._merges = config["writemodel.strategy"].rpartition(".")[2].startswith("Update")

    def put(self, records: Sequence[SinkRecord]) -> None:
        by_collection: dict[str, list[tuple[SinkRecord, Any]]] = {}
        for record in records:
            try:
                operation = self._operation(record)
            except DataError as error:
                reporter = self.context.errant_record_reporter
                if reporter is None:
                    raise
                reporter.report(record, error)
                continue
            if operation is not None:
                name = self._config["collection"] or record.topic
                by_collection.setdefault(name, []).append((record, operation))
        for name, operations in by_collection.items():
            size = self._config["max.batch.size"] or len(operations)
            for start in range(0, len(operations), size):
                self._write(name, operations[start : start + size])

    def _write(self, name: str, operations: Sequence[tuple[SinkRecord, Any]]) -> None:
        collection = self._mongo.client[self._config["database"]][name]
        tolerant = self._config["mongo.errors.tolerance"].lower() == "all"
        try:
            collection.bulk_write([each for _, each in operations], ordered=not tolerant)
        except self._mongo.errors.BulkWriteError as error:
            reporter = self.context.errant_record_reporter
            if not tolerant or reporter is None:
                raise ConnectError(f"MongoDB: writing to {name} failed: {error.details}") from error
            for problem in error.details.get("writeErrors", []):
                record, _ = operations[problem["index"]]
                reporter.report(record, ConnectError(str(problem.get("errmsg"))))
        except Exception as error:
            if self._mongo.is_own(error):
                raise self._mongo.failure(error, f"writing to {name}") from error
            raise

    def _operation(self, record: SinkRecord) -> Any:
        driver = self._mongo.driver
        if record.value is None:
            if not self._config["delete.on.null.values"]:
                return None
            return driver.DeleteOne({"_id": self._id(record, {})})
        document = bson_value(record.value)
        if not isinstance(document, dict):
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} is no document"
            )
        if self._strategy == "BsonOidStrategy":
            return driver.InsertOne(document)
        own = self._id(record, document)
        if self._merges:
            document.pop("_id", None)
            return driver.UpdateOne({"_id": own}, {"$set": document}, upsert=True)
        return driver.ReplaceOne({"_id": own}, {**document, "_id": own}, upsert=True)

    def _id(self, record: SinkRecord, document: Mapping[str, Any]) -> Any:
        match self._strategy:
            case "KafkaMetaDataStrategy":
                return (
                    f"{record.original_topic}#{record.original_partition}#{record.original_offset}"
                )
            case "FullKeyStrategy" if record.key is not None:
                return bson_value(record.key)
            case "ProvidedInKeyStrategy":
                key = bson_value(record.key)
                if isinstance(key, dict) and "_id" in key:
                    return key["_id"]
            case "ProvidedInValueStrategy" if "_id" in document:
                return document["_id"]
        raise DataError(
            f"record {record.topic}-{record.partition}@{record.offset} has no id for "
            f"{self._strategy}"
        )

    def stop(self) -> None:
        self._mongo.close()


def bson_value(value: Any) -> Any:
    """A value as MongoDB's driver takes it."""
    match value:
        case Struct():
            return {field.name: bson_value(value.get(field.name)) for field in value.schema.fields}
        case dict():
            return {str(key): bson_value(each) for key, each in value.items()}
        case list() | tuple():
            return [bson_value(each) for each in value]
        case Decimal():
            from bson.decimal128 import Decimal128

            return Decimal128(value)
        case datetime.datetime() | bytes():
            return value
        case datetime.date():
            return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
        case datetime.time():
            return value.isoformat()
    return value
