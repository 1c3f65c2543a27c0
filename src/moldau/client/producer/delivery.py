"""Tells everybody who is concerned that a batch has ended."""

from __future__ import annotations

import logging

from moldau.client.producer._batch import DeliveryCallback, ProducerBatch, RecordFuture

__all__ = ["finish", "tell"]

_log = logging.getLogger(__name__)


def finish(batch: ProducerBatch) -> None:
    """Call the callbacks of a batch's records, in order, then those who wait. What a callback
    raises is logged: the others are still called."""
    callbacks, batch.callbacks = batch.callbacks, None
    for future, callback in callbacks or ():
        tell(callback, future)
    for waiter in batch.take_waiters():
        try:
            waiter()
        except Exception:
            _log.exception("A waiter for a record of %s failed", batch.queue.key)


def tell(callback: DeliveryCallback, future: RecordFuture) -> None:
    """Call a callback with what became of a record."""
    try:
        callback(future.metadata(), future.exception())
    except Exception:
        where = future.where()[0].queue.key
        _log.exception("The delivery callback of a record for %s failed", where)
