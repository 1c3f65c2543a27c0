"""Talks to the nodes that lead the group's partitions: one request at a time with each.

Decided here: what a node is asked next. Acknowledgements that somebody commits go first, in the
order in which they were committed; then, while the application wants records, a ShareFetch for all
partitions that the node leads, with the acknowledgements that wait for one (`node_state.py`).
`outcomes.py` decides how acknowledgements end. Invariant: with `share.acquire.mode=record_limit`
one node at a time is asked for records.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.client.cluster import LANE_FETCH, ClusterClient
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError, RetriableError, code_of, error_for
from moldau.client.metrics import ShareConsumerMetrics
from moldau.client.share.machine.acknowledgements import TopicIdPartition
from moldau.client.share.machine.delivery import Delivery
from moldau.client.share.machine.in_flight import NodeAcknowledgements, by_node
from moldau.client.share.machine.requests import acknowledge_request, fetch_request
from moldau.client.share.machine.session import FINAL_EPOCH
from moldau.client.share.membership import ShareMembership
from moldau.client.share.node_state import Commit, NodeState, Outcome, PartitionAcks, merge
from moldau.client.share.outcomes import Outcomes, error_of, missing
from moldau.client.share.settings import RECORD_LIMIT, ShareSettings
from moldau.client.topics import Node, TopicPartition
from moldau.wire.errors import FETCH_METADATA_STALE, PARTITION_MOVED, ErrorCode

__all__ = ["ShareNodes"]

_log = logging.getLogger(__name__)

_WAIT_MARGIN_MS: Final = 1_000
_PASSING: Final = frozenset((ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR))


class ShareNodes:
    """See the module. Lives on the loop; `kick` is called whenever something may be asked."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ShareSettings,
        membership: ShareMembership,
        metrics: ShareConsumerMetrics,
        *,
        on_delivery: Callable[[Delivery], None],
        on_outcome: Callable[[Outcome], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._membership = membership
        self._metrics = metrics
        self._on_delivery = on_delivery
        self._outcomes = Outcomes(cluster, metrics, on_outcome)
        self._on_error = on_error
        self._nodes: dict[int, NodeState] = {}
        self._wants_records = False
        self._wait_ms = settings.fetch_max_wait_ms
        self._acquiring: int | None = None
        self._last_acquired = -1
        self._closing = False

    # What the consumer asks.

    def fetch(self, taken: Mapping[TopicIdPartition, NodeAcknowledgements], wait_ms: int) -> None:
        """Get records until some have come, and acknowledge these on the way. A node waits so long
        for records."""
        self._wants_records = True
        self._wait_ms = wait_ms
        for node_id, acks in by_node(taken).items():
            merge(self._node(node_id).waiting, acks)
        self.kick()

    def rest(self) -> None:
        """Ask for no more records until the next fetch."""
        self._wants_records = False
        self.kick()

    def acknowledge(
        self, taken: Mapping[TopicIdPartition, NodeAcknowledgements], deadline: Deadline
    ) -> list[Commit]:
        """Send them as soon as their nodes can be asked."""
        commits = []
        for node_id, acks in by_node(taken).items():
            commit = Commit(acks, deadline)
            self._node(node_id).commits.append(commit)
            commits.append(commit)
        self.kick()
        return commits

    async def close(
        self, taken: Mapping[TopicIdPartition, NodeAcknowledgements], deadline: Deadline
    ) -> None:
        """Say what is left to say and close the sessions, which releases all other records."""
        self._closing = True
        for node_id, acks in by_node(taken).items():
            self._node(node_id).commits.append(Commit(acks, deadline))
        closing = [self._close_node(state) for state in self._nodes.values()]
        try:
            async with asyncio.timeout(max(0.001, deadline.left_ms() / 1000)):
                await asyncio.gather(*closing)
        except TimeoutError:
            _log.warning("share group %s: closing took too long", self._settings.group_id)
        tasks = [state.task for state in self._nodes.values() if state.task is not None]
        for state in self._nodes.values():
            if state.alarm is not None:
                state.alarm.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _close_node(self, state: NodeState) -> None:
        while state.task is not None:
            await asyncio.wait((state.task,))
            # Its callback comes after those who wait for it.
            await asyncio.sleep(0)
        acks = dict(state.waiting)
        for commit in state.commits:
            merge(acks, commit.acks)
        if state.session.is_new:
            self._outcomes.refuse(acks)
            return
        self._outcomes.refuse_moved(state, acks)
        request = acknowledge_request(self._settings, self._membership.member_id, FINAL_EPOCH, acks)
        self._metrics.acknowledged(sum(map(len, acks.values())))
        try:
            response = await self._cluster.call(state.node_id, request, lane=LANE_FETCH)
        except KafkaError as error:
            self._outcomes.fail(acks, error)
            return
        self._outcomes.take(acks, response)
        self._outcomes.fail(acks, missing())

    # What to ask next.

    def _node(self, node_id: int) -> NodeState:
        state = self._nodes.get(node_id)
        if state is None:
            state = self._nodes[node_id] = NodeState(node_id)
        return state

    def kick(self) -> None:
        """Ask every node that is not being asked and has something to do."""
        if self._closing:
            return
        led = self._membership.leaders() if self._wants_records else {}
        if self._wants_records and sum(map(len, led.values())) < len(self._membership.assigned):
            self._cluster.request_refresh()
        for node_id in led:
            self._node(node_id)
        self._choose_node(led)
        for state in list(self._nodes.values()):
            if state.task is None:
                self._kick_node(state, led.get(state.node_id, []))

    def _choose_node(self, led: Mapping[int, Any]) -> None:
        if self._settings.share_acquire_mode != RECORD_LIMIT:
            return
        if self._acquiring is not None:
            if self._node(self._acquiring).task is not None:
                return
            # It was to wait before it is asked again, and may lead nothing any more.
            self._acquiring = None
        ordered = sorted(led, key=lambda node_id: (node_id <= self._last_acquired, node_id))
        for node_id in ordered:
            if self._node(node_id).task is None:
                self._acquiring = self._last_acquired = node_id
                return

    def _kick_node(self, state: NodeState, led: list[TopicIdPartition]) -> None:
        if state.waiting and not self._wants_records:
            # Records came from elsewhere before it was this node's turn.
            limit_ms = self._settings.default_api_timeout_ms
            state.commits.append(Commit(state.waiting, Deadline(self._cluster.clock, limit_ms)))
            state.waiting = {}
        if state.commits:
            self._outcomes.drop_hopeless(state)
        if not state.commits and not self._wants_records:
            return
        delay_ms = state.not_before_ms - self._cluster.clock.elapsed_ms()
        if delay_ms > 0:
            if state.alarm is not None:
                state.alarm.cancel()
            state.alarm = self._cluster.clock.call_later(delay_ms, self.kick)
            return
        work = self._acknowledge(state) if state.commits else self._fetch(state, led)
        if work is not None:
            state.task = asyncio.get_running_loop().create_task(work)
            state.task.add_done_callback(lambda task: self._on_done(state, task))

    def _on_done(self, state: NodeState, task: asyncio.Task[None]) -> None:
        state.task = None
        if self._acquiring == state.node_id:
            self._acquiring = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # A fault of ours: the application must see it.
            state.session.on_failed()
            self._back_off(state)
            self._on_error(error)
        self.kick()

    # Asking for records.

    def _fetch(self, state: NodeState, led: list[TopicIdPartition]) -> Any:
        session = state.session
        if session.is_new:
            self._outcomes.refuse(state.waiting)
            if not led:
                return None
        acquires = self._acquiring in (None, state.node_id) and bool(led)
        acks: PartitionAcks = state.waiting
        state.waiting = {}
        self._outcomes.refuse_moved(state, acks)
        was_new = session.is_new
        added, removed = session.change(led)
        if not (acquires or added or removed or acks):
            return None
        if was_new and not added:
            return None
        request = fetch_request(
            self._settings,
            self._membership.member_id,
            session,
            added,
            removed,
            acks,
            acquires=acquires,
            wait_ms=self._wait_ms,
        )
        return self._send_fetch(state, request, acks)

    async def _send_fetch(self, state: NodeState, request: Any, acks: PartitionAcks) -> None:
        limit_ms = max(
            self._cluster.settings.request_timeout_ms, request.max_wait_ms + _WAIT_MARGIN_MS
        )
        self._metrics.acknowledged(sum(map(len, acks.values())))
        started_ms = self._cluster.clock.elapsed_ms()
        try:
            response = await self._cluster.call(
                state.node_id, request, timeout_ms=limit_ms, lane=LANE_FETCH
            )
        except KafkaError as error:
            state.session.on_failed()
            self._outcomes.fail(acks, error)
            self._back_off(state)
            if not isinstance(error, RetriableError):
                self._on_error(error)
            self._cluster.request_refresh()
            return
        took_ms = self._cluster.clock.elapsed_ms() - started_ms
        self._metrics.fetch_answered(took_ms, response.throttle_time_ms)
        code = code_of(response.error_code)
        state.session.on_answered(code)
        if code is not ErrorCode.NONE:
            problem = error_for(code, response.error_message)
            self._outcomes.fail(acks, problem)
            self._back_off(state)
            if code is ErrorCode.UNKNOWN_TOPIC_ID:
                self._cluster.request_refresh()
            elif not problem.retriable:
                self._on_error(problem)
            return
        state.failures = 0
        self._take_fetched(state, acks, response)

    def _take_fetched(self, state: NodeState, acks: PartitionAcks, response: Any) -> None:
        lock_timeout_ms = response.acquisition_lock_timeout_ms or None
        names = {each.topic_id: each.topic for each in (*state.session.partitions, *acks)}
        for topic in response.responses:
            name = names.get(topic.topic_id)
            if name is None:
                continue
            for each in topic.partitions:
                partition = TopicIdPartition(topic.topic_id, name, each.partition_index)
                if partition in acks:
                    self._outcomes.settle(
                        Outcome(
                            partition,
                            acks.pop(partition),
                            error_of(each.acknowledge_error_code, each.acknowledge_error_message),
                            lock_timeout_ms,
                        )
                    )
                self._take_partition(state, partition, each, lock_timeout_ms)
        self._outcomes.fail(acks, missing())
        self._note_leaders(state, response, names)

    def _take_partition(
        self, state: NodeState, partition: TopicIdPartition, each: Any, lock_timeout_ms: int | None
    ) -> None:
        code = code_of(each.error_code)
        if code is not ErrorCode.NONE:
            if code in FETCH_METADATA_STALE:
                self._cluster.request_refresh()
                self._back_off(state)
            elif code in _PASSING:
                self._back_off(state)
            else:
                self._on_error(error_for(code, each.error_message or str(partition)))
                self._back_off(state)
            return
        if not each.acquired_records:
            return
        self._wants_records = False
        self._on_delivery(
            Delivery(
                partition,
                state.node_id,
                each.records or b"",
                [(a.first_offset, a.last_offset, a.delivery_count) for a in each.acquired_records],
                lock_timeout_ms=lock_timeout_ms,
                key_deserializer=self._settings.key_deserializer,
                value_deserializer=self._settings.value_deserializer,
                check_crcs=self._settings.check_crcs,
            )
        )

    # Acknowledging.

    async def _acknowledge(self, state: NodeState) -> None:
        commit = state.commits[0]
        acks = commit.acks
        request = acknowledge_request(
            self._settings, self._membership.member_id, state.session.epoch, acks
        )
        self._metrics.acknowledged(sum(map(len, acks.values())))
        try:
            response = await self._cluster.call(state.node_id, request, lane=LANE_FETCH)
        except KafkaError as error:
            state.session.on_failed()
            self._back_off(state)
            self._outcomes.fail(acks, error, commit)
            self._cluster.request_refresh()
        else:
            self._take_answer(state, commit, response)
        if not acks:
            state.commits.popleft()
            commit.finish()

    def _take_answer(self, state: NodeState, commit: Commit, response: Any) -> None:
        acks = commit.acks
        code = code_of(response.error_code)
        state.session.on_answered(code)
        if code is ErrorCode.NONE:
            again = self._outcomes.take(acks, response, commit)
            unanswered = {key: acks.pop(key) for key in list(acks) if key not in again}
            self._outcomes.fail(unanswered, missing(), commit)
            names = {each.topic_id: each.topic for each in state.session.partitions}
            self._note_leaders(state, response, names)
        else:
            error = error_for(code, response.error_message)
            if not error.retriable:
                self._outcomes.fail(acks, error, commit)
        if acks:
            # What is retriable is tried again until its time is over.
            self._back_off(state)
        else:
            state.failures = 0

    def _back_off(self, state: NodeState) -> None:
        state.failures += 1
        delay_ms = self._cluster.backoff.delay_ms(state.failures, self._cluster.random)
        state.not_before_ms = self._cluster.clock.elapsed_ms() + delay_ms

    def _note_leaders(self, state: NodeState, response: Any, names: Mapping[Any, str]) -> None:
        """Take over leaders that the node names in its errors (KIP-951)."""
        hints: dict[TopicPartition, tuple[int, int]] = {}
        for topic in response.responses:
            for each in topic.partitions:
                leader = each.current_leader
                moved = code_of(each.error_code) in PARTITION_MOVED and topic.topic_id in names
                if moved and leader is not None and leader.leader_id >= 0:
                    key = TopicPartition(names[topic.topic_id], each.partition_index)
                    hints[key] = (leader.leader_id, leader.leader_epoch)
        if hints:
            nodes = [Node(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints]
            self._cluster.apply_leader_hints(self._cluster.metadata.with_leaders(hints, nodes))
