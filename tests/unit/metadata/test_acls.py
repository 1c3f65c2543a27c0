"""CreateAcls, DeleteAcls and DescribeAcls: validation, filters, and what is left in the image."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moldau.broker.metadata.machine.acl_model import Acl, names_unknown
from moldau.broker.metadata.machine.acls import create_acls, delete_acls, describe_acls
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.wire.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

Creation = CreateAclsRequest.AclCreation
Filter = DeleteAclsRequest.DeleteAclsFilter


class Controller:
    """What these decisions read of a controller."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.random = random.Random(1)

    def create(self, *creations: Creation) -> list[tuple[int, str | None]]:
        decision = create_acls(self, CreateAclsRequest(creations=list(creations)))  # type: ignore[arg-type]
        self.image.replay_all(decision.records)
        return [(each.error_code, each.error_message) for each in decision.response.results]

    def delete(self, *filters: Filter) -> list[int]:
        decision = delete_acls(self, DeleteAclsRequest(filters=list(filters)))  # type: ignore[arg-type]
        self.image.replay_all(decision.records)
        return [len(each.matching_acls) for each in decision.response.filter_results]


def creation(**changes: Any) -> Creation:
    fields: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
    }
    return Creation(**(fields | changes))


def wanted(**changes: Any) -> Filter:
    fields: dict[str, Any] = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": AclOperation.ANY,
        "permission_type": AclPermissionType.ANY,
    }
    return Filter(**(fields | changes))


def test_created_once() -> None:
    controller = Controller()
    assert controller.create(creation(), creation()) == [(0, ""), (0, "")]
    assert controller.create(creation()) == [(0, "")]
    assert len(controller.image.acls) == len(controller.image.acl_ids) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_pattern_type": 1}, "Invalid patternType ANY"),
        ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal"
            " type from the principal name)",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
    ],
)
def test_what_is_not_an_acl_is_refused(changes: dict[str, Any], message: str) -> None:
    controller = Controller()
    results = controller.create(creation(**changes), creation())
    assert results == [(ErrorCode.INVALID_REQUEST, message), (0, "")]
    assert len(controller.image.acls) == 1


def test_too_many_at_once_are_refused_whole() -> None:
    controller = Controller()
    many = [creation(resource_name=f"t{number}") for number in range(10_001)]
    with pytest.raises(ApiError) as refused:
        controller.create(*many)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    assert controller.create(*many[:10_000]) == [(0, "")] * 10_000
    controller.create(*many[10_000:])
    with pytest.raises(ApiError) as refused:
        controller.delete(wanted())
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 4),
        ({"resource_name_filter": "orders"}, 1),
        ({"resource_name_filter": "orders", "pattern_type_filter": PatternType.MATCH}, 3),
        ({"resource_name_filter": "ord", "pattern_type_filter": PatternType.PREFIXED}, 1),
        ({"resource_name_filter": "ord", "pattern_type_filter": PatternType.LITERAL}, 0),
        ({"pattern_type_filter": PatternType.LITERAL}, 3),
        ({"resource_type_filter": ResourceType.GROUP}, 1),
        ({"principal_filter": "User:bob"}, 1),
        ({"host_filter": "10.0.0.1"}, 1),
        ({"operation": AclOperation.WRITE}, 1),
        ({"permission_type": AclPermissionType.DENY}, 1),
        ({"principal_filter": ""}, 0),
    ],
)
def test_filters(changes: dict[str, Any], count: int) -> None:
    controller = Controller()
    controller.create(
        creation(host="10.0.0.1"),
        creation(resource_name="ord", resource_pattern_type=PatternType.PREFIXED, operation=4),
        creation(resource_name="*", permission_type=AclPermissionType.DENY),
        creation(resource_type=ResourceType.GROUP, resource_name="g", principal="User:bob"),
    )
    asked = wanted(**changes)
    request = DescribeAclsRequest(**{name: getattr(asked, name) for name in asked.__slots__})
    described = describe_acls(controller.image, request)
    assert sum(len(each.acls) for each in described.resources) == count
    # Filters of one request may select the same ACLs.
    assert controller.delete(asked, asked) == [count, count]
    assert len(controller.image.acls) == 4 - count


def test_numbers_of_newer_versions() -> None:
    controller = Controller()
    ((code, message),) = controller.create(creation(operation=99))
    assert (code, message) == (ErrorCode.INVALID_REQUEST, "Invalid operation UNKNOWN")
    controller.create(creation())
    # Only UNKNOWN itself closes the connection.
    assert names_unknown(wanted(operation=0))
    assert not names_unknown(wanted(operation=99))
    for changes, problem in (
        ({"operation": 99}, "Unknown entryFilter."),
        ({"pattern_type_filter": 99}, "Unknown patternFilter."),
    ):
        request = DeleteAclsRequest(filters=[wanted(**changes), wanted(host_filter="10.0.0.9")])
        first, second = delete_acls(controller, request).response.filter_results  # type: ignore[arg-type]
        assert (first.error_code, first.error_message) == (ErrorCode.INVALID_REQUEST, problem)
        assert second.error_code == 0
    assert len(controller.image.acls) == 1


def test_the_delta_names_what_changed() -> None:
    controller = Controller()
    decision = create_acls(controller, CreateAclsRequest(creations=[creation()]))  # type: ignore[arg-type]
    delta = MetadataDelta()
    controller.image.replay_all(decision.records, delta)
    assert delta.acls_changed
    assert delta.acls == set(controller.image.acls)
    assert controller.image.acl_ids == {Acl.of(decision.records[0]): decision.records[0].id}
