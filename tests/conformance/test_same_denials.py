"""The same requests with the same ACLs to Moldau and to Apache Kafka: denied alike, field by field.

Over PLAINTEXT everybody is User:ANONYMOUS, so clients differ by their address: ACLs allow
everything to 127.0.0.1, from where the nodes call one another and the tests administer, and the
restricted client connects from 127.0.0.2.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

import pytest

from moldau.wire.acls import AclOperation as Op
from moldau.wire.acls import AclPermissionType, PatternType, ResourceType
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)
from support.both import IGNORED, Both, Side, coordinator_ready, prepare
from support.denials import BROKER_ROWS, GROUP, NAMES, TOPIC, TXN, Permission, Row
from support.processes import apache_kafka, kafka_missing, moldau
from support.processes import kafka_properties as single_node
from support.raw import RawConnection
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Until there are ACLs: Kafka's node could not register with its own controller.
    "allow.everyone.if.no.acl.found": "true",
}
#: Each broker's own.
DIFFERENT = IGNORED | {
    "cluster_id", "controller_id", "documentation", "host", "port", "session_id", "log_dir",
    "acquisition_lock_timeout_ms",
}  # fmt: skip
#: Apache Kafka 4.3 sends no response where it is denied.
UNANSWERED = {ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS}
SECONDS_MAX = 5.0
CALL_SECONDS_MAX = 20.0
TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
    ResourceType.USER,
    ResourceType.DELEGATION_TOKEN,
)


class Guarded(Side):
    """The client comes from its own address."""

    def connection(self, speaker: str) -> RawConnection:
        if speaker not in self._connections:
            source = CLIENT if speaker == "client" else None
            self._connections[speaker] = RawConnection(
                self.port, source=source, timeout=CALL_SECONDS_MAX
            )
        return self._connections[speaker]

    def reconnect(self) -> None:
        """Fetch sessions and closed connections must not matter to the next case."""
        self._connections.pop("client").close()


Acl = CreateAclsRequest.AclCreation


def acl(operation: Op, kind: ResourceType, name: str, host: str) -> Acl:
    return Acl(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:ANONYMOUS",
        host=host,
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )


def create(side: Side, acls: list[Acl]) -> None:
    answer = side.connection("admin").call(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations=acls))
    assert {each.error_code for each in answer.results} == {0}, answer


def granted(side: Side, host: str = CLIENT) -> int:
    request = DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, host_filter=host, operation=1,
        resource_name_filter=None, principal_filter=None,
        permission_type=1,
    )  # fmt: skip
    answer = side.connection("admin").call(ApiKey.DESCRIBE_ACLS, 3, request)
    return sum(len(each.acls) for each in answer.resources)


def grant(side: Side, permissions: Iterable[Permission], host: str = CLIENT) -> None:
    """Exactly these to the client."""
    everything = DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=1, pattern_type_filter=1, host_filter=host, operation=1,
        resource_name_filter=None, principal_filter=None,
        permission_type=1,
    )  # fmt: skip
    answer = side.connection("admin").call(
        ApiKey.DELETE_ACLS, 3, DeleteAclsRequest(filters=[everything])
    )
    assert answer.filter_results[0].error_code == 0
    wanted = [
        acl(each.operation, each.resource_type, NAMES[each.resource_type], host)
        for each in permissions
    ]
    if wanted:
        create(side, wanted)
    eventually(lambda: granted(side, host) == len(wanted), what="the ACLs are in force")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = [
        f"{key}={value}"
        for key, value in (single_node(ours, 0) | SETTINGS).items()
        if key.startswith(("offsets.", "transaction.", "group.", "share.", "auth", "allow"))
    ]
    with moldau(ours, overrides) as first, apache_kafka(kafkas, SETTINGS) as second:
        sides = Guarded(first.port, DIFFERENT), Guarded(second.port, DIFFERENT)
        for side in sides:
            prepare_side(side)
        yield Both(*sides)
        for side in sides:
            side.close()


def prepare_side(side: Side) -> None:
    prepare(side, [(TOPIC, 1), ("other", 1)])
    for key, kind in ((TXN, 1), (GROUP, 0)):
        eventually(lambda key=key, kind=kind: coordinator_ready(side, key, kind), what=key)
    commit = OffsetCommitRequest(
        group_id=GROUP,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=5, committed_metadata=""
                    )
                ],
            )
            for name in (TOPIC, "other")
        ],
    )
    answer = side.connection("observer").call(ApiKey.OFFSET_COMMIT, 9, commit)
    assert answer.topics[0].partitions[0].error_code == 0
    whole = [
        acl(Op.ALL, kind, "kafka-cluster" if kind == ResourceType.CLUSTER else "*", ADMIN)
        for kind in TYPES
    ]
    create(side, whole)
    # Everybody may do everything until then.
    eventually(lambda: granted(side, ADMIN) == len(whole), what="the ACLs are in force")


def every_permission() -> list[Permission]:
    return list(dict.fromkeys(each for row in BROKER_ROWS for each, _ in row.needs))


def grants() -> list[tuple[str, tuple[Permission, ...]]]:
    """Nothing, each permission alone, all but each, and all."""
    each = every_permission()
    return [
        ("nothing", ()),
        *((f"only {one}", (one,)) for one in each),
        *((f"all but {one}", tuple(other for other in each if other != one)) for one in each),
        ("all", tuple(each)),
    ]


@pytest.mark.parametrize(
    "permissions", [each for _, each in grants()], ids=[name for name, _ in grants()]
)
def test_denied_alike(both: Both, permissions: tuple[Permission, ...]) -> None:
    for side in both.sides:
        grant(side, permissions)
    missing = set(every_permission()) - set(permissions)
    problems = []
    for row in BROKER_ROWS:
        if row.key in UNANSWERED:
            continue
        # What is allowed is compared by other tests, as far as it can be.
        if row.same or missing & {need for need, _ in row.needs}:
            problem = compared(both, row)
            if problem is not None:
                problems.append(f"{row}: {problem}")
    assert not problems, "\n".join(problems)


def compared(both: Both, row: Row) -> str | None:
    """How the answers differ; Kafka's parts learn of ACLs one after another, so try again."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        answers = [answer_of(side, row) for side in both.sides]
        if answers[0] == answers[1]:
            return None
        if time.monotonic() > deadline:
            return f"\n  Moldau: {answers[0]}\n  Kafka:  {answers[1]}"


def answer_of(side: Side, row: Row) -> object:
    topic_id: UUID = side.topic_ids[TOPIC]
    connection = side.connection("client")
    try:
        return side.comparable(connection.call(row.key, row.version, row.make(topic_id)))
    except (ConnectionError, TimeoutError) as error:
        side.reconnect()  # type: ignore[attr-defined]
        return f"no answer: {type(error).__name__}"


ODD_ACLS: list[dict[str, Any]] = [
    {"resource_type": 8}, {"resource_type": -1}, {"resource_pattern_type": 5},
    {"operation": 16}, {"operation": -1}, {"permission_type": 4},
    {"principal": "alice"}, {"principal": ""}, {"resource_name": ""},
    {"resource_type": ResourceType.CLUSTER, "resource_name": "other"},
    # Allowed: nobody checks the host, and operations of other types of resources do nothing.
    {"principal": "User:"}, {"host": "no host"}, {"operation": Op.IDEMPOTENT_WRITE},
]  # fmt: skip
ODD_FILTERS: list[dict[str, int]] = [
    {}, {"resource_type_filter": 9}, {"pattern_type_filter": 5}, {"operation": 99},
    {"permission_type": 9},
]  # fmt: skip


def test_odd_acls_are_answered_alike(both: Both) -> None:
    """To the last message, which clients print."""
    nobody = {"resource_name_filter": None, "principal_filter": None, "host_filter": "no host"}
    anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "permission_type": 1}
    answers: list[list[object]] = []
    for side in both.sides:
        admin = side.connection("admin")
        made = [acl(Op.READ, ResourceType.TOPIC, "odd", "10.1.1.1") for _ in ODD_ACLS]
        for each, changes in zip(made, ODD_ACLS, strict=True):
            for name, value in changes.items():
                setattr(each, name, value)
        created = admin.call(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations=made))
        filters: list[dict[str, Any]] = [
            {"operation": 1, **anything, **nobody, **each} for each in ODD_FILTERS
        ]
        eventually(lambda side=side: granted(side, "no host") == 1, what="the ACL is in force")
        described = [
            admin.call(ApiKey.DESCRIBE_ACLS, 3, DescribeAclsRequest(**each)) for each in filters
        ]
        deleted = admin.call(
            ApiKey.DELETE_ACLS,
            3,
            DeleteAclsRequest(
                filters=[DeleteAclsRequest.DeleteAclsFilter(**each) for each in filters]
            ),
        )
        answers.append(
            [
                *((each.error_code, each.error_message) for each in created.results),
                *((e.error_code, e.error_message, len(e.resources)) for e in described),
                *(
                    (e.error_code, e.error_message, len(e.matching_acls))
                    for e in deleted.filter_results
                ),
            ]
        )
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("key", "request_type"),
    [
        (ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest),
        (ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest),
        (ApiKey.STREAMS_GROUP_DESCRIBE, StreamsGroupDescribeRequest),
    ],
)
def test_denied_groups_have_the_same_message(
    both: Both, key: ApiKey, request_type: type[Any]
) -> None:
    messages = []
    for side in both.sides:
        grant(side, ())
        request = request_type(group_ids=[GROUP])
        answer = side.connection("client").call(key, API_BY_KEY[key].max_version, request)
        (group,) = answer.groups
        messages.append((group.error_code, group.error_message))
    assert messages[0] == messages[1] == (ErrorCode.GROUP_AUTHORIZATION_FAILED, None)


RANDOM_ROUNDS = 20


def random_acl(chance: random.Random) -> Acl:
    kind = chance.choice((ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.CLUSTER))
    name = "kafka-cluster"
    if kind == ResourceType.TOPIC:
        name = chance.choice((TOPIC, TOPIC[:2], "other", "o", "*"))
    made = acl(chance.choice(list(Op)[2:13]), kind, name, chance.choice((CLIENT, "127.0.0.3")))
    made.principal = chance.choice(("User:ANONYMOUS", "User:*", "User:bob", "Group:ANONYMOUS"))
    if kind == ResourceType.TOPIC:
        made.resource_pattern_type = chance.choice((PatternType.LITERAL, PatternType.PREFIXED))
    made.permission_type = chance.choice(
        (AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY)
    )
    return made


def allowed_operations(side: Side) -> object:
    """What the client may do with each topic and the cluster."""
    names = [TOPIC, "other", "unknown"]
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    answer = side.connection("client").call(ApiKey.METADATA, 9, request)
    topics = [(t.name, t.error_code, t.topic_authorized_operations) for t in answer.topics]
    return sorted(topics), answer.cluster_authorized_operations


def test_random_acls_are_decided_alike(both: Both) -> None:
    chance = random.Random(13)
    for _ in range(RANDOM_ROUNDS):
        acls = [random_acl(chance) for _ in range(chance.randint(1, 7))]
        for side in both.sides:
            for host in (CLIENT, "127.0.0.3"):
                grant(side, (), host)
            create(side, acls)
        eventually(
            lambda: allowed_operations(both.sides[0]) == allowed_operations(both.sides[1]),
            what=f"both decide alike with {acls}",
            seconds_max=SECONDS_MAX,
        )
