"""Collecting without holding up the event loop that the metrics are about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

from moldau.metrics.registry import Registry, Sample

__all__ = ["collected"]

#: How many samples are taken in one turn of the loop.
SAMPLES_PER_TURN: Final = 500


async def collected(registry: Registry) -> AsyncIterator[Sample]:
    """Everything there is; other work of the loop is done in between."""
    samples = registry.collect()
    while turn := list(islice(samples, SAMPLES_PER_TURN)):
        for sample in turn:
            yield sample
        await asyncio.sleep(0)
