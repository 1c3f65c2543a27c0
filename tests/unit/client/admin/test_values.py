"""The values of the admin client, and what responses become."""

from __future__ import annotations

import hashlib

import pytest

from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    GroupState,
    GroupType,
    KafkaPrincipal,
    NewPartitionReassignment,
    PatternType,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    TransactionState,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from moldau.client.admin.acl_values import operations_of
from moldau.client.admin.machine.group_translation import classic_group, consumer_group_of_classic
from moldau.client.admin.security import _scram_request
from moldau.client.topics import Node, TopicPartition
from moldau.wire.codec import encode
from moldau.wire.messages import ConsumerProtocolAssignment, DescribeGroupsResponse

NODE = Node(1, "h", 1)


def test_names_of_later_versions_are_unknown() -> None:
    assert GroupState.parse("stable") is GroupState.STABLE
    assert GroupState.parse("Dreaming") is GroupState.UNKNOWN
    assert GroupType.parse("CONSUMER") is GroupType.CONSUMER
    assert TransactionState.parse("Dreaming") is TransactionState.UNKNOWN
    assert ConfigResourceType(99) is ConfigResourceType.UNKNOWN
    assert AclOperation(99) is AclOperation.UNKNOWN
    assert ScramMechanism.from_mechanism_name("SCRAM-SHA-512") is ScramMechanism.SCRAM_SHA_512


def test_authorized_operations_are_bits() -> None:
    assert operations_of(-(2**31)) is None
    bits = (1 << AclOperation.READ) | (1 << AclOperation.ALTER) | (1 << AclOperation.ANY)
    assert operations_of(bits) == {AclOperation.READ, AclOperation.ALTER}


def test_filter_of_a_binding_selects_just_that() -> None:
    binding = AclBinding(
        ResourcePattern(ResourceType.TOPIC, "t", PatternType.PREFIXED),
        AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.DENY),
    )
    chosen = binding.to_filter()
    assert (chosen.pattern_filter.name, chosen.entry_filter.principal) == ("t", "User:a")
    assert chosen.pattern_filter.pattern_type is PatternType.PREFIXED


def test_principals_and_resources() -> None:
    assert KafkaPrincipal.parse("User:CN=a:b") == KafkaPrincipal("User", "CN=a:b")
    with pytest.raises(ValueError, match="principalType:principalName"):
        KafkaPrincipal.parse("alice")
    assert ConfigResource.broker().is_default
    assert ClientQuotaEntity.of({"user": "u", "client-id": None}) == ClientQuotaEntity.of(
        {"client-id": None, "user": "u"}
    )
    with pytest.raises(ValueError, match="no replicas"):
        NewPartitionReassignment(())


def test_passwords_are_salted_here_and_hidden() -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    adding = UserScramCredentialUpsertion("u", info, "secret", b"salt")
    assert "secret" not in repr(adding)
    deleting = UserScramCredentialDeletion("v", ScramMechanism.SCRAM_SHA_256)
    request = _scram_request([adding, deleting])
    (upsertion,) = request.upsertions
    assert upsertion.salted_password == hashlib.pbkdf2_hmac("sha512", b"secret", b"salt", 4096)
    assert [(each.name, each.mechanism) for each in request.deletions] == [("v", 1)]
    other = UserScramCredentialUpsertion("u", info, "secret")
    assert other.salt != UserScramCredentialUpsertion("u", info, "secret").salt


def described(
    assignment: bytes, protocol: str = "consumer"
) -> DescribeGroupsResponse.DescribedGroup:
    response = DescribeGroupsResponse
    member = response.DescribedGroupMember(member_id="m", member_assignment=assignment)
    return response.DescribedGroup(
        group_id="g", group_state="Stable", protocol_type=protocol, members=[member]
    )


@pytest.mark.parametrize("version", [0, 3, 7])
def test_assignment_of_classic_members(version: int) -> None:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 2])
        ]
    )
    later = b"more of later versions" if version > 3 else b""
    data = version.to_bytes(2, "big") + encode(message, min(version, 3)) + later
    group = consumer_group_of_classic(described(data), NODE)
    assigned = group.members[0].assignment.topic_partitions
    assert assigned == {TopicPartition("t", 0), TopicPartition("t", 2)}


def test_assignment_that_is_not_the_consumers_is_left_alone() -> None:
    assert (
        classic_group(described(b"connect's own", "connect"), NODE)
        .members[0]
        .assignment.topic_partitions
        == frozenset()
    )
    group = consumer_group_of_classic(described(b"\0\0garbage"), NODE)
    assert group.members[0].assignment.topic_partitions == frozenset()
