"""The broker that a module's scenarios share, with names of their own, and its restarts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.cluster_stage import ClusterAsBroker
from support.either import create_and_wait, either_broker
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.scenarios.members import Place

DISTURBANCES = ("undisturbed", "stopped", "killed")
# The broker does the same whichever client waits for it; plain sessions try them all.
_OTHER_CLIENT = pytest.mark.long("the same with confluent-kafka; test_group_subscribe has others")
_OTHER_RESTART = pytest.mark.long("the same with another restart or the other protocol")

# What a user would wait seconds for happens in fractions of one; nothing else is changed.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    # librdkafka waits as long for an answer, and never hears of a revocation that came later.
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.session.timeout.ms": "30000",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.retention.check.interval.ms": "100",
    # Four partitions each, not fifty: a restart has less to open.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
}


def disturbed(clients: Iterable[str], *disturbances: str) -> pytest.MarkDecorator:
    """Parametrizes with every client and disturbance; of them `make test` tries those of one
    library: undisturbed in classic groups, and the last of the disturbances in each kind."""
    return pytest.mark.parametrize(
        ("client", "disturbance"),
        [
            pytest.param(
                client, how, id=f"{client}-{how}", marks=_marks(client, how, disturbances[-1])
            )
            for client in clients
            for how in disturbances
        ],
    )


def _marks(client: str, how: str, last: str) -> list[pytest.MarkDecorator]:
    if not client.startswith("confluent-kafka"):
        return [_OTHER_CLIENT]
    is_plain = how == "undisturbed" and not client.endswith("consumer")
    return [] if how == last or is_plain else [_OTHER_RESTART]


@dataclass
class Stage:
    broker: BrokerProcess
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    @property
    def is_cluster(self) -> bool:
        """Whether a restart is that of one node of several, perhaps of one that matters not."""
        return isinstance(self.broker, ClusterAsBroker)

    def name(self, what: str) -> str:
        return f"{what}-{next(self._numbers)}"

    def topic(self, name: str, partitions: int = 1) -> frozenset[Place]:
        with RawConnection(self.broker.port) as to:
            create_and_wait(to, name, partitions)
        return frozenset(Place(name, index) for index in range(partitions))

    def disturb(self, how: str) -> None:
        """Restart the broker as told, in the middle of whatever its clients are doing."""
        if how == "undisturbed":
            return
        if how == "stopped":
            assert self.broker.stop() in (0, 143), self.broker.output()
        else:
            self.broker.kill()
        self.broker.start()


@contextmanager
def stage_for(request: pytest.FixtureRequest, folder: Path, **changes: str) -> Iterator[Stage]:
    with either_broker(request, folder, SETTINGS | changes) as broker:
        yield Stage(broker)
