"""What a broker tells the controller, when, and what it makes of the answers."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest

from moldau.broker.lifecycle.machine.events import (
    BecameReadyToUnfence,
    BrokerState,
    CallFailed,
    CaughtUp,
    Communication,
    ControlledShutdownBegun,
    ControllerChanged,
    DirectoriesCordoned,
    DirectoryFailed,
    DirectoryTimeout,
    Effect,
    Event,
    HeartbeatAnswered,
    RegistrationAnswered,
    RegistrationOutdated,
    RegistrationTimeout,
    Report,
    SendHeartbeat,
    SendRegistration,
    SetTimer,
    ShutdownBegun,
    ShutdownTimeout,
    Started,
    Stopped,
    Timer,
    TimerFired,
    Unfenced,
)
from moldau.broker.lifecycle.machine.lifecycle import BrokerLifecycle, Identity
from moldau.broker.metadata.machine.model import Endpoint
from moldau.wire.errors import ErrorCode

INTERVAL = 2_000
DIRECTORY = UUID(int=1_000)
OTHER_DIRECTORY = UUID(int=2_000)
OK = ErrorCode.NONE


def identity(**changes: Any) -> Identity:
    fields: dict[str, Any] = {
        "broker_id": 3,
        "cluster_id": "cluster",
        "incarnation_id": UUID(int=77),
        "endpoints": (Endpoint(name="PLAINTEXT", host="host", port=9092),),
        "features": {"metadata.version": (7, 30), "group.version": (0, 1)},
        "log_dirs": (OTHER_DIRECTORY, DIRECTORY),
        "rack": "r1",
        "previous_broker_epoch": 12,
    }
    return Identity(**fields | changes)


def lifecycle() -> BrokerLifecycle:
    return BrokerLifecycle(
        identity(), heartbeat_interval_ms=INTERVAL, registration_timeout_ms=60_000
    )


def due(timer: Timer = Communication(), *, offset: int = 40, cordoning: bool = True) -> TimerFired:  # noqa: B008
    return TimerFired(timer, offset, cordoning)


def beat(
    *, caught_up: bool = True, fenced: bool = True, shut_down: bool = False, error: ErrorCode = OK
) -> HeartbeatAnswered:
    return HeartbeatAnswered(error, caught_up, fenced, shut_down)


def run(machine: BrokerLifecycle, *events: Event) -> list[Effect]:
    """What the last event leads to, without the lines for the operator."""
    effects: list[Effect] = []
    for event in events:
        effects = machine.step(event)
    return [effect for effect in effects if not isinstance(effect, Report)]


def problems(effects: list[Effect]) -> list[str]:
    return [each.message for each in effects if isinstance(each, Report) and each.is_problem]


def heartbeat_of(effects: list[Effect]) -> Any:
    (effect,) = effects
    assert isinstance(effect, SendHeartbeat)
    return effect.request


def registered() -> BrokerLifecycle:
    machine = lifecycle()
    run(machine, Started(), due(), RegistrationAnswered(OK, 50))
    return machine


def recovering() -> BrokerLifecycle:
    machine = registered()
    run(machine, due(), beat())
    return machine


def running() -> BrokerLifecycle:
    machine = recovering()
    run(machine, BecameReadyToUnfence(), due(), beat(fenced=False))
    assert machine.state is BrokerState.RUNNING
    return machine


def next_in(delay_ms: int) -> SetTimer:
    return SetTimer(Communication(), delay_ms)


def test_a_start_registers_at_once_and_not_for_ever() -> None:
    machine = lifecycle()
    assert run(machine, Started()) == [SetTimer(RegistrationTimeout(), 60_000), next_in(0)]
    assert machine.state is BrokerState.STARTING
    (sent,) = run(machine, due())
    assert isinstance(sent, SendRegistration)
    request = sent.request
    assert (request.broker_id, request.cluster_id, request.rack) == (3, "cluster", "r1")
    assert (request.incarnation_id, request.previous_broker_epoch) == (UUID(int=77), 12)
    assert request.log_dirs == [DIRECTORY, OTHER_DIRECTORY]
    assert [(each.name, each.host, each.port) for each in request.listeners] == [
        ("PLAINTEXT", "host", 9092)
    ]
    assert [each.name for each in request.features] == ["group.version", "metadata.version"]
    assert run(machine, Started()) == []


def test_the_way_from_start_to_running() -> None:
    machine = lifecycle()
    run(machine, Started(), due())
    assert machine.broker_epoch == -1
    assert run(machine, RegistrationAnswered(OK, 50)) == [next_in(0)]
    assert machine.broker_epoch == 50

    request = heartbeat_of(run(machine, due(offset=49)))
    assert (request.broker_id, request.broker_epoch, request.current_metadata_offset) == (3, 50, 49)
    assert (request.want_fence, request.want_shut_down) == (True, False)
    assert run(machine, beat(caught_up=False)) == [next_in(10)]
    assert machine.state is BrokerState.STARTING

    run(machine, due(offset=51))
    assert run(machine, beat()) == [CaughtUp(), next_in(10)]
    assert machine.state is BrokerState.RECOVERY

    # Logs are still being loaded: fenced it stays.
    assert heartbeat_of(run(machine, due())).want_fence
    assert run(machine, beat()) == [next_in(INTERVAL)]
    assert run(machine, BecameReadyToUnfence()) == [next_in(0)]
    assert not heartbeat_of(run(machine, due())).want_fence
    assert run(machine, beat(fenced=False)) == [Unfenced(), next_in(INTERVAL)]
    assert machine.state is BrokerState.RUNNING
    run(machine, due())
    assert run(machine, beat(fenced=False)) == [next_in(INTERVAL)]


def test_being_ready_early_does_not_skip_recovery() -> None:
    machine = registered()
    run(machine, BecameReadyToUnfence(), due())
    assert run(machine, beat(fenced=False)) == [CaughtUp(), next_in(10)]
    run(machine, due())
    assert run(machine, beat(fenced=False)) == [Unfenced(), next_in(INTERVAL)]


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another process with this node.id"),
        (ErrorCode.INCONSISTENT_CLUSTER_ID, "another cluster"),
        (ErrorCode.UNSUPPORTED_VERSION, "features"),
        (ErrorCode.INVALID_REGISTRATION, "INVALID_REGISTRATION"),
    ],
)
def test_a_refused_registration_is_explained_once_and_tried_until_time_is_over(
    error: ErrorCode, advice: str
) -> None:
    machine = lifecycle()
    machine.step(Started())
    machine.step(due())
    effects = machine.step(RegistrationAnswered(error, -1))
    assert len(problems(effects)) == 1
    assert advice in problems(effects)[0]
    # Another process may be gone any moment; the other problems take their time.
    duplicate = error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    retry_ms = min(200, INTERVAL) if duplicate else INTERVAL
    assert effects[-1] == next_in(retry_ms)
    (again,) = machine.step(due())
    assert isinstance(again, SendRegistration)
    assert machine.step(RegistrationAnswered(error, -1)) == [next_in(retry_ms)]

    (stopped,) = machine.step(due(RegistrationTimeout()))
    assert isinstance(stopped, Stopped)
    assert error.name in str(stopped.failure)
    assert machine.state is BrokerState.SHUTTING_DOWN


def test_a_registered_broker_does_not_mind_the_registration_timeout() -> None:
    machine = registered()
    assert machine.step(due(RegistrationTimeout())) == []
    assert machine.state is BrokerState.STARTING


def test_an_unanswered_request_is_sent_again_after_the_interval() -> None:
    machine = lifecycle()
    run(machine, Started(), due())
    effects = machine.step(CallFailed("node 1 is away"))
    assert problems(effects) == ["node 1 is away"]
    assert effects[-1] == next_in(INTERVAL)
    machine.step(due())
    assert machine.step(CallFailed("node 1 is away")) == [next_in(INTERVAL)]
    # Once it went well the next failure is news.
    run(machine, due(), RegistrationAnswered(OK, 5), due())
    assert problems(machine.step(CallFailed("node 1 is away"))) == ["node 1 is away"]


def test_what_becomes_due_while_a_request_is_under_way_follows_at_once() -> None:
    machine = recovering()
    run(machine, due())
    assert run(machine, BecameReadyToUnfence(), due()) == []
    assert run(machine, beat()) == [next_in(0)]
    assert not heartbeat_of(run(machine, due())).want_fence


def test_not_at_once_after_a_failure() -> None:
    machine = recovering()
    run(machine, due(), BecameReadyToUnfence(), due())
    assert run(machine, CallFailed("cut")) == [next_in(INTERVAL)]
    assert not heartbeat_of(run(machine, due())).want_fence


def test_a_stale_epoch_makes_it_register_again() -> None:
    machine = running()
    run(machine, due())
    effects = machine.step(beat(error=ErrorCode.STALE_BROKER_EPOCH))
    assert "STALE_BROKER_EPOCH" in problems(effects)[0]
    assert effects[-1] == next_in(INTERVAL)
    (sent,) = run(machine, due())
    assert isinstance(sent, SendRegistration)
    assert run(machine, RegistrationAnswered(OK, 90)) == [next_in(0)]
    request = heartbeat_of(run(machine, due()))
    assert (request.broker_epoch, request.want_fence) == (90, False)
    assert machine.state is BrokerState.RUNNING


def test_other_refusals_of_heartbeats_change_nothing() -> None:
    machine = running()
    run(machine, due())
    effects = machine.step(beat(error=ErrorCode.BROKER_ID_NOT_REGISTERED, shut_down=True))
    assert "unregistered while it ran" in problems(effects)[0]
    assert heartbeat_of(run(machine, due())).broker_epoch == 50


def test_it_says_when_it_was_fenced_and_when_that_is_over() -> None:
    machine = running()
    machine.step(due())
    assert "fenced this broker" in problems(machine.step(beat(fenced=True)))[0]
    machine.step(due())
    assert problems(machine.step(beat(fenced=True))) == []
    machine.step(due())
    assert Report("unfenced again") in machine.step(beat(fenced=False))


def test_failed_folders_are_told_until_the_end() -> None:
    machine = running()
    effects = run(machine, DirectoryFailed(DIRECTORY, 30_000))
    assert effects == [SetTimer(DirectoryTimeout(DIRECTORY), 30_000), next_in(0)]
    assert heartbeat_of(run(machine, due())).offline_log_dirs == [DIRECTORY]
    # A second one fails while the first is on its way: it is not yet told.
    run(machine, DirectoryFailed(OTHER_DIRECTORY, 30_000), beat(fenced=False))
    assert run(machine, due(DirectoryTimeout(DIRECTORY))) == []
    assert heartbeat_of(run(machine, due())).offline_log_dirs == [DIRECTORY, OTHER_DIRECTORY]
    (stopped,) = run(machine, due(DirectoryTimeout(OTHER_DIRECTORY)))
    assert isinstance(stopped, Stopped)
    assert str(OTHER_DIRECTORY) in str(stopped.failure)


def test_a_folder_that_failed_before_registration_is_in_the_first_heartbeat() -> None:
    machine = lifecycle()
    assert run(machine, DirectoryFailed(DIRECTORY, 5)) == [SetTimer(DirectoryTimeout(DIRECTORY), 5)]
    run(machine, Started(), due(), RegistrationAnswered(OK, 50))
    # The registration has told nothing of it.
    assert heartbeat_of(run(machine, due())).offline_log_dirs == [DIRECTORY]
    run(machine, beat())
    assert run(machine, due(DirectoryTimeout(DIRECTORY))) == []


def test_a_registration_tells_the_controller_of_no_failure() -> None:
    machine = lifecycle()
    run(machine, DirectoryFailed(DIRECTORY, 5), Started(), due(), RegistrationAnswered(OK, 50))
    (stopped,) = run(machine, due(DirectoryTimeout(DIRECTORY)))
    assert isinstance(stopped, Stopped)


def test_cordoned_folders_are_told_once_they_can_be_known() -> None:
    machine = registered()
    cordoned = frozenset({DIRECTORY})
    assert run(machine, DirectoriesCordoned(cordoned)) == [next_in(0)]
    assert heartbeat_of(run(machine, due())).cordoned_log_dirs is None
    run(machine, beat())
    assert heartbeat_of(run(machine, due(cordoning=False))).cordoned_log_dirs is None
    run(machine, beat())
    assert heartbeat_of(run(machine, due())).cordoned_log_dirs == [DIRECTORY]
    run(machine, beat(), DirectoriesCordoned(frozenset()))
    assert heartbeat_of(run(machine, due())).cordoned_log_dirs == []


def test_nobody_said_which_are_cordoned() -> None:
    assert heartbeat_of(run(recovering(), due())).cordoned_log_dirs is None


def test_a_registration_is_renewed_on_demand_without_looking_fenced() -> None:
    machine = running()
    assert run(machine, RegistrationOutdated()) == [next_in(0)]
    (sent,) = run(machine, due())
    assert isinstance(sent, SendRegistration)
    run(machine, RegistrationAnswered(OK, 50), due())
    assert machine.step(beat(fenced=False)) == [next_in(INTERVAL)]


def test_controlled_shutdown_waits_for_the_controller() -> None:
    machine = running()
    effects = run(machine, ControlledShutdownBegun(300_000))
    assert effects == [SetTimer(ShutdownTimeout(), 300_000), next_in(0)]
    assert machine.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    assert run(machine, ControlledShutdownBegun(1)) == []
    assert heartbeat_of(run(machine, due())).want_shut_down
    assert run(machine, beat(fenced=False)) == [next_in(50)]
    assert heartbeat_of(run(machine, due())).want_shut_down
    assert run(machine, beat(fenced=False)) == [next_in(INTERVAL)]
    run(machine, due())
    assert run(machine, beat(shut_down=True)) == [Stopped()]
    assert machine.state is BrokerState.SHUTTING_DOWN


def test_controlled_shutdown_ends_with_its_deadline() -> None:
    machine = running()
    run(machine, ControlledShutdownBegun(300_000), due())
    effects = machine.step(due(ShutdownTimeout()))
    assert len(problems(effects)) == 1
    assert effects[-1] == Stopped()


@pytest.mark.parametrize("make", [lifecycle, registered, recovering])
def test_who_does_not_run_yet_goes_without_asking(make: Any) -> None:
    assert run(make(), ControlledShutdownBegun(300_000)) == [Stopped()]


@pytest.mark.parametrize("seed", range(50))
def test_any_order_of_events_keeps_one_request_under_way_and_a_next_one_coming(seed: int) -> None:
    chance = random.Random(seed)
    machine = lifecycle()
    machine.step(Started())
    under_way: str | None = None
    planned = True
    order = list(BrokerState)
    for _ in range(400):
        before = machine.state
        event = _any_event(chance, under_way, planned)
        if isinstance(event, TimerFired):
            planned = False
        elif isinstance(event, (CallFailed, HeartbeatAnswered, RegistrationAnswered)):
            under_way = None
        for effect in machine.step(event):
            match effect:
                case SendHeartbeat():
                    assert under_way is None
                    under_way = "heartbeat"
                case SendRegistration():
                    assert under_way is None
                    under_way = "registration"
                case SetTimer(Communication(), delay_ms):
                    assert 0 <= delay_ms <= INTERVAL
                    planned = True
                case _:
                    pass
        assert order.index(machine.state) >= order.index(before)
        if machine.state is BrokerState.SHUTTING_DOWN:
            assert machine.step(due()) == []
            return
        assert planned or under_way


def _any_event(chance: random.Random, under_way: str | None, planned: bool) -> Event:
    error = chance.choice([OK, OK, OK, ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER])
    always: list[Event] = [
        BecameReadyToUnfence(),
        RegistrationOutdated(),
        DirectoriesCordoned(frozenset({DIRECTORY})),
        DirectoryFailed(DIRECTORY, 10_000),
    ]
    if chance.random() < 0.02:
        return chance.choice([ControlledShutdownBegun(9), ShutdownBegun()])
    if chance.random() < 0.2:
        return chance.choice(always)
    if planned and (under_way is None or chance.random() < 0.3):
        return due(offset=chance.randrange(100))
    if chance.random() < 0.2:
        return CallFailed("cut")
    if under_way == "registration":
        return RegistrationAnswered(error, chance.randrange(100))
    if under_way == "heartbeat":
        return beat(error=error, caught_up=chance.random() < 0.5, fenced=chance.random() < 0.5)
    return chance.choice(always)


def test_a_new_controller_hears_from_a_registered_broker_at_once() -> None:
    assert lifecycle().step(ControllerChanged()) == []
    assert running().step(ControllerChanged()) == [next_in(0)]


def test_what_is_urgent_follows_the_request_under_way_at_once() -> None:
    """Also when its answer comes before a timer could go off: else it would wait an interval."""
    machine = recovering()
    machine.step(due())
    assert run(machine, BecameReadyToUnfence()) == []
    assert run(machine, beat()) == [next_in(0)]
    assert not heartbeat_of(machine.step(due())).want_fence
