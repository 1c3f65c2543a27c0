"""Whatever happened: a shard that replays what was written is the shard that wrote it."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.broker.coordinator.group.classic import ClassicGroup, Phase
from moldau.wire.errors import ErrorCode

GROUPS = ("g", "h")
_group = st.sampled_from(GROUPS)
_slot = st.integers(0, 3)

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), _group, _slot, st.sampled_from(["", "x", "y"])),
        st.tuples(st.just("rejoin"), _group, _slot, st.booleans()),
        st.tuples(st.just("static"), _group, _slot, st.sampled_from([8, 9])),
        st.tuples(st.just("sync_all"), _group),
        st.tuples(st.just("sync"), _group, _slot),
        st.tuples(st.just("heartbeat"), _group, _slot),
        st.tuples(st.just("leave"), _group, _slot),
        st.tuples(st.just("commit"), _group, _slot, st.integers(-1, 9)),
        st.tuples(st.just("commit_as_member"), _group, _slot),
        st.tuples(st.just("delete_group"), _group),
        st.tuples(st.just("fail_writes"), st.booleans()),
        st.tuples(st.just("advance"), st.sampled_from([0, 1_000, 6_000, 61_000, 700_000])),
        st.tuples(st.just("advance"), st.just(8 * 86_400_000)),
    ),
    max_size=40,
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

    def join(self, group: str, slot: int, topic: str) -> None:
        first = self.stage.answers.get(self.stage.join(group, session_ms=10_000))
        if first is not None and first is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
            if first.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.known[group].append(first.member_id)
                self.stage.join(group, first.member_id)

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

    def sync_all(self, group: str) -> None:
        machine = self.stage.shard.group(group)
        for member in list(machine.members) if machine else []:
            assignments = {each: each.encode() for each in machine.members}
            self.stage.sync(member, machine.generation, assignments, group=group)

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

    def fail_writes(self, failing: bool) -> None:
        self.stage.write_error = ErrorCode.COORDINATOR_NOT_AVAILABLE if failing else ErrorCode.NONE

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


@given(OPERATIONS)
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_reload_equals_live_state(
    Stage: Any, replayed: Any, operations: list[tuple[Any, ...]]
) -> None:
    stage = Stage(group_initial_rebalance_delay_ms=500)
    play = Play(stage)
    writes_failed = False
    for name, *arguments in operations:
        getattr(play, name)(*arguments)
        writes_failed = writes_failed or stage.write_error is not ErrorCode.NONE
        for group_id in GROUPS:
            machine = stage.shard.group(group_id)
            if machine is not None:
                check_counters(machine)
    fresh = replayed(stage.written, stage.config)
    assert fresh.stored == stage.shard.stored
    assert fresh.offsets == stage.shard.offsets
    if writes_failed:
        # The machine may then be ahead of the log, on purpose.
        return
    for group_id in stage.shard.stored:
        live, reloaded = stage.shard.group(group_id), fresh.group(group_id)
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
