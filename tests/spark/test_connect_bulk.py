"""Bulk sinks of Connect: connectors whose records a pipeline on Spark writes to tables."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.connect.connectors.hdfs.sink import CONFIG
from moldau.connect.connectors.hdfs.storage import WebHdfs
from moldau.pipelines import daemon
from moldau.spark import ConnectServer
from support.cli import moldau_cli
from support.connect_workers import WorkerUnderTest, distributed_worker
from support.java_servers import java_server_missing, running_hdfs
from support.minio import Minio, minio_missing, running_minio
from support.ports import free_port
from support.waiting import eventually

SECONDS_MAX = 300.0
SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int64"},
        {"field": "shop", "type": "string", "optional": True},
        {"field": "card", "type": "string", "optional": True},
        {"field": "tags", "type": "array", "items": {"type": "string"}, "optional": True},
    ],
}
JSON = "org.apache.kafka.connect.json.JsonConverter"
DROP_CARD = {
    "transforms": "drop",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
    "transforms.drop.exclude": "card",
}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, small: dict[str, str]) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("bulk") / "spark"
    folder.mkdir()
    server = ConnectServer(folder, master="local[2]", conf=small, connector="moldau")
    server.remember()
    try:
        yield folder
    finally:
        daemon.stop(folder)
        server.stop()


@pytest.mark.long("a Spark server of its own; pipelines write the same tables in test_tables")
@pytest.mark.slow("a Spark server of its own starts")
def test_connectors_write_tables_by_pipelines(
    deployment: Path, bootstrap: str, tmp_path: Path
) -> None:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic("bulk-orders", 2, 1)])
    send(bootstrap, range(100))
    send_bytes(bootstrap, b"no JSON")
    database = tmp_path / "shop.db"
    common = {"topics": "bulk-orders", "value.converter": JSON, "trigger": "1 second", **DROP_CARD}
    common |= {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "bulk-bad",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    delta = {**common, "connector.class": "DeltaSink", "path": str(tmp_path / "delta")}
    by_key = {
        **common,
        "connector.class": "JdbcBulkSink",
        "connection.url": f"jdbc:sqlite:{database}",
        "table": "orders",
        "pk.fields": "id",
        "columns": "id BIGINT, shop STRING",
        "transforms.drop.exclude": "card,tags",
    }
    with distributed_worker(bootstrap, "bulk", spark_deployment=str(deployment)) as worker:
        assert worker.call("PUT", "/connectors/lake/config", delta).status == 201
        assert worker.call("PUT", "/connectors/keyed/config", by_key).status == 201
        eventually(
            lambda: len(delta_rows(tmp_path)) == 100,
            what="all rows in the Delta table",
            seconds_max=SECONDS_MAX,
        )
        first = delta_rows(tmp_path)[7]
        assert first == {"id": 7, "shop": "s7", "tags": ["a", "7"]}
        eventually(
            lambda: len(stored(database)) == 100,
            what="all rows in the database",
            seconds_max=SECONDS_MAX,
        )
        for name in ("lake", "keyed"):
            worker.wait_for(name, "RUNNING", "RUNNING")
        # The record that is no JSON is a dead letter of both, and holds nothing up.
        assert dead_letters(bootstrap, 2) == [b"no JSON"] * 2
        assert listed(bootstrap, deployment) >= {"connect-lake", "connect-keyed"}
        shown = moldau_cli("connect", "list", "--url", worker.url).out
        assert "connect-lake" in shown
        states = {each["name"]: each["state"] for each in worker.call("GET", "/pipelines").body}
        assert states == {"connect-lake": "running", "connect-keyed": "running"}
        eventually(
            lambda: committed(worker, "lake") == 101,
            what="offsets of all records",
            seconds_max=SECONDS_MAX,
        )

        # Paused, nothing is written; resumed, it goes on from where it was.
        assert worker.call("PUT", "/connectors/lake/pause").status == 202
        worker.wait_for("lake", "PAUSED", "PAUSED")
        eventually(
            lambda: "connect-lake" not in listed(bootstrap, deployment),
            what="the pipeline to be gone",
            seconds_max=SECONDS_MAX,
        )
        send(bootstrap, range(90, 130))
        eventually(
            lambda: len(stored(database)) == 130, what="rows of 130 keys", seconds_max=SECONDS_MAX
        )
        assert len(delta_rows(tmp_path)) == 100
        assert worker.call("PUT", "/connectors/lake/resume").status == 202
        eventually(
            lambda: len(delta_rows(tmp_path)) == 140,
            what="the rows of the pause",
            seconds_max=SECONDS_MAX,
        )

        # Without tolerance the record that is no JSON is the end.
        strict = {**delta, "errors.tolerance": "none", "path": str(tmp_path / "strict")}
        strict["columns"] = "id BIGINT, shop STRING, tags ARRAY<STRING>"
        assert worker.call("PUT", "/connectors/strict/config", strict).status == 201
        eventually(
            lambda: worker.state_of("strict")["tasks"] == ["FAILED"],
            what="a failed task",
            seconds_max=SECONDS_MAX,
        )
        status = worker.call("GET", "/connectors/strict/status").body
        assert "(record bulk-orders-0 at offset 50)" in status["tasks"][0]["trace"]

        # What cannot work fails the task, with the reason.
        wrong = {**delta, "connector.class": "ParquetSink", "path": str(tmp_path / "delta.parquet")}
        wrong["sink.compresion"] = "zstd"
        assert worker.call("PUT", "/connectors/wrong/config", wrong).status == 201
        worker.wait_for("wrong", "RUNNING", "FAILED")
        status = worker.call("GET", "/connectors/wrong/status").body
        assert "compresion" in status["tasks"][0]["trace"]

        for name in ("lake", "keyed", "strict", "wrong"):
            assert worker.call("DELETE", f"/connectors/{name}").status == 204
        eventually(
            lambda: not listed(bootstrap, deployment),
            what="all pipelines to be gone",
            seconds_max=SECONDS_MAX,
        )


def send(bootstrap: str, numbers: range, *, topic: str = "bulk-orders") -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in numbers:
            order = {"id": number, "shop": f"s{number}", "card": "4711", "tags": ["a", str(number)]}
            value = json.dumps({"schema": SCHEMA, "payload": order}).encode()
            producer.send(topic, value, partition=number % 2)


def send_bytes(bootstrap: str, value: bytes) -> None:
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        producer.send("bulk-orders", value, partition=0)


def delta_rows(folder: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(str(folder / "delta")).to_pyarrow_table()
    except TableNotFoundError:
        return []
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def stored(database: Path) -> list[Any]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT id, shop FROM orders").fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        connection.close()


def dead_letters(bootstrap: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    settings = {"bootstrap.servers": bootstrap, "group.id": "letters"}
    with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["bulk-bad"])

        def all_read() -> bool:
            found.extend(record.value or b"" for record in consumer.poll(1.0))
            return len(found) >= count

        eventually(all_read, what="all dead letters", seconds_max=SECONDS_MAX)
    return found


def committed(worker: WorkerUnderTest, name: str) -> int:
    """Of all partitions, as Connect's REST shows it."""
    offsets = worker.call("GET", f"/connectors/{name}/offsets").body["offsets"]
    return sum(each["offset"]["kafka_offset"] for each in offsets)


def listed(bootstrap: str, deployment: Path) -> set[str]:
    """The pipelines that `moldau pipelines list` shows, without connectors."""
    command = [sys.executable, "-m", "moldau.cli", "pipelines", "list", "--json"]
    command += ["--bootstrap-server", bootstrap, "--data", str(deployment)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return {each["name"] for each in json.loads(done.stdout) if each.get("kind") != "connector"}


@pytest.mark.long("needs servers of `make parts`; Delta and a database are tested above")
def test_every_kind_of_table(deployment: Path, bootstrap: str, tmp_path: Path) -> None:
    """S3 and HDFS are real ones, where `make parts` has built them."""
    if missing := minio_missing() or java_server_missing("hdfs"):
        pytest.skip(missing)
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic("bulk-kinds", 2, 1)])
    send(bootstrap, range(50), topic="bulk-kinds")
    common = {
        "topics": "bulk-kinds",
        "value.converter": JSON,
        "trigger": "1 second",
        "transforms": "drop",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.drop.exclude": "card,tags",
    }
    rpc_port = free_port()
    with (
        running_minio() as minio,
        running_hdfs(rpc_port) as hdfs,
        distributed_worker(bootstrap, "kinds", spark_deployment=str(deployment)) as worker,
    ):
        bucket = minio.bucket()
        warehouse = tmp_path / "warehouse"
        connectors = {
            "parquet": {"connector.class": "ParquetSink", "path": str(tmp_path / "parquet")},
            "iceberg": {
                "connector.class": "IcebergSink",
                "path": str(warehouse),
                "table": "shop.orders",
            },
            "s3": {"connector.class": "S3BulkSink", **minio.config(bucket)},
            "s3-avro": {"connector.class": "S3BulkSink", "format": "avro", **minio.config(bucket)},
            "hdfs": {"connector.class": "HdfsBulkSink", "hdfs.url": f"hdfs://127.0.0.1:{rpc_port}"},
        }
        for name, config in connectors.items():
            made = worker.call("PUT", f"/connectors/{name}/config", {**common, **config})
            assert made.status == 201, made.body
        for name in connectors:
            eventually(
                partial(has_all, worker, name),
                what=f"all records in {name}, {worker.call('GET', f'/connectors/{name}/status')}",
                seconds_max=SECONDS_MAX,
            )
        wanted = [{"id": number, "shop": f"s{number}"} for number in range(50)]
        assert by_id(parquet_rows(tmp_path / "parquet")) == wanted
        assert by_id(parquet_rows(warehouse)) == wanted
        assert by_id(delta_of(minio, bucket).to_pyarrow_table().to_pylist()) == wanted
        assert by_id(avro_rows(minio, f"{bucket}/topics/s3-avro")) == wanted
        storage = WebHdfs(CONFIG.parse({"hdfs.url": hdfs, "flush.size": "1"}))
        assert any(each.endswith(".parquet") for each in storage.names("/topics/hdfs"))
        storage.close()
        for name in connectors:
            assert worker.call("DELETE", f"/connectors/{name}").status == 204
        eventually(
            lambda: not listed(bootstrap, deployment),
            what="all pipelines to be gone",
            seconds_max=SECONDS_MAX,
        )


def has_all(worker: WorkerUnderTest, name: str) -> bool:
    return committed(worker, name) == 50


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def parquet_rows(folder: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    files = [each for each in folder.rglob("*.parquet") if "_moldau" not in each.parts]
    return [row for each in files for row in parquet.read_table(each).to_pylist()]


def delta_of(minio: Minio, bucket: str) -> Any:
    from deltalake import DeltaTable

    login = minio.config(bucket)
    options = {
        "AWS_ENDPOINT_URL": minio.url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": login["s3.region"],
        "AWS_ACCESS_KEY_ID": login["aws.access.key.id"],
        "AWS_SECRET_ACCESS_KEY": login["aws.secret.access.key"],
    }
    return DeltaTable(f"s3://{bucket}/topics/s3", storage_options=options)


def avro_rows(minio: Minio, folder: str) -> list[dict[str, Any]]:
    import fastavro
    from pyarrow import fs

    rows: list[Any] = []
    for each in minio.files().get_file_info(fs.FileSelector(folder)):
        if each.path.endswith(".avro"):
            with minio.files().open_input_file(each.path) as file:
                rows += list(fastavro.reader(file))
    return rows
