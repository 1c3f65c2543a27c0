"""What a broker does periodically: retention, flushes, checkpoints, expiry, removing files.

One timer per kind of work, each at the interval that Kafka's configuration gives it; a failure of
one round is logged and does not stop the next. Slow system calls inside go through the log's
background, so no round delays clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.broker.config import BrokerConfig
from moldau.broker.log.manager import LogManager

logger = logging.getLogger(__name__)

REMOVAL_CHECK_MS = 1_000
FLUSH_CHECK_MS_MIN = 10
# Files of thousands of logs that were written to take some seconds, between which clients are
# served.
SMALL_FILES_CHECK_MS = 1_000
SMALL_FILES_TURN_MS = 20


class Maintenance:
    def __init__(self, logs: LogManager, config: Callable[[], BrokerConfig]) -> None:
        self._logs = logs
        self._config = config
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        logs = self._logs

        def every(name: str, key: str, work: Callable[[], object]) -> None:
            self._schedule(name, lambda: int(self._config()[key]), work, is_first=True)

        every("retention", "log.retention.check.interval.ms", logs.delete_old_segments)
        every(
            "recovery points",
            "log.flush.offset.checkpoint.interval.ms",
            logs.checkpoint_recovery_points,
        )
        every(
            "log starts",
            "log.flush.start.offset.checkpoint.interval.ms",
            logs.checkpoint_log_starts,
        )
        every(
            "high watermarks",
            "replica.high.watermark.checkpoint.interval.ms",
            logs.checkpoint_high_watermarks,
        )
        # Not sooner: opening a log has left out the producers that had expired.
        self._schedule("producer ids", self._producer_ids_interval_ms, logs.expire_producers)
        self._schedule("removals", lambda: REMOVAL_CHECK_MS, logs.removals.run_due)
        self._schedule("small files", self._small_files_interval_ms, logs.write_small_files)
        self._schedule("flushes", self._flush_interval_ms, logs.flush_overdue)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _producer_ids_interval_ms(self) -> int:
        return int(self._config()["producer.id.expiration.check.interval.ms"])

    def _small_files_interval_ms(self) -> int:
        return SMALL_FILES_TURN_MS if self._logs.has_unwritten_files else SMALL_FILES_CHECK_MS

    def _flush_interval_ms(self) -> int:
        scheduler_ms = int(self._config()["log.flush.scheduler.interval.ms"])
        return max(FLUSH_CHECK_MS_MIN, min(scheduler_ms, self._logs.flush_ms_min, 1_000))

    def _schedule(
        self,
        name: str,
        interval_ms: Callable[[], int],
        work: Callable[[], object],
        *,
        is_first: bool = False,
    ) -> None:
        def round_() -> None:
            try:
                work()
            except Exception:
                logger.exception("periodic task failed: %s", name)
            self._schedule(name, interval_ms, work)

        delay_ms = interval_ms()
        if is_first:
            # Work from while the broker was down does not wait for a whole interval.
            delay_ms = min(delay_ms, int(self._config()["log.initial.task.delay.ms"]))
        self._timers[name] = self._loop.call_later(delay_ms / 1000, round_)
