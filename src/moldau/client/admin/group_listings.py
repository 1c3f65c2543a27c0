"""Listing the groups that all brokers coordinate."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from moldau.client.admin.base import AdminBase, Listings
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.group_values import GroupListing, GroupState, GroupType
from moldau.client.admin.machine.group_translation import CONSUMER_PROTOCOL
from moldau.client.admin.routes import AnyRoute, BrokerRoute
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ListGroupsRequest, ListGroupsResponse

__all__ = ["GroupListingOperations"]

_LOADING = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class GroupListingOperations(AdminBase):
    """Which groups there are."""

    async def list_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        types: Collection[GroupType] = (),
        protocol_types: Collection[str] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """All groups, or those of some states, types and protocols ("" is a protocol too).

        With `check=False` brokers that do not answer are in `errors` of the list.

        >>> print([group.group_id for group in await admin.list_groups()])
        """
        deadline = self._driver.deadline(timeout)
        route: AnyRoute[None] = AnyRoute()
        brokers = await self._driver.run_one(
            "ListGroups", route, self._broker_ids, deadline=deadline
        )

        async def ask(call: Call, keys: Sequence[int]) -> Answer[int, list[GroupListing]]:
            response: ListGroupsResponse = await call(
                ListGroupsRequest(
                    states_filter=[str(each) for each in group_states],
                    types_filter=[str(each) for each in types],
                )
            )
            answer: Answer[int, list[GroupListing]] = Answer()
            if response.error_code != ErrorCode.NONE:
                answer.fail_all(keys, response.error_code, f"of broker {keys[0]}")
                return answer
            found = [
                _listing(each)
                for each in response.groups
                if not protocol_types or each.protocol_type in protocol_types
            ]
            answer.put(keys[0], found)
            return answer

        each_broker: BrokerRoute[int] = BrokerRoute(lambda broker_id: broker_id)
        results = await self._driver.run(
            "ListGroups",
            brokers,
            each_broker,
            ask,
            deadline=deadline,
            retried=_LOADING,
        )
        if check:
            results.check()
        # A group that moves in between is listed twice; one listing of it is enough.
        found = {
            each.group_id: each for listed in results.values_by_key.values() for each in listed
        }
        return Listings((found[group_id] for group_id in sorted(found)), results.errors)

    async def list_consumer_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        types: Collection[GroupType] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """The groups of consumers, of the classic and the new protocol, and simple ones.

        >>> print([group.group_id for group in await admin.list_consumer_groups()])
        """
        return await self.list_groups(
            group_states=group_states,
            types=types,
            protocol_types=(CONSUMER_PROTOCOL, ""),
            timeout=timeout,
            check=check,
        )

    async def list_share_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """The share groups.

        >>> print([group.group_id for group in await admin.list_share_groups()])
        """
        return await self.list_groups(
            group_states=group_states, types=(GroupType.SHARE,), timeout=timeout, check=check
        )

    async def list_streams_groups(
        self,
        *,
        group_states: Collection[GroupState] = (),
        timeout: float | None = None,
        check: bool = True,
    ) -> Listings[GroupListing]:
        """The streams groups.

        >>> print([group.group_id for group in await admin.list_streams_groups()])
        """
        return await self.list_groups(
            group_states=group_states, types=(GroupType.STREAMS,), timeout=timeout, check=check
        )


def _listing(found: ListGroupsResponse.ListedGroup) -> GroupListing:
    return GroupListing(
        found.group_id,
        GroupType.parse(found.group_type) if found.group_type else None,
        found.protocol_type,
        GroupState.parse(found.group_state) if found.group_state else None,
    )
