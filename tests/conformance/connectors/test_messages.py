"""MQTT with mosquitto, syslog with logger and rsyslog, InfluxDB, and redrive."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.connectors.test_http import Target
from moldau.client import Producer
from moldau.connect.api import DataError, RetriableError
from moldau.connect.connectors.influxdb.machine.lines import line
from moldau.connect.connectors.syslog.machine.messages import Frames, parse
from moldau.testing.connect import SinkDriver, SourceDriver
from support.mosquitto import mosquitto_missing, running_mosquitto

MQTT_SOURCE = "io.confluent.connect.mqtt.MqttSourceConnector"
MQTT_SINK = "io.confluent.connect.mqtt.MqttSinkConnector"


@pytest.fixture(scope="module")
def mqtt() -> Iterator[str]:
    if missing := mosquitto_missing():
        pytest.skip(missing)
    with running_mosquitto() as port:
        yield f"tcp://127.0.0.1:{port}"


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.close()


def test_messages_there_and_back(mqtt: str) -> None:
    source_config = {"mqtt.server.uri": mqtt, "mqtt.topics": "sensors/+/temp", "kafka.topic": "k"}
    sink_config = {
        "mqtt.server.uri": mqtt, "topics": "sensors", "mqtt.topic.format": "${topic}/${key}/temp",
    }  # fmt: skip
    with (
        SourceDriver(MQTT_SOURCE, source_config) as source,
        SinkDriver(MQTT_SINK, sink_config) as sink,
    ):
        source.poll()  # Now it is subscribed.
        for number in range(3):
            sink.send("sensors", {"t": number}, key=str(number))
        sink.commit()
        found = source.poll_until(3)
        assert [each.key for each in found] == [f"sensors/{n}/temp" for n in range(3)]
        assert [json.loads(each.value) for each in found] == [{"t": 0}, {"t": 1}, {"t": 2}]
        # Not in Kafka yet, so not acknowledged: they come again.
        source.restart()
        assert [each.key for each in source.poll_until(3)] == [each.key for each in found]
        source.commit()
        sink.send("sensors", "last", key="9")
        sink.commit()
        source.restart()
        # At least once: an acknowledgement may be lost when the connection ends.
        values: list[bytes] = []
        while b"last" not in values:
            values += [each.value for each in source.poll_until(1)]
        assert len(values) <= 2


def test_an_mqtt_broker_that_is_away_is_tried_again() -> None:
    config = {"mqtt.server.uri": "tcp://127.0.0.1:1", "mqtt.topics": "x"}
    with SourceDriver(MQTT_SOURCE, config) as source, pytest.raises(RetriableError):
        source.poll()


@pytest.mark.parametrize("listener", ["UDP", "TCP"])
def test_what_logger_sends_becomes_records(listener: str) -> None:
    if shutil.which("logger") is None:
        pytest.skip("logger of util-linux is not here")
    config = {"syslog.listener": listener, "syslog.port": "0", "topic": "logs"}
    with SourceDriver("SyslogSource", config) as source:
        port: int = source.task.port  # type: ignore[attr-defined]
        for form in ("--rfc5424", "--rfc3164"):
            subprocess.run(
                ["logger", f"--{listener.lower()}", "-n", "127.0.0.1", "-P", str(port), form,
                 "-p", "auth.warning", "-t", "app", "hello there"],
                check=True, timeout=30,
            )  # fmt: skip
        found = [each.value for each in source.poll_until(2)]
    assert sorted(each["type"] for each in found) == ["RFC3164", "RFC5424"]
    for each in found:
        assert (each["facility"], each["level"]) == (4, 4)
        assert (each["appName"], each["message"]) == ("app", "hello there")
        assert each["remoteAddress"] == "127.0.0.1"


@pytest.mark.parametrize("framing", ["traditional", "octet-counted"])
def test_what_rsyslog_forwards_becomes_records(tmp_path: Path, framing: str) -> None:
    if shutil.which("rsyslogd") is None:
        pytest.skip("rsyslogd is not here: apt-get install rsyslog")
    log = tmp_path / "app.log"
    log.write_text("first line\nsecond line\n")
    config = {"syslog.listener": "TCP", "syslog.port": "0", "topic": "logs"}
    with SourceDriver("SyslogSource", config) as source:
        port: int = source.task.port  # type: ignore[attr-defined]
        settings = tmp_path / "rsyslog.conf"
        settings.write_text(
            f'''global(workDirectory="{tmp_path}")
            module(load="imfile")
            input(type="imfile" File="{log}" Tag="app:" Facility="local0" Severity="warning")
            action(type="omfwd" target="127.0.0.1" port="{port}" protocol="tcp"
                   TCP_Framing="{framing}" template="RSYSLOG_SyslogProtocol23Format")'''
        )
        command = ["rsyslogd", "-n", "-f", str(settings), "-i", str(tmp_path / "pid")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            try:
                found = [each.value for each in source.poll_until(2, timeout=60)]
            finally:
                run.terminate()
    assert [each["message"] for each in found] == ["first line", "second line"]
    assert {(each["type"], each["facility"], each["level"]) for each in found} == {
        ("RFC5424", 16, 4)
    }
    assert {each["appName"] for each in found} == {"app"}


def test_syslog_messages_of_the_specification() -> None:
    text = (
        "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 "
        '[exampleSDID@32473 iut="3" eventSource="App \\"x\\""] \ufeffAn application event'
    )
    assert parse(text, year=2003) == {
        "facility": 20, "level": 5, "type": "RFC5424", "version": 1, "date": 1065910455003,
        "host": "mymachine.example.com", "appName": "evntslog", "processId": None,
        "messageId": "ID47", "message": "An application event",
        "structuredData": {"exampleSDID@32473": {"iut": "3", "eventSource": 'App "x"'}},
    }  # fmt: skip
    assert parse("<34>Oct 11 22:14:15 mymachine su[7]: failed", year=2003)["processId"] == "7"
    assert parse("no syslog", year=2003) == {"type": "UNKNOWN", "message": "no syslog"}
    frames = Frames()
    assert frames.take(b"5 hello<13>a") == [b"hello"]
    assert frames.take(b"bc\n<13>d") == [b"<13>abc"]


def test_points_for_influxdb(target: Target) -> None:
    target.answers = [(204, None), (503, None)]
    config = {
        "influxdb.url": target.url, "influxdb.org": "o", "influxdb.bucket": "b", "tags": "room",
        "influxdb.token": "t", "topics": "climate",
    }  # fmt: skip
    with SinkDriver("InfluxDbSink", config) as sink:
        sink.send("climate", {"room": "a b", "t": 20.5, "on": True, "n": 3}, timestamp=1)
        with pytest.raises(RetriableError):
            sink.send("climate", {"room": "a", "t": 1.0}, timestamp=2)
    assert target.requests[0][1] == "/api/v2/write?org=o&bucket=b&precision=ns"
    assert target.bodies[0] == b"climate,room=a\\ b t=20.5,on=true,n=3i 1000000"


def test_lines_of_influxdb_are_quoted() -> None:
    assert line("a,b", {"x y": 'say "hi"', "t=1": "v"}, ["t=1"], None) == (
        'a\\,b,t\\=1=v x\\ y="say \\"hi\\""'
    )
    with pytest.raises(DataError, match="no fields"):
        line("m", {"t": "x"}, ["t"], 1)


def test_dead_letters_go_back_at_most_so_often(moldau_session_broker: Any) -> None:
    servers = moldau_session_broker.bootstrap_servers
    headers = [
        ("__connect.errors.topic", b"orders"), ("__connect.errors.exception.message", b"down"),
        ("own", b"kept"),
    ]  # fmt: skip
    with Producer(bootstrap_servers=servers) as producer:
        producer.send("dead", b"one", key=b"k", headers=headers)
        producer.send("dead", b"two", headers=[*headers, ("__moldau.redrive.count", b"3")])
        producer.send("dead", b"three", headers=[("__connect.errors.topic", b"orders")])
        producer.send("dead", b"four", headers=headers)
        producer.flush()
    config = {
        "redrive.from": "dead", "redrive.bootstrap.servers": servers, "redrive.errors": "down|up",
    }  # fmt: skip
    with SourceDriver("Redrive", config) as source:
        first, second = source.poll_until(2)
        assert (first.topic, first.key, first.value, second.value) == (
            "orders", b"k", b"one", b"four",
        )  # fmt: skip
        assert {header.key: header.value for header in first.headers} == {
            "own": b"kept",
            "__moldau.redrive.count": b"1",
        }
        source.commit()
        source.restart()
        assert source.poll() == []
