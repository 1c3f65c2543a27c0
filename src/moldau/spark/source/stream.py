"""One run of a streaming query, as its reader in Spark's driver lives through it.

Spark asks for the latest offset, plans the batch up to it, and asks again when the batch is done
for good. Invariants: offsets that were handed out only grow; with AvailableNow nothing
beyond the offsets of the beginning is handed out; a call without news waits for some, but not for
long, since another source of the same query may have news.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from moldau.client.errors import DisconnectError, KafkaTimeoutError
from moldau.client.topics import TopicPartition
from moldau.spark.source.clock import SourceClock, SystemClock
from moldau.spark.source.cluster import SourceCluster
from moldau.spark.source.machine.lag import behind, latest_with_lag
from moldau.spark.source.machine.limits import AdaptiveLimit, MinimumGate, rate_limited, unread
from moldau.spark.source.machine.offsets import LATEST, Offsets, merged
from moldau.spark.source.machine.options import SourceOptions
from moldau.spark.source.machine.planning import (
    DATA_LOSS_ADVICE,
    DataLoss,
    plan_batch,
    questions,
    settled,
)
from moldau.spark.source.machine.ranges import OffsetRange, cut
from moldau.spark.source.mirror import GroupMirror

__all__ = ["StreamRun"]

_log = logging.getLogger(__name__)

# How long a call without news waits for some. Spark looks at all sources of a query in turn, so
# another source's news wait for as long. Where looking is dear, with very many partitions, it waits
# longer, to take this part of a core at most.
_IDLE_WAIT_S: Final = 0.1
_IDLE_WAIT_S_MAX: Final = 1.0
_IDLE_COST: Final = 0.02
_PATIENCE_MS: Final = 2_000
_AGE_PAUSE_S: Final = 1.0
_AGES_MAX: Final = 8
_FLUSH_S: Final = 5.0


class StreamRun:
    """See the module."""

    def __init__(
        self,
        options: SourceOptions,
        *,
        cluster: SourceCluster | None = None,
        clock: SourceClock | None = None,
    ) -> None:
        self._options = options
        self._clock = SystemClock() if clock is None else clock
        self._cluster = SourceCluster(options) if cluster is None else cluster
        self._mirror = (
            GroupMirror(options, self._cluster.thread) if options.mirror_offsets else None
        )
        self._is_checked = False
        self._gate = (
            MinimumGate(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
            if options.min_offsets_per_trigger is not None
            else None
        )
        self._adaptive = (
            None if options.target_batch_ms is None else AdaptiveLimit(options.target_batch_ms)
        )
        self._idle_wait_s = _IDLE_WAIT_S
        self._has_looked = False
        self._away_s: float | None = None
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._handed_out: Offsets = {}
        self._first: Offsets = {}
        self._ages: dict[tuple[TopicPartition, int], int] = {}
        self._ages_asked_s = 0.0
        for warning in options.warnings:
            _log.warning("%s", warning)

    # What Spark calls.

    def initial(self) -> Offsets:
        """Where a query without a checkpoint begins."""
        self._check_group()
        place = LATEST if self._options.starting is None else self._options.starting
        partitions = self._cluster.partitions(fresh=True)
        asked = questions(place, partitions, edge="starting")
        found = self._cluster.at_times(asked.asked)
        unmatched = [key for key, offset in found.items() if offset is None]
        return settled(
            asked,
            found,
            self._cluster.latest(unmatched),
            latest_if_no_match=self._options.latest_if_no_match,
        )

    def prepare_available_now(self) -> None:
        """Fix what this run reads: what is there now."""
        self._check_group()
        self._cluster.partitions(fresh=True, may_miss=True)
        self._target = self._cluster.latest_there()

    def latest(self, start: Offsets, *, limited: bool) -> Offsets:
        """Where the next batch ends; `start` if there is none. All before `start` is done."""
        self._check_group()
        if self._mirror is not None:
            self._mirror.done(start)
        if self._adaptive is not None:
            self._adaptive.done(self._elapsed_ms())
        if self._target is not None:
            latest = self._target = self._reachable(self._target, start)
            if latest == start and self._mirror is not None:
                # The run ends here, and this process with it.
                self._mirror.flush(_FLUSH_S)
        else:
            found = self._latest_or_wait(start)
            if found is None:
                self._handed_out = start
                return start
            latest = found
        self._latest = latest
        self._handed_out = self._limited(start, latest) if limited else latest
        return self._handed_out

    def report(self) -> dict[str, Any] | None:
        """The latest offsets and the lag behind them, for the query's progress."""
        if not self._latest:
            return None
        left = behind(self._handed_out, self._latest)
        return latest_with_lag(self._latest, left, self._oldest_ms(left), self._clock.now_ms())

    def plan(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """The ranges of a batch. Raises DataLoss unless the query goes on without."""
        plan = plan_batch(start, end, self._first_offsets(start, end))
        for loss in plan.losses:
            self._report_loss(loss)
        return cut(
            plan.ranges,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
        )

    def announcement(self) -> str | None:
        """What a task announces the query's group with; None if that is not needed."""
        return None if self._mirror is None else self._mirror.announcement()

    def close(self) -> None:
        if self._mirror is not None:
            self._mirror.close()
        self._cluster.close()

    # Behind it.

    def _check_group(self) -> None:
        if not self._is_checked and self._mirror is not None:
            self._mirror.check_group()
        self._is_checked = True

    def _reachable(self, target: Offsets, start: Offsets) -> Offsets:
        """The target, not behind the beginning, which was found after it: it may be further on,
        and may have partitions that are younger than the target. Those that it has because they
        were there before, and are no more, stay out."""
        younger: Offsets = {}
        if not start.keys() <= target.keys():
            there = self._cluster.partitions(fresh=True, may_miss=True)
            younger = {key: start[key] for key in start.keys() - target.keys() if key in there}
        return {**{key: max(at, start.get(key, at)) for key, at in target.items()}, **younger}

    def _latest_or_wait(self, start: Offsets) -> Offsets | None:
        """None while the cluster cannot be reached, up to `default.api.timeout.ms`: Spark stops a
        query between its calls, so a call must not take that long. The first one may: of a query
        that runs once there is no other."""
        try:
            with self._cluster.patience(
                _PATIENCE_MS if self._has_looked else self._cluster.api_timeout_ms
            ):
                latest = self._look(start)
        except (KafkaTimeoutError, DisconnectError) as error:
            now_s = self._clock.elapsed_s()
            if self._away_s is None:
                self._away_s = now_s
                _log.warning("The cluster cannot be reached, trying on: %s", error)
            away_ms = (now_s - self._away_s) * 1000
            if not self._has_looked or away_ms >= self._cluster.api_timeout_ms:
                raise
            return None
        self._has_looked = True
        self._away_s = None
        return latest

    def _look(self, start: Offsets) -> Offsets:
        begun_s = self._clock.cpu_s()
        latest = self._known_latest(start)
        if latest == start and self._cluster.wait(start, self._idle_wait_s):
            latest = self._known_latest(start)
        if latest == start:
            wait_s = (self._clock.cpu_s() - begun_s) / _IDLE_COST
            self._idle_wait_s = min(max(_IDLE_WAIT_S, wait_s), _IDLE_WAIT_S_MAX)
        return latest

    def _known_latest(self, start: Offsets) -> Offsets:
        """Asked for again where an end is below what was read: a broker that has just become the
        leader may not know better yet."""
        for attempt in range(1, self._options.fetch_offset_num_retries + 1):
            latest = self._cluster.latest_there()
            low = sorted(key for key, offset in latest.items() if offset < start.get(key, 0))
            if not low or attempt == self._options.fetch_offset_num_retries:
                break
            shown = ", ".join(f"{key}: {start[key]} > {latest[key]}" for key in low[:20])
            _log.warning("Offsets below those that were read, asking again: %s", shown)
            self._clock.sleep(self._options.fetch_offset_retry_interval_ms / 1000)
        return latest

    def _limited(self, start: Offsets, latest: Offsets) -> Offsets:
        minimum, maximum = self._gate, self._options.max_offsets_per_trigger
        if self._adaptive is not None:
            maximum = self._adaptive.limit
        if (minimum is None and maximum is None) or latest == start:
            return latest
        begin = {**self._first_offsets(start, latest), **start}
        available = sum(unread(begin, latest).values())
        # What is there at the beginning of an AvailableNow run is read, be it little.
        if (
            minimum is not None
            and self._target is None
            and not minimum.opens(available, self._elapsed_ms())
        ):
            return start
        end = latest if maximum is None else rate_limited(maximum, begin, latest)
        if self._adaptive is not None:
            count = sum(unread(begin, end).values())
            full = count < available
            self._adaptive.handed_out(count, is_full=full, now_ms=self._elapsed_ms())
        return end

    def _elapsed_ms(self) -> int:
        return int(self._clock.elapsed_s() * 1000)

    def _first_offsets(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> Offsets:
        """Of the partitions that are new in `end`: a batch is planned with those that it was
        limited with, even if retention has moved on since."""
        new = end.keys() - start.keys()
        unknown = [key for key in new if key not in self._first]
        if unknown:
            self._first = merged(self._first, self._cluster.earliest(unknown))
        found = {key: self._first[key] for key in new if key in self._first}
        self._first = dict(found)
        return found

    def _oldest_ms(self, left: Offsets) -> int | None:
        """The time of the oldest unread record, as far as it is known."""
        places = {
            key: self._handed_out.get(key, self._first.get(key, 0))
            for key in sorted(left, key=lambda key: -left[key])[:_AGES_MAX]
        }
        known = {place: time_ms for place, time_ms in self._ages.items() if place in places.items()}
        asked = {key: offset for key, offset in places.items() if (key, offset) not in known}
        now_s = self._clock.elapsed_s()
        if asked and now_s - self._ages_asked_s >= _AGE_PAUSE_S:
            self._ages_asked_s = now_s
            for key, time_ms in self._cluster.timestamps(asked).items():
                known[key, places[key]] = time_ms
        if known or not places:
            self._ages = known
        # Between two looks the last answer is the best there is.
        return min(self._ages.values(), default=None)

    def _report_loss(self, loss: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLoss(f"{loss} {DATA_LOSS_ADVICE}")
        _log.warning("Data loss, and the query goes on (failOnDataLoss is false): %s", loss)
