"""Sends leaders' proposals of another ISR to the controller, and passes its responses back.

Invariants: one AlterPartition request is in flight at a time, with all proposals that wait; each is
sent again until it gets a response, or its leader has made another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from uuid import UUID

from moldau.broker.faults import contained
from moldau.broker.replication.machine.events import IsrAccepted, IsrRefused, ProposeIsr
from moldau.broker.replication.surroundings import Proposer
from moldau.clock import Clock, pause
from moldau.metrics import Meter
from moldau.peers.channel import ChannelError
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import AlterPartitionRequest, AlterPartitionResponse

logger = logging.getLogger(__name__)

RETRY_MS = 50

_Place: TypeAlias = tuple[UUID, int]
_Waiting: TypeAlias = dict[_Place, tuple[Proposer, ProposeIsr]]


class IsrProposals:
    """What the partitions led by this node propose to the controller."""

    def __init__(
        self,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        send: Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]],
        clock: Clock,
        refused: Meter | None = None,
    ) -> None:
        """`send` returns the active controller's response, or raises ChannelError or ApiError;
        `refused` counts what the controller does not accept."""
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._send = send
        self._clock = clock
        self._refused = refused
        self._waiting: _Waiting = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def propose(self, partition: Proposer, proposal: ProposeIsr) -> None:
        """Send `proposal`; the response is passed to `partition.step`."""
        if self._closed:
            return
        self._waiting[partition.topic_id, partition.index] = partition, proposal
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        self._closed = True
        self._waiting = {}
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._waiting:
                if not await self._try(dict(self._waiting)):
                    await pause(self._clock, RETRY_MS)
        finally:
            self._task = None

    async def _try(self, asked: _Waiting) -> bool:
        """Whether everything was accepted; otherwise try again a little later.

        A leader makes no other proposal before the response to this one, so nothing that goes
        wrong here may end the attempts.
        """
        try:
            return await self._ask(asked)
        except Exception:
            logger.exception("proposing a change of in-sync replicas failed")
            return False

    async def _ask(self, asked: _Waiting) -> bool:
        try:
            response = await self._send(self._request(asked))
        except (ChannelError, ApiError) as failure:
            logger.info(
                "the request to change in-sync replicas did not reach the controller: %s", failure
            )
            return False
        if response.error_code != ErrorCode.NONE:
            logger.info(
                "the controller rejected the change of in-sync replicas: %s",
                ErrorCode(response.error_code).name,
            )
            return False
        all_well = True
        for topic in response.topics:
            for answer in topic.partitions:
                place = topic.topic_id, answer.partition_index
                if place in asked:
                    all_well = self._deliver(place, *asked.pop(place), answer) and all_well
        # Proposals that are missing from the response are sent again.
        return all_well and not asked

    def _deliver(
        self,
        place: _Place,
        partition: Proposer,
        proposal: ProposeIsr,
        answer: AlterPartitionResponse.PartitionData,
    ) -> bool:
        if self._waiting.get(place, (None, None))[1] is proposal:
            del self._waiting[place]
        error = ErrorCode(answer.error_code)
        if error is not ErrorCode.NONE:
            if self._refused is not None:
                self._refused.mark(1)
            _pass_on(partition, IsrRefused(proposal, error))
            return place not in self._waiting
        accepted = IsrAccepted(
            proposal=proposal,
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
            isr=frozenset(answer.isr),
            now_ms=self._clock.elapsed_ms(),
        )
        _pass_on(partition, accepted)
        return True

    def _request(self, asked: _Waiting) -> AlterPartitionRequest:
        topics: dict[UUID, list[AlterPartitionRequest.PartitionData]] = {}
        for (topic_id, index), (_, proposal) in asked.items():
            topics.setdefault(topic_id, []).append(
                AlterPartitionRequest.PartitionData(
                    partition_index=index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=epoch)
                        for broker, epoch in proposal.isr
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )


def _pass_on(partition: Proposer, event: IsrAccepted | IsrRefused) -> None:
    # A failure is the partition's own: the responses for the others are passed on.
    contained(f"the response about the in-sync replicas of {partition!r}", partition.step, event)
