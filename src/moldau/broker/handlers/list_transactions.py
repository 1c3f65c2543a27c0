"""ListTransactions (key 66), v0-2: the transactional ids that this broker coordinates."""

from __future__ import annotations

from moldau.broker.coordinator.transaction.coordinator import TransactionCoordinator
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import ListTransactionsRequest, ListTransactionsResponse


class ListTransactionsHandler:
    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    async def handle(
        self, context: RequestContext, request: ListTransactionsRequest
    ) -> ListTransactionsResponse:
        return await self._coordinator.list_transactions(request)
