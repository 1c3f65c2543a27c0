"""Members come, go and return, told by each client and also across restarts of the broker.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import asking
from support.raw import RawConnection
from support.repeats import mostly_long
from support.scenarios.members import CLIENTS, MemberRefused, Membership, Place
from support.scenarios.sharing import GROUP_CONFIG
from support.scenarios.stage import DISTURBANCES, Stage, disturbed, stage_for
from support.scenarios.workers import Load, Team, committed, write
from support.waiting import eventually

MEMBERS = 8
COOPERATIVE = [name for name, client in CLIENTS.items() if client.cooperative]
FENCED = [name for name, client in CLIENTS.items() if client.fenced]


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    with stage_for(request, tmp_path_factory.mktemp("stage")) as stage:
        yield stage


def team_on(stage: Stage, client: str, topic: str, session_ms: int = 30_000) -> Team:
    membership = Membership(
        bootstrap=stage.bootstrap, group=f"{topic}-group", topics=(topic,), session_ms=session_ms
    )
    return Team(CLIENTS[client], membership)


def assert_all_processed_and_committed(
    team: Team, delivered: dict[tuple[Place, int], bytes]
) -> None:
    """At least once: nothing was missed, and nobody will see any of it again."""
    team.wait_for_records(len(delivered))
    assert team.ledger.values == delivered
    ends = {}
    for place, offset in delivered:
        ends[place] = max(ends.get(place, 0), offset + 1)
    bootstrap, group = team.membership.bootstrap, team.membership.group
    eventually(lambda: committed(bootstrap, group) == ends, what="the ends are committed")


@disturbed(CLIENTS, *DISTURBANCES)
@pytest.mark.slow("seven members come and go, one after the other")
def test_a_group_grows_to_eight_and_shrinks_to_one_under_load(
    stage: Stage, client: str, disturbance: str
) -> None:
    topic = stage.name("scaled")
    places = stage.topic(topic, MEMBERS)
    # A member that comes or goes just when the broker dies stays until its session ends.
    team = team_on(stage, client, topic, session_ms=6000)
    with team, Load(stage.bootstrap, places) as load:
        team.join()
        team.wait_until_shared(places)
        team.wait_for_records(50)
        for _ in range(MEMBERS - 1):
            team.join()
        if disturbance == "stopped":
            stage.disturb(disturbance)
        team.wait_until_shared(places)
        team.wait_for_records(team.ledger.count() + 50)
        for worker in team.workers[1:]:
            team.leave(worker)
        if disturbance == "killed":
            stage.disturb(disturbance)
        team.wait_until_shared(places)
        assert_all_processed_and_committed(team, load.finish())


@disturbed(COOPERATIVE, "undisturbed", "stopped")
def test_members_keep_what_they_own_while_another_comes(
    stage: Stage, client: str, disturbance: str
) -> None:
    topic = stage.name("kept")
    places = stage.topic(topic, 6)
    with team_on(stage, client, topic) as team, Load(stage.bootstrap, places) as load:
        first = team.join()
        team.wait_until_shared(places)
        second = team.join()
        team.wait_until_shared(places)
        before = {worker: worker.owned for worker in (first, second)}
        seen = {worker: len(worker.changes) for worker in (first, second)}
        stage.disturb(disturbance)
        third = team.join()
        team.wait_until_shared(places)
        team.wait_for_records(team.ledger.count() + 50)
        for worker in (first, second):
            assert worker.owned < before[worker]
            revoked = [change.places for change in worker.changes[seen[worker] :]
                       if change.what == "revoked"]  # fmt: skip
            assert frozenset().union(*revoked) == before[worker] - worker.owned
        assert third.owned == (before[first] | before[second]) - first.owned - second.owned
        assert_all_processed_and_committed(team, load.finish())


@disturbed(CLIENTS, "undisturbed", "killed")
def test_a_static_member_restarts_and_nobody_notices(
    stage: Stage, client: str, disturbance: str
) -> None:
    topic = stage.name("static")
    places = stage.topic(topic, 4)
    # It is away for as long as nodes take to restart, and must not be missed meanwhile.
    with RawConnection(stage.broker.port) as to:
        patience = {"consumer.session.timeout.ms": "60000"}
        assert asking.alter_config(to, GROUP_CONFIG, f"{topic}-group", patience) == (0, None)
    with team_on(stage, client, topic) as team, Load(stage.bootstrap, places) as load:
        stays, restarts = team.join("stays"), team.join("restarts")
        team.wait_until_shared(places)
        owned, changes = restarts.owned, list(stays.changes)
        team.leave(restarts)
        stage.disturb(disturbance)
        returned = team.join("restarts")
        team.wait_until_shared(places)
        assert returned.owned == owned
        assert stays.changes == changes
        assert_all_processed_and_committed(team, load.finish())


@pytest.mark.parametrize("client", mostly_long(FENCED, "the same with another client", keep=2))
def test_of_two_members_with_one_instance_id_one_is_refused(stage: Stage, client: str) -> None:
    """The classic protocol fences the one that was there, the consumer protocol the newcomer."""
    topic = stage.name("fenced")
    places = stage.topic(topic, 2)
    with team_on(stage, client, topic) as team:
        there = team.join("one")
        team.wait_until_shared(places)
        newcomer = team.join("one")
        kept, refused = newcomer, there
        if CLIENTS[client].consumer_protocol:
            kept, refused = there, newcomer
        eventually(lambda: kept.owned == places, what="one of them owns the partitions")
        # A client that does not look at its heartbeats' answers learns it from its next commit.
        values = write(stage.bootstrap, sorted(places), 10)
        eventually(lambda: refused.failure, what="the other is refused")
        assert isinstance(refused.failure, MemberRefused), refused.failure
        team.workers.remove(refused)
        team.wait_for_records(10)
        assert kept.owned == places
        assert set(team.ledger.values.values()) == values


@pytest.mark.parametrize("client", mostly_long(CLIENTS, "the same with another client", keep=2))
def test_a_pattern_finds_a_topic_created_later(stage: Stage, client: str) -> None:
    prefix = stage.name("pattern") + "-"
    first = stage.topic(f"{prefix}first", 2)
    write(stage.bootstrap, sorted(first), 10, "first")
    membership = Membership(bootstrap=stage.bootstrap, group=f"{prefix}group", prefix=prefix)
    with Team(CLIENTS[client], membership) as team:
        team.join()
        team.join()
        team.wait_for_records(10)
        stage.disturb("killed")
        # aiokafka fails an assertion of its own if its subscription changes while it looks for
        # the coordinator: so it has one again before the topic appears.
        write(stage.bootstrap, sorted(first), 10, "again")
        team.wait_for_records(20)
        assert_all_processed_and_committed(team, dict(team.ledger.values))
        stage.topic(f"not-{prefix}other")
        later = stage.topic(f"{prefix}later", 2)
        written = write(stage.bootstrap, sorted(later), 10, "later")
        team.wait_for_records(30)
        team.wait_until_shared(first | later)
        seen = {value for (place, _), value in team.ledger.values.items() if place in later}
        assert seen == written
