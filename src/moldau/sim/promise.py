"""What power failures a cluster must survive whose logs are not flushed, and which it need not.

Kafka promises that a record acknowledged by all in-sync replicas survives as long as one of them
keeps its data. So the power of a machine fails only if

- all others are up, and none of them has lost power and is not in sync everywhere since;
- every partition that it is in sync with, or eligible to lead, has another such replica;
- it is not the last leader that a partition without any such replica waits for.

And until the controller has taken the machine out of every ISR (its session was over, or it has
registered again and said that its shutdown was not clean) nobody else's process ends: such a
restart, too, takes a broker out of the ISR (KIP-966), and then the machine that has lost its data
would be the last member. From then on until it is in sync everywhere again, a process ends only if
each of its partitions has another such replica on a machine that is up and has lost nothing: what
Kafka is left with after restarts of all of them that were not clean is the last leader, whoever
that was. Pauses, blocked ways and slow disks come at any time, also then, and metadata survives any
power failure, as it is synced before it is committed.
"""

from __future__ import annotations

from moldau.sim.cluster import Cluster
from moldau.sim.machine import Machine


class Promise:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lost: dict[Machine, int] = {}
        """Who has lost power, and the broker epoch that it had then."""

    def on_power_lost(self, machine: Machine) -> None:
        image = self._cluster.newest_image()
        broker = None if image is None else image.brokers.get(machine.node_id)
        self._lost[machine] = -1 if broker is None else broker.epoch

    def may_lose_power(self, machine: Machine) -> bool:
        self._forget_recovered()
        if any(other is not machine for other in self._lost):
            return False
        others = [each for each in self._cluster.machines if each is not machine]
        image = self._cluster.newest_image()
        if image is None or not all(each.up and each.running for each in others):
            return False
        for topic in image.topics_by_id.values():
            for state in topic.partitions.values():
                able = {*state.isr, *state.elr} or {*state.last_known_elr}
                if machine.node_id in able and len(able) == 1:
                    return False
        return True

    def may_end(self, machine: Machine) -> bool:
        """Whether its process may end now."""
        self._forget_recovered()
        lost = [other for other in self._lost if other is not machine]
        if not lost:
            return True
        image = self._cluster.newest_image()
        if image is None or any(self.is_excused(other) for other in lost):
            return False
        holders = {
            each.node_id
            for each in self._cluster.machines
            if each.up and each.running and each is not machine and each not in lost
        }
        for topic in image.topics_by_id.values():
            for state in topic.partitions.values():
                able = {*state.isr, *state.elr}
                if machine.node_id in able and not able & holders:
                    return False
        return True

    def is_excused(self, machine: Machine) -> bool:
        """Whether it has lost what it had, and the controller takes it for its former self."""
        epoch = self._lost.get(machine)
        image = self._cluster.newest_image()
        if epoch is None or image is None:
            return False
        broker = image.brokers.get(machine.node_id)
        if broker is not None and broker.epoch > epoch:
            return False
        return any(
            machine.node_id in (*state.isr, *state.elr)
            for topic in image.topics_by_id.values()
            for state in topic.partitions.values()
        )

    def _forget_recovered(self) -> None:
        image = self._cluster.newest_image()
        if image is None:
            return
        for machine, epoch in list(self._lost.items()):
            broker = image.brokers.get(machine.node_id)
            if broker is None or broker.epoch <= epoch:
                continue
            if all(
                machine.node_id in state.isr
                for topic in image.topics_by_id.values()
                for state in topic.partitions.values()
                if machine.node_id in state.replicas
            ):
                del self._lost[machine]
