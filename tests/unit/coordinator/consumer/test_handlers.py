"""The two requests of consumer groups, as far as no group is needed for the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from moldau.broker.handlers.consumer_group_describe import ConsumerGroupDescribeHandler
from moldau.broker.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler
from moldau.broker.network.context import RequestContext
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_Group = ConsumerGroupDescribeResponse.DescribedGroup
NOT_ASKED_FOR = -(2**31)


class Coordinator:
    """Knows one group, `g`."""

    async def consumer_group_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        may_describe: Any = None,
    ) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id)

    async def describe_consumer_group(self, group_id: str) -> _Group:
        if group_id == "g":
            return _Group(group_id="g", group_state="Empty")
        return _Group(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND)


def beat(**options: Any) -> ConsumerGroupHeartbeatResponse:
    handler = ConsumerGroupHeartbeatHandler(Coordinator(), **options)  # type: ignore[arg-type]
    context = RequestContext(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
    return asyncio.run(handler.handle(context, ConsumerGroupHeartbeatRequest(member_id="m")))


def describe(*groups: str, operations: bool = False, **options: Any) -> list[tuple[str, int, int]]:
    handler = ConsumerGroupDescribeHandler(Coordinator(), **options)  # type: ignore[arg-type]
    request = ConsumerGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=operations
    )
    context = RequestContext(ApiKey.CONSUMER_GROUP_DESCRIBE, 1)
    response = asyncio.run(handler.handle(context, request))
    return [
        (each.group_id, each.error_code, each.authorized_operations) for each in response.groups
    ]


def test_heartbeats_go_to_the_coordinator() -> None:
    assert beat().member_id == "m"


def test_a_broker_may_not_speak_the_protocol() -> None:
    assert beat(enabled=False) == ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION
    )
    assert describe("g", operations=True, enabled=False) == [
        ("g", ErrorCode.UNSUPPORTED_VERSION, NOT_ASKED_FOR)
    ]


def test_groups_are_described_one_by_one() -> None:
    assert describe("g", "x", "") == [
        ("g", ErrorCode.NONE, NOT_ASKED_FOR),
        ("x", ErrorCode.GROUP_ID_NOT_FOUND, NOT_ASKED_FOR),
        ("", ErrorCode.INVALID_GROUP_ID, NOT_ASKED_FOR),
    ]


def test_operations_are_told_of_groups_that_exist() -> None:
    # READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS.
    allowed = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    assert describe("g", "x", operations=True) == [
        ("g", ErrorCode.NONE, allowed),
        ("x", ErrorCode.GROUP_ID_NOT_FOUND, NOT_ASKED_FOR),
    ]
