"""When the log manager's regular work is done.

Decides only the times: `due` is asked with the time and gives the tasks to run. What
always holds: no task walks all logs more often than Kafka's settings say, so thousands of
idle partitions cost nothing between two checks.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from moldau.broker.log.manager import NEVER_MS, LogManager

logger = logging.getLogger(__name__)

# The longest the loop sleeps: work may become due sooner than planned (a removal, a new
# flush.ms), and those waits are all a second or more.
SLEEP_MS_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceIntervals:
    """Kafka's settings; field names are theirs."""

    log_initial_task_delay_ms: int = 30_000
    log_retention_check_interval_ms: int = 300_000
    log_flush_scheduler_interval_ms: int = NEVER_MS
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_check_interval_ms: int = 600_000


class LogMaintenance:
    def __init__(self, manager: LogManager, intervals: MaintenanceIntervals, now_ms: int) -> None:
        self._manager = manager
        self._intervals = intervals
        first = now_ms + intervals.log_initial_task_delay_ms
        self._tasks: list[tuple[Callable[[], object], Callable[[], int]]] = [
            (manager.delete_old_segments, lambda: intervals.log_retention_check_interval_ms),
            (manager.flush_overdue, self._flush_interval_ms),
            (
                manager.checkpoint_recovery_points,
                lambda: intervals.log_flush_offset_checkpoint_interval_ms,
            ),
            (
                manager.checkpoint_log_starts,
                lambda: intervals.log_flush_start_offset_checkpoint_interval_ms,
            ),
            (
                manager.checkpoint_high_watermarks,
                lambda: intervals.replica_high_watermark_checkpoint_interval_ms,
            ),
            (manager.expire_producers, lambda: intervals.producer_id_expiration_check_interval_ms),
        ]
        self._last_ms = [first - interval() for _, interval in self._tasks]
        self._last_ms[1] = now_ms

    def _flush_interval_ms(self) -> int:
        # Kafka looks at flush.ms only every log.flush.scheduler.interval.ms, by default
        # never; a topic that asks for flush.ms gets it here all the same.
        return min(self._intervals.log_flush_scheduler_interval_ms, self._manager.flush_ms_min)

    def run_due(self, now_ms: int) -> int:
        """Do what is due; how long nothing else will be, in milliseconds."""
        wait_ms = SLEEP_MS_MAX
        for index, (task, interval) in enumerate(self._tasks):
            rest_ms = self._last_ms[index] + interval() - now_ms
            if rest_ms <= 0:
                self._last_ms[index] = now_ms
                task()
                rest_ms = interval()
            wait_ms = min(wait_ms, rest_ms)
        self._manager.removals.run_due()
        return max(wait_ms, 1)

    async def run(
        self, now_ms: Callable[[], int], sleep: Callable[[float], Awaitable[object]]
    ) -> None:
        """Work for ever; cancel to stop."""
        while True:
            try:
                wait_ms = self.run_due(now_ms())
            except Exception:
                # One log's trouble must not end the upkeep of all others.
                logger.exception("upkeep of the logs failed; trying again")
                wait_ms = SLEEP_MS_MAX
            await sleep(wait_ms / 1000)
