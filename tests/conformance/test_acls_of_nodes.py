"""ACLs hold on every node of a cluster, and on the controller for the client that asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.client import Admin
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from moldau.testing import Cluster
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import CreateTopicsRequest
from support.asking import describe_topic
from support.principals import RESTRICTED_ADDRESS
from support.raw import RawConnection
from support.waiting import eventually

CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node",
    "principal.builder.class": "support.principals.ByAddress",
}
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config=CONFIG, topics={"orders": 3}) as made:
        yield made


def binding(
    operation: AclOperation,
    name: str,
    pattern: PatternType = PatternType.LITERAL,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(ResourceType.TOPIC, name, pattern),
        AccessControlEntry("User:restricted", "*", operation, permission),
    )


def restricted(cluster: Cluster) -> dict[int, RawConnection]:
    """By node."""
    return {
        node.id: RawConnection(int(node.address.rpartition(":")[2]), source=RESTRICTED_ADDRESS)
        for node in cluster.nodes.values()
    }


def test_a_change_holds_on_every_node(cluster: Cluster) -> None:
    connections = restricted(cluster)

    def codes() -> set[int]:
        return {describe_topic(each, "orders").error_code for each in connections.values()}

    def all_are(code: ErrorCode) -> bool:
        return codes() == {code}

    assert codes() == {DENIED}
    with Admin(cluster.client_config) as admin:
        allowed = binding(AclOperation.READ, "orders")
        admin.create_acls([allowed])
        eventually(lambda: all_are(ErrorCode.NONE), what="allowed on all nodes")
        refused = binding(AclOperation.DESCRIBE, "orders", permission=AclPermissionType.DENY)
        admin.create_acls([refused])
        eventually(lambda: all_are(DENIED), what="denied on all nodes")
        admin.delete_acls([refused.to_filter()])
        eventually(lambda: all_are(ErrorCode.NONE), what="allowed on all nodes")
        admin.delete_acls([allowed.to_filter()])
        eventually(lambda: all_are(DENIED), what="denied on all nodes")


def test_a_forwarded_request_has_the_principal_of_its_client(cluster: Cluster) -> None:
    """Nodes are super users: with their own principal everything would be allowed."""
    connections = restricted(cluster)
    assert cluster.controller().id in connections

    def create(node_id: int) -> int:
        topic = CreateTopicsRequest.CreatableTopic(
            name=f"own-{node_id}", num_partitions=1, replication_factor=-1
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        answer = connections[node_id].call(ApiKey.CREATE_TOPICS, 7, request)
        return int(answer.topics[0].error_code)

    assert {create(node_id) for node_id in connections} == {DENIED}
    with Admin(cluster.client_config) as admin:
        admin.create_acls([binding(AclOperation.CREATE, "own-", PatternType.PREFIXED)])
    # The controller decides, and has had the ACLs since before the answer.
    assert {create(node_id) for node_id in connections} == {0}
    assert set(cluster.topics) == {"orders", *(f"own-{each}" for each in connections)}
