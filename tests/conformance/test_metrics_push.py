"""Metrics that a broker sends somewhere by itself: OTLP with a login over TLS, and its history."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from moldau.metrics.otlp import decode_metrics
from moldau.monitoring.history import read_history
from support.certificates import Authority
from support.cli import moldau_cli
from support.processes import BrokerProcess, moldau
from support.waiting import eventually

USER, PASSWORD = "metrics", "s3cret:with colon"


class Receiver:
    """As much of an OTLP collector as decides who may push: TLS with client certificates, a
    password, a tenant."""

    def __init__(self, authority: Authority) -> None:
        self.taken: list[bytes] = []
        self.refused = 0
        receiver = self
        login = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                headers = (self.headers["Authorization"], self.headers["X-Scope-OrgID"])
                if headers == (login, "team a"):
                    receiver.taken.append(data)
                    self.send_response(200)
                else:
                    receiver.refused += 1
                    self.send_response(401)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.issue("collector", "/CN=collector").pem)
        context.load_verify_locations(authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}/v1/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def receiver(authority: Authority) -> Iterator[Receiver]:
    made = Receiver(authority)
    yield made
    made.close()


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, receiver: Receiver
) -> Iterator[BrokerProcess]:
    client = authority.issue("broker", "/CN=broker")
    settings = [
        f"moldau.metrics.otlp.endpoint={receiver.url}",
        "moldau.metrics.otlp.interval.ms=300",
        "moldau.metrics.otlp.headers=X-Scope-OrgID=team%20a",
        f"moldau.metrics.otlp.username={USER}",
        f"moldau.metrics.otlp.password={PASSWORD}",
        f"moldau.metrics.otlp.ssl.ca.location={authority.certificate}",
        f"moldau.metrics.otlp.ssl.certificate.location={client.pem}",
        "moldau.metrics.history.interval.ms=200",
        "moldau.metrics.history.slots=3",
    ]
    with moldau(tmp_path_factory.mktemp("broker"), settings) as process:
        yield process


def test_otlp_is_pushed_with_a_login_over_tls(broker: BrokerProcess, receiver: Receiver) -> None:
    data = eventually(lambda: receiver.taken and receiver.taken[-1], what="a push")
    names = {point.name for point in decode_metrics(data)}
    assert "kafka.server.ReplicaManager.LeaderCount" in names
    assert receiver.refused == 0
    assert PASSWORD not in broker.output()


def test_a_broker_writes_its_own_history(broker: BrokerProcess) -> None:
    cluster = {"bootstrap.servers": broker.bootstrap}

    def slots() -> list[dict[str, object]]:
        found = read_history(cluster)
        return found if len(found) == 3 else []

    readings = eventually(slots, what="three slots are full")
    assert {each["node"] for each in readings} == {"node 1"}
    values = readings[-1]["values"]
    assert isinstance(values, dict)
    assert values["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    later = eventually(
        lambda: (read := read_history(cluster))[0]["time"] > readings[-1]["time"] and read,
        what="the slots are used again",
    )
    assert len(later) == 3
    shown = moldau_cli(
        "metrics", "history", "--bootstrap-server", broker.bootstrap, "leadercount"
    ).out
    assert "node 1 kafka_server_replicamanager_leadercount" in shown


def test_files_for_tls_that_are_missing_are_named(tmp_path: Path) -> None:
    broker = moldau(
        tmp_path,
        [
            "moldau.metrics.otlp.endpoint=https://127.0.0.1:1/v1/metrics",
            f"moldau.metrics.otlp.ssl.ca.location={tmp_path / 'nothing.pem'}",
        ],
    )
    with pytest.raises(Exception, match=r"otlp\.ssl\.ca\.location: there is no file"), broker:
        pass
