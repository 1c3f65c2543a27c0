"""DescribeTransactions (key 65), v0: state, producer and partitions of transactional ids."""

from __future__ import annotations

from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import DescribeTransactionsRequest, DescribeTransactionsResponse


class DescribeTransactionsHandler:
    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transaction_states=[
                await self._coordinator.describe_transaction(transactional_id)
                for transactional_id in request.transactional_ids
            ]
        )
