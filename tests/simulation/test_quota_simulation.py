"""A noisy client and a quiet one, in virtual time: the quota holds, the quiet one is not slower.

Virtual time makes both exact: a request takes what the simulated network and the quota make it
take, however busy this machine is.
"""

from __future__ import annotations

import asyncio
import itertools
from random import Random
from statistics import median

import pytest

from moldau.sim.clients.rpc import Wire
from moldau.sim.cluster import Cluster
from moldau.sim.cluster_scenario import ONE_REPLICA, PROPERTIES
from moldau.sim.runner import run_seed
from moldau.sim.world import World
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from moldau.wire.records import encode_batch

QUOTA = 50_000
BYTES = 10_000
#: Long enough that the burst at the start, ten seconds' worth, does not count for much.
SECONDS = 120
WAIT_MS = 100_000


class Noise:
    """Implements a scenario: what `run_seed` runs."""

    def __init__(self, world: World, *, key: str | None, seconds: float) -> None:
        """`key` is the quota of the noisy client, None for none."""
        self._seconds = seconds
        self._world = world
        self._key = key
        self._cluster = Cluster(world, {**PROPERTIES, **ONE_REPLICA})
        self.rate = 0.0
        self.quiet_s: list[float] = []
        self.throttle_times = 0

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    async def run(self) -> None:
        self._cluster.format()
        for node in self._cluster.nodes:
            await node.start()
        noisy, quiet = (Wire(self._cluster, name, Random(1)) for name in ("noisy", "quiet"))
        await self._prepare(quiet)
        end_s = self._now_s() + self._seconds
        fetching = self._key == "consumer_byte_rate"
        if fetching:
            for _ in range(10):
                await self._produce(quiet)
        work = self._fetch if fetching else self._produce
        await asyncio.gather(self._make_noise(noisy, work, end_s), self._be_quiet(quiet, end_s))
        noisy.close()
        quiet.close()
        for node in self._cluster.nodes:
            await node.stop()

    def _now_s(self) -> float:
        return self._cluster.loop.time()

    async def _prepare(self, wire: Wire) -> None:
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        address = wire.anybody()
        created = CreateTopicsRequest(topics=[topic], timeout_ms=5_000)
        response = await wire.call(address, created, CreateTopicsResponse)
        assert response.topics[0].error_code == 0
        if self._key is None:
            return
        entry = AlterClientQuotasRequest.EntryData(
            entity=[
                AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name="noisy")
            ],
            ops=[AlterClientQuotasRequest.OpData(key=self._key, value=QUOTA)],
        )
        altered = AlterClientQuotasRequest(entries=[entry])
        answer = await wire.call(address, altered, AlterClientQuotasResponse)
        assert answer.entries[0].error_code == 0

    async def _make_noise(self, wire: Wire, work: object, end_s: float) -> None:
        started_s, count = self._now_s(), 0
        while self._now_s() < end_s:
            count += await work(wire)  # type: ignore[operator]
        self.rate = count / (self._now_s() - started_s)

    async def _be_quiet(self, wire: Wire, end_s: float) -> None:
        for _ in itertools.count():
            started_s = self._now_s()
            if started_s >= end_s:
                return
            await self._produce(wire, size=100)
            self.quiet_s.append(self._now_s() - started_s)
            await asyncio.sleep(0.1)

    async def _produce(self, wire: Wire, size: int = BYTES) -> int:
        records = encode_batch([(None, b"x" * size, self._world.now_ms(), ())])
        partition = ProduceRequest.PartitionProduceData(index=0, records=records)
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
        response = await wire.call(
            wire.anybody(),
            ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic]),
            ProduceResponse,
            max_version=12,
            timeout_ms=WAIT_MS,
        )
        assert response.responses[0].partition_responses[0].error_code == 0
        self.throttle_times += response.throttle_time_ms > 0
        return len(records)

    async def _fetch(self, wire: Wire) -> int:
        partition = FetchRequest.FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=2 * BYTES
        )
        response = await wire.call(
            wire.anybody(),
            FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=2 * BYTES,
                session_epoch=-1,
                topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])],
            ),
            FetchResponse,
            max_version=12,
            timeout_ms=WAIT_MS,
        )
        self.throttle_times += response.throttle_time_ms > 0
        if not response.responses:
            return 0
        return len(response.responses[0].partitions[0].records or b"")


def run(key: str | None, seconds: float) -> Noise:
    made: list[Noise] = []

    def scenario(world: World) -> Noise:
        made.append(Noise(world, key=key, seconds=seconds))
        return made[0]

    outcome = run_seed(1, scenario=scenario)
    assert outcome.invariant is None, f"{outcome.invariant}: {outcome.detail}"
    return made[0]


@pytest.mark.parametrize("key", ["producer_byte_rate", "consumer_byte_rate"])
def test_a_noisy_client_stays_within_its_quota_and_a_quiet_one_is_as_fast_as_without(
    key: str,
) -> None:
    limited, unlimited = run(key, SECONDS), run(None, 5)
    assert limited.rate == pytest.approx(QUOTA, rel=0.1)
    assert limited.throttle_times > 10
    assert unlimited.rate > 2 * QUOTA
    assert unlimited.throttle_times == 0
    # The network has stragglers, so the slowest request depends on how many there were.
    assert median(limited.quiet_s) <= median(unlimited.quiet_s) * 1.1
    assert max(limited.quiet_s) < 1.0
