"""API v3: consumer groups, their members, assignments and lag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client import OffsetSpec, TopicPartition
from moldau.client.admin import (
    AsyncAdmin,
    ConsumerGroupDescription,
    GroupState,
    MemberDescription,
)
from moldau.client.errors import GroupIdNotFoundError
from moldau.http.machine.errors import not_found
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.rest.backend import Backend
from moldau.services.rest.v3.routing import CLUSTER, v3

__all__ = ["GroupHandlers"]


class GroupHandlers:
    """See the module."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        group = f"{CLUSTER}/consumer-groups/{{consumer_group_id}}"
        consumer = f"{group}/consumers/{{consumer_id}}"
        place = "{topic_name}/partitions/{partition_id:int}"
        tag = "consumer group"
        return [
            v3("GET", f"{CLUSTER}/consumer-groups", self._groups, "List groups", tag=tag,
               answer="ConsumerGroupDataList"),
            v3("GET", group, self._group, "Show a group", tag=tag, answer="ConsumerGroupData"),
            v3("GET", f"{group}/consumers", self._consumers, "List members", tag=tag,
               answer="ConsumerDataList"),
            v3("GET", consumer, self._consumer, "Show a member", tag=tag, answer="ConsumerData"),
            v3("GET", f"{consumer}/assignments", self._assignments,
               "List partitions of a member", tag=tag, answer="ConsumerAssignmentDataList"),
            v3("GET", f"{consumer}/assignments/{place}", self._assignment,
               "Show a partition of a member", tag=tag, answer="ConsumerAssignmentData"),
            v3("GET", f"{group}/lag-summary", self._summary, "Show the largest lag", tag=tag,
               answer="ConsumerGroupLagSummaryData"),
            v3("GET", f"{group}/lags", self._lags, "List lags", tag=tag,
               answer="ConsumerLagDataList"),
            v3("GET", f"{group}/lags/{place}", self._lag, "Show the lag of a partition", tag=tag,
               answer="ConsumerLagData"),
        ]  # fmt: skip

    async def _groups(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            admin = call.clients.admin
            names = sorted(each.group_id for each in await admin.list_consumer_groups())
            found = await admin.describe_consumer_groups(names, check=False) if names else None
            described = found.values_by_key if found is not None else {}
            data = [call.resources.group(described[name]) for name in names if name in described]
            url = call.resources.url("consumer-groups")
            return call.resources.collection("KafkaConsumerGroup", data, url)

    async def _group(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            return call.resources.group(await _described(call.clients.admin, request))

    async def _consumers(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            group = await _described(call.clients.admin, request)
            data = [call.resources.consumer(group.group_id, each) for each in group.members]
            url = call.resources.url("consumer-groups", group.group_id, "consumers")
            return call.resources.collection("KafkaConsumer", data, url)

    async def _consumer(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            member = _member(await _described(call.clients.admin, request), request)
            return call.resources.consumer(request.path["consumer_group_id"], member)

    async def _assignments(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            member = _member(await _described(call.clients.admin, request), request)
            group_id = request.path["consumer_group_id"]
            data = [
                call.resources.assignment(group_id, member.consumer_id, each)
                for each in sorted(member.assignment.topic_partitions)
            ]
            url = call.resources.url(
                "consumer-groups", group_id, "consumers", member.consumer_id, "assignments"
            )
            return call.resources.collection("KafkaConsumerAssignment", data, url)

    async def _assignment(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            member = _member(await _described(call.clients.admin, request), request)
            place = _place(request)
            if place not in member.assignment.topic_partitions:
                raise not_found()
            return call.resources.assignment(
                request.path["consumer_group_id"], member.consumer_id, place
            )

    # Lag.

    async def _summary(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            lags = await _lags(call.clients.admin, request)
            if not lags:
                raise not_found()
            return call.resources.lag_summary(request.path["consumer_group_id"], lags)

    async def _lags(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            group_id = request.path["consumer_group_id"]
            lags = await _lags(call.clients.admin, request)
            lags.sort(key=lambda each: (-each["lag"], each["topic_name"], each["partition_id"]))
            data = [call.resources.lag(group_id, each) for each in lags]
            url = call.resources.url("consumer-groups", group_id, "lags")
            return call.resources.collection("KafkaConsumerLag", data, url)

    async def _lag(self, request: Request) -> Any:
        async with self._backend.v3(request) as call:
            place = _place(request)
            for each in await _lags(call.clients.admin, request):
                if (each["topic_name"], each["partition_id"]) == place:
                    return call.resources.lag(request.path["consumer_group_id"], each)
            raise not_found()


def _place(request: Request) -> TopicPartition:
    return TopicPartition(request.path["topic_name"], request.path["partition_id"])


async def _described(admin: AsyncAdmin, request: Request) -> ConsumerGroupDescription:
    """Raises HttpError for a group that there is not."""
    group_id = request.path["consumer_group_id"]
    try:
        found = (await admin.describe_consumer_groups([group_id]))[group_id]
    except GroupIdNotFoundError:
        raise not_found() from None
    if found.group_state is GroupState.DEAD:
        raise not_found()
    return found


def _member(group: ConsumerGroupDescription, request: Request) -> MemberDescription:
    for each in group.members:
        if each.consumer_id == request.path["consumer_id"]:
            return each
    raise not_found()


async def _lags(admin: AsyncAdmin, request: Request) -> list[Mapping[str, Any]]:
    """The facts of each partition that the group has committed an offset of."""
    group = await _described(admin, request)
    committed = (await admin.list_consumer_group_offsets(group.group_id))[group.group_id]
    current = {place: at.offset for place, at in committed.items() if at is not None}
    if not current:
        return []
    ends = await admin.list_offsets(dict.fromkeys(current, OffsetSpec.latest()), check=False)
    members = {
        place: member for member in group.members for place in member.assignment.topic_partitions
    }
    lags: list[Mapping[str, Any]] = []
    for place, end in sorted(ends.values_by_key.items()):
        member = members.get(place)
        lags.append(
            {
                "topic_name": place.topic,
                "partition_id": place.partition,
                "consumer_id": member.consumer_id if member is not None else "",
                "instance_id": member.group_instance_id if member is not None else None,
                "client_id": member.client_id if member is not None else "",
                "current_offset": current[place],
                "log_end_offset": end.offset,
                "lag": max(0, end.offset - current[place]),
            }
        )
    return lags
