"""The session of a login: a connection logs in, and again before its session ends (KIP-368).

As in Kafka's clients that happens when there is something to send. Invariants: calls in flight are
answered meanwhile, and none is sent before the login is done; a login that fails ends the
connection, and the next one shows what is wrong with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from moldau.clock import Clock
from moldau.peers.deadline import Deadline
from moldau.peers.machine.backoff import RandomSource
from moldau.peers.machine.sessions import due_after_ms
from moldau.peers.node_connection import NodeConnection

__all__ = ["LoginSession"]


class LoginSession:
    """See the module. One for each channel, whatever connections it has."""

    def __init__(
        self,
        authenticate: Callable[[NodeConnection, str], Awaitable[int]],
        host: str,
        *,
        clock: Clock,
        random: RandomSource,
        timeout_ms: Callable[[], int],
        on_renewed: Callable[[], None],
    ) -> None:
        self._authenticate = authenticate
        self._host = host
        self._clock = clock
        self._random = random
        self._timeout_ms = timeout_ms
        self._on_renewed = on_renewed
        self._due_ms: int | None = None
        self._renewal: asyncio.Task[None] | None = None

    async def begin(self, connection: NodeConnection) -> None:
        """Log in; raises ChannelError."""
        lifetime_ms = await self._authenticate(connection, self._host)
        self._due_ms = None
        if lifetime_ms > 0:
            used_ms = due_after_ms(lifetime_ms, self._random)
            self._due_ms = self._clock.elapsed_ms() + used_ms

    def is_fresh(self, connection: NodeConnection) -> bool:
        """Whether calls may be sent; if not, a login is under way and `on_renewed` follows."""
        if self._due_ms is None:
            return True
        if self._renewal is None:
            if self._clock.elapsed_ms() < self._due_ms:
                return True
            self._renewal = asyncio.get_running_loop().create_task(self._renew(connection))
        return False

    async def _renew(self, connection: NodeConnection) -> None:
        timeout_ms = self._timeout_ms()
        deadline = Deadline(self._clock, timeout_ms)
        try:
            await self.begin(connection)
        except asyncio.CancelledError:
            if not deadline.passed():
                raise
            connection.lose(f"it did not log in again within {timeout_ms} ms")
        except OSError as error:
            connection.lose(str(error))
        finally:
            self._renewal = None
            deadline.cancel()
        self._on_renewed()
