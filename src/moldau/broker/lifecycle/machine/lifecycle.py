"""Decides what a broker sends to the controller, and the state of its lifecycle.

Transitions are in README.md, the events and effects in events.py. Delays are returned as SetTimer
and come back as TimerFired. As in Kafka a broker sends registrations until one is accepted, then
heartbeats; one request is in flight at a time, and one that becomes due meanwhile follows at once.

Unlike Kafka's broker, which continues with heartbeats that the controller rejects, one whose epoch
is stale registers again: it gets DUPLICATE_BROKER_REGISTRATION as long as another process with its
id is alive, and is registered otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never
from uuid import UUID

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
    TimerFired,
    Unfenced,
)
from moldau.broker.metadata.machine.model import Endpoint
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest

#: While starting a broker asks often, so that one with nothing to recover is up soon.
STARTING_INTERVAL_MS: Final = 10
#: The second heartbeat of a controlled shutdown; many need no third.
SHUTDOWN_INTERVAL_MS: Final = 50

#: How soon a registration is tried again that was refused because of another process: the refusal
#: ends with that process, or when its end is noticed, not with a heartbeat interval.
DUPLICATE_RETRY_MS: Final = 200

_WHAT_TO_DO: Final = {
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: (
        "another process with this node.id is alive, or was until just now: "
        "it is tried again until its session has expired (broker.session.timeout.ms)"
    ),
    ErrorCode.INCONSISTENT_CLUSTER_ID: (
        "the controllers belong to another cluster: check controller.quorum.bootstrap.servers or "
        "controller.quorum.voters, and the cluster.id in meta.properties"
    ),
    ErrorCode.UNSUPPORTED_VERSION: (
        "the cluster has features finalized that this broker does not support: upgrade it"
    ),
    ErrorCode.BROKER_ID_NOT_REGISTERED: (
        "this broker was unregistered while it ran: restart it if it is still wanted"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a broker registers with; the same as long as it runs."""

    broker_id: int
    cluster_id: str
    #: New for each start.
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    #: By name, lowest and highest level.
    features: Mapping[str, tuple[int, int]]
    log_dirs: tuple[UUID, ...]
    rack: str | None = None
    #: Of the run before this one, if that ended cleanly; else -1.
    previous_broker_epoch: int = -1


class BrokerLifecycle:
    """One broker's life, from start to stop."""

    def __init__(
        self,
        identity: Identity,
        *,
        heartbeat_interval_ms: int,
        registration_timeout_ms: int,
    ) -> None:
        self._identity = identity
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._registration_timeout_ms = registration_timeout_ms
        self.state = BrokerState.NOT_RUNNING
        #: -1 until first registered. After that always the last one given.
        self.broker_epoch = -1
        self._registered = False
        self._was_registered = False
        self._ready_to_unfence = False
        self._fenced = True
        # By id, whether the controller has received it.
        self._failed_directories: dict[UUID, bool] = {}
        # None until it is known: the controller then keeps what it has.
        self._cordoned: frozenset[UUID] | None = None
        # The failed log directories in the request that is in flight, None without a request.
        self._under_way: frozenset[UUID] | None = None
        self._next_is_immediate = False
        self._shutdown_accepted = False
        self._problem = ""

    def step(self, event: Event) -> list[Effect]:
        if self.state is BrokerState.SHUTTING_DOWN:
            return []
        match event:
            case Started():
                return self._on_started()
            case TimerFired():
                return self._on_timer(event)
            case RegistrationAnswered():
                return self._on_registration(event)
            case HeartbeatAnswered():
                return self._on_heartbeat(event)
            case CallFailed(reason):
                self._under_way = None
                return [*self._trouble(reason), self._next_after_failure()]
            case BecameReadyToUnfence():
                self._ready_to_unfence = True
                return self._communicate_now()
            case DirectoryFailed(directory_id, timeout_ms):
                self._failed_directories.setdefault(directory_id, False)
                deadline = SetTimer(DirectoryTimeout(directory_id), timeout_ms)
                return [deadline, *(self._communicate_now() if self._registered else ())]
            case DirectoriesCordoned(directory_ids):
                self._cordoned = directory_ids
                return self._communicate_now() if self._registered else []
            case RegistrationOutdated():
                self._registered = False
                return self._communicate_now()
            case ControllerChanged():
                return self._communicate_now() if self._registered else []
            case ControlledShutdownBegun(timeout_ms):
                return self._on_controlled_shutdown(timeout_ms)
            case ShutdownBegun():
                return self._stop()
            case _:
                assert_never(event)

    # Starting and stopping.

    def _on_started(self) -> list[Effect]:
        if self.state is not BrokerState.NOT_RUNNING:
            return []
        self.state = BrokerState.STARTING
        return [
            SetTimer(RegistrationTimeout(), self._registration_timeout_ms),
            SetTimer(Communication(), 0),
        ]

    def _on_controlled_shutdown(self, timeout_ms: int) -> list[Effect]:
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return []
        if self.state is not BrokerState.RUNNING:
            # No other node relies on this broker yet.
            return self._stop()
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        deadline = SetTimer(ShutdownTimeout(), timeout_ms)
        return [Report("beginning controlled shutdown"), deadline, *self._communicate_now()]

    def _stop(self, failure: str | None = None) -> list[Effect]:
        self.state = BrokerState.SHUTTING_DOWN
        return [Stopped(failure)]

    # Sending.

    def _on_timer(self, event: TimerFired) -> list[Effect]:
        match event.timer:
            case Communication():
                return self._on_communication_due(event)
            case RegistrationTimeout():
                if self._was_registered:
                    return []
                return self._stop(
                    f"broker {self._identity.broker_id} could not register with the controller "
                    f"within {self._registration_timeout_ms} ms "
                    f"(initial.broker.registration.timeout.ms): {self._problem or 'no response'}"
                )
            case ShutdownTimeout():
                late = "controlled shutdown did not end in time; going on without it"
                return [Report(late, is_problem=True), *self._stop()]
            case DirectoryTimeout(directory_id):
                if self._failed_directories.get(directory_id):
                    return []
                return self._stop(
                    f"the failure of log directory {directory_id} could not be reported to the "
                    "controller in time (log.dir.failure.timeout.ms)"
                )
            case _:
                assert_never(event.timer)

    def _on_communication_due(self, event: TimerFired) -> list[Effect]:
        if self._under_way is not None:
            self._next_is_immediate = True
            return []
        self._under_way = frozenset(self._failed_directories)
        if self._registered:
            return [SendHeartbeat(self._heartbeat(event))]
        return [SendRegistration(self._registration())]

    def _registration(self) -> BrokerRegistrationRequest:
        identity = self._identity
        return BrokerRegistrationRequest(
            broker_id=identity.broker_id,
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in identity.endpoints
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in sorted(identity.features.items())
            ],
            rack=identity.rack,
            log_dirs=sorted(identity.log_dirs),
            previous_broker_epoch=identity.previous_broker_epoch,
        )

    def _heartbeat(self, event: TimerFired) -> BrokerHeartbeatRequest:
        # The cordoned log directories are in the metadata, so they are not known before that is.
        caught_up = self.state > BrokerState.STARTING
        cordoned = self._cordoned if caught_up and event.cordoning_supported else None
        return BrokerHeartbeatRequest(
            broker_id=self._identity.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=event.metadata_offset,
            want_fence=not self._ready_to_unfence,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=sorted(self._failed_directories),
            cordoned_log_dirs=None if cordoned is None else sorted(cordoned),
        )

    # Answers.

    def _on_registration(self, event: RegistrationAnswered) -> list[Effect]:
        self._under_way = None
        if event.error is not ErrorCode.NONE:
            refused = self._refused("registration", event.error)
            if event.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                delay_ms = min(DUPLICATE_RETRY_MS, self._heartbeat_interval_ms)
                return [*refused, self._next_after_failure(delay_ms)]
            return [*refused, self._next_after_failure()]
        self._problem = ""
        self._registered = self._was_registered = True
        if event.broker_epoch != self.broker_epoch:
            # A registration that is only amended keeps its epoch, and stays as fenced as it was.
            self._fenced = True
        self.broker_epoch = event.broker_epoch
        epoch = f"registered broker {self._identity.broker_id} with epoch {event.broker_epoch}"
        return [Report(epoch), *self._communicate_now()]

    def _on_heartbeat(self, event: HeartbeatAnswered) -> list[Effect]:
        reported, self._under_way = self._under_way or frozenset(), None
        if event.error is ErrorCode.STALE_BROKER_EPOCH:
            self._registered = False
            return [*self._refused("heartbeat", event.error), self._next_after_failure()]
        if event.error is not ErrorCode.NONE:
            return [*self._refused("heartbeat", event.error), self._next_after_failure()]
        self._problem = ""
        for directory_id in reported:
            self._failed_directories[directory_id] = True
        effects = self._note_fencing(event.is_fenced)
        match self.state:
            case BrokerState.STARTING:
                if event.is_caught_up:
                    self.state = BrokerState.RECOVERY
                    effects += [Report("caught up with the cluster's metadata"), CaughtUp()]
                return [*effects, self._next(STARTING_INTERVAL_MS)]
            case BrokerState.RECOVERY:
                if not event.is_fenced:
                    self.state = BrokerState.RUNNING
                    effects += [Report("unfenced: ready for clients"), Unfenced()]
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                if event.should_shut_down:
                    return [*effects, Report("controlled shutdown complete"), *self._stop()]
                first, self._shutdown_accepted = not self._shutdown_accepted, True
                if first:
                    return [*effects, self._next(SHUTDOWN_INTERVAL_MS)]
            case _:
                pass
        return [*effects, self._next(self._heartbeat_interval_ms)]

    def _note_fencing(self, is_fenced: bool) -> list[Effect]:
        was_fenced, self._fenced = self._fenced, is_fenced
        if self.state is not BrokerState.RUNNING or was_fenced == is_fenced:
            return []
        if is_fenced:
            return [Report("the controller has fenced this broker: clients leave", is_problem=True)]
        return [Report("unfenced again")]

    def _refused(self, what: str, error: ErrorCode) -> list[Effect]:
        advice = _WHAT_TO_DO.get(error, "it is tried again")
        if error is ErrorCode.STALE_BROKER_EPOCH:
            advice = "another process has registered with this node.id; registering again"
        return self._trouble(f"the controller rejected the {what} with {error.name}: {advice}")

    def _trouble(self, problem: str) -> list[Effect]:
        """The same problem is logged once, not at every attempt."""
        if problem == self._problem:
            return []
        self._problem = problem
        return [Report(problem, is_problem=True)]

    # When to send next.

    def _communicate_now(self) -> list[Effect]:
        if self.state is BrokerState.NOT_RUNNING:
            return []
        if self._under_way is not None:
            # The response would set a timer to the usual interval, if it arrives first.
            self._next_is_immediate = True
            return []
        return [self._next(0)]

    def _next_after_failure(self, delay_ms: int | None = None) -> SetTimer:
        self._next_is_immediate = False
        return self._next(self._heartbeat_interval_ms if delay_ms is None else delay_ms)

    def _next(self, delay_ms: int) -> SetTimer:
        delay_ms = 0 if self._next_is_immediate else delay_ms
        self._next_is_immediate = False
        return SetTimer(Communication(), delay_ms)
