"""A row of the table: a request, and the permissions that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from moldau.wire.acls import AclOperation as Op
from moldau.wire.acls import ResourceType
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.records import encode_batch

TOPIC, GROUP, TXN, CLUSTER = "t", "g", "x", "kafka-cluster"
NO_PARTITION = 99
NO_PRODUCER = 424_242
NAMES = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TXN,
    ResourceType.CLUSTER: CLUSTER,
}
HIDDEN = ErrorCode.NONE
BATCH = encode_batch([(None, b"value", 1_700_000_000_000, [])])


class Permission(NamedTuple):
    operation: Op
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


def topic(operation: Op) -> Permission:
    return Permission(operation, ResourceType.TOPIC)


def group(operation: Op) -> Permission:
    return Permission(operation, ResourceType.GROUP)


def cluster(operation: Op) -> Permission:
    return Permission(operation, ResourceType.CLUSTER)


def txn(operation: Op) -> Permission:
    return Permission(operation, ResourceType.TRANSACTIONAL_ID)


@dataclass(frozen=True)
class Row:
    """One request. `needs` are all permissions without which it fails, each with the error; HIDDEN
    if something is left out of the response instead. `free`: anybody may send it."""

    key: ApiKey
    make: Callable[[UUID], Message]
    """Takes the id of the topic."""
    version: int
    needs: tuple[tuple[Permission, ErrorCode], ...] = ()
    same: bool = True
    """Kafka's answer is the same, also where it is allowed."""

    def __str__(self) -> str:
        return f"{self.key.name} v{self.version}"


T29, G30, C31, X53 = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


def row(
    key: ApiKey,
    version: int,
    request: Message | Callable[[UUID], Message],
    *needs: tuple[Permission, ErrorCode],
    same: bool = True,
) -> Row:
    make = request if callable(request) else lambda _: request
    return Row(key, make, version, needs, same)


READ_GROUP, DESCRIBE_GROUP = (group(Op.READ), G30), (group(Op.DESCRIBE), G30)
DESCRIBE_TOPIC = (topic(Op.DESCRIBE), T29)
CLUSTER_ACTION = (cluster(Op.CLUSTER_ACTION), C31)
