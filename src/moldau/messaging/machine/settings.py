"""The settings of a ConnectionFactory, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.messaging.machine.errors import MessagingError

__all__ = ["MessagingSettings"]

#: The broker archives a record after ten deliveries at most.
DELIVERIES_MAX = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagingSettings:
    """`clients` has the settings of Kafka's clients. A message is delivered `max_deliveries` times
    and then sent to the topic of its destination with `dead_letter_suffix`."""

    clients: Mapping[str, str] = field(repr=False)
    allow_pickle: bool = False
    max_deliveries: int = 5
    dead_letter_suffix: str = ".dlq"
    prefetch: int = 50

    def __post_init__(self) -> None:
        if not 1 <= self.max_deliveries <= DELIVERIES_MAX:
            raise MessagingError(
                f"max_deliveries is {self.max_deliveries}: it must be 1 to {DELIVERIES_MAX}, "
                "because brokers archive a record after ten"
            )
        if self.prefetch < 1:
            raise MessagingError(f"prefetch is {self.prefetch}: it must be at least 1")
        if not self.dead_letter_suffix:
            raise MessagingError("dead_letter_suffix must not be empty")
