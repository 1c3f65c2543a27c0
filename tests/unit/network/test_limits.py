"""How many clients are let in."""

from __future__ import annotations

import pytest

from moldau.broker.network.machine.limits import ConnectionLimits
from moldau.invariant import InvariantError


def limits(total: int = 100, per_ip: int = 100, **overrides: int) -> ConnectionLimits:
    return ConnectionLimits(
        max_connections=total,
        max_connections_per_ip=per_ip,
        max_connections_per_ip_overrides=overrides,
    )


def test_an_address_gets_its_share_and_no_more() -> None:
    decide = limits(per_ip=2, special=3)
    assert [decide.admit("other") for _ in range(3)] == [True, True, False]
    assert [decide.admit("special") for _ in range(4)] == [True, True, True, False]
    decide.release("other")
    assert decide.admit("other")


def test_full_until_one_leaves() -> None:
    decide = limits(total=2)
    decide.admit("a")
    assert not decide.full
    decide.admit("b")
    assert decide.full
    decide.release("a")
    assert not decide.full


def test_turned_away_clients_do_not_count() -> None:
    decide = limits(total=2, per_ip=0)
    assert not decide.admit("a")
    assert decide.total == 0


def test_limits_can_change_while_clients_are_in() -> None:
    decide = limits(total=1)
    decide.admit("a")
    decide.update(max_connections=2, max_connections_per_ip=1, max_connections_per_ip_overrides={})
    assert not decide.full
    assert not decide.admit("a")
    assert decide.admit("b")


def test_who_never_came_cannot_leave() -> None:
    with pytest.raises(InvariantError, match=r"10\.0\.0\.1"):
        limits().release("10.0.0.1")


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    decide = limits(total=3)
    decide.update_listeners({"PUBLIC": 1})
    decide.admit("a", "PUBLIC")
    assert decide.is_full("PUBLIC")
    assert not decide.is_full("OTHER")
    decide.release("a", "PUBLIC")
    assert not decide.is_full("PUBLIC")


def test_clients_do_not_lock_out_brokers() -> None:
    decide = limits(total=2)
    decide.update_listeners({"INTERNAL": 3}, protected="INTERNAL")
    decide.admit("a", "PUBLIC")
    decide.admit("b", "PUBLIC")
    assert decide.is_full("PUBLIC")
    assert not decide.is_full("INTERNAL")
    for _ in range(3):
        decide.admit("c", "INTERNAL")
    assert decide.is_full("INTERNAL")
