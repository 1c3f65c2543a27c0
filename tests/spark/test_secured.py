"""A pipeline on a secured broker: its source, sink, registry and control loop log in over TLS.

One deployment with everything on that might show a secret: the event log, plans, logs, the registry
and the command lines of all processes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cli.main import main
from moldau.client import Consumer, Producer
from moldau.pipelines import daemon
from moldau.spark import ConnectServer, session
from moldau.testing.certificates import make_certificates
from spark.running import SECONDS_MAX, patiently
from support.processes import ROOT, BrokerProcess, kafka_missing
from support.secured import jaas, secured_kafka, secured_moldau
from support.waiting import eventually

PASSWORD = "alice-secret"
PIPELINE = """\
name: doubled
source: {topic: secured-in, schema: "id INT", startingOffsets: earliest}
steps:
  - sql: SELECT id * 2 AS id FROM input
sink: {topic: secured-out, key: cast(id AS STRING)}
dead_letter: secured-dead-letter
trigger: 200 milliseconds
"""


class Secured:
    """A broker with SASL_SSL, and a client's properties that hold no password themselves."""

    def __init__(self, broker: BrokerProcess, folder: Path, ca: Path) -> None:
        secret = folder / "secret.properties"
        secret.write_text(f"jaas={jaas('PLAIN', 'alice', PASSWORD)}\n")
        secret.chmod(0o600)
        self.config = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"${{file:{secret}:jaas}}",
            "config.providers": "file",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(ca),
        }
        self.properties = folder / "client.properties"
        self.properties.write_text("".join(f"{k}={v}\n" for k, v in self.config.items()))

    def produce(self, topic: str, *values: bytes) -> None:
        with Producer(self.config) as producer:
            for value in values:
                producer.send(topic, value=value)

    def read(self, topic: str) -> list[bytes]:
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        found: list[bytes] = []
        with Consumer(self.config | settings) as consumer:
            place = (topic, 0)
            consumer.assign([place])
            end = next(iter(consumer.end_offsets([place]).values()))
            while consumer.position(place) < end:
                found += [record.value or b"" for record in consumer.poll(1.0)]
        return found


def extra(folder: Path) -> tuple[dict[str, str], Path]:
    """The only listener of the broker has TLS too, whatever it is called."""
    certificates = make_certificates(folder / "certificates")
    protocols = {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_SSL"}
    return certificates.node_properties | protocols | {"ssl.client.auth": "none"}, certificates.ca


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    settings, ca = extra(folder)
    with secured_moldau(folder, settings) as broker:
        yield Secured(broker, folder, ca)


@pytest.fixture
def deployment(tmp_path: Path, small: dict[str, str]) -> Iterator[Path]:
    folder = tmp_path / "spark"
    shown = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    server = ConnectServer(folder, master="local[2]", conf=small | shown, connector="moldau")
    folder.mkdir()
    server.remember()
    try:
        yield folder
    finally:
        daemon.stop(folder, timeout=SECONDS_MAX)
        server.stop()


def holding(folder: Path, secret: str) -> set[str]:
    """The files under a folder that contain a secret."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    }


def command_lines() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


@pytest.mark.long("a Spark server of its own; batches with the same settings are below")
@pytest.mark.slow("a Spark server starts")
def test_a_pipeline_with_sasl_and_tls_leaves_no_password_behind(
    secured: Secured, deployment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "doubled.yaml").write_text(PIPELINE)
    secured.produce("secured-in", b'{"id": 1}', b"no JSON", b'{"id": 2}')
    words = ("--data", str(deployment), "--command-config", str(secured.properties))
    start = ("start", str(tmp_path / "doubled.yaml"), "--timeout", str(SECONDS_MAX))
    assert main(["pipelines", *words, *start]) == 0
    eventually(
        lambda: (
            sorted(map(json.loads, secured.read("secured-out")), key=str) == [{"id": 2}, {"id": 4}]
        ),
        what="both results",
        seconds_max=SECONDS_MAX,
    )
    assert secured.read("secured-dead-letter") == [b"no JSON"]
    # The deployment knows its cluster now.
    assert main(["pipelines", "--data", str(deployment), "show", "doubled", "--json"]) == 0
    assert PASSWORD not in capsys.readouterr().out

    # A password in an option itself is redacted wherever Spark writes requests down.
    inline = secured.config | {"sasl.jaas.config": jaas("PLAIN", "alice", PASSWORD)}
    spark = session(deployment, start=False)
    assert written_and_read(spark, inline, "secured-inline", "moldau") == {"a", "b"}
    spark.stop()

    token = ConnectServer(deployment).token
    assert token is not None
    assert holding(deployment, PASSWORD) == {"secrets/doubled/kafka.sasl.jaas.config"}
    assert (deployment / "secrets" / "doubled").stat().st_mode & 0o077 == 0
    assert holding(deployment, token) == {"token"}
    shown = command_lines()
    assert PASSWORD not in shown
    assert token not in shown
    assert not [value for value in secured.read("__moldau_pipelines") if PASSWORD.encode() in value]

    assert main(["pipelines", "--data", str(deployment), "delete", "doubled"]) == 0
    assert holding(deployment, PASSWORD) == set()


def written_and_read(spark: object, config: dict[str, str], topic: str, connector: str) -> set[str]:
    """A batch through `format("moldau")` and back by a connector, with `kafka.*` options."""
    options = {f"kafka.{name}": value for name, value in config.items()}
    if connector == "kafka":
        name = "org.apache.kafka.common.config.provider.FileConfigProvider"
        options["kafka.config.providers.file.class"] = name
    rows = spark.sql("SELECT 'a' AS value UNION ALL SELECT 'b'")  # type: ignore[attr-defined]
    patiently(
        lambda: rows.write.format("moldau").mode("append").options(**options, topic=topic).save()
    )
    reader = spark.read.format(connector).options(**options, subscribe=topic)  # type: ignore[attr-defined]
    found = patiently(lambda: reader.load().selectExpr("string(value) AS value").collect())
    return {row.value for row in found}


def test_batches_by_options(secured: Secured, server: ConnectServer) -> None:
    spark = session(server)
    assert written_and_read(spark, secured.config, "secured-batch", "moldau") == {"a", "b"}


@pytest.mark.long("starts Apache Kafka; the same batches run on our broker above")
@pytest.mark.slow("Apache Kafka starts")
def test_batches_on_apache_kafka(
    tmp_path: Path, server: ConnectServer, connectors: tuple[str, ...]
) -> None:
    if missing := kafka_missing():
        pytest.skip(missing)
    settings, ca = extra(tmp_path)
    with secured_kafka(tmp_path, settings) as broker:
        config = Secured(broker, tmp_path, ca).config
        spark = session(server)
        for connector in connectors:
            topic = f"secured-{connector}"
            assert written_and_read(spark, config, topic, connector) == {"a", "b"}


TEXT = (ROOT / "docs" / "security-spark.md").read_text()


def test_the_python_of_the_docs(
    secured: Secured,
    server: ConnectServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", server.session_url)
    given = secured.config
    changes = {
        "127.0.0.1:9094": given["bootstrap.servers"],
        "SCRAM-SHA-512": given["sasl.mechanism"],
        "${file:/etc/moldau/secret.properties:jaas}": given["sasl.jaas.config"],
        "/etc/moldau/ca.pem": given["ssl.truststore.location"],
    }
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    for old, new in changes.items():
        assert old in code
        code = code.replace(old, new)
    exec(code, {})
    assert "|   hello|" in capsys.readouterr().out
