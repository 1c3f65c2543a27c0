"""Whole record batches, fetched and produced without decoding their records.

For programs that copy topics: `BatchConsumer` returns batches as the broker has them, and
`BatchProducer` appends them elsewhere. Only headers are read and written, so compression, keys,
values, headers and timestamps stay as they are.
"""

from __future__ import annotations

from moldau.client.batches.consumer import BatchConsumer, Polled
from moldau.client.batches.copies import BatchCopy
from moldau.client.batches.machine.fetched import FetchedBatch
from moldau.client.batches.producer import BatchProducer, SentBatch

__all__ = ["BatchConsumer", "BatchCopy", "BatchProducer", "FetchedBatch", "Polled", "SentBatch"]
