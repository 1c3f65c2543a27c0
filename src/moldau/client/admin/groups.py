"""Groups of all kinds: describe, delete, remove members."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from moldau.client.admin.base import AdminBase
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.group_values import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    MemberToRemove,
    ShareGroupDescription,
    StreamsGroupDescription,
)
from moldau.client.admin.machine.group_translation import (
    CONSUMER_PROTOCOL,
    classic_group,
    consumer_group,
    consumer_group_of_classic,
    share_group,
    streams_group,
)
from moldau.client.admin.routes import CoordinatorRoute
from moldau.client.errors import KafkaError, UnsupportedVersionError, error_for
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.results import Results
from moldau.client.topics import Node
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)

__all__ = ["GroupOperations"]

V = TypeVar("V")

_NO_NODE = Node(-1, "", -1)
_REASON = "member was removed by an admin"


class GroupOperations(AdminBase):
    """Groups of consumers, share consumers and streams."""

    async def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, ConsumerGroupDescription]:
        """Consumer groups of the new and of the classic protocol, with members and assignments.

        >>> print((await admin.describe_consumer_groups(["kitchen"]))["kitchen"].state)
        """
        # Groups that the new API does not know are asked for by the old one; its words about a
        # group that neither knows say more.
        classic: dict[str, str | None] = {}

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, ConsumerGroupDescription]:
            answer: Answer[str, ConsumerGroupDescription] = Answer()
            new = [key for key in keys if key not in classic]
            if new:
                await _describe_new(call, new, include_authorized_operations, answer, classic)
            old = [key for key in keys if key in classic]
            if old:
                await _describe_old(call, old, include_authorized_operations, answer, classic)
            return answer

        return await self._run(
            "DescribeConsumerGroups",
            group_ids,
            CoordinatorRoute(CoordinatorType.GROUP),
            ask,
            timeout=timeout,
            check=check,
        )

    async def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, ClassicGroupDescription]:
        """Groups of the classic protocol, whatever they are used for.

        >>> print((await admin.describe_classic_groups(["kitchen"]))["kitchen"].state)
        """
        return await self._describe_groups(
            "DescribeClassicGroups",
            lambda keys: DescribeGroupsRequest(
                groups=keys, include_authorized_operations=include_authorized_operations
            ),
            classic_group,
            group_ids,
            timeout,
            check,
        )

    async def describe_share_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, ShareGroupDescription]:
        """Share groups, with members and assignments.

        >>> print((await admin.describe_share_groups(["workers"]))["workers"].members)
        """
        return await self._describe_groups(
            "DescribeShareGroups",
            lambda keys: ShareGroupDescribeRequest(
                group_ids=keys, include_authorized_operations=include_authorized_operations
            ),
            share_group,
            group_ids,
            timeout,
            check,
        )

    async def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, StreamsGroupDescription]:
        """Streams groups, with topology, members and tasks.

        >>> print((await admin.describe_streams_groups(["totals"]))["totals"].members)
        """
        return await self._describe_groups(
            "DescribeStreamsGroups",
            lambda keys: StreamsGroupDescribeRequest(
                group_ids=keys, include_authorized_operations=include_authorized_operations
            ),
            streams_group,
            group_ids,
            timeout,
            check,
        )

    async def _describe_groups(
        self,
        what: str,
        request: Callable[[list[str]], Message],
        translate: Callable[[Any, Node], V | KafkaError],
        group_ids: Iterable[str],
        timeout: float | None,
        check: bool,
    ) -> Results[str, V]:
        """Ask the coordinators, one request each; `translate` a group that was found."""

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, V]:
            response = await call(request(list(keys)))
            answer: Answer[str, V] = Answer()
            for found in response.groups:
                if found.error_code != ErrorCode.NONE:
                    answer.fail(found.group_id, found.error_code, found.error_message)
                    continue
                described = translate(found, call.node or _NO_NODE)
                if isinstance(described, KafkaError):
                    answer.errors[found.group_id] = described
                else:
                    answer.put(found.group_id, described)
            return answer

        return await self._run(
            what,
            group_ids,
            CoordinatorRoute(CoordinatorType.GROUP),
            ask,
            timeout=timeout,
            check=check,
        )

    async def delete_consumer_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, None]:
        """Delete groups without members, with all their offsets.

        >>> await admin.delete_consumer_groups(["kitchen"])
        """
        return await self._delete_groups("DeleteConsumerGroups", group_ids, timeout, check)

    async def delete_share_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, None]:
        """Delete share groups without members, with all their state.

        >>> await admin.delete_share_groups(["workers"])
        """
        return await self._delete_groups("DeleteShareGroups", group_ids, timeout, check)

    async def delete_streams_groups(
        self, group_ids: Iterable[str], *, timeout: float | None = None, check: bool = True
    ) -> Results[str, None]:
        """Delete streams groups without members, with all their offsets.

        >>> await admin.delete_streams_groups(["totals"])
        """
        return await self._delete_groups("DeleteStreamsGroups", group_ids, timeout, check)

    async def _delete_groups(
        self, what: str, group_ids: Iterable[str], timeout: float | None, check: bool
    ) -> Results[str, None]:
        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, None]:
            response: DeleteGroupsResponse = await call(
                DeleteGroupsRequest(groups_names=list(keys))
            )
            answer: Answer[str, None] = Answer()
            for found in response.results:
                answer.settle(found.group_id, found.error_code, found.group_id, None)
            return answer

        return await self._run(
            what,
            group_ids,
            CoordinatorRoute(CoordinatorType.GROUP),
            ask,
            timeout=timeout,
            check=check,
        )

    async def remove_members_from_consumer_group(
        self,
        group_id: str,
        members: Collection[MemberToRemove] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Remove static members, or all members if none are named.

        The results are by `group.instance.id`, or by member id where there is none.

        >>> await admin.remove_members_from_consumer_group("kitchen", [MemberToRemove("cook-1")])
        """
        request = LeaveGroupRequest
        why = reason or _REASON
        if members is None:
            described = await self.describe_consumer_groups([group_id], timeout=timeout)
            leaving = {
                each.group_instance_id or each.consumer_id: request.MemberIdentity(
                    member_id="" if each.group_instance_id else each.consumer_id,
                    group_instance_id=each.group_instance_id,
                    reason=why,
                )
                for each in described[group_id].members
            }
        else:
            leaving = {
                each.group_instance_id: request.MemberIdentity(
                    group_instance_id=each.group_instance_id, reason=why
                )
                for each in members
            }

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, None]:
            response: LeaveGroupResponse = await call(
                request(group_id=group_id, members=[leaving[key] for key in keys])
            )
            answer: Answer[str, None] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(keys, response.error_code, group_id)
                return answer
            for found in response.members:
                key = found.group_instance_id or found.member_id
                answer.settle(key, found.error_code, key, None)
            return answer

        return await self._run(
            "RemoveMembersFromConsumerGroup",
            leaving,
            CoordinatorRoute(CoordinatorType.GROUP, lambda _: group_id),
            ask,
            timeout=timeout,
            check=check,
        )


async def _describe_new(
    call: Call,
    keys: Sequence[str],
    operations: bool,
    answer: Answer[str, ConsumerGroupDescription],
    classic: dict[str, str | None],
) -> None:
    request = ConsumerGroupDescribeRequest(
        group_ids=list(keys), include_authorized_operations=operations
    )
    try:
        response: ConsumerGroupDescribeResponse = await call(request)
    except UnsupportedVersionError:
        classic.update(dict.fromkeys(keys))
        return
    for found in response.groups:
        if found.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            classic[found.group_id] = found.error_message
        elif found.error_code != ErrorCode.NONE:
            answer.fail(found.group_id, found.error_code, found.error_message)
        else:
            answer.put(found.group_id, consumer_group(found, call.node or _NO_NODE))


async def _describe_old(
    call: Call,
    keys: Sequence[str],
    operations: bool,
    answer: Answer[str, ConsumerGroupDescription],
    classic: dict[str, str | None],
) -> None:
    response: DescribeGroupsResponse = await call(
        DescribeGroupsRequest(groups=list(keys), include_authorized_operations=operations)
    )
    for found in response.groups:
        key = found.group_id
        if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            answer.fail(key, found.error_code, classic.get(key) or found.error_message)
        elif found.error_code != ErrorCode.NONE:
            answer.fail(key, found.error_code, found.error_message)
        elif found.protocol_type not in (CONSUMER_PROTOCOL, ""):
            answer.errors[key] = error_for(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"{key} is not a consumer group ({found.protocol_type})",
            )
        else:
            described = consumer_group_of_classic(found, call.node or _NO_NODE)
            answer.put(key, described)
