"""What the proxy serves at /metrics, after devices have used it."""

from __future__ import annotations

import urllib.request

from moldau.metrics.parsing import parse
from support.http_service import running
from support.mqtt import Device, devices, new_name, port_of, proxy_of
from support.processes import BrokerProcess


def test_clients_and_messages_are_counted(broker: BrokerProcess) -> None:
    topic = new_name("counted")
    with running(lambda: proxy_of(broker.bootstrap, moldau_metrics_port="0")) as service:
        device = Device(new_name("counted"))
        with devices(port_of(service.url), device):
            device.subscribe(f"{topic}/#", 1)
            for _ in range(3):
                device.publish(f"{topic}/a", b"12345", 1)
            for _ in range(3):
                device.next()
            with urllib.request.urlopen(service.service.metrics_url, timeout=20) as response:
                page = response.read().decode()

    found = {name: value for name, _, value in parse(page)}
    assert found["moldau_mqtt_connections"] == 1
    assert found["moldau_mqtt_sessions"] == 1
    assert found["moldau_mqtt_clients_connected_total"] == 1
    assert found["moldau_mqtt_messages_received_total"] == 3
    assert found["moldau_mqtt_messages_sent_total"] == 3
    assert found["moldau_mqtt_packets_received_total"] >= 5
    assert found["moldau_mqtt_bytes_received_total"] > 3 * len(topic)
