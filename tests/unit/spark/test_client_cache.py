"""The clients that a Spark process keeps: shared or for one user, few, not for long, not forked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

from moldau.spark.client_cache import ClientCache
from support.waiting import eventually


class Client:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def cache(*, shared: bool, idle_max: int = 2, idle_s: float = 600.0) -> ClientCache[Client]:
    return ClientCache(Client, Client.close, idle_max=idle_max, shared=shared, idle_s=idle_s)


A, B, C = ({"client.id": name} for name in "abc")


def test_a_shared_client_serves_all_who_have_the_same_settings() -> None:
    kept = cache(shared=True)
    with kept.lease(A) as first, kept.lease(dict(A)) as second, kept.lease(B) as other:
        assert first is second
        assert other is not first
    with kept.lease(A) as again:
        assert again is first


def test_an_exclusive_client_has_one_user_at_a_time() -> None:
    kept = cache(shared=False)
    first, second = kept.take(A), kept.take(A)
    assert first is not second
    kept.give_back(A, first)
    assert kept.take(A) is first
    # Whoever does not give a client back keeps it to itself.
    assert kept.clients == []


@pytest.mark.parametrize("shared", [True, False])
def test_of_those_that_nobody_uses_the_last_ones_are_kept(shared: bool) -> None:
    kept = cache(shared=shared, idle_max=1)
    clients = [kept.take(settings) for settings in (A, B, C)]
    assert [each.closed for each in clients] == [0, 0, 0]
    for settings, client in zip((A, B, C), clients, strict=True):
        kept.give_back(settings, client)
    assert [each.closed for each in clients] == [1, 1, 0]
    kept.close_idle()
    assert [each.closed for each in clients] == [1, 1, 1]
    assert kept.clients == []


def test_a_client_in_use_is_not_closed() -> None:
    kept = cache(shared=True, idle_max=0, idle_s=0.01)
    with kept.lease(A) as used:
        with kept.lease(A):
            pass
        kept.close_idle()
        assert used.closed == 0
    assert used.closed == 1


@pytest.mark.parametrize("shared", [True, False])
def test_a_client_that_nobody_uses_any_more_is_closed_after_a_while(shared: bool) -> None:
    kept = cache(shared=shared, idle_s=0.02)
    for settings in (A, B):
        client = kept.take(settings)
        kept.give_back(settings, client)
        eventually(lambda client=client: client.closed == 1, what="the idle client was closed")  # type: ignore[misc]
    assert kept.clients == []


@pytest.mark.parametrize("shared", [True, False])
def test_a_forked_child_creates_its_own(shared: bool) -> None:
    kept = cache(shared=shared)
    idle = kept.take(B)
    kept.give_back(B, idle)
    lease = kept.lease(A)
    used = lease.__enter__()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = kept.take(B) is not idle
            kept.close_idle()
            if shared:
                # A copy of the parent's lease ends here, and nothing comes of it.
                lease.__exit__(None, None, None)
            code = 0 if own and idle.closed == used.closed == 0 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    lease.__exit__(None, None, None)
    assert kept.take(B) is idle
