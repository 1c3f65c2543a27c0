"""Whether and when a failed step is tried again, and whether its record may be skipped."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.connect.api.errors import RetriableError
from moldau.connect.machine.ids import Stage

_DELAY_MS_MIN = 300
#: Steps whose failure concerns the record; a failure of the others concerns the task.
_TOLERABLE = frozenset(
    {
        Stage.TRANSFORMATION,
        Stage.KEY_CONVERTER,
        Stage.VALUE_CONVERTER,
        Stage.HEADER_CONVERTER,
    }
)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`errors.retry.timeout` (-1: for ever) and `errors.retry.delay.max.ms`."""

    timeout_ms: int
    delay_ms_max: int

    def delay_ms(self, attempt: int, elapsed_ms: int, jitter: float) -> int | None:
        """How long to wait after the failure number `attempt`; None to give up.

        `jitter` is between 0 and 1: delays above the maximum are spread below it, so that tasks
        do not all come back at once.
        """
        if self.timeout_ms == 0 or 0 < self.timeout_ms <= elapsed_ms:
            return None
        delay = _DELAY_MS_MIN << min(attempt - 1, 30)
        if delay > self.delay_ms_max:
            delay = int(self.delay_ms_max * jitter)
        if self.timeout_ms > 0:
            delay = min(delay, self.timeout_ms - elapsed_ms)
        return max(delay, 0)


def is_retriable(error: BaseException) -> bool:
    return isinstance(error, RetriableError)


def is_tolerable(stage: Stage, error: BaseException) -> bool:
    """Whether `errors.tolerance=all` may skip the record."""
    return stage in _TOLERABLE or is_retriable(error)
