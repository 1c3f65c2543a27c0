"""Everything that replication runs on this node: fetchers, ISR proposals, and the periodic check of
the ISRs.

The replica manager gets `replication`; `start` begins to check for followers that have fallen
behind, every half of replica.lag.time.max.ms as Kafka does; `stop` disconnects from all leaders.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from moldau.broker.metrics.node import NodeMetrics
from moldau.broker.replication.fetchers import FetcherNode, FetcherSettings, ReplicaFetchers
from moldau.broker.replication.isr_proposals import IsrProposals
from moldau.broker.replication.machine.throttle import ReplicationThrottle
from moldau.broker.replication.manager import ReplicaManager, Replication
from moldau.clock import Alarm, Clock
from moldau.peers.channel import Transport
from moldau.wire.messages import AlterPartitionRequest, AlterPartitionResponse

#: How long fetchers use the configuration before they read it again.
SETTINGS_READ_EVERY_MS: Final = 1_000


class ReplicationService:
    """What a broker runs beside its replica manager."""

    def __init__(
        self,
        *,
        node_id: int,
        transport: Transport,
        clock: Clock,
        inter_broker_listener: str,
        config: Callable[[str], Any],
        broker_epoch: Callable[[], int],
        alter_partition: Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]],
        metrics: NodeMetrics | None = None,
    ) -> None:
        """`config(key)` returns the current value of a config; `alter_partition` sends to the
        active controller and raises ChannelError or ApiError if there is no response."""
        self._clock = clock
        self._config = config
        self._alarm: Alarm | None = None
        self._fetcher_settings = FetcherSettings.read(config)
        self._settings_read_ms = clock.elapsed_ms()
        self.leader_throttle = self._throttle("leader.replication.throttled.rate")
        self._fetchers = ReplicaFetchers(
            FetcherNode(
                node_id=node_id,
                transport=transport,
                clock=clock,
                listener_name=inter_broker_listener,
                settings=self._settings,
                broker_epoch=broker_epoch,
                throttle=self._throttle("follower.replication.throttled.rate"),
                copied=None if metrics is None else metrics.topics.replication_in,
            )
        )
        self._proposals = IsrProposals(
            node_id=node_id,
            broker_epoch=broker_epoch,
            send=alter_partition,
            clock=clock,
            refused=None if metrics is None else metrics.failed_isr_updates,
        )
        self.replication = Replication(
            fetchers=self._fetchers,
            propose=self._proposals.propose,
            elapsed_ms=clock.elapsed_ms,
            lag_ms_max=self.lag_ms_max,
            inter_broker_listener=inter_broker_listener,
            metrics=metrics,
        )

    @property
    def fetchers(self) -> ReplicaFetchers:
        return self._fetchers

    def _settings(self) -> FetcherSettings:
        """Needed with every fetch, so it is not read from the configuration each time."""
        now_ms = self._clock.elapsed_ms()
        if now_ms - self._settings_read_ms >= SETTINGS_READ_EVERY_MS:
            self._settings_read_ms = now_ms
            self._fetcher_settings = FetcherSettings.read(self._config)
        return self._fetcher_settings

    def _throttle(self, key: str) -> ReplicationThrottle:
        return ReplicationThrottle(
            lambda: int(self._config(key)),
            samples_max=self._config("replication.quota.window.num"),
            window_ms=1000 * self._config("replication.quota.window.size.seconds"),
        )

    def lag_ms_max(self) -> int:
        return int(self._config("replica.lag.time.max.ms"))

    def start(self, replicas: ReplicaManager) -> None:
        def check() -> None:
            # Scheduled first: whatever a check runs into, there is a next one.
            self.start(replicas)
            replicas.check_isrs()

        self._alarm = self._clock.call_later(max(self.lag_ms_max() // 2, 1), check)

    async def stop(self) -> None:
        """Stop copying and proposing; returns when no fetcher uses a log."""
        if self._alarm is not None:
            self._alarm.cancel()
        await self._fetchers.close()
        await self._proposals.close()
