"""A worker's topics of state."""

from __future__ import annotations

from moldau.client import NewTopic
from moldau.connect.runtime.topic_log import TopicLog
from moldau.testing import Broker


def test_a_log_waits_until_brokers_know_its_new_topic() -> None:
    """Kafka's brokers know a topic a moment after its creation: a worker that took it as one
    without partitions never read its own configurations."""
    applied: list[tuple[bytes | None, bytes | None]] = []
    with Broker() as cluster:
        to = {"bootstrap.servers": cluster.bootstrap_servers}
        log = TopicLog(
            "configs",
            lambda key, value, offset: applied.append((key, value)),
            producer=to,
            consumer={**to, "client.id": "reader"},
            admin=to,
            create=NewTopic("configs", 1, 1, configs={"cleanup.policy": "compact"}),
        )
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        with cluster.fail("Metadata", error=unknown, client_id="reader", times=2) as faults:
            try:
                log.start()
                assert faults.hits == 2
                log.write([("connector-a", b"{}")])
                log.read_to_end()
            finally:
                log.stop()
    assert applied == [(b"connector-a", b"{}")]
