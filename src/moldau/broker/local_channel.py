"""Calls of a node to itself: answered in process, through the routes of its listeners.

A broker calls the active controller, coordinators call the leaders of partitions, and either may be
the node itself.

Invariants: such a call behaves like one over the network, except for its speed; its errors are
those of the route, and it fails while the listener is not served yet.
"""

from __future__ import annotations

import asyncio

from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.dispatcher import Dispatcher
from moldau.broker.network.interface import InvalidRequest
from moldau.peers.channel import (
    CallTimedOut,
    Channel,
    ChannelError,
    RawResponse,
    Transport,
    UnsupportedVersion,
)
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.message import Message


class LoopbackTransport:
    """Implements `Transport`: the given one, and a shortcut to the node itself."""

    def __init__(self, node_id: int, others: Transport) -> None:
        self._node_id = node_id
        self._others = others
        self._served: dict[str, Dispatcher] = {}

    def serve(self, listener_name: str, dispatcher: Dispatcher) -> None:
        """Answer calls to this node's own listener by `dispatcher` from now on."""
        self._served[listener_name] = dispatcher

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Channel:
        if node_id == self._node_id:
            return _LocalChannel(self._served, listener_name)
        return self._others.channel(node_id, host, port, listener_name)


class _LocalChannel:
    def __init__(self, served: dict[str, Dispatcher], listener_name: str) -> None:
        self._served = served
        self._connection = ConnectionInfo(listener_name=listener_name, connection_id="local")
        self._closed: asyncio.Future[None] | None = None

    async def call(
        self,
        key: ApiKey,
        request: Message,
        *,
        timeout_ms: int,
        max_version: int | None = None,
    ) -> Message:
        name = API_BY_KEY[key].name
        dispatcher = self._served.get(self._connection.listener_name)
        if dispatcher is None:
            raise ChannelError(f"{name}: this node does not serve its own listener yet")
        try:
            answer = dispatcher.call(self._connection, key, request)
            return await asyncio.wait_for(answer, timeout_ms / 1000)
        except TimeoutError:
            raise CallTimedOut(f"{name} to this node itself took over {timeout_ms} ms") from None
        except KeyError:
            raise UnsupportedVersion(f"{name} is not served on the node's own listener") from None
        except InvalidRequest as error:
            raise ChannelError(str(error)) from error

    async def call_raw(
        self,
        key: ApiKey,
        request: Message,
        *,
        timeout_ms: int,
        max_version: int | None = None,
    ) -> RawResponse:
        raise UnsupportedVersion(f"{API_BY_KEY[key].name}: a node does not fetch from itself")

    def close(self) -> None:
        """There is nothing to release."""
