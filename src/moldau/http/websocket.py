"""WebSocket: one websocket of a service, over ASGI."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from moldau.http.request import ClientDisconnected, Receive, Send

__all__ = ["WebSocket"]

#: The reason of a close frame has 123 bytes at most.
REASON_BYTES_MAX: Final = 123


class WebSocket:
    """Texts go out; what the client sends is read and dropped. `ClientDisconnected` is raised when
    the client has gone."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._accepted = False
        self._ended = False
        self._reading: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Take the handshake."""
        await self._receive()

    async def accept(self) -> None:
        await self._send({"type": "websocket.accept"})
        self._accepted = True
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while (await self._receive())["type"] != "websocket.disconnect":
            pass
        self._ended = True

    async def gone(self) -> None:
        """Return when the client has closed it."""
        if self._reading is not None:
            await asyncio.shield(self._reading)

    async def send(self, text: str) -> None:
        if self._ended:
            raise ClientDisconnected
        await self._send({"type": "websocket.send", "text": text})

    async def close(self, code: int, reason: str) -> None:
        """Once; further calls do nothing."""
        if not self._ended:
            self._ended = True
            shown = _shortened(reason)
            await self._send({"type": "websocket.close", "code": code, "reason": shown})
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading

    async def refuse(self, status: int, message: str) -> None:
        """Before the handshake is accepted: as an answer of HTTP; afterwards: close."""
        if not self._accepted:
            # The server under it answers a close before the handshake with 403; this says more.
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            if status == 401:
                headers.append((b"www-authenticate", b"Basic"))
            await self._send(
                {"type": "websocket.http.response.start", "status": status, "headers": headers}
            )
            await self._send({"type": "websocket.http.response.body", "body": message.encode()})
            return
        await self.close(1011, message)


def _shortened(reason: str) -> str:
    data = reason.encode()
    if len(data) <= REASON_BYTES_MAX:
        return reason
    return data[: REASON_BYTES_MAX - 3].decode(errors="ignore") + "..."
