"""Lists that pages ask for often: kept for a moment for each user, and refreshed behind the page.

A list of 10,000 topics costs the console a fifth of a second in which it does nothing else; a page
that was shown before is answered from the last list while the next one is fetched, and a long list
is kept for longer, 10,000 topics for five seconds. What the user creates or deletes here is seen at
once (`forget_topics`).
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from moldau.client.errors import KafkaError
from moldau.services.console.backend import Call
from moldau.services.console.clients import ClientSet

__all__ = ["forget_topics", "topic_names"]

FRESH_S: Final = 1.0
FRESH_S_PER_TOPIC: Final = 0.0005
USABLE_S: Final = 30.0


class _Names:
    def __init__(self) -> None:
        self.names: dict[str, bool] = {}
        self.read_s = float("-inf")
        self.reading: asyncio.Task[None] | None = None

    @property
    def fresh_s(self) -> float:
        return min(USABLE_S, max(FRESH_S, len(self.names) * FRESH_S_PER_TOPIC))


async def topic_names(call: Call) -> dict[str, bool]:
    """The topics that the user may see, and whether each is internal."""
    kept: _Names = call.clients.memory.setdefault("topics", _Names())
    age_s = time.monotonic() - kept.read_s
    if age_s <= kept.fresh_s:
        return kept.names
    if kept.reading is None or kept.reading.done():
        kept.reading = asyncio.create_task(_read(call.clients, kept))
    if age_s > USABLE_S:
        # Shielded: others may wait for the same list.
        await asyncio.shield(kept.reading)
    else:
        # What is read in time is shown; an error is shown with the next page.
        await asyncio.wait({kept.reading}, timeout=0.1)
        if kept.reading.done() and not kept.reading.cancelled():
            error = kept.reading.exception()
            if error is not None and not isinstance(error, KafkaError):
                raise error
    return kept.names


def forget_topics(call: Call) -> None:
    """The user has changed which topics there are."""
    call.clients.memory.pop("topics", None)


async def _read(clients: ClientSet, kept: _Names) -> None:
    found = await clients.admin.list_topics(list_internal=True)
    kept.names = {name: each.is_internal for name, each in found.items()}
    kept.read_s = time.monotonic()
