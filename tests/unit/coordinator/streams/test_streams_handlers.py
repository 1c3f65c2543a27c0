"""The two requests of streams groups, as far as no group is needed for the answer."""

from __future__ import annotations

import asyncio
from typing import Any

from moldau.broker.handlers.streams_group_describe import StreamsGroupDescribeHandler
from moldau.broker.handlers.streams_group_heartbeat import StreamsGroupHeartbeatHandler
from moldau.broker.network.context import RequestContext
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

_Group = StreamsGroupDescribeResponse.DescribedGroup
NOT_ASKED_FOR = -(2**31)


class Coordinator:
    """Knows one group, `g`."""

    async def streams_group_heartbeat(
        self,
        context: RequestContext,
        request: StreamsGroupHeartbeatRequest,
        denied_creations: Any = None,
    ) -> StreamsGroupHeartbeatResponse:
        if request.group_id != "g":
            raise ApiError(ErrorCode.NOT_COORDINATOR, "ask elsewhere")
        return StreamsGroupHeartbeatResponse(member_id=request.member_id)

    async def describe_streams_group(self, group_id: str) -> _Group:
        if group_id != "g":
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, "no such group")
        return _Group(group_id="g", group_state="Empty")


def beat(group: str = "g", **options: Any) -> StreamsGroupHeartbeatResponse:
    handler = StreamsGroupHeartbeatHandler(Coordinator(), **options)  # type: ignore[arg-type]
    context = RequestContext(ApiKey.STREAMS_GROUP_HEARTBEAT, 0)
    request = StreamsGroupHeartbeatRequest(group_id=group, member_id="m")
    return asyncio.run(handler.handle(context, request))


def describe(*groups: str, **options: Any) -> list[tuple[str, int, bool]]:
    handler = StreamsGroupDescribeHandler(Coordinator(), **options)  # type: ignore[arg-type]
    request = StreamsGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=True
    )
    context = RequestContext(ApiKey.STREAMS_GROUP_DESCRIBE, 0)
    response = asyncio.run(handler.handle(context, request))
    return [
        (each.group_id, each.error_code, each.authorized_operations != NOT_ASKED_FOR)
        for each in response.groups
    ]


def test_heartbeats_go_to_the_coordinator() -> None:
    assert beat().member_id == "m"
    refused = beat("other")
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.NOT_COORDINATOR,
        "ask elsewhere",
    )


def test_a_broker_may_not_speak_the_protocol() -> None:
    assert beat(enabled=False).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert describe("g", enabled=False) == [("g", ErrorCode.UNSUPPORTED_VERSION, False)]


def test_groups_are_described_one_by_one() -> None:
    assert describe("g", "x", "") == [
        ("g", ErrorCode.NONE, True),
        ("x", ErrorCode.GROUP_ID_NOT_FOUND, False),
        ("", ErrorCode.INVALID_GROUP_ID, False),
    ]
