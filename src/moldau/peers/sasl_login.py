"""Logs in over a connection to a node, before its first call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from moldau.peers.channel import AuthenticationFailed, ChannelError
from moldau.peers.node_connection import NodeConnection
from moldau.security.machine import outcomes
from moldau.security.sasl_client import Login, authenticate
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.message import Message

__all__ = ["sasl_login"]


def sasl_login(login: Login) -> Callable[[NodeConnection, str], Awaitable[int]]:
    """For `ConnectionSecurity.authenticate`."""

    async def log_in(connection: NodeConnection, host: str) -> int:
        async def ask(key: ApiKey, request: Message) -> Message:
            api = API_BY_KEY[key]
            raw = await connection.ask(api, request)
            try:
                return decode(api.response, raw.version, raw.body)
            except WireError as error:
                raise ChannelError(f"{api.name} to {connection.peer}: {error}") from error

        try:
            return await authenticate(ask, login, host)
        except outcomes.AuthenticationFailed as error:
            peer, reason = connection.peer, str(error)
            raise AuthenticationFailed(f"{peer}: {reason}", peer, reason, tls=False) from error

    return log_in
