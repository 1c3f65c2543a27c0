"""ShareFetch and ShareAcknowledge as clients see them."""

from __future__ import annotations

import asyncio

from moldau.broker.coordinator.share.machine.values import SharePartitionKey, ShareState, StateBatch
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.replication.coordinator_appends import append_marker
from moldau.broker.replication.deletion import delete_records
from moldau.broker.share.machine.partition import ACCEPT, REJECT, RELEASE, RENEW
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import PartitionChangeRecord
from moldau.wire.uuids import DIRECTORY_UNASSIGNED
from support.hosting import OTHER_NODE_ID
from support.share_stage import GROUP, Stage, acquired_of, on_stage, partition_of, values_of


@on_stage
async def test_records_are_delivered_with_what_the_client_needs(stage: Stage) -> None:
    stage.append(b"a", b"b")
    stage.append(b"c")
    response = await stage.member().fetch("t", max_wait_ms=100)
    assert acquired_of(response) == [(0, 2, 1)]
    assert values_of(response) == [b"a", b"b", b"c"]
    assert response.acquisition_lock_timeout_ms == 30_000


@on_stage
async def test_only_the_batches_that_were_acquired_are_sent(stage: Stage) -> None:
    for value in (b"a", b"b", b"c"):
        stage.append(value)
    first, second = stage.member("m1"), stage.member("m2")
    assert values_of(await first.fetch("t", max_records=1)) == [b"a"]
    response = await second.fetch("t", max_records=1)
    assert (values_of(response), acquired_of(response)) == ([b"b"], [(1, 1, 1)])


@on_stage
async def test_a_fetch_waits_for_a_record(stage: Stage) -> None:
    member = stage.member()
    waiting = asyncio.ensure_future(member.fetch("t", max_wait_ms=500))
    await stage.settle()
    assert not waiting.done()
    stage.append(b"a")
    assert values_of(await waiting) == [b"a"]
    assert len(stage.manager.purgatory) == 0
    assert not stage.host.partition("t").waiters.changes


@on_stage
async def test_fetches_that_need_not_wait_leave_nothing_behind(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    for _ in range(3):
        await member.fetch(max_wait_ms=0)
    stage.append(b"b")
    await member.fetch()
    assert len(stage.manager.purgatory) == 0
    assert not stage.host.partition("t").waiters.changes


@on_stage
async def test_a_failing_persister_is_told(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")

    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    stage.persister.write_state = broken  # type: ignore[method-assign]
    answer = partition_of(await member.acknowledge((0, 0, ACCEPT)))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@on_stage
async def test_a_fetch_waits_for_enough_bytes_until_its_time_is_over(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    waiting = asyncio.ensure_future(member.fetch("t", max_wait_ms=500, min_bytes=10_000))
    await stage.settle()
    stage.append(b"b")
    await stage.pass_ms(499)
    assert not waiting.done()
    await stage.pass_ms(1)
    assert values_of(await waiting) == [b"a", b"b"]


@on_stage
async def test_a_fetch_gets_nothing_when_its_time_is_over(stage: Stage) -> None:
    member = stage.member()
    waiting = asyncio.ensure_future(member.fetch("t", max_wait_ms=500))
    await stage.pass_ms(500)
    response = await waiting
    assert acquired_of(response) == []
    assert partition_of(response).records == b""
    # Within a session what has nothing new is not mentioned.
    waiting = asyncio.ensure_future(member.fetch(max_wait_ms=500))
    await stage.pass_ms(500)
    assert (await waiting).responses == []


@on_stage
async def test_a_fetch_gets_what_another_member_gives_back(stage: Stage) -> None:
    stage.append(b"a", b"b")
    first, second = stage.member("m1"), stage.member("m2")
    await first.fetch("t")
    waiting = asyncio.ensure_future(second.fetch("t", max_wait_ms=5000))
    await stage.settle()
    await first.acknowledge((1, 1, RELEASE))
    assert acquired_of(await waiting) == [(1, 1, 2)]


@on_stage
async def test_a_lock_that_ends_makes_records_available(stage: Stage) -> None:
    stage.append(b"a", b"b")
    first, second = stage.member("m1"), stage.member("m2")
    await first.fetch("t")
    waiting = asyncio.ensure_future(second.fetch("t", max_wait_ms=60_000))
    await stage.pass_ms(29_999)
    assert not waiting.done()
    await stage.pass_ms(1)
    assert acquired_of(await waiting) == [(0, 1, 2)]
    assert stage.persister.writes == [[(0, 1, 0, 1)]]
    late = partition_of(await first.acknowledge((0, 1, ACCEPT)))
    assert late.error_code == ErrorCode.INVALID_RECORD_STATE


@on_stage
async def test_acknowledgements_come_with_the_next_fetch(stage: Stage) -> None:
    stage.append(b"a", b"b")
    member = stage.member()
    await member.fetch("t")
    stage.append(b"c")
    response = await member.fetch("t", acks={0: [(0, 0, ACCEPT), (1, 1, REJECT)]})
    assert acquired_of(response) == [(2, 2, 1)]
    assert partition_of(response).acknowledge_error_code == 0
    assert stage.persister.writes == [[(0, 0, 2, 1), (1, 1, 4, 1)]]
    response = await member.fetch("t", acks={0: [(0, 7, ACCEPT)]}, max_wait_ms=0)
    assert partition_of(response).acknowledge_error_code == ErrorCode.INVALID_REQUEST


@on_stage
async def test_a_renewed_lock_lasts_longer(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    await stage.pass_ms(20_000)
    nothing = {"max_bytes": 0, "max_records": 0, "min_bytes": 0, "max_wait_ms": 0}
    response = await member.fetch("t", acks={0: [(0, 0, RENEW)]}, is_renew_ack=True, **nothing)
    assert partition_of(response).acknowledge_error_code == 0
    await stage.pass_ms(29_999)
    answer = await member.acknowledge((0, 0, ACCEPT))
    assert partition_of(answer).error_code == 0
    assert answer.acquisition_lock_timeout_ms == 30_000


@on_stage
async def test_renewing_is_announced_and_fetches_nothing(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    unannounced = await member.acknowledge((0, 0, RENEW))
    assert partition_of(unannounced).error_code == ErrorCode.INVALID_REQUEST
    greedy = await member.fetch("t", acks={0: [(0, 0, RENEW)]}, is_renew_ack=True)
    assert greedy.error_code == ErrorCode.INVALID_REQUEST
    assert partition_of(await member.acknowledge((0, 0, RENEW), is_renew_ack=True)).error_code == 0


@on_stage
async def test_acknowledgements_of_what_does_not_exist(stage: Stage) -> None:
    stage.create("other")
    member = stage.member()
    await member.fetch("t", max_wait_ms=0)
    for topic, partition, code in (
        ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_ID),
        ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("other", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        answer = await member.acknowledge(
            (0, 0, ACCEPT), topic_id=stage.ids[topic], partition=partition
        )
        assert partition_of(answer, partition).error_code == code


@on_stage
async def test_malformed_acknowledgements(stage: Stage) -> None:
    stage.append(b"a", b"b", b"c")
    member = stage.member()
    await member.fetch("t")
    for acks in ([(1, 0, ACCEPT)], [(1, 1, ACCEPT), (0, 0, ACCEPT)], [(0, 0, 5)], [(0, 0, -1)]):
        answer = partition_of(await member.acknowledge(*acks))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert partition_of(await member.acknowledge((0, 2, ACCEPT))).error_code == 0


@on_stage
async def test_nothing_is_acknowledged_that_could_not_be_stored(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    stage.persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = partition_of(await member.acknowledge((0, 0, ACCEPT)))
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.persister.error = None
    assert partition_of(await member.acknowledge((0, 0, ACCEPT))).error_code == 0


@on_stage
async def test_a_fenced_leader_forgets_what_it_knew(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    stage.persister.error = ErrorCode.FENCED_LEADER_EPOCH
    answer = await member.acknowledge((0, 0, ACCEPT))
    data = partition_of(answer)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, 0)
    assert [(node.node_id, node.host) for node in answer.node_endpoints] == [(1, "host1")]
    stage.persister.error = None
    assert acquired_of(await member.fetch("t")) == [(0, 0, 1)]
    assert stage.persister.reads == 2


@on_stage
async def test_many_acknowledgements_are_stored_together(stage: Stage) -> None:
    members = [stage.member(f"m{index}") for index in range(3)]
    for member in members:
        stage.append(b"x")
        await member.fetch("t")
    stage.persister.gate = asyncio.Event()
    waiting = []
    for offset, member in enumerate(members):
        waiting.append(asyncio.ensure_future(member.acknowledge((offset, offset, ACCEPT))))
        await stage.settle()
    assert not any(each.done() for each in waiting)
    stage.persister.gate.set()
    for each in waiting:
        assert partition_of(await each).error_code == 0
    assert len(stage.persister.writes) == 2


@on_stage
async def test_a_partition_begins_where_its_stored_state_says(stage: Stage) -> None:
    stage.append(b"a", b"b", b"c", b"d")
    key = SharePartitionKey(GROUP, stage.ids["t"], 0)
    stage.persister.states[key] = ShareState(3, 1, (StateBatch(2, 2, 2, 1),))
    assert acquired_of(await stage.member().fetch("t")) == [(1, 1, 1), (3, 3, 1)]


@on_stage
async def test_a_fetch_tells_that_the_state_cannot_be_read(stage: Stage) -> None:
    stage.persister.error = ErrorCode.GROUP_ID_NOT_FOUND
    response = await stage.member().fetch("t", max_wait_ms=1000)
    assert partition_of(response).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert len(stage.manager) == 0


@on_stage
async def test_where_a_group_begins(stage: Stage) -> None:
    stage.append(b"old")
    stage.host.loop.advance(7_200_000)
    stage.append(b"young")
    for strategy, first in (
        ("latest", 2),
        ("earliest", 0),
        ("by_duration:PT1H", 1),
        ("by_duration:P1DT0.5S", 0),
        ("by_duration:PT0S", 3),
    ):
        stage.settings["share.auto.offset.reset"] = strategy
        member = stage.member(strategy)
        stage.host.loop.advance(1)
        waiting = asyncio.ensure_future(member.fetch("t", max_wait_ms=100))
        await stage.settle()
        if not waiting.done():
            stage.append(b"new")
        assert acquired_of(await waiting)[0][0] == first
        await member.fetch(epoch=-1)
        await stage.settle()
        stage.persister.states.clear()


@on_stage
async def test_aborted_records_are_hidden_from_a_group_that_wants_committed_ones(
    stage: Stage,
) -> None:
    stage.settings["share.isolation.level"] = "read_committed"
    producer = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    stage.append(b"aborted", base_sequence=0, **producer)
    member = stage.member()
    waiting = asyncio.ensure_future(member.fetch("t", max_wait_ms=1000))
    await stage.settle()
    assert not waiting.done(), "the transaction is open"
    _end_transaction(stage, committed=False)
    response = await waiting
    # Markers are delivered as Kafka does it: the client knows that they are no records.
    assert acquired_of(response) == [(1, 1, 1)]
    assert b"aborted" not in partition_of(response).records
    stage.append(b"committed", base_sequence=1, **producer)
    _end_transaction(stage, committed=True)
    response = await member.fetch()
    assert acquired_of(response) == [(2, 3, 1)]
    assert values_of(response)[0] == b"committed"


def _end_transaction(stage: Stage, *, committed: bool) -> None:
    append_marker(
        stage.host.partition("t"),
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=0,
        committed=committed,
        transaction_version=0,
        now_ms=stage.host.loop.now_ms,
    )


# Sessions.


@on_stage
async def test_a_session_is_needed_and_its_epochs_are_checked(stage: Stage) -> None:
    member = stage.member()
    missing = ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (await member.fetch("t", epoch=1)).error_code == missing
    assert (await member.fetch("t", epoch=-1)).error_code == missing
    assert (await member.acknowledge((0, 0, ACCEPT), epoch=1)).error_code == missing
    assert (await member.acknowledge((0, 0, ACCEPT), epoch=-1)).error_code == missing
    wrong = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert (await member.acknowledge((0, 0, ACCEPT), epoch=0)).error_code == wrong
    with_acks = await member.fetch("t", epoch=0, acks={0: [(0, 0, ACCEPT)]})
    assert with_acks.error_code == ErrorCode.INVALID_REQUEST
    await member.fetch("t", max_wait_ms=0)
    assert (await member.fetch("t", epoch=2)).error_code == wrong
    assert (await member.acknowledge((0, 0, ACCEPT), epoch=2)).error_code == wrong
    await member.fetch("t", max_wait_ms=0)
    assert member.epoch == 2


@on_stage
async def test_there_is_a_limit_on_sessions(stage: Stage) -> None:
    members = [stage.member(f"m{index}") for index in range(4)]
    for member in members[:3]:
        await member.fetch("t", max_wait_ms=0)
    refused = await members[3].fetch("t", max_wait_ms=0)
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    await members[0].fetch(epoch=-1)
    await stage.settle()
    assert (await members[3].fetch("t", max_wait_ms=0)).error_code == 0


@on_stage
async def test_a_closed_session_gives_back_its_records(stage: Stage) -> None:
    stage.append(b"a", b"b")
    first, second = stage.member("m1"), stage.member("m2")
    await first.fetch("t")
    waiting = asyncio.ensure_future(second.fetch("t", max_wait_ms=5000))
    await stage.settle()
    response = await first.fetch("t", epoch=-1, acks={0: [(0, 0, ACCEPT)]})
    assert partition_of(response).acknowledge_error_code == 0
    assert acquired_of(await waiting) == [(1, 1, 2)]
    assert len(stage.manager.sessions) == 1


@on_stage
async def test_a_lost_connection_gives_back_its_records(stage: Stage) -> None:
    stage.append(b"a")
    first, second = stage.member("m1"), stage.member("m2")
    await first.fetch("t")
    waiting = asyncio.ensure_future(second.fetch("t", max_wait_ms=5000))
    await stage.settle()
    first.connection.closed()
    assert acquired_of(await waiting) == [(0, 0, 2)]


@on_stage
async def test_a_lost_connection_acquires_nothing_more(stage: Stage) -> None:
    member = stage.member()
    waiting = asyncio.ensure_future(member.fetch("t", max_wait_ms=5000))
    await stage.settle()
    member.connection.closed()
    await stage.settle()
    stage.append(b"a")
    assert (await waiting).responses == []
    assert len(stage.manager) == len(stage.manager.sessions) == 0
    assert acquired_of(await stage.member("m2").fetch("t")) == [(0, 0, 1)]


@on_stage
async def test_a_new_session_of_a_member_keeps_its_records(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    member.epoch = 0
    await member.fetch("t", max_wait_ms=0)
    assert partition_of(await member.acknowledge((0, 0, ACCEPT))).error_code == 0


@on_stage
async def test_partitions_are_added_to_a_session_and_taken_out(stage: Stage) -> None:
    stage.ids.pop("t")
    stage.create("u", 2)
    stage.ids["t"] = stage.ids["u"]
    member = stage.member()
    await member.fetch("u", partitions=[0], max_wait_ms=0)
    waiting = asyncio.ensure_future(member.fetch("u", partitions=[1]))
    await stage.pass_ms(1000)
    added = await waiting
    assert [p.partition_index for t in added.responses for p in t.partitions] == [1]
    stage.append(b"0", topic="u", index=0)
    stage.append(b"1", topic="u", index=1)
    response = await member.fetch(forget=[0])
    assert values_of(response, 1) == [b"1"]
    assert len(response.responses[0].partitions) == 1


@on_stage
async def test_partitions_take_turns(stage: Stage) -> None:
    stage.create("u", 3)
    for index in range(3):
        for _ in range(5):
            stage.append(b"x" * 100, topic="u", index=index)
    member = stage.member()
    served = []
    for _ in range(3):
        topics = ("u",) if member.epoch == 0 else ()
        response = await member.fetch(*topics, partitions=[0, 1, 2], max_bytes=1, max_records=1)
        served += [
            each.partition_index
            for topic in response.responses
            for each in topic.partitions
            if each.acquired_records
        ]
    assert sorted(served) == [0, 1, 2]


@on_stage
async def test_partitions_that_are_loaded_together_do_not_add_up_to_one_response(
    stage: Stage,
) -> None:
    stage.create("u", 2)
    for index in range(2):
        stage.append(*([b"x"] * 50), topic="u", index=index)
    gate = stage.persister.gate = asyncio.Event()
    member = stage.member()
    first = asyncio.ensure_future(member.fetch("u", partitions=[0, 1], max_records=500))
    await stage.pass_ms(1)
    gate.set()
    responses = [await first, await member.fetch(max_wait_ms=0)]
    assert [
        [each.partition_index for topic in response.responses for each in topic.partitions
         if each.acquired_records]
        for response in responses
    ] == [[0], [1]]  # fmt: skip


@on_stage
async def test_a_cluster_without_share_groups(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    stage.enabled = False
    stage.manager.apply(MetadataDelta(features={"share.version"}), stage.host.image)
    assert (await member.fetch()).error_code == ErrorCode.UNSUPPORTED_VERSION
    answer = await member.acknowledge((0, 0, ACCEPT))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    await stage.settle()
    assert len(stage.manager) == len(stage.manager.sessions) == 0


@on_stage
async def test_a_node_that_stops_answers_all(stage: Stage) -> None:
    stage.append(b"a")
    first, second = stage.member("m1"), stage.member("m2")
    await first.fetch("t")
    stage.persister.gate = asyncio.Event()
    acknowledging = asyncio.ensure_future(first.acknowledge((0, 0, ACCEPT)))
    fetching = asyncio.ensure_future(second.fetch("t"))
    await stage.settle()
    await stage.manager.close()
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition_of(await acknowledging).error_code == code
    assert (await fetching).error_code == 0
    assert (await first.fetch()).error_code == code


# Leadership.


@on_stage
async def test_unknown_partitions_are_named(stage: Stage) -> None:
    member = stage.member()
    response = await member.fetch("nowhere", max_wait_ms=100)
    assert partition_of(response).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    member = stage.member("m2")
    response = await member.fetch("t", partitions=[7], max_wait_ms=100)
    assert partition_of(response, 7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@on_stage
async def test_a_client_is_told_who_leads(stage: Stage) -> None:
    stage.create("far", replicas=(1, OTHER_NODE_ID), leader=OTHER_NODE_ID)
    response = await stage.member().fetch("far", max_wait_ms=100)
    data = partition_of(response)
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert data.current_leader.leader_id == OTHER_NODE_ID
    assert [node.host for node in response.node_endpoints] == ["host2"]


@on_stage
async def test_a_waiting_fetch_is_told_of_a_lost_leadership(stage: Stage) -> None:
    stage.create("r", replicas=(1, OTHER_NODE_ID), isr=(1,))
    member = stage.member()
    waiting = asyncio.ensure_future(member.fetch("r", max_wait_ms=5000))
    await stage.settle()
    stage.host.change_partition(stage.ids["r"], leader=OTHER_NODE_ID)
    assert partition_of(await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(stage.manager) == 0


@on_stage
async def test_share_partitions_of_a_deleted_topic_are_dropped(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    topic = stage.host.image.topics_by_name["t"]
    stage.host.delete_topic(stage.ids["t"])
    stage.manager.apply(MetadataDelta(deleted_topics={topic.id: topic}), stage.host.image)
    assert len(stage.manager) == 0
    answer = partition_of(await member.acknowledge((0, 0, ACCEPT)))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@on_stage
async def test_deleted_records_are_skipped(stage: Stage) -> None:
    for value in (b"a", b"b", b"c"):
        stage.append(value)
    member = stage.member()
    assert acquired_of(await member.fetch("t", max_records=1)) == [(0, 0, 1)]
    await member.acknowledge((0, 0, RELEASE))
    delete_records(stage.host.partition("t"), 2)
    assert acquired_of(await member.fetch()) == [(2, 2, 1)]
    assert partition_of(await member.acknowledge((0, 2, ACCEPT))).error_code == 0


@on_stage
async def test_a_changed_config_counts_from_the_next_request(stage: Stage) -> None:
    stage.append(b"a")
    member = stage.member()
    await member.fetch("t")
    stage.settings["share.renew.acknowledge.enable"] = False
    stage.settings["share.record.lock.duration.ms"] = 15_000
    stage.manager.apply(MetadataDelta(configs={(32, GROUP): {"share.x"}}), stage.host.image)
    answer = await member.acknowledge((0, 0, RENEW), is_renew_ack=True)
    assert partition_of(answer).error_code == ErrorCode.INVALID_RECORD_STATE
    assert answer.acquisition_lock_timeout_ms == 15_000


@on_stage
async def test_who_leads_again_begins_from_what_is_stored(stage: Stage) -> None:
    stage.create("r", replicas=(1, OTHER_NODE_ID), isr=(1,))
    stage.append(b"a", b"b", topic="r")
    member = stage.member()
    assert acquired_of(await member.fetch("r", max_wait_ms=100)) == [(0, 1, 1)]
    waiting = asyncio.ensure_future(stage.member("m2").fetch("r", max_wait_ms=5000))
    await stage.settle()
    # Another node has led in between, and delivered the first record.
    key = SharePartitionKey(GROUP, stage.ids["r"], 0)
    stage.persister.states[key] = ShareState(0, 1, ())
    stage.host.apply(
        *(
            PartitionChangeRecord(topic_id=stage.ids["r"], partition_id=0, leader=leader)
            for leader in (OTHER_NODE_ID, 1)
        )
    )
    stage.manager.apply(MetadataDelta(from_snapshot=True), stage.host.image)
    assert partition_of(await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(stage.manager) == 0
    answer = partition_of(await member.acknowledge((0, 0, ACCEPT), topic_id=stage.ids["r"]))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert acquired_of(await stage.member("m3").fetch("r", max_wait_ms=100)) == [(1, 1, 1)]


@on_stage
async def test_a_replica_that_moves_away_is_no_unknown_topic(stage: Stage) -> None:
    stage.create("r", replicas=(1, OTHER_NODE_ID), isr=(1,))
    member = stage.member()
    waiting = asyncio.ensure_future(member.fetch("r", max_wait_ms=5000))
    await stage.settle()
    stage.host.change_partition(
        stage.ids["r"],
        leader=OTHER_NODE_ID,
        replicas=[OTHER_NODE_ID],
        isr=[OTHER_NODE_ID],
        directories=[DIRECTORY_UNASSIGNED],
    )
    stage.manager.apply(MetadataDelta(from_snapshot=True), stage.host.image)
    answer = partition_of(await waiting)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == OTHER_NODE_ID
