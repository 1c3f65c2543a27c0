"""AlterClientQuotas and DescribeClientQuotas to Moldau and to Apache Kafka: the answers agree."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.messages import AlterClientQuotasRequest as Alter
from moldau.wire.messages import CreateTopicsRequest, FetchRequest, ProduceRequest
from moldau.wire.messages import DescribeClientQuotasRequest as Describe
from moldau.wire.records import encode_batch
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.raw import RawConnection

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

SECONDS_MAX = 60.0
Names = tuple[tuple[str, str | None], ...]
Ops = tuple[tuple[str, float | None], ...]
Pair = tuple[RawConnection, RawConnection]

# Values that do not throttle this test itself.
U1: Names = (("user", "u1"),)
BYTES: Ops = (("producer_byte_rate", 1000.0),)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    with moldau(ours) as first, apache_kafka(kafkas) as second:
        yield first, second


@pytest.fixture
def pair(brokers: tuple[BrokerProcess, BrokerProcess]) -> Iterator[Pair]:
    ours, kafkas = brokers
    with RawConnection(ours.port) as first, RawConnection(kafkas.port) as second:
        yield first, second


def alter(*entries: tuple[Names, Ops], validate_only: bool = False) -> Alter:
    return Alter(
        entries=[
            Alter.EntryData(
                entity=[
                    Alter.EntityData(entity_type=kind, entity_name=name) for kind, name in names
                ],
                ops=[
                    Alter.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in ops
                ],
            )
            for names, ops in entries
        ],
        validate_only=validate_only,
    )


def altered(connection: RawConnection, version: int, request: Alter) -> Any:
    """What was answered; Kafka's order is that of a hash map."""
    response = connection.call(ApiKey.ALTER_CLIENT_QUOTAS, version, request)
    return sorted(
        (
            sorted((each.entity_type, each.entity_name or "") for each in entry.entity),
            entry.error_code,
            entry.error_message,
        )
        for entry in response.entries
    )


def described(connection: RawConnection, version: int, request: Describe) -> Any:
    response = connection.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, request)
    entries = response.entries
    if entries is not None:
        entries = sorted(
            (
                sorted((each.entity_type, each.entity_name or "") for each in entry.entity),
                sorted((each.key, each.value) for each in entry.values),
            )
            for entry in entries
        )
    return response.error_code, response.error_message, entries


ALTERATIONS = [
    pytest.param([(U1, BYTES)], id="a user"),
    pytest.param([((("user", None),), (("consumer_byte_rate", 5e9),))], id="the default user"),
    pytest.param([((("client-id", "c1"),), (("request_percentage", 1200.5),))], id="a client id"),
    pytest.param(
        [((("user", "u1"), ("client-id", None)), (("controller_mutation_rate", 0.5),))],
        id="the default client of a user",
    ),
    pytest.param(
        [((("ip", "10.1.2.3"),), (("connection_creation_rate", 30000.0),))], id="an address"
    ),
    pytest.param([((("ip", None),), (("connection_creation_rate", 30000.0),))], id="every address"),
    pytest.param(
        [((("ip", "::1"),), (("connection_creation_rate", 40000.0),))], id="an IPv6 address"
    ),
    pytest.param(
        [((("ip", "localhost"),), (("connection_creation_rate", 40000.0),))], id="a host name"
    ),
    pytest.param(
        [((("ip", "no such host"),), (("connection_creation_rate", 40000.0),))], id="no host name"
    ),
    pytest.param([(U1, (("nonsense", 1.0),))], id="an unknown key"),
    pytest.param([(U1, (("nonsense", None),))], id="an unknown key removed"),
    pytest.param([(U1, (("connection_creation_rate", 1.0),))], id="an address's key"),
    pytest.param([((("ip", "1.2.3.4"),), BYTES)], id="a user's key"),
    pytest.param([(U1, (("producer_byte_rate", 0.0),))], id="zero"),
    pytest.param([(U1, (("producer_byte_rate", -1.0),))], id="a negative value"),
    pytest.param([(U1, (("producer_byte_rate", 1.5),))], id="a fraction"),
    pytest.param([(U1, (("producer_byte_rate", 1.0000001),))], id="nearly no fraction"),
    pytest.param([(U1, (("producer_byte_rate", 1e30),))], id="too large for a long"),
    pytest.param(
        [((("ip", "1.2.3.4"),), (("connection_creation_rate", 3e9),))], id="too large for an int"
    ),
    pytest.param([(U1, (("request_percentage", 1e30),))], id="a large double"),
    pytest.param([((), BYTES)], id="no entity"),
    pytest.param([((("group", "g"),), BYTES)], id="an unknown type"),
    pytest.param([((("user", ""),), BYTES)], id="an empty name"),
    pytest.param([((("ip", "1.2.3.4"), ("user", "u1")), BYTES)], id="an address and a user"),
    pytest.param([(U1, BYTES), (U1, BYTES)], id="an entity twice"),
    pytest.param([(U1, (*BYTES, *BYTES))], id="a key twice"),
    pytest.param([(U1, BYTES), ((("user", "u2"),), (("x", 1.0),))], id="one good, one bad"),
    pytest.param([(U1, (("producer_byte_rate", None),))], id="a removal"),
    pytest.param([(U1, ())], id="nothing to do"),
    pytest.param([], id="no entries"),
]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("entries", ALTERATIONS)
def test_alter_client_quotas(pair: Pair, entries: list[tuple[Names, Ops]], version: int) -> None:
    for validate_only in (True, False):
        request = alter(*entries, validate_only=validate_only)
        ours, kafkas = (altered(each, version, request) for each in pair)
        assert ours == kafkas
    check_all(pair)


def check_all(pair: Pair) -> None:
    """Kafka's broker may be a little behind its controller."""
    everything = Describe(components=[], strict=False)
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        ours, kafkas = (described(each, 1, everything) for each in pair)
        if ours == kafkas or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert ours == kafkas


EXACT, DEFAULT, SPECIFIED = 0, 1, 2
FILTERS = [
    pytest.param((), id="all"),
    pytest.param((("user", EXACT, "f1"),), id="a user"),
    pytest.param((("user", DEFAULT, None),), id="the default user"),
    pytest.param((("user", SPECIFIED, None),), id="any user"),
    pytest.param((("client-id", SPECIFIED, None),), id="any client id"),
    pytest.param((("user", EXACT, "f1"), ("client-id", EXACT, "c1")), id="both"),
    pytest.param((("user", EXACT, "f1"), ("client-id", DEFAULT, None)), id="a default client"),
    pytest.param((("user", EXACT, "nobody"),), id="nobody"),
    pytest.param((("ip", SPECIFIED, None),), id="any address"),
    pytest.param((("ip", EXACT, "9.9.9.9"),), id="an address"),
    pytest.param((("ip", EXACT, "9.9.9.9"), ("user", DEFAULT, None)), id="an address and a user"),
    pytest.param((("user", EXACT, None),), id="exactly nothing"),
    pytest.param((("user", DEFAULT, "f1"),), id="a default with a name"),
    pytest.param((("user", SPECIFIED, "f1"),), id="any with a name"),
    pytest.param((("user", 7, None),), id="an unknown match type"),
    pytest.param((("", EXACT, "f1"),), id="an empty type"),
    pytest.param((("group", EXACT, "f1"),), id="an unknown type"),
    pytest.param((("user", EXACT, "f1"), ("user", EXACT, "f2")), id="a type twice"),
    pytest.param((("user", EXACT, ""),), id="an empty name"),
]


@pytest.mark.parametrize("strict", [False, True], ids=["loose", "strict"])
@pytest.mark.parametrize("components", FILTERS)
def test_describe_client_quotas(
    pair: Pair, components: tuple[tuple[str, int, str | None], ...], strict: bool
) -> None:
    request = alter(
        ((("user", "f1"),), BYTES),
        ((("user", "f1"), ("client-id", "c1")), BYTES),
        ((("user", "f1"), ("client-id", None)), BYTES),
        ((("user", None),), (*BYTES, ("request_percentage", 1.25))),
        ((("client-id", "c1"),), BYTES),
        ((("ip", "9.9.9.9"),), (("connection_creation_rate", 9.0),)),
    )
    for each in pair:
        altered(each, 1, request)
    check_all(pair)
    filtered = Describe(
        components=[
            Describe.ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )
    for version in (0, 1):
        ours, kafkas = (described(each, version, filtered) for each in pair)
        assert ours == kafkas


def quota(names: Names, **values: float | None) -> Alter:
    return alter((names, tuple(values.items())))


@pytest.fixture
def limited(pair: Pair) -> Iterator[Any]:
    """Sets quotas on both, and removes them again over connections that are not muted."""
    undone: list[tuple[Names, dict[str, None]]] = []

    def limit(names: Names, **values: float) -> None:
        undone.append((names, dict.fromkeys(values)))
        for each in pair:
            altered(each, 1, quota(names, **values))
        check_all(pair)

    yield limit
    for each in pair:
        with RawConnection(each.socket.getpeername()[1]) as fresh:
            for names, values in undone:
                altered(fresh, 1, quota(names, **values))


def create(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


def test_mutations(pair: Pair, limited: Any) -> None:
    limited((("user", "ANONYMOUS"),), controller_mutation_rate=0.01)
    outcomes = []
    for each in pair:
        answers: list[Any] = []
        # A burst of 11 samples of a hundredth is a ninth of a partition: the first one is in debt.
        for version, name in ((7, "first"), (7, "second"), (6, "third")):
            with RawConnection(each.socket.getpeername()[1]) as fresh:
                response = fresh.call(ApiKey.CREATE_TOPICS, version, create(name, 2))
            result = response.topics[0]
            answers.append((result.error_code, result.error_message))
            answers.append(round(response.throttle_time_ms / 10_000))
        outcomes.append(answers)
    assert outcomes[0] == outcomes[1]


def produce(name: str, size: int) -> ProduceRequest:
    records = encode_batch([(None, b"x" * size, int(time.time() * 1000), ())])
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name=name, partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def test_throttle_times(pair: Pair, limited: Any) -> None:
    for each in pair:
        deadline = time.monotonic() + SECONDS_MAX
        error: int | None = None
        while error != 0:
            assert time.monotonic() < deadline
            # What other tests have set may still throttle this, and refuse the topic as well: a new
            # connection is not muted.
            with RawConnection(each.socket.getpeername()[1]) as fresh:
                fresh.call(ApiKey.CREATE_TOPICS, 7, create("throttled", 1))
            with RawConnection(each.socket.getpeername()[1]) as fresh:
                response = fresh.call(ApiKey.PRODUCE, 12, produce("throttled", 20_000))
            error = response.responses[0].partition_responses[0].error_code
    # The client id of RawConnection, with its user: comes before what other tests have set.
    entity = (("user", "ANONYMOUS"), ("client-id", "raw"))
    limited(entity, producer_byte_rate=1000.0, consumer_byte_rate=1000.0)
    fetch = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic="throttled",
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=0, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )
    for key, version, request in (
        (ApiKey.PRODUCE, 12, produce("throttled", 20_000)),
        (ApiKey.FETCH, 11, fetch),
    ):
        answers = []
        for each in pair:
            with RawConnection(each.socket.getpeername()[1]) as fresh:
                answers.append(fresh.call(key, version, request))
        ours, kafkas = answers
        assert ours.throttle_time_ms == pytest.approx(kafkas.throttle_time_ms, rel=0.05)
        assert ours.throttle_time_ms > 5_000
        assert len(ours.responses) == len(kafkas.responses)
