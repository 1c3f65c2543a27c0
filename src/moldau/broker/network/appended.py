"""The Produce requests of a connection whose records are appended and wait to be replicated."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from moldau.broker.network.interface import Reply
from moldau.wire.constants import Buffer


class AppendedRequests:
    """Their responses, in the order of the requests; one that is ready may wait for an earlier
    one."""

    __slots__ = ("replies",)

    def __init__(self) -> None:
        #: The same deque for ever: whether there are any is asked with each request.
        self.replies: deque[asyncio.Future[Reply] | bytes | list[Buffer]] = deque()

    def take_ready(
        self, has_failed: Callable[[asyncio.Future[Reply]], bool]
    ) -> list[Buffer] | None:
        """The responses that are next in order; None if `has_failed` of one of them."""
        replies = self.replies
        answers: list[Buffer] = []
        while replies:
            first = replies[0]
            if isinstance(first, asyncio.Future):
                if not first.done():
                    break
                if has_failed(first):
                    return None
                reply = first.result()
            else:
                reply = first
            del replies[0]
            if isinstance(reply, bytes):
                answers.append(reply)
            elif reply is not None:
                answers += reply
        return answers

    def cancel(self) -> None:
        replies = tuple(self.replies)
        self.replies.clear()
        for reply in replies:
            if isinstance(reply, asyncio.Future):
                reply.cancel()
