"""The stage of group scripts: the real group shard, its records replayed at once, virtual time.

Every record goes through its encoded form. `reload` forgets all but the records, as another broker
does that takes the partition over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from moldau.broker.coordinator.group.machine.config import GroupConfig
from moldau.broker.coordinator.group.machine.events import Join
from moldau.broker.coordinator.group.machine.group import ClientInfo
from moldau.broker.coordinator.group.machine.shard import GroupShard
from moldau.broker.coordinator.machine.decision import (
    Answer,
    Cancel,
    CoordinatorRecord,
    Decision,
    Schedule,
    Ticket,
)
from moldau.broker.coordinator.machine.timers import TimerQueue
from moldau.wire.constants import NO_PRODUCER_ID
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from moldau.wire.record_values import decode_coordinator_record, encode_versioned
from support.group_facts import FakeSettings, FakeTopics
from support.scripts.files import Command

GROUP = "g"
_CLIENT = ClientInfo("client", "/127.0.0.1")
_EPOCHS = {"join": 0, "leave": -1, "leave-static": -2}


class GroupStage:
    def __init__(self) -> None:
        self.now_ms = 0
        self._topics = FakeTopics()
        self._config = GroupConfig(group_initial_rebalance_delay_ms=0)
        self._written: list[tuple[bytes, bytes | None]] = []
        self._trace: list[str] = []
        self._names: dict[int, str] = {}
        self._ids = 0
        self._load()

    # Commands -------------------------------------------------------------------------------

    def on_topic(self, command: Command) -> list[str]:
        """topic NAME PARTITIONS: create a topic, or give it more partitions."""
        self._topics.create(command.words[0], int(command.words[1]))
        return []

    def on_delete_topic(self, command: Command) -> list[str]:
        self._topics.delete(command.words[0])
        return []

    def on_heartbeat(self, command: Command) -> list[str]:
        """heartbeat MEMBER EPOCH|join|leave [topics=a,b] [regex=R] [owned=a:0,1;b:2] [instance=I]
        [assignor=A]: a heartbeat of the consumer protocol (KIP-848)."""
        member, epoch = command.words[:2]
        options = command.options
        is_join = epoch == "join"
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member,
            member_epoch=_EPOCHS[epoch] if epoch in _EPOCHS else int(epoch),
            instance_id=options.get("instance"),
            rebalance_timeout_ms=60_000 if is_join else -1,
            subscribed_topic_names=_split(options.get("topics")),
            subscribed_topic_regex=options.get("regex"),
            server_assignor=options.get("assignor"),
            topic_partitions=self._partitions(options.get("owned", "" if is_join else None)),
        )
        self._decide(
            lambda: self._shard.consumer_group_heartbeat(request, 1, _CLIENT, "fresh", self.now_ms),
            self._assignment_text,
        )
        return self._traced()

    def on_join(self, command: Command) -> list[str]:
        """join NAME [member=ID] [instance=I] [topics=a] [protocols=range]: JoinGroup. The answer is
        traced under NAME when it comes; without `member` the broker gives an id."""
        options = command.options
        topics = _split(options.get("topics", "t")) or []
        subscription = encode_versioned(ConsumerProtocolSubscription(topics=topics), 1)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=command.number("session", 10_000),
            rebalance_timeout_ms=command.number("rebalance", 60_000),
            member_id=options.get("member", ""),
            group_instance_id=options.get("instance"),
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=each, metadata=subscription)
                for each in (_split(options.get("protocols", "range")) or [])
            ],
        )
        self._ids += 1
        event = Join(
            request=request,
            version=9,
            ticket=self._ticket(command.words[0]),
            client_id="client",
            client_host="/127.0.0.1",
            fresh_id=f"id{self._ids}",
        )
        self._decide(lambda: self._shard.join_group(event, self.now_ms))
        return self._traced()

    def on_sync(self, command: Command) -> list[str]:
        """sync NAME GENERATION member=ID [m1=text m2=text]: SyncGroup; a leader assigns."""
        options = {key: value for key, value in command.options.items() if key != "member"}
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(command.words[1]),
            member_id=command.options["member"],
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=each, assignment=data.encode()
                )
                for each, data in options.items()
            ],
        )
        ticket = self._ticket(command.words[0])
        self._decide(lambda: self._shard.sync_group(request, ticket, self.now_ms))
        return self._traced()

    def on_classic_heartbeat(self, command: Command) -> list[str]:
        """classic-heartbeat MEMBER GENERATION"""
        request = HeartbeatRequest(
            group_id=GROUP, member_id=command.words[0], generation_id=int(command.words[1])
        )
        self._decide(
            lambda: self._shard.heartbeat(request, self.now_ms),
            lambda response: ErrorCode(response.error_code).name,
        )
        return self._traced()

    def on_leave(self, command: Command) -> list[str]:
        """leave MEMBER: LeaveGroup of the classic protocol."""
        identity = LeaveGroupRequest.MemberIdentity(
            member_id=command.words[0], group_instance_id=command.options.get("instance")
        )
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        self._decide(
            lambda: self._shard.leave_group(request, self.now_ms),
            lambda response: ErrorCode(response.members[0].error_code).name,
        )
        return self._traced()

    def on_commit(self, command: Command) -> list[str]:
        """commit PARTITION OFFSET [member=ID] [epoch=N]"""
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=int(command.words[0]), committed_offset=int(command.words[1])
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name=command.options.get("topic", "t"), partitions=[partition]
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=command.options.get("member", ""),
            generation_id_or_member_epoch=command.number("epoch", -1),
            topics=[topic],
        )
        self._decide(
            lambda: self._shard.commit_offsets(request, 9, self.now_ms),
            lambda response: ErrorCode(response.topics[0].partitions[0].error_code).name,
        )
        return self._traced()

    def on_offsets(self, command: Command) -> list[str]:
        """offsets: what is committed."""
        request = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=None)
        response = self._shard.fetch_offsets(request, False).response
        lines = [
            f"{topic.name}-{each.partition_index} {each.committed_offset}"
            for topic in response.topics
            for each in topic.partitions
        ]
        return lines or ["none"]

    def on_delete_group(self, command: Command) -> list[str]:
        self._decide(
            lambda: self._shard.delete_groups([GROUP], self.now_ms),
            lambda response: ErrorCode(response[0].error_code).name,
        )
        return self._traced()

    def on_wait(self, command: Command) -> list[str]:
        """wait MS: let time pass; timers fire at their moments."""
        end_ms = self.now_ms + int(command.words[0])
        while (at_ms := self._timers.next_at_ms()) is not None and at_ms <= end_ms:
            self.now_ms = max(self.now_ms, at_ms)
            timer = self._timers.pop_due(self.now_ms)
            if timer is None:
                continue
            decision = self._shard.on_timer(timer, self.now_ms)
            if decision.records or decision.has_audience:
                self._trace.append(f"at {self.now_ms} ms {type(timer).__name__} fires")
            self._perform(decision)
        self.now_ms = end_ms
        return self._traced()

    def on_reload(self, command: Command) -> list[str]:
        """reload: another broker takes over; it has the records and nothing else."""
        self._load()
        return [f"{len(self._written)} records"]

    def on_state(self, command: Command) -> list[str]:
        group = self._shard.group(GROUP)
        if group is None:
            return ["no such group"]
        return [f"{group.group_type} group, {group.state_name}"]

    # How it is played -----------------------------------------------------------------------

    def _load(self) -> None:
        self._shard = GroupShard(self._config, self._topics, FakeSettings())
        for offset, record in enumerate(self._written):
            self._replay(offset, record)
        self._timers = TimerQueue()
        self._perform(self._shard.on_loaded(self.now_ms))

    def _replay(self, offset: int, record: tuple[bytes, bytes | None]) -> None:
        self._shard.replay(offset, NO_PRODUCER_ID, *decode_coordinator_record("group", *record))

    def _ticket(self, name: str) -> Ticket:
        ticket = Ticket(len(self._names) + 1)
        self._names[ticket] = name
        return ticket

    def _decide(
        self, decide: Callable[[], Decision[Any]], text: Callable[[Any], str] = lambda _: ""
    ) -> None:
        try:
            decision = decide()
        except ApiError as error:
            self._trace.append(error.code.name)
            return
        self._perform(decision)
        if decision.response is not None:
            self._trace.append(text(decision.response))

    def _perform(self, decision: Decision[Any]) -> None:
        for record in decision.records:
            self._trace.append(self._record_text(record))
            encoded = record.encode()
            self._replay(len(self._written), encoded)
            self._written.append(encoded)
        for effect in decision.effects:
            match effect:
                case Schedule(timer, delay_ms):
                    self._timers.schedule(timer, self.now_ms + delay_ms)
                case Cancel(timer):
                    self._timers.cancel(timer)
                case Answer(ticket, response):
                    self._trace.append(f"{self._names[ticket]}: {_classic_text(response)}")
        if decision.continuation is not None:
            written = self._shard.on_written(decision.continuation, ErrorCode.NONE, self.now_ms)
            self._perform(written)

    # The trace ------------------------------------------------------------------------------

    def _partitions(self, text: str | None) -> Any:
        if text is None:
            return None
        owned = []
        for each in filter(None, text.split(";")):
            name, _, indexes = each.partition(":")
            facts = self._topics.topic(name)
            owned.append(
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=UUID(int=999) if facts is None else facts.id,
                    partitions=[int(index) for index in indexes.split(",")],
                )
            )
        return owned

    def _assignment_text(self, response: ConsumerGroupHeartbeatResponse) -> str:
        error = ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            return error.name
        text = f"{response.member_id} epoch={response.member_epoch}"
        if response.assignment is None:
            return text
        topics = [
            self._topic_text(each.topic_id, each.partitions)
            for each in response.assignment.topic_partitions
        ]
        return f"{text} assigned={' '.join(sorted(topics)) or 'nothing'}"

    def _topic_text(self, topic_id: UUID, partitions: list[int]) -> str:
        facts = self._topics.topic_by_id(topic_id)
        return f"{'?' if facts is None else facts.name}:{','.join(map(str, partitions))}"

    @staticmethod
    def _record_text(record: CoordinatorRecord) -> str:
        key = record.key
        kind = type(key).__name__.removesuffix("Key")
        member = getattr(key, "member_id", "")
        place = f"{key.topic}-{key.partition}" if hasattr(key, "topic") else member
        value: Any = record.value
        details = [
            f"{name}={getattr(value, name)}"
            for name in (
                "epoch",
                "assignment_epoch",
                "member_epoch",
                "generation",
                "leader",
                "offset",
            )
            if hasattr(value, name)
        ]
        sign = "-" if value is None else "+"
        return " ".join(filter(None, (sign, kind, place, *details)))

    def _traced(self) -> list[str]:
        lines, self._trace = self._trace, []
        return lines


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [each for each in text.split(",") if each]


def _classic_text(response: Any) -> str:
    error = ErrorCode(response.error_code)
    if error is not ErrorCode.NONE:
        member = getattr(response, "member_id", "")
        return f"{error.name} {member}".strip()
    match response:
        case JoinGroupResponse():
            members = ",".join(sorted(each.member_id for each in response.members))
            leads = f" leads {members}" if members else ""
            return f"joined generation={response.generation_id} as {response.member_id}{leads}"
        case SyncGroupResponse():
            return f"assigned {bytes(response.assignment).decode() or 'nothing'}"
        case _:
            return error.name
