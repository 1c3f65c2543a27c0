"""One data folder, two brokers: Apache Kafka and Moldau open what the other wrote."""

from __future__ import annotations

import shutil
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.broker.log.machine.names import INVENTORY_FILE
from support.processes import (
    BrokerProcess,
    apache_kafka,
    kafka_missing,
    kafka_properties,
    kafka_tool,
    moldau,
    write_properties,
)
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = {
    "plain": (3, {}),
    "rolled": (1, {"segment.bytes": "1048576"}),
    "compacted": (1, {"cleanup.policy": "compact"}),
}

Seen = list[tuple[int, bytes | None, bytes | None, int, object]]


def fill(bootstrap: str, mark: str) -> None:
    """Records in every codec, enough in `rolled` for several segments."""
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "linger.ms": 20,
                "enable.idempotence": True,
            }
        )
        for number in range(400):
            key = f"{mark}-{number % 40}".encode()
            value = f"{codec} {number} {mark}".encode()
            producer.produce("plain", value, key, number % 3, headers=[("codec", codec.encode())])
            producer.produce("rolled", value + bytes(range(256)) * 12, key, 0)
            producer.produce("compacted", value, key, 0)
        assert producer.flush(60) == 0


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(name, count, 1, config=config) for name, (count, config) in TOPICS.items()]
    for future in admin.create_topics(new).values():
        future.result(30)


def end_offset(consumer: Consumer, partition: TopicPartition) -> int | None:
    """None while there is no leader: Kafka accepts connections before it has elected any."""
    try:
        return int(consumer.get_watermark_offsets(partition, 30)[1])
    except KafkaException:
        return None


def read_all(bootstrap: str) -> dict[tuple[str, int], Seen]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "check.crcs": True,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    contents: dict[tuple[str, int], Seen] = {}
    for name, (count, _) in TOPICS.items():
        for index in range(count):
            end = eventually(
                partial(end_offset, consumer, TopicPartition(name, index)),
                what=f"{name}-{index} has a leader and records",
            )
            consumer.assign([TopicPartition(name, index, 0)])
            rows: Seen = []
            deadline = time.monotonic() + 60
            while not rows or rows[-1][0] < end - 1:
                assert time.monotonic() < deadline, f"{name}-{index}: {len(rows)} records came"
                for message in consumer.consume(1000, 0.1):
                    assert message.error() is None, message.error()
                    rows.append(
                        (
                            message.offset(),
                            message.key(),
                            message.value(),
                            message.timestamp()[1],
                            message.headers(),
                        )
                    )
            contents[name, index] = rows
    consumer.close()
    return contents


def moldau_on_kafkas_file(folder: Path, config: Path, port: int) -> BrokerProcess:
    command = [sys.executable, "-m", "moldau.cli", "server-start", str(config)]
    return BrokerProcess(command, port, folder / "moldau.log")


@pytest.mark.slow("Apache Kafka starts twice, and Moldau in between")
def test_moldau_opens_a_folder_of_apache_kafka_and_gives_it_back(tmp_path: Path) -> None:
    with apache_kafka(tmp_path) as kafka:
        create_topics(kafka.bootstrap)
        fill(kafka.bootstrap, "kafka")
        before = read_all(kafka.bootstrap)
    config = tmp_path / "server.properties"

    with moldau_on_kafkas_file(tmp_path, config, kafka.port) as ours:
        assert read_all(ours.bootstrap) == before
        fill(ours.bootstrap, "moldau")
        after = read_all(ours.bootstrap)
    for partition, rows in before.items():
        assert after[partition][: len(rows)] == rows
        assert len(after[partition]) > len(rows)

    # Back again: Kafka must find its own metadata log, segments and checkpoints in order.
    properties = dict(line.split("=", 1) for line in config.read_text().splitlines())
    with BrokerProcess(kafka.command, kafka.port, tmp_path / "kafka2.log") as again:
        assert properties["log.dirs"] == str(tmp_path / "data")
        assert read_all(again.bootstrap) == after
        fill(again.bootstrap, "kafka again")
        assert len(read_all(again.bootstrap)["plain", 0]) > len(after["plain", 0])


@pytest.mark.long("a part of the way there and back above")
def test_apache_kafka_opens_a_folder_of_moldau(tmp_path: Path) -> None:
    with moldau(tmp_path) as ours:
        create_topics(ours.bootstrap)
        fill(ours.bootstrap, "moldau")
        before = read_all(ours.bootstrap)
    properties = kafka_properties(tmp_path, ours.port)
    write_properties(tmp_path / "server.properties", properties)
    with apache_kafka(tmp_path) as kafka:
        assert read_all(kafka.bootstrap) == before


def test_kafkas_dump_tool_reads_every_file(tmp_path: Path) -> None:
    with moldau(tmp_path) as ours:
        create_topics(ours.bootstrap)
        fill(ours.bootstrap, "moldau")
    data = tmp_path / "data"
    logs = sorted(data.glob("*/*.log"))
    others = sorted(
        [
            *data.glob("*/*.index"),
            *data.glob("*/*.timeindex"),
            *data.glob("*/*.snapshot"),
            *data.glob("*/*.checkpoint"),
        ]
    )
    assert len([log for log in logs if log.parent.name == "rolled-0"]) > 1
    assert {path.suffix for path in others} >= {".index", ".timeindex", ".snapshot"}

    tool = "org.apache.kafka.tools.DumpLogSegments"
    partition_logs = [path for path in logs if not path.parent.name.startswith("__")]
    dumped = kafka_tool(
        tool, "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, partition_logs))
    )
    assert dumped.returncode == 0, dumped.stderr
    assert dumped.stdout.count("isvalid: true") > 0
    assert "isvalid: false" not in dumped.stdout
    assert dumped.stdout.count(" payload: ") == 3 * 5 * 400

    checked = kafka_tool(tool, "--files", ",".join(map(str, others)))
    assert checked.returncode == 0, checked.stderr
    for complaint in ("Mismatches in", "Found timestamp mismatch", "out of order", "corrupt"):
        assert complaint not in checked.stdout + checked.stderr

    metadata = [path for path in logs if path.parent.name == "__cluster_metadata-0"]
    decoded = kafka_tool(
        tool, "--cluster-metadata-decoder", "--files", ",".join(map(str, metadata))
    )
    assert decoded.returncode == 0, decoded.stderr
    for record in ("TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REGISTER_BROKER_RECORD"):
        assert record in decoded.stdout


@pytest.mark.long("a part of the way there and back above")
def test_both_write_the_same_kinds_of_files(tmp_path: Path) -> None:
    """After a clean stop no file of a partition is missing and none is extra. Beside them is one
    that Apache Kafka ignores, and that counts only until Apache Kafka has used the directory."""
    kinds = {}
    for name, start in (("moldau", moldau), ("kafka", apache_kafka)):
        folder = tmp_path / name
        folder.mkdir()
        with start(folder) as broker:
            create_topics(broker.bootstrap)
            fill(broker.bootstrap, "same")
        files = {path.suffix or path.name for path in (folder / "data" / "plain-0").iterdir()}
        top = {path.name for path in (folder / "data").iterdir() if path.is_file()} - {".lock"}
        kinds[name] = (files, top)
        shutil.rmtree(folder)
    files, top = kinds["kafka"]
    assert kinds["moldau"] == (files, top | {INVENTORY_FILE})
