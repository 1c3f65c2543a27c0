"""What happens to a broker (events), and what it does about it (effects)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias
from uuid import UUID

from moldau.wire.errors import ErrorCode
from moldau.wire.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest


class BrokerState(IntEnum):
    """Kafka's states and their numbers, as its metric BrokerState shows them."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


# Timers.


@dataclass(frozen=True, slots=True)
class Communication:
    """The next registration or heartbeat."""


@dataclass(frozen=True, slots=True)
class RegistrationTimeout:
    """A broker that is not registered by then stops."""


@dataclass(frozen=True, slots=True)
class ShutdownTimeout:
    """A controlled shutdown that has not ended by then ends uncontrolled."""


@dataclass(frozen=True, slots=True)
class DirectoryTimeout:
    """The controller must have received this failed log directory by then."""

    directory_id: UUID


Timer: TypeAlias = Communication | RegistrationTimeout | ShutdownTimeout | DirectoryTimeout


# Events.


@dataclass(frozen=True, slots=True)
class Started:
    pass


@dataclass(frozen=True, slots=True)
class TimerFired:
    timer: Timer
    #: Of the last image that all parts of this broker have taken over.
    metadata_offset: int
    #: Whether the cluster's metadata version has cordoned log directories.
    cordoning_supported: bool


@dataclass(frozen=True, slots=True)
class RegistrationAnswered:
    error: ErrorCode
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered:
    error: ErrorCode
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


@dataclass(frozen=True, slots=True)
class CallFailed:
    """No answer to the request under way."""

    reason: str


@dataclass(frozen=True, slots=True)
class BecameReadyToUnfence:
    pass


@dataclass(frozen=True, slots=True)
class DirectoryFailed:
    directory_id: UUID
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class DirectoriesCordoned:
    """All that are cordoned from now on."""

    directory_ids: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class RegistrationOutdated:
    """What this broker registered with is not what the cluster should know of it now."""


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Another controller is the active one: it has no heartbeat of this broker yet."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownBegun:
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ShutdownBegun:
    pass


Event: TypeAlias = (
    Started
    | TimerFired
    | RegistrationAnswered
    | HeartbeatAnswered
    | CallFailed
    | BecameReadyToUnfence
    | DirectoryFailed
    | DirectoriesCordoned
    | RegistrationOutdated
    | ControllerChanged
    | ControlledShutdownBegun
    | ShutdownBegun
)


# Effects.


@dataclass(frozen=True, slots=True)
class SendRegistration:
    request: BrokerRegistrationRequest


@dataclass(frozen=True, slots=True)
class SendHeartbeat:
    request: BrokerHeartbeatRequest


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Instead of an earlier time of the same timer."""

    timer: Timer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """For the first time the metadata of this broker includes its registration."""


@dataclass(frozen=True, slots=True)
class Unfenced:
    """For the first time clients may be sent here."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """No more will be sent; `failure` is why this was not wanted."""

    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A line for the operator."""

    message: str
    is_problem: bool = False


Effect: TypeAlias = (
    SendRegistration | SendHeartbeat | SetTimer | CaughtUp | Unfenced | Stopped | Report
)
