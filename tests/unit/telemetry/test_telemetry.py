"""Which metrics a client is asked for, and when its pushes are taken."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.broker.machine import telemetry as telemetry_module
from moldau.broker.machine.telemetry import (
    EXPIRY_MS_MIN,
    INTERVAL_MS_DEFAULT,
    Client,
    ClientTelemetry,
    Granted,
    Payload,
)
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.uuids import ONE_UUID, ZERO_UUID

ID = UUID("01234567-89ab-4def-8123-456789abcdef")
OTHER_ID = UUID("11234567-89ab-4def-8123-456789abcdef")
JAVA = Client("app-1", "apache-kafka-java", "4.3.0", "10.1.2.3", 50123)
RDKAFKA = Client("app-2", "librdkafka", "2.16.0", "10.1.2.4", 50124)


def telemetry_with(*subscriptions: dict[str, str], max_bytes: int = 1000) -> ClientTelemetry:
    telemetry = ClientTelemetry(telemetry_max_bytes=max_bytes)
    for index, configs in enumerate(subscriptions):
        telemetry.update_subscription(f"s{index}", configs)
    return telemetry


def get(
    telemetry: ClientTelemetry, client_id: UUID = ID, *, at: int = 0, client: Client = JAVA
) -> Granted:
    return telemetry.get(client_id, client, now_ms=at, fresh_id=OTHER_ID)


def push(
    telemetry: ClientTelemetry,
    subscription_id: int,
    *,
    at: int,
    client_id: UUID = ID,
    terminating: bool = False,
    compression_type: int = 4,
    metrics: bytes = b"otlp",
) -> Payload | None:
    return telemetry.push(
        client_id,
        JAVA,
        now_ms=at,
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=compression_type,
        metrics=metrics,
    )


def refused(code: ErrorCode) -> pytest.RaisesExc[ApiError]:
    return pytest.RaisesExc(ApiError, check=lambda error: error.code is code)


@pytest.mark.parametrize(
    ("subscriptions", "client", "metrics", "interval_ms"),
    [
        pytest.param([], JAVA, (), INTERVAL_MS_DEFAULT, id="nothing wanted"),
        pytest.param(
            [{"metrics": "b.,a.", "interval.ms": "100"}], JAVA, ("a.", "b."), 100, id="everybody"
        ),
        pytest.param(
            [{"metrics": "a."}], JAVA, ("a.",), INTERVAL_MS_DEFAULT, id="default interval"
        ),
        pytest.param(
            [{"metrics": "a.", "interval.ms": "900"}, {"metrics": "a.,b.", "interval.ms": "500"}],
            JAVA,
            ("a.", "b."),
            500,
            id="joined, the shortest interval",
        ),
        pytest.param(
            [{"metrics": "a."}, {"metrics": "*"}],
            JAVA,
            ("*",),
            INTERVAL_MS_DEFAULT,
            id="everything swallows the rest",
        ),
        pytest.param(
            [{"metrics": "a.", "match": "client_software_name=librdkafka"}],
            JAVA,
            (),
            INTERVAL_MS_DEFAULT,
            id="somebody else",
        ),
        pytest.param(
            [{"metrics": "a.", "match": "client_software_name=librdkafka"}],
            RDKAFKA,
            ("a.",),
            INTERVAL_MS_DEFAULT,
            id="matched",
        ),
        pytest.param(
            [{"metrics": "a.", "match": "client_id=app"}],
            JAVA,
            (),
            INTERVAL_MS_DEFAULT,
            id="patterns match as a whole",
        ),
        pytest.param(
            [
                {
                    "metrics": "a.",
                    "match": "client_id=app-.*, client_source_address=10\\..*,"
                    "client_source_port=50123,client_software_version=4\\.3.*,"
                    "client_instance_id=ASNFZ4mrTe.*",
                }
            ],
            JAVA,
            ("a.",),
            INTERVAL_MS_DEFAULT,
            id="every selector",
        ),
        pytest.param(
            [{"metrics": "a.", "match": "client_id=app-1,client_source_port=1"}],
            JAVA,
            (),
            INTERVAL_MS_DEFAULT,
            id="all selectors must match",
        ),
    ],
)
def test_what_a_client_is_asked_for(
    subscriptions: list[dict[str, str]], client: Client, metrics: tuple[str, ...], interval_ms: int
) -> None:
    granted = get(telemetry_with(*subscriptions), client=client)
    assert (granted.metrics, granted.push_interval_ms) == (metrics, interval_ms)


def test_a_new_client_gets_an_id_and_keeps_it() -> None:
    telemetry = telemetry_with()
    assert get(telemetry, ZERO_UUID).client_instance_id == OTHER_ID
    assert get(telemetry, ID).client_instance_id == ID


def test_subscription_ids_change_with_what_is_asked_for() -> None:
    first = get(telemetry_with({"metrics": "a."})).subscription_id
    assert first == get(telemetry_with({"metrics": "a."})).subscription_id
    assert first != get(telemetry_with({"metrics": "b."})).subscription_id
    assert first != get(telemetry_with({"metrics": "a.", "interval.ms": "10"})).subscription_id
    assert first != get(telemetry_with({"metrics": "a."}), OTHER_ID).subscription_id
    # As Apache Kafka 4.3.0 computes it: CRC-32C of "[a.]300000" xor the id's hash code.
    assert first == -1577550961


def test_pushes_are_taken_at_the_interval() -> None:
    telemetry = telemetry_with({"metrics": "*", "interval.ms": "1000"})
    granted = get(telemetry, at=0)
    taken = Payload(ID, JAVA, 1000, False, 4, b"otlp")
    # The first may come at any time, as clients spread it; then the interval counts.
    assert push(telemetry, granted.subscription_id, at=1) == taken
    assert push(telemetry, granted.subscription_id, at=1001) == taken
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        push(telemetry, granted.subscription_id, at=2000)
    # A refused push does not count.
    assert push(telemetry, granted.subscription_id, at=2001) == taken


def test_asking_too_often_is_throttled() -> None:
    telemetry = telemetry_with({"metrics": "*", "interval.ms": "1000"})
    granted = get(telemetry, at=0)
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        get(telemetry, at=999)
    get(telemetry, at=1000)
    push(telemetry, granted.subscription_id, at=1500)
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        get(telemetry, at=2499)
    get(telemetry, at=2500)


@pytest.mark.parametrize(
    ("compression_type", "off", "code"),
    [
        pytest.param(4, 1, ErrorCode.UNKNOWN_SUBSCRIPTION_ID, id="subscription"),
        pytest.param(5, 0, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="compression"),
    ],
)
def test_who_is_told_to_ask_again_may_do_so_at_once(
    compression_type: int, off: int, code: ErrorCode
) -> None:
    telemetry = telemetry_with({"metrics": "*", "interval.ms": "1000"})
    granted = get(telemetry, at=0)
    with refused(code):
        push(telemetry, granted.subscription_id + off, at=10, compression_type=compression_type)
    assert get(telemetry, at=11) == granted
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        get(telemetry, at=12)


@pytest.mark.parametrize("compression_type", range(5))
def test_every_codec_of_record_batches_is_taken(compression_type: int) -> None:
    telemetry = telemetry_with()
    granted = get(telemetry)
    payload = push(telemetry, granted.subscription_id, at=0, compression_type=compression_type)
    assert payload is not None
    assert payload.compression_type == compression_type


def test_a_changed_subscription_makes_clients_ask_again() -> None:
    telemetry = telemetry_with({"metrics": "a.", "interval.ms": "1000"})
    old = get(telemetry, at=0)
    telemetry.update_subscription("s0", {"metrics": "b.", "interval.ms": "1000"})
    with refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
        push(telemetry, old.subscription_id, at=10)
    new = get(telemetry, at=11)
    assert new.metrics == ("b.",)
    assert push(telemetry, new.subscription_id, at=12) is not None
    telemetry.update_subscription("s0", {})
    assert telemetry.subscription_names() == []
    assert get(telemetry, at=13).metrics == ()


def test_sizes() -> None:
    telemetry = telemetry_with(max_bytes=10)
    granted = get(telemetry)
    with refused(ErrorCode.TELEMETRY_TOO_LARGE):
        push(telemetry, granted.subscription_id, at=0, metrics=bytes(11))
    later = INTERVAL_MS_DEFAULT
    assert push(telemetry, granted.subscription_id, at=later, metrics=bytes(10)) is not None
    assert push(telemetry, granted.subscription_id, at=2 * later, metrics=b"") is None


def test_the_last_push_is_not_throttled_and_is_the_last() -> None:
    telemetry = telemetry_with({"metrics": "*", "interval.ms": "1000"})
    granted = get(telemetry, at=0)
    push(telemetry, granted.subscription_id, at=10)
    last = push(telemetry, granted.subscription_id, at=11, terminating=True)
    assert last is not None
    assert last.terminating
    with refused(ErrorCode.INVALID_REQUEST):
        push(telemetry, granted.subscription_id, at=5000)


@pytest.mark.parametrize("client_id", [ZERO_UUID, ONE_UUID])
def test_reserved_ids_cannot_push(client_id: UUID) -> None:
    with refused(ErrorCode.INVALID_REQUEST):
        push(telemetry_with(), 0, at=0, client_id=client_id)


def test_silent_clients_are_forgotten_after_three_intervals() -> None:
    telemetry = telemetry_with({"metrics": "*", "interval.ms": "50000"})
    get(telemetry, at=0)
    get(telemetry, OTHER_ID, at=149_999)
    assert telemetry.client_count == 2
    get(telemetry, OTHER_ID, at=149_999 + 50_000)
    assert telemetry.client_count == 1
    short = telemetry_with({"metrics": "*", "interval.ms": "100"})
    get(short, at=0)
    get(short, OTHER_ID, at=EXPIRY_MS_MIN - 1)
    assert short.client_count == 2


def test_the_number_of_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry_module, "CLIENTS_MAX", 3)
    telemetry = telemetry_with()
    ids = [UUID(int=number) for number in range(10, 14)]
    for at, client_id in enumerate(ids):
        get(telemetry, client_id, at=at)
    assert telemetry.client_count == 3
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        get(telemetry, ids[3], at=10)
    get(telemetry, ids[0], at=10)  # forgotten, so not throttled


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        ({"interval.ms": "soon"}, "soon"),
        ({"match": "client_id"}, "client_id"),
        ({"match": "colour=red"}, "colour=red"),
        ({"match": "client_id=("}, "bad pattern"),
    ],
)
def test_bad_subscriptions_are_named_and_change_nothing(
    configs: dict[str, str], reason: str
) -> None:
    telemetry = telemetry_with({"metrics": "a."})
    with pytest.raises(ApiError, match=f"client metrics s0: .*{reason}"):
        telemetry.update_subscription("s0", configs)
    assert get(telemetry).metrics == ("a.",)
