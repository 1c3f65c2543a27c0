"""What goes into the transaction shard beside requests, and what it wants done outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moldau.broker.coordinator.machine.decision import Action, Continuation, Timer
from moldau.broker.coordinator.transaction.machine.metadata import TransactionMetadata
from moldau.broker.coordinator.transaction.machine.values import ProducerIdAndEpoch
from moldau.wire.errors import ErrorCode


class NeedProducerId:
    """The decision cannot be made without a fresh producer id; nothing has happened.

    Ids come from the controller, for which a decision cannot wait. So the request is decided
    anew, on whatever the state is then, with an id in hand.
    """


NEED_PRODUCER_ID: Final = NeedProducerId()

Outcome = ProducerIdAndEpoch | ErrorCode | NeedProducerId
"""Whom the client continues as, or the error it is told after commit."""


# Timers.


@dataclass(frozen=True, slots=True)
class TimeoutsTimer(Timer):
    """Look for ongoing transactions that are overdue."""


@dataclass(frozen=True, slots=True)
class ExpiryTimer(Timer):
    """Look for transactional ids that nobody has used for long."""


@dataclass(frozen=True, slots=True)
class ResumeTimer(Timer):
    """Try again to make sure that decisions are committed whose write had failed."""


TransactionTimer = TimeoutsTimer | ExpiryTimer | ResumeTimer


# Actions.


@dataclass(frozen=True, slots=True)
class SendMarkers(Action):
    """The decision is committed: tell every partition, then have the transaction completed."""

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
    """Nobody is behind what partitions have seen, as far as that could be written."""


TransactionContinuation = Written | Resumed | CaughtUp
