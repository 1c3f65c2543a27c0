"""Files and databases beyond Parquet, Delta and PostgreSQL, and where they can be: S3, HDFS.

One stream goes from a topic through XML, Avro, MariaDB and text back into a topic, in two runs of
the same queries. Between the runs Spark is made to forget that the last batches were committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Producer
from moldau.pipelines import Avro, Delta, Parquet, Pipeline, Text, Topic, build
from moldau.spark import tables
from spark.running import committed, finished
from spark.test_tables import forget_last_commit
from support.java_servers import java_server_missing, running_hdfs
from support.mariadb import MariaDb, mariadb_missing, running_mariadb
from support.minio import PASSWORD, USER, Minio, minio_missing, running_minio
from support.processes import free_port

SCHEMA = "id BIGINT, name STRING, amount DOUBLE"


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    if reason := mariadb_missing():
        pytest.skip(reason)
    with running_mariadb() as running:
        yield running


@pytest.fixture(scope="module")
def minio() -> Iterator[Minio]:
    if reason := minio_missing():
        pytest.skip(reason)
    with running_minio() as running:
        yield running


@pytest.fixture(scope="module")
def hdfs() -> Iterator[str]:
    """The address of a name node."""
    if reason := java_server_missing("hdfs"):
        pytest.skip(reason)
    port = free_port()
    with running_hdfs(port):
        yield f"hdfs://127.0.0.1:{port}"


def send(bootstrap: str, topic: str, ids: range) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in ids:
            order = {"id": number, "name": f"ň<{number}>", "amount": number + 0.25}
            producer.send(topic, json.dumps(order))


def run(spark: Any, bootstrap: str, folder: Path, *pipelines: Pipeline) -> None:
    for pipeline in pipelines:
        checkpoint = str(folder / "checkpoints" / pipeline.name)
        finished(
            lambda pipeline=pipeline, checkpoint=checkpoint: build.start(
                spark, pipeline, bootstrap=bootstrap, checkpoint=checkpoint
            )
        )


def hop(name: str, source: Any, sink: Any, *steps: str) -> Pipeline:
    return Pipeline(name, source=source, steps=list(steps), sink=sink, trigger="available now")


def orders(topic: str) -> Topic:
    return Topic(topic, schema=SCHEMA, startingOffsets="earliest")


def ids(bootstrap: str, topic: str) -> list[int]:
    return sorted(json.loads(record.value)["id"] for record in committed(bootstrap, topic))


@pytest.mark.long("a query for each kind, each run twice; test_tables has the usual ones")
@pytest.mark.slow("a query for each kind, each run twice")
def test_a_topic_goes_through_files_and_a_database_each_record_once(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, mariadb: MariaDb
) -> None:
    from moldau.pipelines import Jdbc, Xml

    database = {"table": "orders", "user": "moldau", "password": "secret"}
    url = mariadb.url(mariadb.database())
    growing = {"mode": "incrementing", "incrementing.column.name": "id"}
    xml, avro, text = (str(tmp_path / kind) for kind in ("xml", "avro", "text"))
    ways = (
        hop("to-xml", orders(topic), Xml(xml, rowTag="order", rootTag="orders")),
        hop("to-avro", Xml(xml, rowTag="order", schema=SCHEMA), Avro(avro)),
        hop("to-mariadb", Avro(avro), Jdbc(url, upsert=["id"], **database)),
        hop(
            "to-text",
            Jdbc(url, **database, **growing),
            Text(text),
            "SELECT to_json(struct(*)) AS value FROM input",
        ),
        hop("back", Text(text), Topic(f"{topic}-back", format="string")),
    )
    send(bootstrap, topic, range(3))
    run(spark, bootstrap, tmp_path, *ways)
    for way in ways[:4]:
        [commits] = (tmp_path / "checkpoints" / way.name).rglob("commits")
        forget_last_commit(str(commits.parent))
    send(bootstrap, topic, range(3, 5))
    run(spark, bootstrap, tmp_path, *ways)
    found = [json.loads(record.value) for record in committed(bootstrap, f"{topic}-back")]
    assert sorted(found, key=lambda row: int(row["id"])) == [
        {"id": number, "name": f"ň<{number}>", "amount": number + 0.25} for number in range(5)
    ]


@pytest.mark.long("needs `make parts`; files of other places are tried above")
def test_s3_holds_tables_and_avro_files(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, minio: Minio
) -> None:
    bucket = minio.bucket()
    delta = {
        "storage.AWS_ENDPOINT_URL": minio.url,
        "storage.AWS_ACCESS_KEY_ID": USER,
        "storage.AWS_SECRET_ACCESS_KEY": PASSWORD,
        "storage.AWS_REGION": "us-east-1",
        "storage.AWS_ALLOW_HTTP": "true",
    }
    files = {
        "storage.endpoint_override": minio.url.removeprefix("http://"),
        "storage.access_key": USER,
        "storage.secret_key": PASSWORD,
        "storage.region": "us-east-1",
        "storage.scheme": "http",
    }
    send(bootstrap, topic, range(4))
    table = f"s3://{bucket}/orders"
    run(
        spark,
        bootstrap,
        tmp_path,
        hop("to-s3", orders(topic), Delta(table, **delta)),
        hop("from-s3", Delta(table, **delta), Topic(f"{topic}-back")),
        hop("avro-to-s3", orders(topic), Avro(f"s3://{bucket}/avro", **files)),
    )
    assert ids(bootstrap, f"{topic}-back") == [0, 1, 2, 3]
    import fastavro
    from pyarrow import fs

    system = minio.files()
    found = system.get_file_info(fs.FileSelector(f"{bucket}/avro"))
    rows = []
    for info in found:
        if info.path.endswith(".avro"):
            with system.open_input_file(info.path) as file:
                rows += [row["id"] for row in fastavro.reader(file)]
    assert sorted(rows) == [0, 1, 2, 3]


def test_files_of_s3_without_hadoops_package_say_what_to_install(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    from moldau.pipelines.machine.explaining import explain

    send(bootstrap, topic, range(1))
    way = hop("parquet-to-s3", orders(topic), Parquet("s3a://nowhere/orders"))
    with pytest.raises(Exception, match=r"(?i)s3a") as told:
        run(spark, bootstrap, tmp_path, way)
    explained = explain(told.value, way)
    assert "org.apache.hadoop:hadoop-aws:" in str(explained.hint)


@pytest.mark.long("needs `make parts`; files of other places are tried above")
def test_hdfs_holds_files(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path, hdfs: str
) -> None:
    folder = f"{hdfs}/pipelines/{topic}"
    send(bootstrap, topic, range(4))
    run(
        spark,
        bootstrap,
        tmp_path,
        hop("to-hdfs", orders(topic), Parquet(folder)),
        hop("from-hdfs", Parquet(folder, schema=SCHEMA), Topic(f"{topic}-back")),
        hop(
            "text-on-hdfs", orders(topic), Text(f"{folder}-text"), "SELECT name AS value FROM input"
        ),
    )
    assert ids(bootstrap, f"{topic}-back") == [0, 1, 2, 3]
    lines = tables.read(spark, "text", {"text": f"{folder}-text"}, False).collect()
    assert sorted(row["value"] for row in lines) == [f"ň<{number}>" for number in range(4)]
