"""The S3 connectors against MinIO."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import fastavro
import pyarrow.parquet
import pytest

from moldau.connect.api import ConnectError, DataError, Header, RetriableError
from moldau.data import builders, logical
from moldau.data.schema import Schema
from moldau.data.struct import Struct
from moldau.testing.connect import SinkDriver, SourceDriver, config_errors
from support.minio import Minio

SINK = "io.confluent.connect.s3.S3SinkConnector"
SOURCE = "S3Source"
FORMATS = "io.confluent.connect.s3.format."
PARTITIONERS = "io.confluent.connect.storage.partitioner."
NOON = 1_767_268_800_000  # 2026-01-01 12:00 UTC

ORDER = builders.struct(
    {
        "id": builders.INT32,
        "item": builders.OPTIONAL_STRING,
        "at": logical.TIMESTAMP,
        "tags": builders.array(builders.STRING),
    },
    name="Order",
)


def order(number: int) -> Struct:
    at = datetime.datetime.fromtimestamp(NOON / 1000, datetime.UTC)
    return Struct(ORDER, {"id": number, "item": f"item {number}", "at": at, "tags": ["a"]})


class Bucket:
    """One bucket, and sinks to it."""

    def __init__(self, server: Minio) -> None:
        self.name = server.bucket()
        self.config = server.config(self.name)
        self._files = server.files()

    def sink(self, **config: str) -> SinkDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        return SinkDriver(SINK, {**self.config, "topics": "orders", "flush.size": "3", **keys})

    def source(self, **config: str) -> SourceDriver:
        keys = {name.replace("_", "."): value for name, value in config.items()}
        return SourceDriver(SOURCE, {**self.config, "poll.interval.ms": "10", **keys})

    def objects(self) -> dict[str, bytes]:
        from pyarrow import fs

        found = self._files.get_file_info(fs.FileSelector(self.name, recursive=True))
        return {
            each.path.removeprefix(f"{self.name}/"): self._read(each.path)
            for each in found
            if each.type == fs.FileType.File
        }

    def _read(self, path: str) -> bytes:
        with self._files.open_input_stream(path, compression=None) as data:
            content: bytes = data.read()
            return content


@pytest.fixture
def bucket(minio: Minio) -> Bucket:
    return Bucket(minio)


def send(sink: SinkDriver, *values: Any, schema: Schema | None = None, **parts: Any) -> None:
    sink.put([sink.record("orders", each, value_schema=schema, **parts) for each in values])


def test_whole_files_are_stored_and_only_their_offsets_committed(bucket: Bucket) -> None:
    with bucket.sink() as sink:
        send(sink, *({"n": number} for number in range(7)))
        assert sink.commit() == {("orders", 0): 6}
        assert bucket.objects() == {
            "topics/orders/partition=0/orders+0+0000000000.json": b'{"n":0}\n{"n":1}\n{"n":2}\n',
            "topics/orders/partition=0/orders+0+0000000003.json": b'{"n":3}\n{"n":4}\n{"n":5}\n',
        }


def test_records_that_come_again_give_the_same_objects(bucket: Bucket) -> None:
    found = []
    for _ in range(2):  # The second run begins at the first offset, as after a lost commit.
        with bucket.sink(format_class=FORMATS + "avro.AvroFormat") as sink:
            send(sink, *map(order, range(6)), schema=ORDER)
        found.append(bucket.objects())
    assert found[0] == found[1]
    assert len(found[0]) == 2


@pytest.mark.parametrize("kind", ["avro.AvroFormat", "parquet.ParquetFormat"])
def test_typed_files_come_back_as_they_were(bucket: Bucket, kind: str) -> None:
    with bucket.sink(format_class=FORMATS + kind) as sink:
        send(sink, *map(order, range(3)), schema=ORDER, partition=2)
    with bucket.source(format_class=kind, topic_prefix="back-") as source:
        found = source.poll_until(3)
        assert [(each.topic, each.partition) for each in found] == [("back-orders", 2)] * 3
        assert [each.value.get("item") for each in found] == ["item 0", "item 1", "item 2"]
        assert found[0].value.get("at") == order(0).get("at")
        assert found[0].value.get("tags") == ["a"]


def test_foreign_readers_read_the_files(bucket: Bucket) -> None:
    import fastavro
    import pyarrow.parquet as parquet

    with bucket.sink(format_class="AvroFormat") as sink:
        send(sink, *map(order, range(3)), schema=ORDER)
    with bucket.sink(format_class="ParquetFormat") as sink:
        send(sink, *map(order, range(3)), schema=ORDER)
    by_type = {path.rpartition(".")[2]: data for path, data in bucket.objects().items()}
    assert [row["id"] for row in fastavro.reader(io.BytesIO(by_type["avro"]))] == [0, 1, 2]
    table = parquet.read_table(io.BytesIO(by_type["parquet"]))
    assert table.column("item").to_pylist() == ["item 0", "item 1", "item 2"]


def test_a_source_continues_within_an_object(bucket: Bucket) -> None:
    with bucket.sink() as sink:
        send(sink, *({"n": number} for number in range(6)))
    with bucket.source(record_batch_max_size="2") as source:
        assert [each.value["n"] for each in source.poll_until(2)] == [0, 1]
        source.commit()
        source.restart()
        assert [each.value["n"] for each in source.poll_until(4)] == [2, 3, 4, 5]


def test_folders_by_time_and_by_field(bucket: Bucket) -> None:
    hourly = {
        "partitioner_class": PARTITIONERS + "TimeBasedPartitioner",
        "path_format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
        "partition_duration_ms": "3600000",
        "timestamp_extractor": "Record",
        "timezone": "Europe/Prague",
        "flush_size": "1",
    }
    with bucket.sink(**hourly) as sink:
        send(sink, {"n": 1}, timestamp=NOON)
    by_field = {"partitioner_class": "FieldPartitioner", "partition_field_name": "country"}
    with bucket.sink(**by_field, flush_size="2", topics_dir="fields") as sink:
        send(sink, {"country": "cz"}, {"country": "../de"}, {"country": "cz"})
        assert sink.commit() == {("orders", 0): 2}
    assert set(bucket.objects()) == {
        "topics/orders/year=2026/month=01/day=01/hour=13/orders+0+0000000000.json",
        "fields/orders/country=cz/orders+0+0000000000.json",
        "fields/orders/country=%2E%2E%2Fde/orders+0+0000000001.json",
    }


def test_files_end_with_a_schema_and_with_time(bucket: Bucket) -> None:
    wider = builders.struct({"id": builders.INT32, "more": builders.OPTIONAL_STRING}, name="Wider")
    narrow = builders.struct({"id": builders.INT32}, name="Narrow")
    with bucket.sink(flush_size="100", format_class="AvroFormat") as sink:
        send(sink, Struct(narrow, {"id": 1}), schema=narrow)
        send(sink, Struct(wider, {"id": 2}), schema=wider)
        assert sink.commit() == {("orders", 0): 1}
    rotated = {
        "rotate_interval_ms": "60000",
        "timestamp_extractor": "Record",
        "flush_size": "100",
        "partitioner_class": PARTITIONERS + "HourlyPartitioner",
    }
    with bucket.sink(**rotated, topics_dir="timed") as sink:
        for minute in (0, 0, 1, 1, 3):
            send(sink, {"m": minute}, timestamp=NOON + minute * 60_000)
        assert sink.commit() == {("orders", 0): 4}
    assert [path for path in bucket.objects() if path.startswith("timed")] == [
        "timed/orders/year=2026/month=01/day=01/hour=12/orders+0+0000000000.json",
        "timed/orders/year=2026/month=01/day=01/hour=12/orders+0+0000000002.json",
    ]


def test_gzip_bytes_and_null_values(bucket: Bucket) -> None:
    config = {"s3_compression_type": "gzip", "behavior_on_null_values": "ignore"}
    with bucket.sink(**config, flush_size="2") as sink:
        send(sink, {"n": 1}, None, {"n": 2})
    ((path, data),) = bucket.objects().items()
    assert path.endswith(".json.gz")
    assert [json.loads(line) for line in gzip.decompress(data).splitlines()] == [{"n": 1}, {"n": 2}]
    with bucket.sink(flush_size="1") as sink:
        send(sink, None)
        assert [str(error) for _, error in sink.errant] == [
            "record orders-0@0 has no value, and behavior.on.null.values is fail"
        ]


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "snappy"])
def test_codecs_of_avro(bucket: Bucket, codec: str) -> None:
    narrow = builders.struct({"id": builders.INT32}, name="Narrow")
    with bucket.sink(flush_size="1", format_class="AvroFormat", avro_codec=codec) as sink:
        send(sink, Struct(narrow, {"id": 1}), schema=narrow)
    ((path, data),) = bucket.objects().items()
    assert path.endswith("0.avro")
    reader = fastavro.reader(io.BytesIO(data))
    assert (reader.codec, list(reader)) == (codec, [{"id": 1}])


@pytest.mark.parametrize(("codec", "extension"), [("none", ""), ("gzip", ".gz"), ("zstd", ".zstd")])
def test_codecs_of_parquet(bucket: Bucket, codec: str, extension: str) -> None:
    narrow = builders.struct({"id": builders.INT32}, name="Narrow")
    with bucket.sink(flush_size="1", format_class="ParquetFormat", parquet_codec=codec) as sink:
        send(sink, Struct(narrow, {"id": 1}), schema=narrow)
    ((path, data),) = bucket.objects().items()
    assert path.endswith(f"0000{extension}.parquet")
    column = pyarrow.parquet.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    assert column.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


def test_separators_levels_and_extensions(bucket: Bucket) -> None:
    config = {
        "format_class": "ByteArrayFormat", "format_bytearray_extension": ".raw",
        "format_bytearray_separator": "##", "s3_compression_type": "gzip",
        "s3_compression_level": "9", "flush_size": "2",
    }  # fmt: skip
    with bucket.sink(**config) as sink:
        send(sink, b"a", b"b")
    ((path, data),) = bucket.objects().items()
    assert path.endswith(".raw.gz")
    assert gzip.decompress(data) == b"a##b##"
    assert data[8] == 2  # The mark of the best compression.


@pytest.mark.parametrize(
    ("compatibility", "stored"),
    [("BACKWARD", [1, 3]), ("FULL", [1, 3]), ("FORWARD", [3]), ("NONE", [1, 1, 1])],
)
def test_versions_of_schemas_are_projected(
    bucket: Bucket, compatibility: str, stored: list[int]
) -> None:
    fields = {"id": builders.INT32}
    old = builders.struct(fields, name="V", version=1)
    new = builders.struct({**fields, "more": builders.OPTIONAL_STRING}, name="V", version=2)
    config = {"format_class": "AvroFormat", "schema_compatibility": compatibility}
    with bucket.sink(flush_size="3", **config) as sink:
        for schema in (old, new, old, new):
            send(sink, Struct(schema, {"id": 1}), schema=schema)
    found = [list(fastavro.reader(io.BytesIO(data))) for data in bucket.objects().values()]
    assert [len(each) for each in found] == stored


def test_keys_and_headers_are_stored_beside_values(bucket: Bucket) -> None:
    config = {
        "store_kafka_keys": "true", "store_kafka_headers": "true", "flush_size": "1",
        "headers_format_class": "io.confluent.connect.s3.format.json.JsonFormat",
    }  # fmt: skip
    with bucket.sink(**config) as sink:
        headers = [Header("a", "x"), Header("b", b"y"), Header("c", None)]
        send(sink, {"n": 1}, key="k", key_schema=builders.STRING, headers=headers)
        send(sink, {"n": 2})
        assert "has no key" in str(sink.errant[0][1])
    stem = "topics/orders/partition=0/orders+0+0000000000"
    found = bucket.objects()
    assert set(found) == {f"{stem}.json", f"{stem}.keys.avro", f"{stem}.headers.json"}
    assert list(fastavro.reader(io.BytesIO(found[f"{stem}.keys.avro"]))) == ["k"]
    assert json.loads(found[f"{stem}.headers.json"]) == [
        {"key": "a", "value": "x"}, {"key": "b", "value": "y"}, {"key": "c", "value": None},
    ]  # fmt: skip


def test_a_storage_that_is_away_is_tried_again_and_loses_nothing(bucket: Bucket) -> None:
    with bucket.sink(flush_size="2") as sink:
        storage = sink.task._storage  # type: ignore[attr-defined]
        records = [sink.record("orders", {"n": number}) for number in range(3)]
        write, storage.write = storage.write, _away
        with pytest.raises(RetriableError):
            sink.put(records)
        storage.write = write
        sink.put(records)
        assert sink.commit() == {("orders", 0): 2}
    assert list(bucket.objects().values()) == [b'{"n":0}\n{"n":1}\n']


def _away(path: str, data: bytes) -> None:
    raise RetriableError(f"{path} cannot be written")


def test_a_missing_bucket_and_wrong_settings_are_named(minio: Minio) -> None:
    config = {**minio.config("nosuch"), "topics": "orders", "flush.size": "1"}
    with SinkDriver(SINK, config) as sink, pytest.raises(ConnectError, match="bucket nosuch"):
        sink.send("orders", {"n": 1})
    wrong = {**config, "partitioner.class": "x.NoSuchPartitioner", "format.class": "XmlFormat"}
    found = config_errors(SINK, wrong)
    assert set(found) == {"partitioner.class", "format.class"}
    assert set(config_errors(SINK, {**config, "timezone": "Mars/Base"})) == {"timezone"}


def test_typed_formats_need_a_schema(bucket: Bucket) -> None:
    with (
        bucket.sink(format_class="ParquetFormat", flush_size="1") as sink,
        pytest.raises(DataError, match=r"schemas\.enable"),
    ):
        send(sink, {"n": 1})


class Forwarder(BaseHTTPRequestHandler):
    """A proxy for plain HTTP; `seen` are the methods and whether a user was named."""

    seen: ClassVar[list[tuple[str, bool]]] = []
    protocol_version = "HTTP/1.1"

    def _forward(self) -> None:
        parts = urlsplit(self.path)
        self.seen.append((self.command, "Proxy-Authorization" in self.headers))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {k: v for k, v in self.headers.items() if not k.lower().startswith("proxy-")}
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        connection.request(self.command, f"{parts.path}?{parts.query}".rstrip("?"), body, headers)
        answer = connection.getresponse()
        data = answer.read()
        self.send_response_only(answer.status)
        for key, value in answer.headers.items():
            if key.lower() not in ("transfer-encoding", "connection"):
                self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)
        connection.close()

    do_GET = do_HEAD = _forward

    def log_message(self, format: str, *args: Any) -> None: ...


def test_a_proxy_and_what_others_may_do(bucket: Bucket) -> None:
    with bucket.sink(s3_acl_canned="bucket-owner-full-control", flush_size="1") as sink:
        send(sink, {"n": 1})
    with ThreadingHTTPServer(("127.0.0.1", 0), Forwarder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            config = {
                "s3_proxy_url": f"http://127.0.0.1:{server.server_port}",
                "s3_proxy_user": "me",
                "s3_proxy_password": "secret",
            }
            with bucket.source(**config) as source:
                assert [each.value for each in source.poll_until(1)] == [{"n": 1}]
        finally:
            server.shutdown()
            thread.join()
    assert Forwarder.seen
    assert all(named for _, named in Forwarder.seen)
    assert "s3.acl.canned" in config_errors(
        SINK, {**bucket.config, "flush.size": "1", "s3.acl.canned": "all"}
    )
