"""A broker's MBeans are Apache Kafka's: both run, have the same clients, and list what they have.

What Kafka has and Moldau has not is in `moldau.broker.metrics.absent`, with the reasons.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import pytest

from moldau.broker.metrics.absent import ABSENT
from moldau.client.consumer import Consumer
from moldau.client.producer import Producer
from moldau.metrics.names import parse_mbean
from support.java import run_program
from support.ports import free_port
from support.processes import apache_kafka, kafka_missing, moldau

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

JMX = "-Dcom.sun.management.jmxremote"
#: Kafka has them, but not on a broker without followers and clients that need them.
ELSEWHERE_IN_KAFKA = {
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
    "kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec",
}


def use(bootstrap: str) -> None:
    """A transaction, and a group that reads it and then waits in vain: Kafka has the MBean that
    counts expired fetches from the first one on."""
    with Producer(bootstrap_servers=bootstrap, transactional_id="names") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("names", b"value")
        producer.commit_transaction()
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id="names",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    ) as consumer:
        consumer.subscribe(["names"])
        while not consumer.poll(10):
            pass
        consumer.commit_sync()
        assert not consumer.poll(2)


def names(beans: Iterable[tuple[str, Iterable[str]]]) -> dict[str, set[str]]:
    """Without values of tags: the names, each with the sets of tags that it comes with."""
    found: dict[str, set[str]] = {}
    for bean, attributes in beans:
        domain, properties = parse_mbean(bean)
        if not domain.startswith(("kafka", "org.apache.kafka")):
            continue
        tags = ",".join(sorted(properties.keys() - {"type", "name"}))
        key = f"{domain}:type={properties['type']}"
        if "name" in properties:
            found.setdefault(f"{key},name={properties['name']}", set()).add(tags)
        else:
            for attribute in attributes:
                found.setdefault(f"{key}#{attribute}", set()).add(tags)
    return found


def names_of_kafka(folder: Path) -> dict[str, set[str]]:
    port, rmi = free_port(), free_port()
    broker = apache_kafka(folder)
    broker.command[1:1] = [
        f"{JMX}.port={port}", f"{JMX}.rmi.port={rmi}", f"{JMX}.authenticate=false",
        f"{JMX}.ssl=false", f"{JMX}.host=127.0.0.1", "-Djava.rmi.server.hostname=127.0.0.1",
    ]  # fmt: skip
    with broker:
        use(broker.bootstrap)
        listed = run_program("ListMBeans.java", str(port))
    pairs = (line.split("\t") for line in listed.splitlines())
    return names((bean, attributes.split(",")) for bean, attributes in pairs)


def names_of_moldau(folder: Path) -> dict[str, set[str]]:
    port = free_port()
    with moldau(folder, [f"moldau.metrics.port={port}"]) as broker:
        use(broker.bootstrap)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/jolokia/list", timeout=60) as answer:
            listed = json.load(answer)["value"]
    return names(
        (f"{domain}:{properties}", bean["attr"])
        for domain, beans in listed.items()
        for properties, bean in beans.items()
    )


def is_absent(name: str) -> str | None:
    """The entry of ABSENT that the name falls under."""
    base = name.partition("#")[0]
    for entry in (name, base, base.partition(",name=")[0]):
        if entry in ABSENT:
            return entry
    return None


@pytest.mark.slow("Apache Kafka starts, and a fetch expires on both")
def test_a_broker_has_apache_kafkas_mbeans(tmp_path: Path) -> None:
    theirs, ours = names_of_kafka(tmp_path / "kafka"), names_of_moldau(tmp_path / "moldau")
    missing = {name for name in theirs.keys() - ours.keys() if is_absent(name) is None}
    assert not missing, "neither there nor in absent.py"
    invented = ours.keys() - theirs.keys() - ELSEWHERE_IN_KAFKA
    assert not invented, "under Kafka's domains, but Kafka has no such MBean"
    used = {is_absent(name) for name in theirs.keys() - ours.keys()}
    assert not ABSENT.keys() - used, "in absent.py, but there or unknown to Kafka"
    # Tags, too: dashboards select by them.
    for name in theirs.keys() & ours.keys():
        assert ours[name] <= theirs[name], name
    # A rough figure for the docs: most of what Kafka has is here.
    print(f"{len(theirs.keys() & ours.keys())} of Kafka's {len(theirs)} names are here")
