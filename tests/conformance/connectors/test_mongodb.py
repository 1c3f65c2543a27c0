"""The MongoDB sink and source against FerretDB. It has no change streams, so the source polls."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import ConnectError, RetriableError
from moldau.connect.connectors.mongodb.machine.changes import simplified, topic_name
from moldau.data import builders, logical
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, SourceDriver, config_errors
from support.ferretdb import ferretdb_missing, running_ferretdb

pytestmark = pytest.mark.long("starts a server of `make parts`; `make connectors` runs it")

SINK = "com.mongodb.kafka.connect.MongoSinkConnector"
STRATEGIES = "com.mongodb.kafka.connect.sink.processor.id.strategy."
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def mongo() -> Iterator[str]:
    if missing := ferretdb_missing():
        pytest.skip(missing)
    with running_ferretdb() as address:
        yield address


class Site:
    def __init__(self, address: str) -> None:
        import pymongo

        self.client: Any = pymongo.MongoClient(address, tz_aware=True)
        self.name = f"test{next(_numbers)}"
        self.config = {"connection.uri": address, "database": self.name, "topics": "t"}

    def sink(self, strategy: str = "BsonOidStrategy", **config: str) -> SinkDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        given = {**self.config, "document.id.strategy": STRATEGIES + strategy, **keys}
        return SinkDriver(SINK, given)

    def documents(self, collection: str = "t") -> list[dict[str, Any]]:
        return list(self.client[self.name][collection].find().sort("_id"))


@pytest.fixture
def site(mongo: str) -> Iterator[Site]:
    made = Site(mongo)
    yield made
    made.client.close()


def test_ids_from_the_record_make_documents_idempotent(site: Site) -> None:
    with site.sink("FullKeyStrategy", delete_on_null_values="true") as sink:
        for _ in range(2):
            sink.send("t", {"n": 1}, key="a")
            sink.send("t", {"n": 2}, key="b")
            sink.send("t", {"n": 3}, key="a")
            sink.send("t", None, key="b")
    assert site.documents() == [{"_id": "a", "n": 3}]
    with site.sink("KafkaMetaDataStrategy", collection="own") as sink:
        record = sink.record("t", {"n": 1})
        sink.put([record])
        sink.put([record])
    assert site.documents("own") == [{"_id": "t#0#0", "n": 1}]


def test_fields_are_merged_or_replaced(site: Site) -> None:
    merging = {"writemodel_strategy": "UpdateOneDefaultStrategy"}
    with site.sink("ProvidedInValueStrategy", **merging) as sink:
        sink.send("t", {"_id": 1, "a": 1, "b": 1})
        sink.send("t", {"_id": 1, "b": 2})
        sink.send("t", {"no": "id"})
        assert "no id for ProvidedInValueStrategy" in str(sink.errant[0][1])
    assert site.documents() == [{"_id": 1, "a": 1, "b": 2}]


def test_typed_values(site: Site) -> None:
    schema = builders.struct(
        {"at": logical.TIMESTAMP, "day": logical.DATE, "tags": builders.array(builders.STRING)}
    )
    moment = datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC)
    value = Struct(schema, {"at": moment, "day": moment.date(), "tags": ["x"]})
    with site.sink("FullKeyStrategy") as sink:
        sink.send("t", value, value_schema=schema, key="k")
    (document,) = site.documents()
    assert document["at"] == moment
    assert document["day"] == datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    assert document["tags"] == ["x"]


def test_decimals_are_exact() -> None:
    from bson.decimal128 import Decimal128

    from moldau.connect.connectors.mongodb.sink import bson_value

    assert bson_value({"n": Decimal("1.10")}) == {"n": Decimal128("1.10")}


def test_what_is_refused_is_reported_and_the_rest_written(site: Site) -> None:
    site.client[site.name]["t"].create_index("n", unique=True)
    tolerant = {"mongo_errors_tolerance": "all"}
    with site.sink(**tolerant) as sink:
        sink.put([sink.record("t", {"n": n}, key=key) for n, key in ((1, "a"), (1, "b"), (2, "c"))])
        assert [record.key for record, _ in sink.errant] == ["b"]
    assert sorted(each["n"] for each in site.documents()) == [1, 2]
    with site.sink() as sink, pytest.raises(ConnectError, match="writing to t"):
        sink.send("t", {"n": 1}, key="z")


def test_wrong_settings_and_a_server_that_is_away() -> None:
    config = {"connection.uri": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200"}
    wrong = {**config, "document.id.strategy": "x.NoStrategy"}
    assert set(config_errors(SINK, wrong)) == {"database", "document.id.strategy"}
    wrong = {
        **config, "database": "d", "writemodel.strategy": "x.Y", "post.processor.chain": "a.B",
        "field.renamer.mapping": "{", "key.projection.type": "some", "namespace.mapper": "Z",
    }  # fmt: skip
    assert set(config_errors(SINK, wrong)) == {*wrong} - {*config, "database"}
    with (
        SinkDriver(SINK, {**config, "database": "d", "topics": "t"}) as sink,
        pytest.raises(RetriableError),
    ):
        sink.send("t", {"n": 1})
    given = {**config, "database": "d"}
    with SourceDriver("MongoSource", given) as source, pytest.raises(RetriableError):
        source.poll()


def test_an_id_that_a_document_has_stays_unless_it_is_to_be_replaced(site: Site) -> None:
    with site.sink() as sink:
        for _ in range(2):  # Not refused as a second one.
            sink.send("t", {"_id": 1, "n": 1})
    with site.sink("FullKeyStrategy") as sink:
        sink.send("t", {"_id": 1, "n": 2}, key="k")
    assert site.documents() == [{"_id": 1, "n": 2}]
    with site.sink("FullKeyStrategy", document_id_strategy_overwrite_existing="true") as sink:
        sink.send("u", {"_id": 1, "n": 3}, key="k")
    assert site.documents("u") == [{"_id": "k", "n": 3}]


def test_documents_are_found_by_a_business_key(site: Site) -> None:
    config = {
        "document_id_strategy_partial_value_projection_type": "AllowList",
        "document_id_strategy_partial_value_projection_list": "item,shop.id",
    }
    for strategy in ("ReplaceOneBusinessKeyStrategy", "UpdateOneBusinessKeyTimestampStrategy"):
        with site.sink("PartialValueStrategy", writemodel_strategy=strategy, **config) as sink:
            sink.send("t", {"item": "tea", "n": 1, "shop": {"id": 1, "name": "a"}})
            sink.send("t", {"item": "tea", "n": 2, "shop": {"id": 1, "name": "b"}})
        (found,) = site.documents()
        assert (found["n"], found["shop"]) == (2, {"id": 1, "name": "b"})
    assert found["_modifiedTS"] <= datetime.datetime.now(datetime.UTC)
    delete = {"writemodel_strategy": "DeleteOneBusinessKeyStrategy", **config}
    with site.sink("PartialValueStrategy", **delete) as sink:
        sink.send("t", {"item": "tea", "shop": {"id": 1}})
        sink.send("t", {"_id": 1, "item": "tea"})
        assert "business key" in str(sink.errant[0][1])
    assert site.documents() == []


def test_the_chain_of_post_processors(site: Site) -> None:
    package = "com.mongodb.kafka.connect.sink.processor."
    chain = ("DocumentIdAdder", "BlockListValueProjector", "field.renaming.RenameByMapping",
             "field.renaming.RenameByRegex", "NullFieldValueRemover", "KafkaMetaAdder")  # fmt: skip
    config = {
        "post_processor_chain": ",".join(package + each for each in chain),
        "value_projection_type": "blocklist", "value_projection_list": "secret,a.pin,tmp*",
        "field_renamer_mapping": '[{"oldName": "value.a.b", "newName": "c"}]',
        "field_renamer_regexp": '[{"regexp": "value.my_.*", "pattern": "my_", "replace": ""}]',
    }  # fmt: skip
    value = {"secret": 1, "tmp1": 1, "a": {"b": 2, "pin": 3}, "my_x": 4, "none": None}
    with site.sink("FullKeyStrategy", **config) as sink:
        sink.send("t", value, key="k", timestamp=7)
    (found,) = site.documents()
    found.pop("CREATE_TIME", None)
    found.pop("NO_TIMESTAMP_TYPE", None)
    assert found == {"_id": "k", "a": {"c": 2}, "x": 4, "topic-partition-offset": "t-0-0"}


def test_fields_name_the_database_and_the_collection(site: Site) -> None:
    config = {
        "namespace_mapper":
            "com.mongodb.kafka.connect.sink.namespace.mapping.FieldPathNamespaceMapper",
        "namespace_mapper_value_collection_field": "to.coll",
        "namespace_mapper_error_if_invalid": "true",
    }  # fmt: skip
    with site.sink("FullKeyStrategy", **config) as sink:
        sink.send("t", {"to": {"coll": "mine"}}, key=1)
        sink.send("t", {"to": 5}, key=2)
        assert "names no collection" in str(sink.errant[0][1])
    assert [each["_id"] for each in site.documents("mine")] == [1]


def test_ids_that_are_uuids(site: Site) -> None:
    import uuid

    own = uuid.uuid4()
    overwrite = {"document_id_strategy_overwrite_existing": "true"}
    with site.sink("UuidProvidedInValueStrategy", **overwrite) as sink:
        sink.send("t", {"_id": own.hex, "n": 1})
        sink.send("t", {"_id": "no", "n": 1})
        assert "UUID cannot be constructed" in str(sink.errant[0][1])
    (found,) = site.documents()
    assert bytes(found["_id"]) == own.bytes


SOURCE = "com.mongodb.kafka.connect.MongoSourceConnector"


def source(site: Site, offsets: Any = (), **config: str) -> SourceDriver:
    keys = {name.replace("_", "."): value for name, value in config.items()}
    given = {**site.config, "collection": "orders", "poll.await.time.ms": "50", **keys}
    return SourceDriver(SOURCE, given, offsets=offsets)


def test_a_collection_is_read_in_the_order_of_its_ids_and_on(site: Site) -> None:
    orders = site.client[site.name]["orders"]
    orders.insert_many([{"_id": n, "item": f"i{n}"} for n in range(1, 6)])
    with source(site, poll_by_field="_id", topic_prefix="shop", poll_max_batch_size="2") as task:
        found = task.poll_until(5)
        assert [json.loads(each.key)["_id"] for each in found] == [1, 2, 3, 4, 5]
        first = json.loads(found[0].value)
        assert (first["operationType"], first["fullDocument"]) == (
            "insert",
            {"_id": 1, "item": "i1"},
        )
        assert found[0].topic == f"shop.{site.name}.orders"
        orders.insert_one({"_id": 6, "item": "late"})
        assert len(task.poll_until(1)) == 1
        kept = task.commit()
    orders.insert_one({"_id": 7, "item": "while nobody read"})
    with source(
        site, list(kept.items()), poll_by_field="_id", publish_full_document_only="true"
    ) as task:
        assert [json.loads(each.value) for each in task.poll_until(1)] == [
            {"_id": 7, "item": "while nobody read"}
        ]


def test_forms_of_json_and_names_of_topics(site: Site) -> None:
    import bson

    at = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
    oid = bson.ObjectId("507f1f77bcf86cd799439011")
    document = {"_id": oid, "at": at, "n": 1, "raw": b"ab", "sub": {"x": [1.5]}}
    site.client[site.name]["orders"].insert_one(document)
    config = {
        "poll_by_field": "_id", "publish_full_document_only": "true", "topic_prefix": "p",
        "topic_suffix": "s", "topic_separator": "-",
    }  # fmt: skip
    formatters = "com.mongodb.kafka.connect.source.json.formatter."
    with source(site, output_json_formatter=f"{formatters}SimplifiedJson", **config) as task:
        (found,) = task.poll_until(1)
    # FerretDB has no decimals.
    assert simplified({"price": bson.Decimal128("1.50")}) == {"price": "1.50"}
    assert found.topic == f"p-{site.name}-orders-s"
    assert json.loads(found.key) == {"_id": str(oid)}
    assert json.loads(found.value) == {
        "_id": str(oid), "at": "2026-11-01T00:00:00Z", "n": 1, "raw": "YWI=",
        "sub": {"x": [1.5]},
    }  # fmt: skip
    mapped = json.dumps({f"{site.name}.orders": "named", "*": "rest"})
    with source(
        site, output_json_formatter="ExtendedJson", topic_namespace_map=mapped, **config
    ) as task:
        (found,) = task.poll_until(1)
    assert found.topic == "p-named-s"
    assert json.loads(found.value)["n"] == {"$numberInt": "1"}
    assert json.loads(found.value)["_id"] == {"$oid": str(oid)}


@pytest.mark.parametrize(
    ("mapped", "topic"),
    [
        ({}, "db.c"), ({"db": "x"}, "x.c"), ({"db": "x", "db.c": "y"}, "y"), ({"*": "z"}, "z"),
        ({"other": "x"}, "db.c"),
    ],
)  # fmt: skip
def test_topics_by_namespace(mapped: dict[str, str], topic: str) -> None:
    given = {"prefix": "", "suffix": "", "separator": "."}
    assert topic_name("db", "c", mapped=mapped, **given) == topic


@pytest.mark.parametrize(
    "wrong",
    [
        {"topic.namespace.map": "[]"}, {"topic.namespace.map": '{"/x.*/": "y"}'},
        {"output.json.formatter": "Own"}, {"pipeline": "{}"}, {"pipeline": "no"},
        {"pipeline": '[{"$match": {}}]', "startup.mode": "copy_existing"},
    ],
)  # fmt: skip
def test_wrong_settings_of_the_source_are_named(wrong: dict[str, str]) -> None:
    assert set(config_errors(SOURCE, wrong)) == {next(iter(wrong))}


def test_documents_of_one_moment_are_not_lost_between_polls(site: Site) -> None:
    at = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
    orders = site.client[site.name]["orders"]
    orders.insert_many([{"_id": n, "at": at} for n in range(5)] + [{"_id": 9}])
    with source(site, poll_by_field="at", poll_max_batch_size="2") as task:
        found = task.poll_until(5)
        orders.insert_one({"_id": 5, "at": at + datetime.timedelta(seconds=1)})
        found += task.poll_until(1)
    assert [json.loads(each.key)["_id"] for each in found] == [0, 1, 2, 3, 4, 5]


def test_a_server_without_change_streams_and_wrong_settings_are_named(site: Site) -> None:
    with source(site) as task, pytest.raises(ConnectError, match=r"(?i)reading .*orders"):
        task.poll()
    errors = config_errors(SOURCE, {"connection.uri": "mongodb://h", "poll.by.field": "_id"})
    assert set(errors) == {"database", "collection"}
