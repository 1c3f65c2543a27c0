"""Names in bootstrap.servers that do not resolve, as Kafka's clients take them."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from moldau.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    Consumer,
    Producer,
    ShareConsumer,
)
from moldau.client.bootstrap import Bootstrap
from moldau.client.errors import ConfigError
from moldau.client.network_settings import NetworkSettings
from moldau.config.addresses import HostPort

# Too long for any name server to be asked about: refused at once, with and without a network.
NOWHERE = ".".join(["nowhere"] * 40)
REFUSAL = r"No resolvable bootstrap urls given in bootstrap\.servers"


def _with_group(kind: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **settings: kind(group_id="g", **settings)


BLOCKING = [
    pytest.param(Producer, id="producer"),
    pytest.param(_with_group(Consumer), id="consumer"),
    pytest.param(_with_group(ShareConsumer), id="share consumer"),
    pytest.param(Admin, id="admin"),
]


async def _poll(client: Any) -> None:
    client.subscribe(["t"])
    await client.poll(30)


async def _assign(client: Any) -> None:
    client.assign([("t", 0)])
    await client.poll(30)


ASYNC = [
    pytest.param(AsyncProducer, lambda client: client.send("t", b""), id="producer"),
    pytest.param(AsyncProducer, lambda client: client.start(), id="producer's start"),
    pytest.param(_with_group(AsyncConsumer), _poll, id="consumer"),
    pytest.param(AsyncConsumer, _assign, id="consumer without a group"),
    pytest.param(AsyncConsumer, lambda client: client.list_topics(), id="consumer's question"),
    pytest.param(_with_group(AsyncShareConsumer), _poll, id="share consumer"),
    pytest.param(AsyncAdmin, lambda client: client.list_topics(), id="admin"),
]


@pytest.mark.parametrize("make", BLOCKING)
def test_a_blocking_client_is_not_made_where_nothing_resolves(make: Callable[..., Any]) -> None:
    threads = set(threading.enumerate())
    with pytest.raises(ConfigError, match=REFUSAL) as caught:
        make(bootstrap_servers=f"{NOWHERE}:9092,bad..name:9092")
    assert "bad..name:9092" in str(caught.value)
    assert caught.value.key == "bootstrap.servers"
    assert set(threading.enumerate()) <= threads


@pytest.mark.parametrize(("make", "use"), ASYNC)
def test_an_asyncio_client_says_so_at_its_first_use(
    make: Callable[..., Any], use: Callable[[Any], Any]
) -> None:
    async def session() -> None:
        client = make(bootstrap_servers=f"{NOWHERE}:9092")
        # Not only the first: what was refused is not believed to work afterwards.
        for _ in range(2):
            with pytest.raises(ConfigError, match=REFUSAL):
                await asyncio.wait_for(use(client), 30)
        await asyncio.wait_for(client.close(), 30)

    asyncio.run(session())


@pytest.mark.parametrize("make", [each.values[0] for each in ASYNC[:1] + ASYNC[2:]])
def test_async_with_is_not_entered(make: Callable[..., Any]) -> None:
    async def session() -> None:
        async with make(bootstrap_servers=f"{NOWHERE}:9092"):
            pytest.fail("it was entered")

    with pytest.raises(ConfigError, match=REFUSAL):
        asyncio.run(session())


@pytest.mark.parametrize("make", BLOCKING)
@pytest.mark.parametrize("entry", ["localhost", "localhost:", "localhost:http", "a b:1", ":9092"])
def test_what_is_no_address_is_named(make: Callable[..., Any], entry: str) -> None:
    with pytest.raises(ConfigError, match="host:port") as caught:
        make(bootstrap_servers=f"127.0.0.1:9092,{entry}")
    assert caught.value.value == entry


def test_controllers_have_a_key_of_their_own() -> None:
    with pytest.raises(ConfigError, match=r"urls given in bootstrap\.controllers"):
        Admin(bootstrap_controllers=f"{NOWHERE}:9093")


@pytest.mark.parametrize("make", BLOCKING)
def test_one_that_does_not_resolve_is_left_out_with_a_warning(
    make: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "moldau.client"):
        make(bootstrap_servers=f"{NOWHERE}:9092,127.0.0.1:1").close()
    told = [record.getMessage() for record in caplog.records if NOWHERE in record.getMessage()]
    assert told == [
        f"Couldn't resolve server {NOWHERE}:9092 from bootstrap.servers as DNS resolution failed "
        f"for {NOWHERE}"
    ]


def _resolved(*given: HostPort, **settings: Any) -> list[tuple[str, int]]:
    async def session() -> list[tuple[str, int]]:
        bootstrap = Bootstrap(NetworkSettings(bootstrap=given, **settings))
        await bootstrap.resolve()
        return [(node.host, node.port) for node in bootstrap.nodes()]

    return asyncio.run(session())


def test_only_what_resolves_is_asked() -> None:
    given = (HostPort(NOWHERE, 1), HostPort("127.0.0.1", 2), HostPort("::1", 3))
    assert _resolved(*given) == [*given[1:]]


def test_canonical_names_take_the_place_of_what_was_given() -> None:
    lookup = "resolve_canonical_bootstrap_servers_only"
    # Whatever this machine calls itself.
    name, _ = socket.getnameinfo(("127.0.0.1", 2), 0)
    assert _resolved(HostPort("127.0.0.1", 2), client_dns_lookup=lookup) == [(name, 2)]
    with pytest.raises(ConfigError, match=REFUSAL):
        _resolved(HostPort(NOWHERE, 1), client_dns_lookup=lookup)
