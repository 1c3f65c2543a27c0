"""Names of topics; tests/conformance/mirror compares more of them with Java's."""

from __future__ import annotations

import pytest

from moldau.mirror.machine.policies import DefaultReplicationPolicy, IdentityReplicationPolicy


def test_the_default_policy_puts_the_cluster_before_the_name() -> None:
    policy = DefaultReplicationPolicy()
    assert policy.format_remote_topic("A", "orders") == "A.orders"
    assert policy.topic_source("A.orders") == "A"
    assert policy.upstream_topic("B.A.orders") == "A.orders"
    assert policy.original_topic("B.A.orders") == "orders"
    assert policy.topic_source("orders") is None


def test_a_separator_is_used_for_internal_topics_too_unless_it_is_turned_off() -> None:
    policy = DefaultReplicationPolicy()
    policy.configure({"replication.policy.separator": "_"})
    assert policy.format_remote_topic("A", "orders") == "A_orders"
    assert policy.checkpoints_topic("A") == "A_checkpoints_internal"
    policy.configure(
        {
            "replication.policy.separator": "_",
            "replication.policy.internal.topic.separator.enabled": "false",
        }
    )
    assert policy.checkpoints_topic("A") == "A.checkpoints.internal"


def test_the_identity_policy_renames_heartbeats_only() -> None:
    policy = IdentityReplicationPolicy()
    policy.configure({"source.cluster.alias": "A"})
    assert policy.format_remote_topic("A", "orders") == "orders"
    assert policy.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert policy.topic_source("orders") == "A"
    assert policy.original_topic("B.A.heartbeats") == "heartbeats"


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        (".hidden", True),
        ("mm2-offset-syncs.B.internal", True),
        ("mm2-offset-map.A.internal", True),
        ("A.checkpoints.internal", True),
        ("orders.internal", False),
    ],
)
def test_internal_topics(topic: str, internal: bool) -> None:
    assert DefaultReplicationPolicy().is_internal_topic(topic) is internal
