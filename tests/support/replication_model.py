"""One partition on several nodes that fail: the real leader and follower machines, everything else
as simple as it can be.

Logs are lists. The controller is one object that is always right. Messages take their time or
get lost. A kill leaves what was written, a power failure takes what was not synced; as Kafka
promises nothing once all replicas with the data are gone, a node's power fails only while another
member of the ISR is up, nobody else goes down before the controller has taken the node out, and
no proposal that it has sent arrives in between.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moldau.broker.log.machine.leader_epochs import LeaderEpochs
from moldau.broker.replication.machine.events import (
    CommitUpTo,
    Effect,
    Event,
    FollowerFetched,
    IsrAccepted,
    IsrCommitted,
    IsrRefused,
    ProposeIsr,
    Tick,
)
from moldau.broker.replication.machine.fetch_data import PartitionFetch
from moldau.broker.replication.machine.fetch_session import SessionRequest
from moldau.broker.replication.machine.follower import FetchedPartition, Fetcher
from moldau.broker.replication.machine.leader import PartitionLeader
from moldau.wire.errors import ErrorCode

KEY = (bytes(16), 0)
LAG_MS = 100
TIMEOUT_MS = 60
NODES = (1, 2, 3)
MIN_ISR = 2


class Violation(AssertionError):
    """An invariant that does not hold; named in its message."""


@dataclass
class MemoryLog:
    """(epoch, value) by offset; what a power failure leaves is below `synced`."""

    entries: list[tuple[int, int]] = field(default_factory=list)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    high_watermark: int = 0
    synced: int = 0
    log_start_offset: int = 0

    @property
    def log_end_offset(self) -> int:
        return len(self.entries)

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def append(self, epoch: int, value: int) -> None:
        self.epochs.assign(epoch, self.log_end_offset)
        self.entries.append((epoch, value))

    def append_fetched(self, records: Any, *, leader_epoch: int) -> int:
        size = 0
        for epoch, value in records:
            if epoch > leader_epoch:
                break
            self.append(epoch, value)
            size += 1
        return size

    def truncate_fetched(self, offset: int) -> None:
        if offset < self.high_watermark:
            raise Violation(f"nothing committed is cut: {offset} < {self.high_watermark}")
        self.cut(offset)

    def cut(self, offset: int) -> None:
        del self.entries[offset:]
        self.epochs.truncate_from_end(offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.synced = min(self.synced, offset)

    def restart_at(self, offset: int) -> None:
        raise Violation("nobody deletes records here")

    def take_watermarks(self, *, high_watermark: int, log_start_offset: int) -> None:
        self.high_watermark = max(self.high_watermark, min(high_watermark, self.log_end_offset))


@dataclass(frozen=True)
class PartitionState:
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]


class Controller:
    """Knows all, decides at once; its decisions reach the nodes late."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.state = PartitionState(1, 0, 0, frozenset(NODES))
        self.broker_epochs = {node: node for node in NODES}
        self.fenced: set[int] = set()
        self._next_epoch = 100

    def change(self, isr: frozenset[int], leader: int) -> None:
        state = self.state
        self.state = PartitionState(
            leader,
            state.leader_epoch + (leader != state.leader),
            state.partition_epoch + 1,
            isr,
        )
        if leader != state.leader and leader != -1:
            self.model.check_elected(leader)
        self.model.publish()

    def _leave(self, node: int) -> None:
        """Take a node out of the ISR, unless it is its last member."""
        state = self.state
        isr = state.isr - {node} or state.isr
        leader = state.leader
        if leader == node or leader == -1:
            leader = next((each for each in NODES if each in isr and each not in self.fenced), -1)
        if (isr, leader) != (state.isr, state.leader):
            self.change(isr, leader)

    def fence(self, node: int) -> None:
        self.fenced.add(node)
        self._leave(node)

    def register(self, node: int) -> int:
        """A new incarnation: it may have lost what the former one had."""
        self._next_epoch += 1
        self.broker_epochs[node] = self._next_epoch
        self.fenced.add(node)
        self._leave(node)
        self.fenced.discard(node)
        if self.state.leader == -1 and node in self.state.isr:
            self.change(self.state.isr, node)
        else:
            self.model.publish()
        return self._next_epoch

    def move_leader(self, rng: random.Random) -> None:
        choices = [
            each
            for each in sorted(self.state.isr)
            if each not in self.fenced and each != self.state.leader
        ]
        if choices and self.state.leader != -1:
            self.change(self.state.isr, rng.choice(choices))

    def alter_partition(self, sender: int, proposal: ProposeIsr) -> ErrorCode:
        state = self.state
        if proposal.leader_epoch < state.leader_epoch or sender != state.leader:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposal.partition_epoch < state.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for node, epoch in proposal.isr:
            if node in self.fenced or epoch not in (-1, self.broker_epochs[node]):
                return ErrorCode.INELIGIBLE_REPLICA
        if proposal.members != state.isr:
            self.change(proposal.members, state.leader)
        return ErrorCode.NONE


class Node:
    """A broker with one replica."""

    def __init__(self, model: Model, node_id: int) -> None:
        self.model = model
        self.id = node_id
        self.log = MemoryLog()
        self.checkpointed = 0
        self.up = True
        self.lost_data = False
        self.incarnation = 0
        self.broker_epoch = node_id
        self.leader: PartitionLeader | None = None
        self.fetcher: Fetcher | None = None
        self.state: PartitionState | None = None
        self.brokers: dict[int, int | None] = {}
        self.waiting: list[tuple[int, int]] = []
        self.highest_seen = 0

    # What the leader asks of the metadata.

    def alive_epoch(self, broker_id: int) -> int | None:
        return self.brokers.get(broker_id)

    def is_shutting_down(self, broker_id: int) -> bool:
        return False

    def own_epoch(self) -> int:
        return self.broker_epoch

    # What happens.

    def on_metadata(self, state: PartitionState, brokers: dict[int, int | None]) -> None:
        self.brokers = brokers
        known, self.state = self.state, state
        if state.leader == self.id:
            if self.leader is not None and state.leader_epoch == self.leader.leader_epoch:
                self.step(IsrCommitted(NODES, state.isr, state.partition_epoch, self.model.now_ms))
                return
            self.fetcher = None
            self.log.epochs.assign(state.leader_epoch, self.log.log_end_offset)
            self.waiting = []
            self.leader = self.model.make_leader(self, state)
            self.step(Tick(self.model.now_ms))
            return
        self.leader, self.waiting = None, []
        if known is None or state.leader_epoch != known.leader_epoch or self.fetcher is None:
            self.fetcher = self.model.make_fetcher()
            self.fetcher.add(KEY, "t", self.log, leader_epoch=state.leader_epoch)
            self.model.fetch_soon(self, self.fetcher, self.incarnation)

    def step(self, event: Event) -> None:
        if self.leader is None:
            return
        for effect in self.leader.step(event):
            self.perform(effect)

    def perform(self, effect: Effect) -> None:
        match effect:
            case CommitUpTo(offset):
                self.log.high_watermark = max(self.log.high_watermark, offset)
                self.acknowledge()
            case ProposeIsr():
                self.model.send_proposal(self, effect)

    def produce(self, value: int) -> None:
        leader = self.leader
        if leader is None or not leader.has_enough_in_sync:
            return
        offset = self.log.log_end_offset
        self.log.append(leader.leader_epoch, value)
        if self.model.faults.acks_before_replication:
            self.model.acknowledged[offset] = value
        self.waiting.append((offset, value))
        high_watermark = leader.appended(offset + 1, self.model.now_ms)
        if high_watermark > self.log.high_watermark:
            self.perform(CommitUpTo(high_watermark))

    def acknowledge(self) -> None:
        if self.leader is None:
            return
        done = [each for each in self.waiting if each[0] < self.log.high_watermark]
        self.waiting = [each for each in self.waiting if each[0] >= self.log.high_watermark]
        if self.leader.has_kept_enough:
            self.model.acknowledged.update(done)

    def read_for_follower(
        self, replica_id: int, broker_epoch: int, wanted: PartitionFetch
    ) -> FetchedPartition:
        leader = self.leader
        if leader is None:
            return FetchedPartition(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if wanted.current_leader_epoch != leader.leader_epoch:
            older = wanted.current_leader_epoch < leader.leader_epoch
            return FetchedPartition(
                ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        alive_epoch = self.alive_epoch(replica_id)
        if alive_epoch is not None and alive_epoch > broker_epoch:
            return FetchedPartition(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        if wanted.last_fetched_epoch != -1:
            epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
            if epoch < 0:
                return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
                return FetchedPartition(diverging_epoch=(epoch, end_offset))
        if wanted.fetch_offset > log.log_end_offset:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.step(
            FollowerFetched(
                replica_id=replica_id,
                fetch_offset=wanted.fetch_offset,
                log_start_offset=0,
                broker_epoch=broker_epoch,
                now_ms=self.model.now_ms,
            )
        )
        records: Any = log.entries[wanted.fetch_offset : wanted.fetch_offset + 4]
        return FetchedPartition(
            high_watermark=log.high_watermark, log_start_offset=0, records=records or None
        )

    # How it fails.

    def go_down(self, power: bool) -> None:
        self.up = False
        self.incarnation += 1
        self.leader = self.fetcher = self.state = None
        self.waiting = []
        self.log.high_watermark = min(self.log.high_watermark, self.checkpointed)
        self.highest_seen = 0
        if power:
            self.lost_data = True
            self.log.cut(self.log.synced)

    def come_up(self) -> None:
        """As a broker does, act on metadata only from the own registration on: what was decided
        before may take this node for its former self, with all that it has lost."""
        self.up = True
        self.incarnation += 1
        self.broker_epoch = self.model.controller.register(self.id)
        self.lost_data = False
        self.model.publish()


@dataclass
class Faults:
    """What is planted."""

    leader: type[PartitionLeader] = PartitionLeader
    fetcher: type[Fetcher] = Fetcher
    acks_before_replication: bool = False


class Model:
    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        self.rng = random.Random(seed)
        self.faults = faults or Faults()
        self.now_ms = 1000
        self._order = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._in_order: dict[int, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.calm = False
        self.controller = Controller(self)
        self.nodes = {node_id: Node(self, node_id) for node_id in NODES}
        self.publish()

    # Time and messages.

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._order, what))

    def message(self, what: Callable[[], None]) -> None:
        if self.calm or self.rng.random() >= 0.05:
            self.later(self.rng.choice((0, 1, 1, 2, 5, 20)), what)

    def publish(self) -> None:
        """The metadata log reaches every node, late but in order."""
        state = self.controller.state
        brokers = {
            node: None if node in self.controller.fenced else epoch
            for node, epoch in self.controller.broker_epochs.items()
        }
        for node in getattr(self, "nodes", {}).values():
            due = max(
                self._in_order.get(node.id, 0), self.now_ms + self.rng.choice((0, 1, 3, 10, 40))
            )
            self._in_order[node.id] = due
            incarnation = node.incarnation

            def deliver(node: Node = node, incarnation: int = incarnation) -> None:
                if node.up and node.incarnation == incarnation:
                    node.on_metadata(state, brokers)

            self.later(due - self.now_ms, deliver)

    def make_leader(self, node: Node, state: PartitionState) -> PartitionLeader:
        return self.faults.leader(
            node.id,
            replicas=NODES,
            isr=state.isr,
            min_insync_replicas=MIN_ISR,
            end_offset=node.log.log_end_offset,
            high_watermark=node.log.high_watermark,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            now_ms=self.now_ms,
            lag_ms_max=lambda: LAG_MS,
            brokers=node,
        )

    def make_fetcher(self) -> Fetcher:
        return self.faults.fetcher(backoff_ms=lambda: 10, max_bytes=lambda: 1000)

    def fetch_soon(self, node: Node, fetcher: Fetcher, incarnation: int, delay_ms: int = 0) -> None:
        def fetch() -> None:
            state = node.state
            if node.fetcher is not fetcher or node.incarnation != incarnation or state is None:
                return
            self._reset(node, fetcher)
            request = fetcher.request(self.now_ms)
            if request is None or state.leader == -1:
                self.fetch_soon(node, fetcher, incarnation, 5)
                return
            self._call(node, fetcher, incarnation, self.nodes[state.leader], request)

        self.later(delay_ms, fetch)

    def _call(
        self, node: Node, fetcher: Fetcher, incarnation: int, leader: Node, request: SessionRequest
    ) -> None:
        answered = False
        wanted = dict(fetcher._session.sent)
        broker_epoch = node.broker_epoch

        def arrive() -> None:
            if leader.up:
                answer = {
                    key: leader.read_for_follower(node.id, broker_epoch, each)
                    for key, each in wanted.items()
                }
                self.message(lambda: finish(answer))

        def finish(answer: dict[Any, FetchedPartition] | None) -> None:
            nonlocal answered
            if answered or node.fetcher is not fetcher or node.incarnation != incarnation:
                return
            answered = True
            if answer is None:
                fetcher.on_failure(self.now_ms)
            else:
                session_id = 9 if request.session_epoch or request.session_id == 0 else 10
                fetcher.on_response(
                    error=ErrorCode.NONE,
                    session_id=session_id,
                    partitions=answer,
                    now_ms=self.now_ms,
                )
            self.fetch_soon(node, fetcher, incarnation, self.rng.choice((0, 1, 1, 3)))

        self.message(arrive)
        self.later(TIMEOUT_MS, lambda: finish(None))

    def _reset(self, node: Node, fetcher: Fetcher) -> None:
        """Asking for the leader's ends takes no time here."""
        state = node.state
        for reset in fetcher.resets(self.now_ms):
            leader = self.nodes[state.leader] if state is not None and state.leader != -1 else None
            right = (
                leader is not None
                and leader.up
                and leader.leader is not None
                and leader.leader.leader_epoch == reset.leader_epoch
            )
            fetcher.on_reset(
                reset,
                error=ErrorCode.NONE if right else ErrorCode.NOT_LEADER_OR_FOLLOWER,
                latest=leader.log.log_end_offset if leader is not None else -1,
                earliest=0,
                now_ms=self.now_ms,
            )

    def send_proposal(self, node: Node, proposal: ProposeIsr) -> None:
        leader, incarnation = node.leader, node.incarnation

        def tell(event: Event) -> None:
            if node.leader is leader and node.incarnation == incarnation:
                node.step(event)

        def arrive() -> None:
            if node.lost_data:
                # It would make a node the last in sync that has lost what it had. This controller
                # keeps no eligible leader replicas (KIP-966), which are there for that case.
                return
            error = self.controller.alter_partition(node.id, proposal)
            if error is not ErrorCode.NONE:
                self.message(lambda: tell(IsrRefused(proposal, error)))
                return
            state = self.controller.state
            self.message(
                lambda: tell(
                    IsrAccepted(
                        proposal=proposal,
                        leader_epoch=state.leader_epoch,
                        partition_epoch=state.partition_epoch,
                        isr=state.isr,
                        now_ms=self.now_ms,
                    )
                )
            )

        def ask_again() -> None:
            # The shell asks until it is answered or the metadata says something else.
            if (
                leader is not None
                and node.leader is leader
                and node.incarnation == incarnation
                and leader._pending == proposal
            ):
                self.send_proposal(node, proposal)

        self.message(arrive)
        self.later(TIMEOUT_MS, ask_again)

    # What goes wrong.

    def disturb(self) -> None:
        rng = self.rng
        down = [node for node in self.nodes.values() if not node.up]
        what = rng.random()
        if what < 0.25 and not any(node.lost_data for node in self.nodes.values()):
            self._take_down(rng.choice(list(self.nodes.values())), down)
        elif what < 0.65 and down:
            rng.choice(down).come_up()
        elif what < 0.85:
            self.controller.move_leader(rng)

    def _take_down(self, node: Node, down: list[Node]) -> None:
        if not node.up or len(down) == len(NODES) - 1:
            return
        others_up = any(
            self.nodes[each].up and each not in self.controller.fenced
            for each in self.controller.state.isr - {node.id}
        )
        # Not while somebody else is away: it might be the one that has what is lost here.
        power = self.rng.random() < 0.5 and others_up and not down
        node.go_down(power)
        self.later(self.rng.choice((5, 30, 90)), lambda: self._notice(node, node.incarnation))

    def _notice(self, node: Node, incarnation: int) -> None:
        if not node.up and node.incarnation == incarnation:
            self.controller.fence(node.id)
            node.lost_data = False

    # Running.

    def run(self, duration_ms: int = 3000) -> None:
        end = self.now_ms + duration_ms
        for step in range(duration_ms // 10):
            self.later(step * 10, self._tick)
        while self._queue and self._queue[0][0] < end:
            self._next()
        self._heal()
        self._check_end()

    def _next(self) -> None:
        self.now_ms, _, what = heapq.heappop(self._queue)
        what()
        self.check()

    def _tick(self) -> None:
        rng = self.rng
        for node in self.nodes.values():
            if node.up:
                if rng.random() < 0.4:
                    node.produce(rng.randrange(1 << 30))
                if rng.random() < 0.2:
                    node.log.synced = rng.randint(node.log.synced, node.log.log_end_offset)
                if rng.random() < 0.2:
                    node.checkpointed = node.log.high_watermark
                if rng.random() < 0.3:
                    node.step(Tick(self.now_ms))
        if rng.random() < 0.15:
            self.disturb()

    def _heal(self) -> None:
        self.calm = True
        for node in self.nodes.values():
            if not node.up:
                node.come_up()
        end = self.now_ms + 2000
        for step in range(200):
            self.later(step * 10, self._calm_tick)
        while self._queue and self._queue[0][0] < end:
            self._next()

    def _calm_tick(self) -> None:
        for node in self.nodes.values():
            node.step(Tick(self.now_ms))

    # What must hold.

    def check(self) -> None:
        for node in self.nodes.values():
            if not node.up or node.state is None:
                continue
            high_watermark = node.log.high_watermark
            if high_watermark < node.highest_seen:
                raise Violation(f"the high watermark never retreats: node {node.id}")
            if high_watermark > node.log.log_end_offset:
                raise Violation(f"the high watermark is in the log: node {node.id}")
            for offset in range(node.highest_seen, high_watermark):
                value = node.log.entries[offset][1]
                if self.committed.setdefault(offset, value) != value:
                    raise Violation(f"every reader sees the same: {offset} at node {node.id}")
            node.highest_seen = high_watermark

    def check_elected(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.lost_data:
            return
        for offset, value in self.acknowledged.items():
            if offset >= node.log.log_end_offset or node.log.entries[offset][1] != value:
                raise Violation(f"what was acknowledged is kept: {offset} at node {node_id}")

    def _check_end(self) -> None:
        state = self.controller.state
        if state.isr != frozenset(NODES):
            raise Violation(f"all are in sync again in the end: {state}")
        logs = {tuple(node.log.entries) for node in self.nodes.values()}
        if len(logs) != 1:
            raise Violation("all replicas are the same in the end")
        self.check_elected(state.leader)
        if any(node.log.high_watermark != node.log.log_end_offset for node in self.nodes.values()):
            raise Violation("everything is committed in the end")
