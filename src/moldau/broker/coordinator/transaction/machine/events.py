"""The timers, actions and continuations of the transaction shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.broker.coordinator.machine.decision import Action, Continuation, Timer
from moldau.broker.coordinator.transaction.machine.metadata import TransactionMetadata
from moldau.broker.coordinator.transaction.machine.values import ProducerIdAndEpoch
from moldau.wire.errors import ErrorCode


class NeedProducerId:
    """The decision cannot be made without a new producer id; nothing has changed.

    Ids come from the controller, for which a decision cannot wait. So the request is decided again,
    on the state at that time, when the id has arrived.
    """


NEED_PRODUCER_ID: Final = NeedProducerId()

Outcome = ProducerIdAndEpoch | ErrorCode | NeedProducerId
"""The producer id and epoch with which the client continues, or its error after the commit."""


# Timers.


@dataclass(frozen=True, slots=True)
class TimeoutsTimer(Timer):
    """Look for ongoing transactions that are overdue."""


@dataclass(frozen=True, slots=True)
class ExpiryTimer(Timer):
    """Look for transactional ids that have not been used for a long time."""


@dataclass(frozen=True, slots=True)
class ResumeTimer(Timer):
    """Try again to make sure that decisions are committed whose write had failed."""


TransactionTimer = TimeoutsTimer | ExpiryTimer | ResumeTimer


# Actions.


@dataclass(frozen=True, slots=True)
class SendMarkers(Action):
    """The decision is committed: send the markers, then have the transaction completed."""

    prepared: TransactionMetadata


@dataclass(frozen=True, slots=True)
class AbortTimedOut(Action):
    transactional_ids: tuple[str, ...]


TransactionAction = SendMarkers | AbortTimedOut


# Continuations.


@dataclass(frozen=True, slots=True)
class Written(Continuation):
    metadata: TransactionMetadata


@dataclass(frozen=True, slots=True)
class Resumed(Continuation):
    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaughtUp(Continuation):
    """All ids have caught up with what partitions have seen, if that could be written."""


TransactionContinuation = Written | Resumed | CaughtUp
