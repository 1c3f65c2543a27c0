"""The loop of the console consumers: receives and prints until a limit, a timeout or a signal.

Signals wake the consumer up, so that it leaves its group in order. As in Kafka's tools, a
timeout is not an error.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from moldau.cli.support.reporting import message_of
from moldau.cli.support.signals import Signals
from moldau.client.errors import KafkaError, WakeupError

if TYPE_CHECKING:
    from moldau.cli.console.formatters import Output, RawRecord

__all__ = ["POLL_SECONDS_MAX", "RecordLoop", "reason_of"]

# A signal that arrives just before a poll starts to wait does not end the wait: its handler only
# runs when the poll returns.
POLL_SECONDS_MAX = 0.5


def reason_of(error: Exception) -> str:
    """Why a record could not be printed. A custom formatter may raise anything."""
    return f"{type(error).__name__}: {message_of(error)}"


class RecordLoop:
    """Passes on records one by one, and counts them. A negative limit is none, as in Kafka."""

    def __init__(
        self,
        poll: Callable[[float], Iterable[RawRecord]],
        signals: Signals,
        *,
        timeout_ms: int | None,
        count_max: int | None,
    ) -> None:
        self._poll = poll
        self._signals = signals
        self._timeout = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        self._count_max = None if count_max is None or count_max < 0 else count_max
        self.waiting: deque[RawRecord] = deque()
        self.count = 0

    def run(self, take: Callable[[RawRecord, Output], None]) -> None:
        """Call `take(record, output)` for every record; its errors are raised here."""
        output = sys.stdout.buffer
        try:
            while self._count_max is None or self.count < self._count_max:
                if not self.waiting:
                    output.flush()
                    if not self._receive():
                        return
                if self._signals.received:
                    return
                self.count += 1
                take(self.waiting.popleft(), output)
            output.flush()
        except BrokenPipeError:
            print("Unable to write to standard out, closing consumer.", file=sys.stderr)
            # Discard what is buffered, also when the interpreter exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _receive(self) -> bool:
        """Fill `waiting`; False at the end."""
        started = time.monotonic()
        while not self.waiting:
            if self._signals.received:
                return False
            try:
                self.waiting.extend(self._poll(self._remaining(started)))
            except WakeupError:
                return False
            except KafkaError as error:
                self._report(message_of(error))
                return False
            if self.waiting or self._timeout is None:
                continue
            if time.monotonic() - started > self._timeout:
                self._report(f"no message within {round(self._timeout * 1000)} ms (--timeout-ms)")
                return False
        return True

    def _remaining(self, started: float) -> float:
        if self._timeout is None:
            return POLL_SECONDS_MAX
        left = self._timeout - (time.monotonic() - started)
        return min(max(left, 0.001), POLL_SECONDS_MAX)

    @staticmethod
    def _report(reason: str) -> None:
        print(f"Error processing message, terminating consumer process: {reason}", file=sys.stderr)
