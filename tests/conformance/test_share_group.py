"""A share group with slow, crashing, rejecting and releasing workers: nothing is lost, nothing is
done twice.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType

from support import asking
from support.raw import RawConnection
from support.scenarios.members import Place
from support.scenarios.sharing import (
    ACCEPT,
    GROUP_CONFIG,
    RENEW,
    CrashingWorker,
    RawShareMember,
    ShareWorker,
    deliveries,
    share_consumer,
    share_group_lag,
    wait_for_delivery,
)
from support.scenarios.stage import Stage, stage_for
from support.scenarios.workers import write
from support.waiting import eventually

DELIVERIES_MAX = 5
# What a stopped broker wrote before its end, a killed one must do without.
RESTARTS = [
    "undisturbed",
    pytest.param("stopped", marks=pytest.mark.long("the same after a kill is harder")),
    "killed",
]
INVALID_RECORD_STATE, SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH = 121, 122, 123


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    with stage_for(request, tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture
def place(stage: Stage) -> Place:
    """The only partition of a new topic, whose share group starts at its beginning."""
    [place] = stage.topic(stage.name("shared"))
    configure(stage, place, {"share.auto.offset.reset": "earliest"})
    return place


def configure(stage: Stage, place: Place, config: dict[str, str]) -> None:
    with RawConnection(stage.broker.port) as to:
        assert asking.alter_config(to, GROUP_CONFIG, group_of(place), config)[0] == 0


def group_of(place: Place) -> str:
    return f"{place.topic}-group"


def wait_until_done(stage: Stage, place: Place) -> None:
    """All that was written is accepted, rejected or given up."""
    eventually(
        lambda: share_group_lag(stage.broker.port, group_of(place), place) == 0,
        what="the share group is done with every record",
    )


@pytest.mark.parametrize("disturbance", RESTARTS)
def test_workers_share_a_partition_and_each_record_is_accepted_once(
    stage: Stage, place: Place, disturbance: str
) -> None:
    arguments = (stage.bootstrap, group_of(place), place.topic)
    workers = [ShareWorker(*arguments) for _ in range(3)]
    try:
        values = write(stage.bootstrap, [place], 300, "before")

        def delivered() -> set[bytes]:
            return set().union(*(worker.delivered for worker in workers))

        eventually(lambda: len(delivered()) > 50, what="the workers are at work")
        stage.disturb(disturbance)
        values |= write(stage.bootstrap, [place], 300, "after")
        eventually(lambda: delivered() == values, what="every record is delivered")
        wait_until_done(stage, place)
    finally:
        for worker in workers:
            worker.stop()
    accepted: Counter[bytes] = sum((worker.accepted for worker in workers), Counter())
    assert max(accepted.values()) == 1
    if disturbance == "undisturbed":
        assert accepted == Counter(values)
        assert sum((worker.delivered for worker in workers), Counter()) == Counter(values)


@pytest.mark.parametrize("disturbance", RESTARTS)
def test_a_slow_worker_loses_the_record_to_another(
    stage: Stage, place: Place, disturbance: str
) -> None:
    configure(stage, place, {"share.record.lock.duration.ms": "1000"})
    [value] = write(stage.bootstrap, [place], 1)
    slow = share_consumer(stage.bootstrap, group_of(place), place.topic)
    [(held, first)] = wait_for_delivery(slow)
    assert first == (0, value, 1)
    stage.disturb(disturbance)
    quick = share_consumer(stage.bootstrap, group_of(place), place.topic)
    [(taken, second)] = wait_for_delivery(quick)
    # Who holds a record is not stored, so a broker that restarts counts its deliveries anew.
    times = 2 if disturbance == "undisturbed" else 1
    assert second == (0, value, second.times if stage.is_cluster else times)
    slow.acknowledge(held, AcknowledgeType.ACCEPT)
    [refusal] = slow.commit_sync(30).values()
    assert refusal is not None
    if disturbance == "undisturbed":
        assert refusal.args[0].code() == INVALID_RECORD_STATE
    quick.acknowledge(taken, AcknowledgeType.ACCEPT)
    assert list(quick.commit_sync(30).values()) == [None]
    wait_until_done(stage, place)
    slow.close()
    quick.close()


@pytest.mark.parametrize("disturbance", RESTARTS)
def test_what_a_crashed_worker_held_goes_to_another(
    stage: Stage, place: Place, disturbance: str
) -> None:
    configure(stage, place, {"share.record.lock.duration.ms": "1000"})
    values = write(stage.bootstrap, [place], 10)
    crashing = CrashingWorker(stage.bootstrap, group_of(place), place.topic)
    try:
        assert crashing.crash_when_holding() > 0
    finally:
        crashing.kill()
    stage.disturb(disturbance)
    worker = ShareWorker(stage.bootstrap, group_of(place), place.topic)
    eventually(lambda: worker.accepted.keys() == values, what="another worker does it")
    wait_until_done(stage, place)
    worker.stop()
    assert worker.accepted == Counter(values)


@pytest.mark.parametrize("disturbance", RESTARTS)
def test_rejected_records_do_not_come_again_and_released_ones_do(
    stage: Stage, place: Place, disturbance: str
) -> None:
    write(stage.bootstrap, [place], 9)
    worker = share_consumer(stage.bootstrap, group_of(place), place.topic)
    seen: dict[int, list[int]] = {}

    def work() -> bool:
        """Reject every third record, release every other third once, accept the rest."""
        for message, delivery in deliveries(worker):
            seen.setdefault(delivery.offset, []).append(delivery.times)
            kind = AcknowledgeType.ACCEPT
            if delivery.offset % 3 == 0:
                kind = AcknowledgeType.REJECT
            elif delivery.offset % 3 == 1 and delivery.times == 1:
                kind = AcknowledgeType.RELEASE
            worker.acknowledge(message, kind)
        worker.commit_sync(30)
        return len(seen) == 9

    eventually(work, what="every record was seen")
    stage.disturb(disturbance)
    released = (1, 4, 7)
    eventually(
        lambda: work() and all(len(seen[offset]) == 2 for offset in released),
        what="the released records come again",
    )
    wait_until_done(stage, place)
    worker.close()
    assert seen == {offset: [1, 2] if offset in released else [1] for offset in range(9)}


@pytest.mark.parametrize("disturbance", RESTARTS)
def test_a_record_nobody_can_handle_is_given_up_after_five_deliveries(
    stage: Stage, place: Place, disturbance: str
) -> None:
    write(stage.bootstrap, [place], 1, "poison")
    worker = share_consumer(stage.bootstrap, group_of(place), place.topic)
    counts = []

    def release_one() -> None:
        [(message, delivery)] = wait_for_delivery(worker)
        counts.append(delivery.times)
        worker.acknowledge(message, AcknowledgeType.RELEASE)
        assert list(worker.commit_sync(30).values()) == [None]

    for _ in range(2):
        release_one()
    stage.disturb(disturbance)
    for _ in range(DELIVERIES_MAX - 2):
        release_one()
    assert counts == [1, 2, 3, 4, 5]
    wait_until_done(stage, place)
    [value] = write(stage.bootstrap, [place], 1, "good")
    [(message, delivery)] = wait_for_delivery(worker)
    assert delivery == (1, value, 1)
    worker.acknowledge(message, AcknowledgeType.ACCEPT)
    worker.close()
    wait_until_done(stage, place)


def test_a_renewed_lock_outlives_its_duration(stage: Stage, place: Place) -> None:
    configure(stage, place, {"share.record.lock.duration.ms": "1000"})
    for _ in range(2):
        write(stage.bootstrap, [place], 1)
    holder = RawShareMember(stage.broker.port, group_of(place), place)
    held: list[int] = []
    while len(held) < 2:
        held += [delivery.offset for delivery in holder.fetch()]
    other = RawShareMember(stage.broker.port, group_of(place), place)
    taken: list[tuple[int, int]] = []

    def expired() -> bool:
        assert holder.acknowledge([0], RENEW) == (0, 0)
        taken.extend((delivery.offset, delivery.times) for delivery in other.fetch())
        # Until the lock on the second record has expired three times.
        return len(taken) == 3

    eventually(expired, what="the lock that is not renewed expires")
    assert taken == [(1, 2), (1, 3), (1, 4)]
    assert holder.acknowledge([0], ACCEPT) == (0, 0)
    assert other.acknowledge([1], ACCEPT) == (0, 0)
    wait_until_done(stage, place)
    holder.close()
    other.close()


def test_acknowledgements_of_what_is_not_held_are_refused(stage: Stage, place: Place) -> None:
    for _ in range(2):
        write(stage.bootstrap, [place], 1)
    holder = RawShareMember(stage.broker.port, group_of(place), place)
    stranger = RawShareMember(stage.broker.port, group_of(place), place)
    assert stranger.acknowledge([0], ACCEPT) == (INVALID_SHARE_SESSION_EPOCH, 0)
    [first] = eventually(holder.fetch, what="a record is acquired")
    assert first.offset == 0
    [second] = eventually(stranger.fetch, what="the next record is acquired")
    assert second.offset == 1
    assert stranger.acknowledge([0], ACCEPT) == (0, INVALID_RECORD_STATE)
    assert stranger.acknowledge([1], ACCEPT) == (0, 0)
    assert stranger.acknowledge([1], ACCEPT) == (0, INVALID_RECORD_STATE)
    assert holder.acknowledge([0], ACCEPT) == (0, 0)
    # What lies before the group's start is done with: to say so again changes nothing.
    assert holder.acknowledge([0], ACCEPT) == (0, 0)
    holder.session_epoch += 5
    assert holder.acknowledge([0], ACCEPT) == (INVALID_SHARE_SESSION_EPOCH, 0)
    holder.member_id = "somebody-else"
    assert holder.acknowledge([0], ACCEPT) == (SHARE_SESSION_NOT_FOUND, 0)
    wait_until_done(stage, place)
    holder.close()
    stranger.close()
