"""MirrorMaker 2's properties."""

from __future__ import annotations

import pytest

from moldau.config import ConfigError
from moldau.mirror.machine.settings import FlowName, flows_of
from moldau.mirror.plugins import Plugins

BASE = {"clusters": "A, B", "A.bootstrap.servers": "a:1", "B.bootstrap.servers": "b:2"}
FORTH, BACK = FlowName("A", "B"), FlowName("B", "A")


def test_a_flow_that_is_not_enabled_sends_heartbeats() -> None:
    flows = flows_of({**BASE, "A->B.enabled": "true"})
    assert flows[FORTH]["enabled"] is True
    assert flows[BACK]["enabled"] is False
    assert list(flows_of({**BASE, "A->B.enabled": "true", "emit.heartbeats.enabled": "false"})) == [
        FORTH
    ]


def test_the_more_specific_setting_counts() -> None:
    flows = flows_of(
        {
            **BASE,
            "A->B.enabled": "true",
            "topics": "a.*",
            "A->B.topics": "b.*",
            "offset.lag.max": "7",
        }
    )
    assert flows[FORTH]["topics"] == ("b.*",)
    assert flows[FORTH]["offset.lag.max"] == 7


def test_security_is_per_cluster_with_top_level_defaults() -> None:
    flow = flows_of(
        {
            **BASE,
            "A->B.enabled": "true",
            "security.protocol": "SSL",
            "A.security.protocol": "SASL_SSL",
            "A.consumer.fetch.min.bytes": "10",
            "B.producer.compression.type": "zstd",
            "A->B.consumer.isolation.level": "read_committed",
        }
    )[FORTH]
    consumer = flow.client("source", "consumer")
    assert consumer["security.protocol"] == "SASL_SSL"
    assert consumer["bootstrap.servers"] == "a:1"
    assert consumer["fetch.min.bytes"] == "10"
    assert consumer["isolation.level"] == "read_committed"
    producer = flow.client("target", "producer")
    assert producer["security.protocol"] == "SSL"
    assert producer["compression.type"] == "zstd"
    assert "fetch.min.bytes" not in producer


def test_exactly_once_is_a_setting_of_the_target() -> None:
    flows = flows_of({**BASE, "A->B.enabled": "true", "B.exactly.once.source.support": "enabled"})
    assert flows[FORTH].is_exactly_once
    assert not flows[BACK].is_exactly_once


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"clusters": ""}, "clusters=A,B"),
        ({"clusters": "A,A"}, "twice"),
        ({"A.bootstrap.servers": ""}, "A.bootstrap.servers"),
        ({"A->B.offset.lag.max": "many"}, "offset.lag.max"),
        ({"A->B.offset-syncs.topic.location": "moon"}, "offset-syncs.topic.location"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace(".", r"\.")):
        flows_of({**BASE, "A->B.enabled": "true", **change})


@pytest.mark.parametrize(
    ("topic", "taken"),
    [
        ("orders", True),
        ("heartbeats", True),
        ("B.orders", False),
        ("C.B.orders", False),
        ("C.orders", True),
        ("__consumer_offsets", False),
        ("mm2-offsets.B.internal", False),
        ("x.replica", False),
    ],
)
def test_topics_of_a_flow(topic: str, taken: bool) -> None:
    plugins = Plugins(flows_of({**BASE, "A->B.enabled": "true"})[FORTH])
    assert plugins.selection.takes(topic) is taken


def test_a_policy_of_ones_own_is_a_python_class() -> None:
    name = f"{__name__}.Dashes"
    flow = flows_of({**BASE, "A->B.enabled": "true", "replication.policy.class": name})[FORTH]
    assert Plugins(flow).selection.remote("orders") == "from-A-orders"
    with pytest.raises(ConfigError, match="cannot be loaded"):
        Plugins(
            flows_of({**BASE, "A->B.enabled": "true", "replication.policy.class": "no.Such"})[FORTH]
        )


class Dashes:
    """Only what the test needs of a policy."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"from-{source_alias}-{topic}"
