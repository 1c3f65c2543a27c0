"""Where a group reads on: reset, seek, offsets that an administrator changed or that expired.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from moldau.wire.apis import ApiKey
from moldau.wire.messages import OffsetCommitRequest, OffsetDeleteRequest
from support import asking
from support.raw import RawConnection
from support.repeats import mostly_long
from support.scenarios.members import CLIENTS, Membership, Place
from support.scenarios.stage import Stage, disturbed, stage_for
from support.scenarios.workers import Team, committed, write
from support.waiting import eventually

COUNT = 20
NONE, UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP, SUBSCRIBED = 0, 25, 68, 86
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
COORDINATOR_MOVES = (14, 15, 16)

each_client = pytest.mark.parametrize(
    "client", mostly_long(CLIENTS, "the same with confluent-kafka", keep=2)
)


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    with stage_for(request, tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture
def place(stage: Stage) -> Place:
    """The only partition of a new topic that holds `COUNT` records."""
    [place] = stage.topic(stage.name("offsets"))
    write(stage.bootstrap, [place], COUNT)
    return place


def team_on(stage: Stage, client: str, place: Place, reset: str = "earliest") -> Team:
    """A team with a ledger of its own; teams on one place are of one group."""
    group = f"{place.topic}-group"
    topics = (place.topic,)
    membership = Membership(bootstrap=stage.bootstrap, group=group, topics=topics, reset=reset)
    return Team(CLIENTS[client], membership)


def offsets_read(team: Team, count: int) -> list[int]:
    """The offsets, in order, that the group's only member reads when it starts now."""
    with team:
        team.join()
        team.wait_for_records(count)
    return sorted(offset for _, offset in team.ledger.values)


@each_client
def test_a_new_group_that_resets_to_latest_sees_only_what_comes_later(
    stage: Stage, client: str, place: Place
) -> None:
    with team_on(stage, client, place, "latest") as team:
        team.join()
        # When a client has looked up the end is its secret: write until it has.
        for number in itertools.count():
            write(stage.bootstrap, [place], 1, f"later {number}")
            if team.ledger.count():
                break
        team.wait_for_records(1)
        offsets = [offset for _, offset in team.ledger.values]
    assert min(offsets) >= COUNT


@each_client
def test_a_position_before_the_log_start_is_reset(stage: Stage, client: str, place: Place) -> None:
    assert offsets_read(team_on(stage, client, place), COUNT) == list(range(COUNT))
    write(stage.bootstrap, [place], COUNT)
    with RawConnection(stage.broker.port) as to:
        assert asking.delete_records(to, *place, COUNT + 5).error_code == NONE
    again = offsets_read(team_on(stage, client, place), COUNT - 5)
    assert again == list(range(COUNT + 5, 2 * COUNT))


@disturbed(CLIENTS, "undisturbed", "killed")
def test_a_member_seeks_back_and_reads_again(
    stage: Stage, client: str, place: Place, disturbance: str
) -> None:
    with team_on(stage, client, place) as team:
        worker = team.join()
        team.wait_for_records(COUNT)
        stage.disturb(disturbance)
        worker.ask(lambda member: member.seek(place, 7))
        times = team.ledger.times

        def read_again() -> bool:
            worker.check()
            return all(times[place, offset] == 2 for offset in range(7, COUNT))

        eventually(read_again, what="everything from offset 7 comes again")
        assert all(times[place, offset] == 1 for offset in range(7))


@disturbed(CLIENTS, "undisturbed", "stopped")
def test_an_administrator_moves_the_offsets_of_a_group_at_rest(
    stage: Stage, client: str, place: Place, disturbance: str
) -> None:
    assert offsets_read(team_on(stage, client, place), COUNT) == list(range(COUNT))
    group = f"{place.topic}-group"
    admin = AdminClient({"bootstrap.servers": stage.bootstrap, "log_level": 2})
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(*place, 5)])
    admin.alter_consumer_group_offsets([wanted])[group].result(30)
    stage.disturb(disturbance)
    assert committed(stage.bootstrap, group) == {place: 5}
    assert offsets_read(team_on(stage, client, place), COUNT - 5) == list(range(5, COUNT))


@disturbed(CLIENTS, "undisturbed", "stopped")
def test_deleted_offsets_are_forgotten_but_not_under_a_reader(
    stage: Stage, client: str, place: Place, disturbance: str
) -> None:
    group = f"{place.topic}-group"
    with team_on(stage, client, place) as team:
        team.join()
        team.wait_for_records(COUNT)
        eventually(lambda: committed(stage.bootstrap, group) == {place: COUNT}, what="a commit")
        assert delete_offsets(stage, group, place) == SUBSCRIBED
    # librdkafka does not wait for the answer when it leaves.
    eventually(lambda: delete_offsets(stage, group, place) == NONE, what="the reader has left")
    stage.disturb(disturbance)
    assert committed(stage.bootstrap, group) == {}
    assert offsets_read(team_on(stage, client, place), COUNT) == list(range(COUNT))


@disturbed(CLIENTS, "undisturbed", "killed")
def test_expired_offsets_are_forgotten_and_the_others_stay(
    stage: Stage, client: str, place: Place, disturbance: str
) -> None:
    """Old versions of OffsetCommit say how long to keep an offset: 1 ms, instead of a minute."""
    group = f"{place.topic}-group"
    other = Place(stage.name("unread"), 0)
    stage.topic(other.topic)
    assert offsets_read(team_on(stage, client, place), COUNT) == list(range(COUNT))
    commit_for(stage, group, other, 3, retention_ms=-1)
    commit_for(stage, group, place, 10, retention_ms=1)
    stage.disturb(disturbance)
    eventually(lambda: committed(stage.bootstrap, group) == {other: 3}, what="an offset expires")
    assert offsets_read(team_on(stage, client, place), COUNT) == list(range(COUNT))
    assert committed(stage.bootstrap, group) == {place: COUNT, other: 3}


def settled(ask: Callable[[], int]) -> int:
    """The error code that `ask` gets. On three nodes the coordinator may just be moving, and who
    asks has to ask again."""
    codes: list[int] = []

    def answered() -> bool:
        codes.append(ask())
        return codes[-1] not in COORDINATOR_MOVES

    eventually(answered, what="the coordinator has settled")
    return codes[-1]


def delete_offsets(stage: Stage, group: str, place: Place) -> int:
    partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=place.partition)
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=place.topic, partitions=[partition])
    request = OffsetDeleteRequest(group_id=group, topics=[topic])

    def ask() -> int:
        with RawConnection(stage.broker.port) as to:
            answer = to.call(ApiKey.OFFSET_DELETE, 0, request)
        return int(answer.error_code or answer.topics[0].partitions[0].error_code)

    return settled(ask)


def commit_for(stage: Stage, group: str, place: Place, offset: int, *, retention_ms: int) -> None:
    """Commit for a group at rest, as an administrator."""
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=place.partition, committed_offset=offset
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=place.topic, partitions=[partition])
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="",
        retention_time_ms=retention_ms, topics=[topic],
    )  # fmt: skip

    def ask() -> int:
        with RawConnection(stage.broker.port) as to:
            answer = to.call(ApiKey.OFFSET_COMMIT, 2, request)
        return int(answer.topics[0].partitions[0].error_code)

    assert settled(ask) == NONE
