"""AddOffsetsToTxn (key 25), v0-4: a group's offsets will be committed in the transaction.

That makes the group's partition of the offsets topic a partition of the transaction. Only
clients below transaction version 2 send it.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.coordinator.transaction.machine.values import TV_0
from moldau.broker.handlers.support.transaction_errors import for_client
from moldau.broker.machine.topics import GROUP_OFFSETS_TOPIC
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_PRODUCER_FENCED_FROM = 2


class AddOffsetsToTxnHandler:
    def __init__(
        self, coordinator: TransactionCoordinator, group_partition_for: Callable[[str], int]
    ) -> None:
        """`group_partition_for` returns a group's partition of the offsets topic."""
        self._coordinator = coordinator
        self._group_partition_for = group_partition_for

    async def handle(
        self, context: RequestContext, request: AddOffsetsToTxnRequest
    ) -> AddOffsetsToTxnResponse:
        place = (GROUP_OFFSETS_TOPIC, self._group_partition_for(request.group_id))
        errors = await self._coordinator.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [place],
            verify_only=False,
            client_transaction_version=TV_0,
        )
        return AddOffsetsToTxnResponse(
            error_code=for_client(errors[place], context, _PRODUCER_FENCED_FROM)
        )
