"""The MongoDB sink against FerretDB, which has no change streams: the source needs MongoDB."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from moldau.connect.api import ConnectError, RetriableError
from moldau.data import builders, logical
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, SourceDriver, config_errors
from support.ferretdb import ferretdb_missing, running_ferretdb

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
    with (
        SinkDriver(SINK, {**config, "database": "d", "topics": "t"}) as sink,
        pytest.raises(RetriableError),
    ):
        sink.send("t", {"n": 1})
    given = {**config, "database": "d"}
    with SourceDriver("MongoSource", given) as source, pytest.raises(RetriableError):
        source.poll()
