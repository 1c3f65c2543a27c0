"""What a replica needs from the node it is on."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from moldau.broker.replication.machine.events import Event, ProposeIsr
from moldau.broker.replication.machine.leader import Brokers
from moldau.times import ElapsedMs


class Proposer(Protocol):
    """A partition that proposes another ISR; the response is passed to `step`."""

    @property
    def topic_id(self) -> UUID: ...

    @property
    def index(self) -> int: ...

    def step(self, event: Event) -> None: ...


class Surroundings(Protocol):
    """What a replica needs from its node."""

    @property
    def brokers(self) -> Brokers: ...

    def elapsed_ms(self) -> ElapsedMs: ...

    def lag_ms_max(self) -> int:
        """replica.lag.time.max.ms"""
        ...

    def isr_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        """The in-sync replicas of a partition that this node leads have changed."""
        ...

    def propose(self, partition: Proposer, proposal: ProposeIsr) -> None:
        """Have the controller change the ISR; its response is passed to `partition.step`."""
        ...
