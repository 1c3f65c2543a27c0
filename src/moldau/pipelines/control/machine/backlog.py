"""How far a pipeline has worked off what it found waiting, and how long the rest takes.

Pure: progress records and times in, progress records out. A backlog is more than the next batch
will take. What is done is measured from the largest lag since the pipeline was last up to date, and
the rest is estimated from how fast the lag has shrunk of late: so what arrives meanwhile counts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final

from moldau.pipelines.machine.records import ProgressRecord

__all__ = ["Backlog"]

_WINDOW_S: Final = 60.0
_SAMPLES_MAX: Final = 64


class Backlog:
    """What is remembered of one run of a pipeline."""

    def __init__(self) -> None:
        self._largest = 0
        self._batch_id: int | None = None
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES_MAX)

    def seen(self, progress: ProgressRecord, now_s: float) -> ProgressRecord:
        """The progress with its backlog; `now_s` is of a clock that only moves on."""
        lag = progress.lag_records
        if lag is None or lag <= progress.input_rows:
            self._largest = 0
            self._samples.clear()
            return progress
        self._largest = max(self._largest, lag)
        if progress.batch_id != self._batch_id:
            self._batch_id = progress.batch_id
            self._samples.append((now_s, lag))
        while len(self._samples) > 2 and now_s - self._samples[0][0] > _WINDOW_S:
            self._samples.popleft()
        return replace(
            progress,
            backlog_done=round(1 - lag / self._largest, 3),
            seconds_left=self._seconds_left(),
        )

    def _seconds_left(self) -> float | None:
        """None where it does not shrink: then there is no end to tell."""
        (first_s, first), (last_s, last) = self._samples[0], self._samples[-1]
        if last_s <= first_s or last >= first:
            return None
        return round(last * (last_s - first_s) / (first - last), 1)
