"""Which quota applies to a client, and what it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moldau.broker.config import BrokerConfig
from moldau.broker.network.machine.rates import Window
from moldau.broker.security.quotas.machine import client_quotas
from moldau.broker.security.quotas.machine.client_quotas import MutationQuotas, RateQuotas
from moldau.broker.security.quotas.machine.entities import QuotaEntity, QuotaType
from moldau.broker.security.quotas.shell import ClientQuotas, load_quota_callback
from moldau.clock import LoopClock
from moldau.config.errors import ConfigError
from moldau.times import ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode

WINDOW = Window()
NOW = ElapsedMs(1_000_000)
KEY = QuotaType.PRODUCE.value

# Kafka's order: each level is used only if none above it has a quota.
LEVELS: list[dict[str, str | None]] = [
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": "u"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
]


def entity(names: Mapping[str, str | None]) -> QuotaEntity:
    return frozenset(names.items())


def quotas(limits: Mapping[QuotaEntity, float], **options: Any) -> RateQuotas:
    made = RateQuotas(QuotaType.PRODUCE, WINDOW, **options)
    made.update({each: {KEY: limit} for each, limit in limits.items()})
    return made


def limit_of(made: RateQuotas, user: str, client_id: str) -> float | None:
    """What a window of ten seconds allows, by the second."""
    most = made.window_max(f"User:{user}", client_id, NOW)
    return None if most is None else most / 10


@pytest.mark.parametrize("first", range(8))
def test_the_first_level_with_a_quota_decides(first: int) -> None:
    made = quotas({entity(names): 100.0 + at for at, names in enumerate(LEVELS) if at >= first})
    assert limit_of(made, "u", "c") == 100.0 + first


@pytest.mark.parametrize(
    ("user", "client_id", "limit"),
    [
        pytest.param("u", "other", 101.0, id="another client of the user"),
        pytest.param("other", "c", 103.0, id="another user's client"),
        pytest.param("other", "other", 104.0, id="nobody in particular"),
        pytest.param("u", "", 102.0, id="a user without a client id"),
    ],
)
def test_other_clients(user: str, client_id: str, limit: float) -> None:
    made = quotas({entity(names): 100.0 + at for at, names in enumerate(LEVELS)})
    assert limit_of(made, user, client_id) == limit


def test_an_empty_client_id_has_no_default_quota() -> None:
    made = quotas({entity({"client-id": None}): 5.0})
    assert limit_of(made, "u", "") is None
    assert limit_of(made, "u", "c") == 5.0


@pytest.mark.parametrize(
    ("names", "shared_with"),
    [
        pytest.param({"user": "u"}, ("u", "other"), id="clients of a user"),
        pytest.param({"user": None}, ("u", "other"), id="clients of any user"),
        pytest.param({"client-id": "c"}, ("other", "c"), id="users of a client id"),
    ],
)
def test_what_is_counted_together(names: dict[str, str | None], shared_with: Any) -> None:
    made = quotas({entity(names): 10.0})
    assert made.record("User:u", "c", 100, NOW) == 0
    user, client_id = shared_with
    assert made.record(f"User:{user}", client_id, 100, NOW) == 10_000


def test_clients_at_a_default_level_are_counted_apart() -> None:
    made = quotas({entity({"user": "u", "client-id": None}): 10.0})
    assert made.record("User:u", "a", 100, NOW) == 0
    assert made.record("User:u", "b", 100, NOW) == 0
    assert made.record("User:u", "b", 100, NOW) == 10_000


def test_a_change_takes_effect_at_once_and_keeps_what_was_counted() -> None:
    made = quotas({entity({"user": "u"}): 1000.0})
    assert made.record("User:u", "c", 1000, NOW) == 0
    made.update({entity({"user": "u"}): {KEY: 50.0}})
    assert made.record("User:u", "c", 0, NOW) == 10_000
    made.update({})
    assert not made.active
    assert made.record("User:u", "c", 10**9, NOW) == 0


def test_other_types_of_quotas_are_of_no_concern() -> None:
    made = RateQuotas(QuotaType.PRODUCE, WINDOW)
    made.update({entity({"user": "u"}): {"consumer_byte_rate": 1.0}})
    assert not made.active


def test_the_throttle_time_may_be_bounded() -> None:
    made = quotas({entity({"user": "u"}): 1.0}, throttle_ms_max=1000)
    assert made.record("User:u", "c", 10**6, NOW) == 1000


def test_clients_that_are_gone_are_forgotten() -> None:
    made = quotas({entity({"user": "u", "client-id": None}): 10.0})
    for number in range(20 * client_quotas.KNOWN_MAX):
        made.record("User:u", f"client-{number}", 1, ElapsedMs(NOW + number * 100))
    assert len(made._shares._usage) <= 2 * client_quotas.KNOWN_MAX
    assert len(made._shares._by_client) <= 2 * client_quotas.KNOWN_MAX


def mutations(limit: float) -> MutationQuotas:
    made = MutationQuotas(WINDOW)
    made.update({entity({"user": "u"}): {QuotaType.CONTROLLER_MUTATION.value: limit}})
    return made


def test_strict_mutations_are_refused_once_the_quota_is_exceeded() -> None:
    made = mutations(1.0)
    request = made.of_request("User:u", "c", strict=True, now_ms=NOW)
    request.record(15)  # the bucket holds 11: the first request may overdraw it
    assert request.throttle_ms == 0
    with pytest.raises(ApiError) as caught:
        request.record(1)
    assert caught.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert request.throttle_ms == 4000
    later = made.of_request("User:u", "c", strict=True, now_ms=ElapsedMs(NOW + 4000))
    later.record(1)
    assert later.throttle_ms == 0


def test_permissive_mutations_are_carried_out_and_throttled() -> None:
    made = mutations(1.0)
    request = made.of_request("User:u", "c", strict=False, now_ms=NOW)
    request.record(15)
    request.record(5)
    assert request.throttle_ms == 9000


def test_users_without_a_mutation_quota_are_not_limited() -> None:
    request = mutations(1.0).of_request("User:v", "c", strict=True, now_ms=NOW)
    request.record(10**6)
    request.record(10**6)
    assert request.throttle_ms == 0


class ByTeam:
    """An own callback: everybody in a team shares the team's quota."""

    def configure(self, configs: Mapping[str, object]) -> None: ...

    def quota_metric_tags(
        self, quota_type: QuotaType, principal: str, client_id: str
    ) -> Mapping[str, str]:
        team, _, rest = client_id.partition("-")
        return {"team": team} if rest else {}

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return 10.0 if metric_tags["team"] == "a" else None

    def update_quota(self, quota_type: QuotaType, entity: QuotaEntity, value: float) -> None: ...

    def remove_quota(self, quota_type: QuotaType, entity: QuotaEntity) -> None: ...


def test_an_own_callback_decides() -> None:
    made = RateQuotas(QuotaType.PRODUCE, WINDOW, callback=ByTeam())
    assert made.active
    assert made.record("User:x", "a-1", 100, NOW) == 0
    assert made.record("User:y", "a-2", 100, NOW) == 10_000
    assert made.record("User:y", "b-2", 10**9, NOW) == 0
    assert made.record("User:y", "alone", 10**9, NOW) == 0


class Noted(ByTeam):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def update_quota(self, quota_type: QuotaType, entity: QuotaEntity, value: float) -> None:
        self.calls.append((quota_type.name, dict(entity), value))

    def remove_quota(self, quota_type: QuotaType, entity: QuotaEntity) -> None:
        self.calls.append((quota_type.name, dict(entity), None))


NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:1",
    "log.dirs": "/data",
}


def test_the_callback_class_is_loaded_and_gets_the_quotas_that_tools_set() -> None:
    config = BrokerConfig.from_properties(
        {**NODE, "client.quota.callback.class": f"{__name__}.Noted"}
    )
    callback = load_quota_callback(config)
    assert isinstance(callback, Noted)
    made = ClientQuotas(config, LoopClock(), lambda: 0, callback=callback)
    assert made.active
    alice = entity({"user": "alice"})
    made.update({alice: {KEY: 5.0}})
    made.update({alice: {KEY: 5.0, "request_percentage": 1.0}})
    made.update({alice: {"request_percentage": 2.0}})
    assert callback.calls == [
        ("PRODUCE", {"user": "alice"}, 5.0),
        ("REQUEST", {"user": "alice"}, 1.0),
        ("REQUEST", {"user": "alice"}, 2.0),
        ("PRODUCE", {"user": "alice"}, None),
    ]


@pytest.mark.parametrize("name", ["org.acme.Quotas", "Quotas", f"{__name__}.entity"])
def test_a_callback_class_that_cannot_be_loaded_is_refused(name: str) -> None:
    config = BrokerConfig.from_properties({**NODE, "client.quota.callback.class": name})
    with pytest.raises(ConfigError, match=r"client\.quota\.callback\.class"):
        load_quota_callback(config)
