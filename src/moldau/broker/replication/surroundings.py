"""What a replica needs of the node it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from moldau.broker.replication.machine.events import ProposeIsr
from moldau.broker.replication.machine.leader import Brokers, NoBrokers
from moldau.times import ELAPSED_ZERO, ElapsedMs

if TYPE_CHECKING:
    from moldau.broker.replication.partition import Partition


class Surroundings(Protocol):
    """What a replica needs of its node."""

    @property
    def brokers(self) -> Brokers: ...

    def elapsed_ms(self) -> ElapsedMs:
        """Time that only goes forward."""
        ...

    def lag_ms_max(self) -> int:
        """replica.lag.time.max.ms"""
        ...

    def propose(self, partition: Partition, proposal: ProposeIsr) -> None:
        """Have the controller change the ISR; its answer comes back as an event (`step`)."""
        ...


class AloneInTheWorld:
    """The surroundings of a node that is its own cluster."""

    brokers: Brokers = NoBrokers()

    def elapsed_ms(self) -> ElapsedMs:
        return ELAPSED_ZERO

    def lag_ms_max(self) -> int:
        return 30_000

    def propose(self, partition: Partition, proposal: ProposeIsr) -> None:
        pass


ALONE = AloneInTheWorld()
