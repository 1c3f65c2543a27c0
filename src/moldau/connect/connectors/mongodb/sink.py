"""The MongoDB sink. With ids from the record, one that comes twice replaces its own document."""

from __future__ import annotations

import copy
import datetime
import uuid
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
from moldau.connect.connectors.mongodb.machine import documents
from moldau.connect.connectors.support.plain import PlainSink
from moldau.data.struct import Struct

_STRATEGIES: Final = (
    "BsonOidStrategy", "KafkaMetaDataStrategy", "FullKeyStrategy", "ProvidedInKeyStrategy",
    "ProvidedInValueStrategy", "PartialKeyStrategy", "PartialValueStrategy", "UuidStrategy",
    "UuidProvidedInKeyStrategy", "UuidProvidedInValueStrategy",
)  # fmt: skip
_WRITES: Final = (
    "DefaultWriteModelStrategy", "ReplaceOneDefaultStrategy", "ReplaceOneBusinessKeyStrategy",
    "UpdateOneDefaultStrategy", "UpdateOneTimestampsStrategy",
    "UpdateOneBusinessKeyTimestampStrategy", "InsertOneDefaultStrategy",
    "DeleteOneBusinessKeyStrategy",
)  # fmt: skip
_PROCESSORS: Final = (
    "DocumentIdAdder", "AllowListKeyProjector", "AllowListValueProjector",
    "BlockListKeyProjector", "BlockListValueProjector", "WhitelistKeyProjector",
    "WhitelistValueProjector", "BlacklistKeyProjector", "BlacklistValueProjector",
    "RenameByMapping", "RenameByRegex", "KafkaMetaAdder", "NullFieldValueRemover",
)  # fmt: skip
_MAPPERS: Final = ("DefaultNamespaceMapper", "FieldPathNamespaceMapper")
_CLASSES: Final = {
    "document.id.strategy": _STRATEGIES,
    "writemodel.strategy": _WRITES,
    "post.processor.chain": _PROCESSORS,
    "namespace.mapper": _MAPPERS,
}
_PLACES: Final = ("key.database", "value.database", "key.collection", "value.collection")


def _define_projection(config: ConfigDef, prefix: str, what: str) -> ConfigDef:
    return config.define(
        f"{prefix}.type", Kind.STRING, "none", group="Documents",
        validator=OneOf(documents.PROJECTIONS, ignore_case=True),
        doc=f"Whether the list has the fields of {what} that stay, or those that do not",
    ).define(
        f"{prefix}.list", Kind.STRING, "", group="Documents",
        doc=f"Fields of {what}, with dots, * and **",
    )  # fmt: skip


def _config() -> ConfigDef:
    found = (
        define_mongodb(ConfigDef())
        .define("document.id.strategy", Kind.STRING, "BsonOidStrategy", group="Documents",
                doc="Where the id comes from, with or without its package: "
                + ", ".join(_STRATEGIES))
        .define("document.id.strategy.overwrite.existing", Kind.BOOLEAN, False, group="Documents",
                doc="Whether the id replaces the one that a document has")
        .define("delete.on.null.values", Kind.BOOLEAN, False, group="Documents",
                doc="Whether a record without a value deletes; needs an id from the key")
        .define("writemodel.strategy", Kind.STRING, "DefaultWriteModelStrategy", group="Documents",
                doc=f"How a document is written; it is replaced by default: {', '.join(_WRITES)}")
        .define("post.processor.chain", Kind.LIST, ("DocumentIdAdder",), group="Documents",
                doc=f"What is done with a document, in order: {', '.join(_PROCESSORS)}")
        .define("field.renamer.mapping", Kind.STRING, "[]", group="Documents",
                doc='For RenameByMapping: [{"oldName": "value.a", "newName": "b"}]')
        .define("field.renamer.regexp", Kind.STRING, "[]", group="Documents",
                doc='For RenameByRegex: [{"regexp": "^value.x.*", "pattern": "x", "replace": ""}]')
        .define("namespace.mapper", Kind.STRING, "DefaultNamespaceMapper", group="MongoDB",
                doc="FieldPathNamespaceMapper: fields name the database and the collection")
        .define("namespace.mapper.error.if.invalid", Kind.BOOLEAN, False, group="MongoDB",
                doc="Whether a record without such a field fails")
        .define("max.batch.size", Kind.INT, 0, validator=Range(0), group="Documents",
                doc="How many documents one request has; 0: all")
        .define("bulk.write.ordered", Kind.BOOLEAN, True, group="Documents",
                doc="Whether documents are written in order, up to the first that is refused")
        .define("mongo.errors.tolerance", Kind.STRING, "none", group="Documents",
                validator=OneOf(("none", "all"), ignore_case=True),
                doc="all: documents that the server refuses are reported, and the others are "
                "written")
    )  # fmt: skip
    for side in ("key", "value"):
        _define_projection(found, f"{side}.projection", f"the {side}")
        _define_projection(
            found, f"document.id.strategy.partial.{side}.projection", f"the {side}, for the id"
        )
    for place in _PLACES:
        side, _, what = place.partition(".")
        found.define(f"namespace.mapper.{place}.field", Kind.STRING, "", group="MongoDB",
                     doc=f"The field of the {side} that names the {what}")  # fmt: skip
    return found


CONFIG: Final = _config()


class MongoSinkConnector(PlainSink):
    DESCRIPTION = "Records to documents of MongoDB"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[Any]:
        values = super().validate(props)
        for each in values:
            known = _CLASSES.get(each.name)
            if known is not None and not each.errors:
                given = each.value if isinstance(each.value, (list, tuple)) else [each.value]
                for name in documents.short(map(str, given)):
                    if name not in known:
                        each.errors.append(f"{name} is none of {', '.join(known)}")
            if each.name == "database" and not each.value:
                each.errors.append("database must be set")
            if each.name.startswith("field.renamer.") and not each.errors:
                try:
                    documents.Renames.of(*_renames(each.name, each.value))
                except DataError as error:
                    each.errors.append(str(error))
        return values

    def task_class(self) -> type[SinkTask]:
        return MongoSinkTask


class MongoSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._mongo = MongoDb(config)
        self._strategy = documents.short([config["document.id.strategy"]])[0]
        self._write_model = documents.short([config["writemodel.strategy"]])[0]
        # The id is always added first.
        self._chain = [
            each
            for each in documents.short(config["post.processor.chain"])
            if each != "DocumentIdAdder"
        ]
        self._mapping = documents.Renames.of(config["field.renamer.mapping"], "[]")
        self._regexp = documents.Renames.of("[]", config["field.renamer.regexp"])
        self._by_fields = config["namespace.mapper"].endswith("FieldPathNamespaceMapper")

    def _projection(self, side: str, *, partial: bool = False) -> documents.Projection:
        prefix = f"{side}.projection"
        own = f"document.id.strategy.partial.{prefix}"
        if partial and self._config[f"{own}.type"].lower() != "none":
            prefix = own
        fields = documents.split(self._config[f"{prefix}.list"])
        return documents.Projection.of(self._config[f"{prefix}.type"].lower(), fields)

    def put(self, records: Sequence[SinkRecord]) -> None:
        by_collection: dict[tuple[str, str], list[tuple[SinkRecord, Any]]] = {}
        for record in records:
            try:
                place, operation = self._operation(record)
            except DataError as error:
                reporter = self.context.errant_record_reporter
                if reporter is None:
                    raise
                reporter.report(record, error)
                continue
            if operation is not None:
                by_collection.setdefault(place, []).append((record, operation))
        for place, operations in by_collection.items():
            size = self._config["max.batch.size"] or len(operations)
            for start in range(0, len(operations), size):
                self._write(place, operations[start : start + size])

    def _write(self, place: tuple[str, str], operations: Sequence[tuple[SinkRecord, Any]]) -> None:
        database, name = place
        collection = self._mongo.client[database][name]
        tolerant = self._config["mongo.errors.tolerance"].lower() == "all"
        ordered = self._config["bulk.write.ordered"] and not tolerant
        try:
            collection.bulk_write([each for _, each in operations], ordered=ordered)
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

    def _operation(self, record: SinkRecord) -> tuple[tuple[str, str], Any]:
        """Where a document goes, and what is done with it; None for nothing."""
        driver = self._mongo.driver
        key = bson_value(record.key)
        if record.value is None:
            place = self._place(record, key, None)
            if not self._config["delete.on.null.values"]:
                return place, None
            return place, driver.DeleteOne({"_id": self._id(record, key, {})})
        document = bson_value(record.value)
        if not isinstance(document, dict):
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} is no document"
            )
        added = "_id" not in document or self._config["document.id.strategy.overwrite.existing"]
        if added:
            document["_id"] = self._id(record, key, document)
        for name in self._chain:
            document = self._processed(name, record, key, document)
        place = self._place(record, key, document)
        # Nothing can have an id that was made just now.
        is_new = added and self._strategy == "BsonOidStrategy"
        if is_new and self._write_model in (
            "DefaultWriteModelStrategy",
            "ReplaceOneDefaultStrategy",
        ):
            return place, driver.InsertOne(document)
        return place, self._model(record, document)

    def _processed(
        self, name: str, record: SinkRecord, key: Any, document: documents.Document
    ) -> documents.Document:
        if name.endswith("Projector"):
            side = "key" if "Key" in name else "value"
            wanted = self._projection(side)
            allows = name.startswith(("Allow", "White"))
            kind = "allowlist" if allows else "blocklist"
            target = key if side == "key" else document
            if isinstance(target, dict):
                own = target.get("_id") if side == "value" else None
                documents.Projection.of(kind, wanted.fields).apply(target)
                if own is not None:
                    # The id is not subject to the list.
                    target["_id"] = own
        elif name in ("RenameByMapping", "RenameByRegex"):
            renames = self._mapping if name == "RenameByMapping" else self._regexp
            if isinstance(key, dict):
                renames.apply(key, "key")
            renames.apply(document, "value")
        elif name == "KafkaMetaAdder":
            documents.add_place(document, record)
        elif name == "NullFieldValueRemover":
            return dict(documents.without_nulls(document))
        return document

    def _place(
        self, record: SinkRecord, key: Any, document: documents.Document | None
    ) -> tuple[str, str]:
        found = {
            "database": self._config["database"],
            "collection": self._config["collection"] or record.topic,
        }
        if self._by_fields:
            for place in _PLACES:
                side, _, what = place.partition(".")
                path = self._config[f"namespace.mapper.{place}.field"]
                if not path:
                    continue
                value = documents.looked_up(key if side == "key" else document, path)
                if isinstance(value, str):
                    found[what] = value
                elif self._config["namespace.mapper.error.if.invalid"]:
                    raise DataError(
                        f"record {record.topic}-{record.partition}@{record.offset}: {path} of its "
                        f"{side} names no {what}"
                    )
        return found["database"], found["collection"]

    def _model(self, record: SinkRecord, document: documents.Document) -> Any:
        driver, own = self._mongo.driver, document["_id"]
        wanted = {"_id": own}
        if "BusinessKey" in self._write_model:
            if not isinstance(own, dict):
                raise DataError(
                    f"record {record.topic}-{record.partition}@{record.offset} has no _id with the "
                    "fields of its business key: use PartialValueStrategy or PartialKeyStrategy, "
                    "and document.id.strategy.overwrite.existing if it has an _id"
                )
            partial = self._strategy.startswith("Partial")
            wanted = documents.flattened(own) if partial else own
            del document["_id"]
        match self._write_model:
            case "InsertOneDefaultStrategy":
                return driver.InsertOne(document)
            case "DeleteOneBusinessKeyStrategy":
                return driver.DeleteOne(wanted)
            case "UpdateOneDefaultStrategy":
                fields = {name: each for name, each in document.items() if name != "_id"}
                return driver.UpdateOne(wanted, {"$set": fields}, upsert=True)
            case "UpdateOneTimestampsStrategy" | "UpdateOneBusinessKeyTimestampStrategy":
                now = datetime.datetime.now(datetime.UTC)
                fields = {name: each for name, each in document.items() if name != "_id"}
                change = {"$set": {**fields, "_modifiedTS": now}}
                change["$setOnInsert"] = {"_insertedTS": now}
                return driver.UpdateOne(wanted, change, upsert=True)
        return driver.ReplaceOne(wanted, document, upsert=True)

    def _id(self, record: SinkRecord, key: Any, document: documents.Document) -> Any:
        match self._strategy:
            case "BsonOidStrategy":
                from bson.objectid import ObjectId

                return ObjectId()
            case "UuidStrategy":
                return str(uuid.uuid4())
            case "KafkaMetaDataStrategy":
                return (
                    f"{record.original_topic}#{record.original_partition}#{record.original_offset}"
                )
            case "FullKeyStrategy" if key is not None:
                return key
            case "PartialKeyStrategy" if isinstance(key, dict):
                return self._part("key", key)
            case "PartialValueStrategy":
                return self._part("value", document)
            case "ProvidedInKeyStrategy" | "UuidProvidedInKeyStrategy":
                if isinstance(key, dict) and "_id" in key:
                    return self._provided(key["_id"])
            case "ProvidedInValueStrategy" | "UuidProvidedInValueStrategy" if "_id" in document:
                return self._provided(document["_id"])
        raise DataError(
            f"record {record.topic}-{record.partition}@{record.offset} has no id for "
            f"{self._strategy}"
        )

    def _part(self, side: str, document: documents.Document) -> documents.Document:
        found = copy.deepcopy(document)
        self._projection(side, partial=True).apply(found)
        return found

    def _provided(self, value: Any) -> Any:
        if not self._strategy.startswith("Uuid"):
            return value
        from bson.binary import Binary, UuidRepresentation

        try:
            return Binary.from_uuid(uuid.UUID(value), UuidRepresentation.STANDARD)
        except (ValueError, AttributeError):
            raise DataError(f"UUID cannot be constructed from provided value: `{value}`") from None

    def stop(self) -> None:
        self._mongo.close()


def _renames(name: str, value: Any) -> tuple[str, str]:
    return (value, "[]") if name.endswith("mapping") else ("[]", value)


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
