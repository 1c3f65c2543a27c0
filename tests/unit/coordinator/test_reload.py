"""Whatever happened: a shard that replays what was written is the shard that wrote it."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from moldau.broker.coordinator.group.machine.classic import ClassicGroup, Phase
from moldau.broker.coordinator.group.machine.stored import StoredGroup, StoredMember
from moldau.wire.errors import ErrorCode
from support.examples import examples

GROUPS = ("g", "h")
_group = st.sampled_from(GROUPS)
_slot = st.integers(0, 3)

_OPERATION = st.one_of(
    st.tuples(st.just("join"), _group, st.sampled_from(["", "x", "y"])),
    st.tuples(st.just("rejoin"), _group, _slot, st.booleans()),
    st.tuples(st.just("static"), _group, _slot, st.sampled_from([8, 9])),
    st.tuples(st.just("settle"), _group),
    st.tuples(st.just("settle"), _group),
    st.tuples(st.just("sync"), _group, _slot),
    st.tuples(st.just("heartbeat"), _group, _slot),
    st.tuples(st.just("leave"), _group, _slot),
    st.tuples(st.just("commit"), _group, _slot, st.integers(-1, 9)),
    st.tuples(st.just("commit_as_member"), _group, _slot),
    st.tuples(st.just("delete_group"), _group),
    st.tuples(st.just("advance"), st.sampled_from([0, 1_000, 6_000])),
    st.tuples(st.just("advance"), st.sampled_from([61_000, 700_000, 8 * 86_400_000])),
)
# Groups begin with members and mostly end settled: that is where there is most to compare.
_BEGIN: list[tuple[Any, ...]] = [
    ("static", "g", 0, 9),
    ("static", "g", 1, 9),
    ("join", "g", "x"),
    ("join", "h", "y"),
    ("settle", "g"),
    ("settle", "h"),
]
_END: list[tuple[Any, ...]] = [("settle", "g"), ("settle", "h")]
OPERATIONS = st.builds(
    lambda middle, end: _BEGIN + middle + end,
    st.lists(_OPERATION, max_size=30),
    st.sampled_from([[], _END, _END, _END]),
)


class Play:
    """Carries random operations out; unknown members and wrong generations are part of it."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage
        self.known: dict[str, list[str]] = {group: [] for group in GROUPS}

    def member(self, group: str, slot: int) -> str:
        known = self.known[group]
        return known[-1 - slot] if slot < len(known) else f"stranger-{slot}"

    def generation(self, group: str) -> int:
        machine = self.stage.shard.group(group)
        return 0 if machine is None else machine.generation

    def join(self, group: str, topic: str) -> None:
        protocols = (
            (("range", b"\0\0\0\0\0\1\0\1" + topic.encode()),) if topic else (("range", b""),)
        )
        first = self.stage.answers.get(self.stage.join(group, protocols=protocols))
        if getattr(first, "error_code", None) == ErrorCode.MEMBER_ID_REQUIRED:
            self.known[group].append(first.member_id)
            self.stage.join(group, first.member_id, protocols=protocols)

    def rejoin(self, group: str, slot: int, changed: bool) -> None:
        protocols = (("range", b"\0\0changed"),) if changed else (("range", b"\0\0"),)
        self.stage.join(group, self.member(group, slot), protocols=protocols)

    def static(self, group: str, slot: int, version: int) -> None:
        self.stage.join(group, instance=f"i{slot}", version=version)
        machine = self.stage.shard.group(group)
        if machine is not None:
            member = machine.static_member_id(f"i{slot}")
            if member is not None:
                self.known[group].append(member)

    def settle(self, group: str) -> None:
        """Everybody rejoins and syncs, as clients do that are left alone."""
        machine = self.stage.shard.group(group)
        if machine is None:
            return
        for member in list(machine.members.values()):
            if member.awaiting_join is None and machine.phase is Phase.PREPARING_REBALANCE:
                self.stage.join(
                    group,
                    member.member_id,
                    instance=member.instance_id,
                    protocols=member.protocols,
                )
        self.stage.advance(1_000)
        for member in list(machine.members.values()):
            assignments = {each: each.encode() for each in machine.members}
            self.stage.sync(
                member.member_id,
                machine.generation,
                assignments,
                group=group,
                instance=member.instance_id,
            )

    def sync(self, group: str, slot: int) -> None:
        self.stage.sync(self.member(group, slot), self.generation(group), group=group)

    def heartbeat(self, group: str, slot: int) -> None:
        self.stage.heartbeat(self.member(group, slot), self.generation(group), group=group)

    def leave(self, group: str, slot: int) -> None:
        if self.stage.shard.group(group) is not None:
            self.stage.leave(self.member(group, slot), group=group)

    def commit(self, group: str, slot: int, offset: int) -> None:
        self.stage.commit(offset, group=group, partition=slot)

    def commit_as_member(self, group: str, slot: int) -> None:
        self.stage.commit(
            5, group=group, member=self.member(group, slot), generation=self.generation(group)
        )

    def delete_group(self, group: str) -> None:
        self.stage.perform(self.stage.shard.delete_groups([group], self.stage.now_ms))

    def advance(self, delay_ms: int) -> None:
        self.stage.advance(delay_ms)


def check_counters(group: ClassicGroup) -> None:
    """What the machine counts along equals what counting gives."""
    members = group.members.values()
    assert group.awaiting_join_count == sum(m.awaiting_join is not None for m in members)
    assert group.leader is None or group.leader in group.members
    assert group.pending_syncs <= group.members.keys()
    assert not group.pending_joins & group.members.keys()
    for member in members:
        if member.instance_id is not None:
            assert group.static_member_id(member.instance_id) == member.member_id
    if group.phase is Phase.EMPTY:
        assert not group.members
    if group.phase is Phase.STABLE:
        assert group.members
        assert all(m.awaiting_sync is None for m in members)


def run(stage: Any, operations: list[tuple[Any, ...]], failing: set[int]) -> None:
    """Carry the operations out; writes fail in those whose position is in `failing`."""
    play = Play(stage)
    for position, (name, *arguments) in enumerate(operations):
        stage.write_error = (
            ErrorCode.COORDINATOR_NOT_AVAILABLE if position in failing else ErrorCode.NONE
        )
        getattr(play, name)(*arguments)
        for group_id in GROUPS:
            machine = stage.shard.group(group_id)
            if machine is not None:
                check_counters(machine)


def check_replicated_state(stage: Any, fresh: Any) -> None:
    assert fresh.stored == stage.shard.stored
    assert fresh.offsets == stage.shard.offsets


def check_settled_groups(stage: Any, fresh: Any) -> None:
    for group_id in stage.shard.stored:
        live, reloaded = stage.shard.group(group_id), fresh.group(group_id)
        event(f"{live.phase.value} with {len(live.members)}")
        if live.phase not in (Phase.STABLE, Phase.EMPTY):
            continue
        assert live.generation == reloaded.generation
        assert live.phase is reloaded.phase
        assert live.leader == reloaded.leader
        assert live.protocol == reloaded.protocol
        assert live.topics == reloaded.topics
        assert list(live.members) == list(reloaded.members)
        for member_id, member in live.members.items():
            other = reloaded.members[member_id]
            assert member.assignment == other.assignment
            assert member.metadata(live.protocol) == other.metadata(live.protocol)
            assert member.session_timeout_ms == other.session_timeout_ms
        if live.phase is Phase.EMPTY:
            assert live.protocol_type == reloaded.protocol_type
            assert live.state_timestamp_ms == reloaded.state_timestamp_ms


_SETTINGS = settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@given(OPERATIONS)
@_SETTINGS
def test_reload_equals_live_state(
    Stage: Any, replayed: Any, operations: list[tuple[Any, ...]]
) -> None:
    stage = Stage(group_initial_rebalance_delay_ms=500)
    run(stage, operations, failing=set())
    fresh = replayed(stage.written, stage.config)
    check_replicated_state(stage, fresh)
    check_settled_groups(stage, fresh)


@given(OPERATIONS, st.sets(st.integers(0, 39)))
@_SETTINGS
def test_failed_writes_leave_no_trace_in_replicated_state(
    Stage: Any, replayed: Any, operations: list[tuple[Any, ...]], failing: set[int]
) -> None:
    stage = Stage(group_initial_rebalance_delay_ms=500)
    run(stage, operations, failing)
    check_replicated_state(stage, replayed(stage.written, stage.config))


def test_every_ticket_is_answered_or_held(Stage: Any) -> None:
    """Nobody is forgotten: whoever has no answer is waited for by a member of the group."""
    stage = Stage()
    tickets = [stage.new_member()[1] for _ in range(3)]
    stage.advance(0)
    members = [stage.answers[each].member_id for each in tickets]
    held = [stage.sync(members[1], 1), stage.sync(members[2], 1)]
    group = stage.shard.group("g")
    assert {each.awaiting_sync for each in group.members.values()} == {None, *held}
    stage.leave(*members)
    assert all(each in stage.answers for each in held)


def test_a_stored_leader_that_is_no_member_is_replaced() -> None:
    member = StoredMember("m", None, "client", "/host", 1, 1, b"", b"")
    stored = StoredGroup(protocol_type="consumer", protocol="range", leader="x", members=(member,))
    group = ClassicGroup.from_stored("g", stored)
    assert group.leader == "m"
    # This failed for a leader that is not in the group.
    assert not group.elect_joined_leader()
