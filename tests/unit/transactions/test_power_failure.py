"""Transactions on a machine that loses its power, and with it what was not synced.

Every log keeps an end of its own: the coordinator may know less than the partitions, or more.
Whatever is left, all of it comes to an end, nothing becomes visible that nobody wanted to commit,
and whoever begins anew is served at once. If every record is synced, nothing is lost at all.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from moldau.broker.coordinator.transaction.machine.metadata import IDLE
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    CreateTopicsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from moldau.wire.records import ControlType, decode_batch, decode_control_type, encode_batch
from moldau.wire.records import iterate_headers as headers
from support.powered_broker import START_MS, PoweredBroker, run_powered
from support.repeats import mostly_long

TOPIC = "t"
PARTITIONS = 3
GROUP = "g"
IDS = ("a", "b", "c")
TIMEOUT_MS = 60_000
SYNCED = {
    "log.flush.interval.messages": "1",
    # Syncs of the simulated disk may take many seconds.
    "offsets.commit.timeout.ms": "30000",
}
DEFAULTS: Mapping[str, str] = {}
SEEDS = range(5)


class Refused(Exception):
    """The broker did not take it: whoever asked begins anew."""


def check(code: int) -> None:
    if code:
        raise Refused(ErrorCode(code).name)


class Client:
    """A transactional producer of either protocol that begins anew after every refusal."""

    def __init__(self, world: World, transactional_id: str, version: int) -> None:
        self.world = world
        self.id = transactional_id
        self.version = version
        self.producer: tuple[int, int] | None = None
        self.sequences: Counter[int] = Counter()
        self.values: list[bytes] = []
        self.added: set[int] = set()
        self.offset: int | None = None

    async def call(self, key: ApiKey, versions: tuple[int, int], request: Any) -> Any:
        return await self.world.broker.call(key, versions[self.version - 1], request)

    async def insist(self, key: ApiKey, versions: tuple[int, int], request: Any) -> Any:
        """As long as the transaction before is still being ended."""
        while True:
            answer = await self.call(key, versions, request)
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                return answer
            await asyncio.sleep(0.1)

    async def init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=TIMEOUT_MS)
        answer = await self.insist(ApiKey.INIT_PRODUCER_ID, (4, 5), request)
        check(answer.error_code)
        self._become(answer.producer_id, answer.producer_epoch)
        self._ended()

    def _become(self, producer_id: int, epoch: int) -> None:
        if self.producer != (producer_id, epoch):
            self.producer = (producer_id, epoch)
            self.sequences.clear()

    def _ended(self) -> None:
        self.values, self.added, self.offset = [], set(), None

    async def produce(self, partition: int) -> None:
        assert self.producer is not None
        if self.version == 1 and partition not in self.added:
            topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                name=TOPIC, partitions=[partition]
            )
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=self.producer[0],
                v3_and_below_producer_epoch=self.producer[1],
                v3_and_below_topics=[topic],
            )
            answer = await self.call(ApiKey.ADD_PARTITIONS_TO_TXN, (3, 3), request)
            (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
            check(result.partition_error_code)
        self.added.add(partition)
        value = self.world.new_value(self.id)
        self.values.append(value)
        batch = encode_batch(
            [(None, value, START_MS, ())],
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=self.sequences[partition],
            is_transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        answer = await self.call(ApiKey.PRODUCE, (11, 12), request)
        check(answer.responses[0].partition_responses[0].error_code)
        self.sequences[partition] += 1

    async def commit_offset(self) -> None:
        assert self.producer is not None
        self.offset = offset = self.world.new_offset()
        who = {"producer_id": self.producer[0], "producer_epoch": self.producer[1]}
        if self.version == 1:
            add = AddOffsetsToTxnRequest(transactional_id=self.id, group_id=GROUP, **who)
            check((await self.insist(ApiKey.ADD_OFFSETS_TO_TXN, (3, 3), add)).error_code)
        request = TxnOffsetCommitRequest(transactional_id=self.id, group_id=GROUP, **who)
        place = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request.topics = [
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[place])
        ]
        answer = await self.call(ApiKey.TXN_OFFSET_COMMIT, (3, 5), request)
        check(answer.topics[0].partitions[0].error_code)
        self.added.add(-1)

    async def end(self, *, committed: bool) -> None:
        assert self.producer is not None
        world, values, offset = self.world, self.values, self.offset
        if committed:
            world.wanted.append((values, offset))
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            committed=committed,
        )
        answer = await self.insist(ApiKey.END_TXN, (4, 5), request)
        check(answer.error_code)
        if committed:
            world.told.append((values, offset))
        if self.version == 2:
            self._become(answer.producer_id, answer.producer_epoch)
        self._ended()


class World:
    def __init__(self, seed: int, version: int, settings: Mapping[str, str]) -> None:
        self.broker = PoweredBroker(seed, settings)
        self.random = self.broker.random
        self.version = version
        self.clients = [Client(self, each, version) for each in IDS]
        self.wanted: list[tuple[list[bytes], int | None]] = []
        self.told: list[tuple[list[bytes], int | None]] = []
        self._count = 0

    def new_value(self, transactional_id: str) -> bytes:
        self._count += 1
        return f"{transactional_id}{self._count}".encode()

    def new_offset(self) -> int:
        self._count += 1
        return self._count

    async def start(self) -> None:
        await self.broker.start()
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=1
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        await self.broker.call(ApiKey.CREATE_TOPICS, 7, request)
        for key_type, key in ((0, GROUP), (1, IDS[0])):
            find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            # The simulated disk may take seconds to sync the new topic's records.
            for _ in range(60):
                if not await self._is_missing(find):
                    break
                await asyncio.sleep(0.5)
        await asyncio.sleep(1)

    async def _is_missing(self, find: FindCoordinatorRequest) -> bool:
        answer = await self.broker.call(ApiKey.FIND_COORDINATOR, 4, find)
        return bool(answer.coordinators[0].error_code)

    async def step(self) -> None:
        """One client does something; begin anew if it is refused."""
        random = self.random
        client = random.choice(self.clients)
        try:
            if client.producer is None or random.random() < 0.03:
                await client.init()
            elif client.added and random.random() < 0.4:
                await client.end(committed=random.random() < 0.7)
            elif random.random() < 0.2:
                await client.commit_offset()
            else:
                await client.produce(random.randrange(PARTITIONS))
        except Refused:
            client.producer = None
        if random.random() < 0.2:
            logs = list(self.broker.node.logs.logs())
            random.choice(logs).request_flush(now_ms=START_MS)
        if random.random() < 0.3:
            await asyncio.sleep(random.random() / 10)

    async def die(self, *, power_lost: bool) -> None:
        """In the middle of a step."""
        step = asyncio.get_running_loop().create_task(self.step())
        for _ in range(self.random.randrange(12)):
            await asyncio.sleep(0)
        step.cancel()
        await self.broker.restart(power_lost=power_lost)
        for client in self.clients:
            client.producer = None

    async def seen(self) -> Counter[bytes]:
        values: Counter[bytes] = Counter()
        for index in range(PARTITIONS):
            values.update(await self._read(index))
        return values

    async def _read(self, index: int) -> list[bytes]:
        place = FetchRequest.FetchPartition(
            partition=index, fetch_offset=0, partition_max_bytes=1 << 24
        )
        request = FetchRequest(replica_id=-1, isolation_level=1, session_epoch=-1)
        request.topics = [FetchRequest.FetchTopic(topic=TOPIC, partitions=[place])]
        response = await self.broker.call(ApiKey.FETCH, 11, request)
        answer = response.responses[0].partitions[0]
        assert answer.error_code == 0
        assert answer.last_stable_offset == answer.high_watermark, "nothing is open for ever"
        aborted = sorted(
            ((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()),
            reverse=True,
        )
        dropped: set[int] = set()
        values: list[bytes] = []
        for position, header in headers(answer.records or b""):
            while aborted and aborted[-1][0] <= header.last_offset:
                dropped.add(aborted.pop()[1])
            for record in decode_batch(answer.records, position):
                if header.is_control:
                    if decode_control_type(record.key) == ControlType.ABORT:
                        dropped.discard(header.producer_id)
                elif header.producer_id not in dropped:
                    values.append(record.value or b"")
        return values

    async def committed_offset(self) -> int:
        wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[wanted])
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        (found,) = (await self.broker.call(ApiKey.OFFSET_FETCH, 8, request)).groups
        (place,) = found.topics[0].partitions
        assert place.error_code == 0, "no offset is pending for ever"
        offset: int = place.committed_offset
        return offset

    async def settle(self) -> None:
        """Time enough for every transaction to time out and be ended."""
        await asyncio.sleep(150)
        transactions = self.broker.node.broker.coordinators.transactions.transactions()
        assert transactions is not None, "every coordinator serves"
        stuck = [each for each in transactions if each.state not in IDLE]
        assert not stuck
        for log in self.broker.node.logs.logs():
            assert not log.producers.open_transactions(), log.dir

    async def begin_anew(self) -> None:
        for client in self.clients:
            await client.init()
            await client.produce(0)
            await client.commit_offset()
            values = client.values
            await client.end(committed=True)
            seen = await self._eventually_seen(values[0])
            assert seen[values[0]] == 1

    async def _eventually_seen(self, value: bytes) -> Counter[bytes]:
        await asyncio.sleep(5)
        return await self.seen()


def play(
    seed: int, version: int, *, power_lost: bool, settings: Mapping[str, str] = DEFAULTS
) -> None:
    async def scenario() -> None:
        world = World(seed, version, settings)
        await world.start()
        for _ in range(3):
            for _ in range(world.random.randrange(40)):
                await world.step()
            await world.die(power_lost=power_lost)
            await world.settle()
            seen = await world.seen()
            assert not seen - Counter(v for values, _ in world.wanted for v in values)
            offset = await world.committed_offset()
            assert offset in {-1, *(offset for _, offset in world.wanted)}
            if not power_lost or settings is SYNCED:
                for values, _ in world.told:
                    assert not Counter(values) - seen, "what was told committed is there"
                for values, _ in world.wanted:
                    assert len({seen[value] for value in values}) <= 1, "all or nothing"
            else:
                # What is lost stays lost; only what is there still counts.
                world.told.clear()
            await world.begin_anew()

    run_powered(scenario)


@pytest.fixture(autouse=True)
def no_bugs(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.ERROR)
    yield
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


some_seeds = pytest.mark.parametrize("seed", mostly_long(SEEDS, "more seeds", keep=2))


@some_seeds
def test_everything_comes_to_an_end_after_a_power_failure(seed: int) -> None:
    play(seed, 2, power_lost=True)


@some_seeds
@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_lost_when_everything_is_synced(seed: int, version: int) -> None:
    play(seed, version, power_lost=True, settings=SYNCED)


@some_seeds
@pytest.mark.parametrize("version", [1, 2])
def test_a_broker_that_dies_loses_nothing(seed: int, version: int) -> None:
    play(seed, version, power_lost=False)
