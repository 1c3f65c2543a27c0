"""A secured broker in a test, in one line."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer as ConfluentProducer

from moldau.client import Producer
from moldau.client.errors import KafkaError
from moldau.testing import AsyncBroker, Broker, Cluster


@pytest.mark.moldau(security="SSL")
def test_a_broker_with_tls(moldau_broker: Broker) -> None:
    with Producer(moldau_broker.client_config) as producer:
        producer.send("orders", value=b"first").result(30)
    assert moldau_broker.certificates is not None
    other = ConfluentProducer(
        {
            "bootstrap.servers": moldau_broker.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(moldau_broker.certificates.ca),
        }
    )
    other.produce("orders", b"second")
    assert other.flush(30) == 0
    assert [record.value for record in moldau_broker.records("orders", count=2)] == [
        b"first",
        b"second",
    ]
    with (
        Producer(bootstrap_servers=moldau_broker.bootstrap_servers, max_block_ms=500) as plain,
        pytest.raises(KafkaError),
    ):
        plain.send("orders", value=b"in the clear").result(30)


def test_a_cluster_with_tls_survives_a_node() -> None:
    with Cluster(security="SSL", topics={"orders": 3}) as cluster:
        with Producer(cluster.client_config) as producer:
            producer.send("orders", value=b"first").result(30)
            cluster.nodes[1].kill()
            producer.send("orders", value=b"second").result(30)
        assert len(cluster.records("orders", count=2)) == 2


def test_from_asyncio() -> None:
    async def main() -> None:
        async with AsyncBroker(security="SSL") as broker:
            assert broker.client_config["security.protocol"] == "SSL"

    asyncio.run(main())


def test_another_security_is_refused() -> None:
    with pytest.raises(ValueError, match="use PLAINTEXT or SSL"):
        Broker(security="KERBEROS")  # type: ignore[arg-type]
