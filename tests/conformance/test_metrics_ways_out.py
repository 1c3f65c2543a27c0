"""The ways out of metrics and of alerts, each with a real other side."""

from __future__ import annotations

import json
import re
import socket
import socketserver
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, Producer, ShareConsumer
from moldau.client.admin import (
    AlterConfigOp,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaOp,
    ConfigResource,
    ConfigResourceType,
)
from moldau.client.topics import TopicPartition
from moldau.metrics.otlp import decode_metrics
from moldau.metrics.parsing import parse
from moldau.monitoring.history import HistoryWriter, read_history
from moldau.monitoring.lag_reader import LagReader
from moldau.monitoring.machine.alerts import Condition, Notice
from moldau.monitoring.machine.config import read_config
from moldau.monitoring.machine.lag import LagTracker
from moldau.monitoring.notify import Notifier
from moldau.streams import KafkaStreams, StreamsBuilder
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import encode_request_frame
from moldau.wire.message import Message
from moldau.wire.messages import DescribeClusterRequest, FetchRequest
from support.ports import free_port
from support.processes import BrokerProcess, moldau
from support.waiting import eventually


class Collector:
    """An HTTP server that keeps what it gets."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                bodies.append((self.headers["Content-Type"], self.rfile.read(size)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, collector: Collector, metrics_port: int
) -> Iterator[BrokerProcess]:
    settings = [
        f"moldau.metrics.port={metrics_port}",
        f"moldau.metrics.otlp.endpoint={collector.url}",
        "moldau.metrics.otlp.interval.ms=300",
    ]
    with moldau(tmp_path_factory.mktemp("broker"), settings) as process:
        with Producer(bootstrap_servers=process.bootstrap) as producer:
            for _ in range(100):
                producer.send("counted", bytes(100))
        yield process


def values_of(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return {line.text: line.value for line in parse(answer.read().decode())}


def test_what_is_counted_is_what_happened(broker: BrokerProcess, metrics_port: int) -> None:
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="readers",
                  auto_offset_reset="earliest") as consumer:  # fmt: skip
        consumer.subscribe(["counted"])
        read = 0
        while read < 100:
            read += len(list(consumer.poll(10)))
        consumer.commit_sync()
        found = values_of(metrics_port)
    topic = '{topic="counted"}'
    name = "kafka_server_brokertopicmetrics"
    assert found[f"{name}_messagesin_total{topic}"] == 100
    assert found[f"{name}_messagesin_total"] == 100
    bytes_in = found[f"{name}_bytesin_total{topic}"]
    assert bytes_in > 10_000
    assert found[f"{name}_bytesout_total{topic}"] == bytes_in
    assert found['kafka_log_log_logendoffset{topic="counted",partition="0"}'] == 100
    assert found["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert found["kafka_coordinator_group_groupmetadatamanager_numgroupsstable"] == 1
    assert found["kafka_coordinator_group_groupmetadatamanager_numoffsets"] == 1
    produced = 'kafka_network_requestmetrics_totaltimems_count{request="Produce"}'
    assert found[produced] == found[f"{name}_totalproducerequests_total"]
    assert found['kafka_network_requestmetrics_errors_total{request="Produce",error="NONE"}'] > 0
    fetched = [text for text in found if text.startswith(
        'kafka_network_requestmetrics_requests_total{request="FetchConsumer"')]  # fmt: skip
    assert fetched
    assert found["process_open_fds"] > 10


def test_coordinators_measure_decisions_and_writes(
    broker: BrokerProcess, metrics_port: int
) -> None:
    prefix = "kafka_server_{}_coordinator_metrics_{}"
    written = prefix.format("share", "write_total")
    before = values_of(metrics_port)
    began = time.monotonic()
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("timed", b"value")
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="timed",
                  auto_offset_reset="earliest") as consumer:  # fmt: skip
        consumer.subscribe(["timed"])
        eventually(lambda: list(consumer.poll(2)), what="records")
        for offset in range(50):
            consumer.commit_sync({TopicPartition("timed", 0): offset % 2})
    with ShareConsumer(bootstrap_servers=broker.bootstrap, group_id="timed-queue") as share:
        share.subscribe(["timed"])

        def has_written() -> bool:
            share.poll(0.2)
            return values_of(metrics_port)[written] > before[written]

        eventually(has_written, what="the state of the queue is written")
    elapsed_ms = (time.monotonic() - began) * 1000
    found = values_of(metrics_port)
    for phase in ("processing", "purgatory"):
        name = prefix.format("group", f"event_{phase}_time_ms")
        times_ms = [found[f"{name}_{stat}"] for stat in ("p50", "p95", "p99", "p999", "max")]
        assert times_ms == sorted(times_ms)
        # Waits are whole milliseconds, as Kafka's: one replica commits at once.
        assert 0 < times_ms[0] < elapsed_ms / 50 or phase == "purgatory"
        assert 0 <= times_ms[-1] < elapsed_ms
    latency = prefix.format("share", "write_latency")
    assert 0 <= found[f"{latency}_avg"] <= found[f"{latency}_max"] < elapsed_ms


def request_of(key: ApiKey, request: Message, correlation_id: int) -> bytes:
    api = API_BY_KEY[key]
    return encode_request_frame(api, api.max_version, correlation_id, "raw", request)


def read_exactly(raw: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = raw.recv(size - len(data))
        assert more, "the broker has hung up"
        data += more
    return data


def read_answer(raw: socket.socket) -> bytes:
    return read_exactly(raw, int.from_bytes(read_exactly(raw, 4), "big"))


def test_requests_that_come_together_wait_for_one_another(
    broker: BrokerProcess, metrics_port: int
) -> None:
    def phases() -> dict[str, float]:
        found = values_of(metrics_port)
        name = "kafka_network_requestmetrics_"
        names = ("requestqueue", "local", "remote", "responsequeue", "responsesend", "total")
        label = '{request="DescribeCluster"}'
        return {each: found.get(f"{name}{each}timems_sum{label}", 0.0) for each in names} | {
            "count": found.get(f"{name}requestqueuetimems_count{label}", 0.0)
        }

    with socket.create_connection(("127.0.0.1", broker.port), timeout=30) as raw:
        request = request_of(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(), 1)
        raw.sendall(request)
        read_answer(raw)
        before = phases()
        raw.sendall(request * 50)
        for _ in range(50):
            read_answer(raw)
        spent = {name: value - before[name] for name, value in phases().items()}
    assert spent["count"] == 50
    assert spent["requestqueue"] > 0
    assert spent["responsequeue"] > 0
    parts = ("requestqueue", "local", "remote", "responsequeue", "responsesend")
    assert spent["total"] == pytest.approx(sum(spent[each] for each in parts), rel=0.01)


def test_a_client_that_reads_slowly_is_seen_in_the_time_to_send(
    broker: BrokerProcess, metrics_port: int
) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=50) as producer:
        # More than the kernel takes for a client that does not read.
        for _ in range(14):
            producer.send("bulk", bytes(900_000))
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        topic_id = admin.describe_topics(["bulk"])["bulk"].topic_id
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1 << 25
    )
    topic = FetchRequest.FetchTopic(topic="bulk", topic_id=topic_id, partitions=[partition])
    fetch = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 25, topics=[topic])
    sent = 'kafka_network_requestmetrics_responsesendtimems_sum{request="FetchConsumer"}'
    before = values_of(metrics_port).get(sent, 0.0)
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        raw.settimeout(60)
        raw.connect(("127.0.0.1", broker.port))
        raw.sendall(request_of(ApiKey.FETCH, fetch, 1))
        waiting = "kafka_network_requestchannel_responsequeuesize"
        eventually(lambda: values_of(metrics_port)[waiting] > 0, what="a response waits")
        read_answer(raw)
    eventually(lambda: values_of(metrics_port)[sent] > before, what="the time to send")


def test_failed_requests_are_counted_by_error(broker: BrokerProcess, metrics_port: int) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        outcome = admin.describe_topics(["nothing"], check=False)
        assert outcome.errors
    found = values_of(metrics_port)
    errors = [
        text
        for text, value in found.items()
        if "errors_total" in text and "UNKNOWN_TOPIC_OR_PARTITION" in text and value
    ]
    assert errors


def test_metrics_of_a_deleted_topic_are_gone(broker: BrokerProcess, metrics_port: int) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("gone", b"value").result(30)
    assert any('topic="gone"' in text for text in values_of(metrics_port))
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_topics(["gone"])
    eventually(
        lambda: not any('topic="gone"' in text for text in values_of(metrics_port)),
        what="no metric of the topic",
    )


def test_quotas_show_what_their_clients_use(broker: BrokerProcess, metrics_port: int) -> None:
    entity = ClientQuotaEntity.of({"client-id": "limited"})
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        op = ClientQuotaOp("producer_byte_rate", 8_000.0)
        admin.alter_client_quotas([ClientQuotaAlteration(entity, (op,))])
        with Producer(bootstrap_servers=broker.bootstrap, client_id="limited") as producer:
            for _ in range(100):
                producer.send("limited", bytes(1_000))
            producer.flush()
            found = values_of(metrics_port)
    labels = '{clientId="limited",resource="Produce"}'
    assert found[f"kafka_server_quota_byte_rate{labels}"] > 1_000
    throttled = found['kafka_network_requestmetrics_throttletimems_count{request="Produce"}']
    assert throttled > 0


def test_metrics_are_pushed_by_otlp(broker: BrokerProcess, collector: Collector) -> None:
    def pushed() -> float:
        if not collector.bodies:
            return 0
        kind, data = collector.bodies[-1]
        assert kind == "application/x-protobuf"
        return max(
            (
                point.value
                for point in decode_metrics(data)
                if point.name == "kafka.server.BrokerTopicMetrics.MessagesInPerSec"
                and point.tags.get("topic") == "counted"
            ),
            default=0,
        )

    assert eventually(pushed, what="the collector has the records") >= 100


def test_metrics_that_clients_push_are_kept(broker: BrokerProcess, metrics_port: int) -> None:
    resource = ConfigResource(ConfigResourceType.CLIENT_METRICS, "all")
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.incremental_alter_configs(
            {resource: [AlterConfigOp("metrics", "*"), AlterConfigOp("interval.ms", "100")]}
        )
        with Producer(bootstrap_servers=broker.bootstrap, client_id="teller") as producer:

            def told() -> list[str]:
                producer.send("counted", b"value").result(30)
                url = f"http://127.0.0.1:{metrics_port}/clients"
                with urllib.request.urlopen(url, timeout=20) as answer:
                    clients = json.load(answer)
                return [
                    value["name"]
                    for client in clients
                    if client["client_id"] == "teller"
                    for value in client["values"]
                ]

            names = eventually(told, what="the producer has pushed")
        assert any(name.startswith("org.apache.kafka.producer") for name in names)
        admin.incremental_alter_configs(
            {resource: [AlterConfigOp.delete("metrics"), AlterConfigOp.delete("interval.ms")]}
        )
    assert any('client_id="teller"' in text for text in values_of(metrics_port))


def test_history_is_kept_in_slots(broker: BrokerProcess, metrics_port: int) -> None:
    cluster = {"bootstrap.servers": broker.bootstrap}
    node = f"http://127.0.0.1:{metrics_port}/metrics"
    writer = HistoryWriter(cluster, (node,), interval_s=0.05, slots=2)
    for _ in range(4):
        writer.write()
        time.sleep(0.05)
    writer.close()
    readings = read_history(cluster)
    assert 1 <= len(readings) <= 2
    assert readings[-1]["node"] == node
    assert readings[-1]["values"]["kafka_controller_kafkacontroller_activecontrollercount"] == 1


def lag_of_streams(address: str, state: Path) -> None:
    """Leave the streams group lag-streams six records behind."""
    builder = StreamsBuilder()
    builder.stream("lagging-streams", key_serde="bytes", value_serde="bytes").foreach(
        lambda _key, _value: None
    )
    place = TopicPartition("lagging-streams", 0)
    with Producer(bootstrap_servers=address) as producer, Admin(bootstrap_servers=address) as admin:
        for _ in range(4):
            producer.send("lagging-streams", b"value")
        producer.flush()
        with KafkaStreams(
            builder.build(), application_id="lag-streams", bootstrap_servers=address,
            group_protocol="streams", auto_offset_reset="earliest", state_dir=str(state),
        ):  # fmt: skip

            def committed() -> bool:
                found = admin.list_streams_group_offsets({"lag-streams": None}, check=False)
                at = found.values_by_key.get("lag-streams", {}).get(place)
                return at is not None and at.offset == 4

            eventually(committed, what="the offset of the application")
        for _ in range(6):
            producer.send("lagging-streams", b"value")


def test_lag_is_read_for_groups_of_every_kind(broker: BrokerProcess, tmp_path: Path) -> None:
    address = broker.bootstrap
    lag_of_streams(address, tmp_path)
    with Producer(bootstrap_servers=address) as producer:
        for _ in range(10):
            producer.send("lagging", b"value")
    for protocol in ("classic", "consumer"):
        with Consumer(
            bootstrap_servers=address, group_id=f"lag-{protocol}", group_protocol=protocol,
            auto_offset_reset="earliest", enable_auto_commit=False, max_poll_records=4,
        ) as consumer:  # fmt: skip
            consumer.subscribe(["lagging"])
            eventually(lambda reader=consumer: list(reader.poll(2)), what="records")
            consumer.commit_sync({TopicPartition("lagging", 0): 4})
    with Admin(bootstrap_servers=address) as admin:
        resource = ConfigResource(ConfigResourceType.GROUP, "lag-share")
        admin.incremental_alter_configs(
            {resource: [AlterConfigOp("share.auto.offset.reset", "earliest")]}
        )
        with ShareConsumer(bootstrap_servers=address, group_id="lag-share") as share:
            share.subscribe(["lagging"])
            eventually(lambda: list(share.poll(2)), what="records of the queue")

        def read() -> dict[str, tuple[str, int]]:
            ends, groups = LagReader(admin, exclude=re.compile("^(?!lag-)")).read()
            lags = LagTracker().observe(ends, groups, 0.0)
            return {each.group_id: (each.kind, each.records) for each in lags}

        found = eventually(lambda: read() if len(read()) == 4 else None, what="four groups")
    assert found["lag-classic"] == ("classic", 6)
    assert found["lag-consumer"] == ("consumer", 6)
    assert found["lag-streams"] == ("streams", 6)
    assert found["lag-share"][0] == "share"
    assert 0 <= found["lag-share"][1] <= 10


# Where the monitor sends alerts.


class _Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs."""

    def handle(self) -> None:
        def say(text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        say("220 ready")
        while line := self.rfile.readline().decode().strip():
            verb = line.split()[0].upper()
            if verb == "DATA":
                say("354 go on")
                text = ""
                while (data := self.rfile.readline().decode()) != ".\r\n":
                    text += data
                self.server.mails.append(text)  # type: ignore[attr-defined]
                say("250 taken")
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("250 fine")


@contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mail) as server:
        server.mails = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], server.mails  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


def test_alerts_go_everywhere(broker: BrokerProcess, tmp_path: Path) -> None:
    webhook = Collector()
    file = tmp_path / "alert.json"
    with mail_server() as (port, mails):
        config = read_config(
            {
                "alerts": {
                    "webhook": {"url": webhook.url},
                    "command": {"run": ["/bin/sh", "-c", f"cat > {file}"]},
                    "email": {"host": "127.0.0.1", "port": port, "from": "a@b", "to": ["c@d"]},
                    "topic": {"name": "alerts"},
                }
            }
        )
        notifier = Notifier(config.targets, {"bootstrap.servers": broker.bootstrap})
        condition = Condition("ConsumerStuck", "critical", "it does not advance",
                              (("consumergroup", "payments"),))  # fmt: skip
        notifier.send([Notice("firing", condition, 1.0, 2.0)])
        notifier.close()
        assert notifier.failures == 0
    webhook.close()
    (alert,) = json.loads(webhook.bodies[0][1])
    assert alert["labels"]["alertname"] == "ConsumerStuck"
    assert alert["labels"]["consumergroup"] == "payments"
    assert json.loads(file.read_text()) == alert
    assert "Subject: [firing] ConsumerStuck" in mails[0]
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="alerted",
                  auto_offset_reset="earliest") as consumer:  # fmt: skip
        consumer.subscribe(["alerts"])
        records = eventually(lambda: list(consumer.poll(5)), what="an alert in the topic")
    assert json.loads(records[0].value) == alert


def test_one_way_that_fails_keeps_no_other_from_being_used(tmp_path: Path) -> None:
    file = tmp_path / "alert.json"
    config = read_config(
        {
            "alerts": {
                "webhook": {"url": f"http://127.0.0.1:{free_port()}"},
                "command": {"run": ["/bin/sh", "-c", f"cat > {file}"]},
            }
        }
    )
    notifier = Notifier(config.targets, {})
    notifier.send([Notice("resolved", Condition("A", "warning", "b"), 1.0, 2.0)])
    assert notifier.failures == 1
    assert json.loads(file.read_text())["status"] == "resolved"
