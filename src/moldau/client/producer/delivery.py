"""Tells everybody who is concerned that a batch has ended."""

from __future__ import annotations

import logging
import threading

from moldau.client.producer._batch import DeliveryCallback, ProducerBatch, RecordFuture

__all__ = ["finish", "tell"]

_log = logging.getLogger(__name__)


def finish(batch: ProducerBatch) -> None:
    """Let the futures of a settled batch know, call the callbacks of its records, in order, then
    those who wait. What a callback raises is logged: the others are still called."""
    if batch.outcome is not None:
        batch.end(batch.outcome)
    callbacks, batch.callbacks = batch.callbacks, None
    for future, callback in callbacks or ():
        tell(callback, future)
    for waiter in batch.take_waiters():
        try:
            waiter()
        except BaseException as error:
            _log.exception("A waiter for a record of %s failed", batch.queue.key)
            _leave(error)


def tell(callback: DeliveryCallback, future: RecordFuture) -> None:
    """Call a callback with what became of a record."""
    try:
        callback(future.metadata(), future.exception())
    except BaseException as error:
        where = future.where()[0].queue.key
        _log.exception("The delivery callback of a record for %s failed", where)
        _leave(error)


def _leave(error: BaseException) -> None:
    """`sys.exit()` in the producer's own thread ends the callback only: the thread has the other
    records to answer for. Where an application's loop runs in the main thread, it ends that."""
    if isinstance(error, Exception) or threading.current_thread() is not threading.main_thread():
        return
    raise error
