"""Loading the logs of a log directory at the start of a broker.

Decides which subdirectories are logs of this broker. A log that cannot be attributed to a topic is
set aside as `-stray`, never deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.broker.log.context import LogContext
from moldau.broker.log.inventories import is_as_recorded, read_inventory
from moldau.broker.log.loader import open_log, read_topic_id
from moldau.broker.log.log_checkpoints import LogCheckpoints
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.machine.checkpoints import CorruptCheckpoint
from moldau.broker.log.machine.inventory import LogFacts
from moldau.broker.log.machine.names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    STRAY_DIR_SUFFIX,
    DirName,
    parse_dir_name,
    suffixed_dir,
)
from moldau.broker.log.registry import NEVER_MS, KnownLog, LogRegistry
from moldau.broker.log.removals import Removals
from moldau.broker.log.waiting_log import WaitingLog
from moldau.times import WallMs

if TYPE_CHECKING:
    from moldau.broker.config import LogConfig

logger = logging.getLogger(__name__)

CLUSTER_METADATA_TOPIC = "__cluster_metadata"


class LogLoading:
    def __init__(
        self,
        context: LogContext,
        registry: LogRegistry,
        checkpoints: LogCheckpoints,
        removals: Removals,
        now_ms: Callable[[], WallMs],
    ) -> None:
        self._context = context
        self._registry = registry
        self._checkpoints = checkpoints
        self._removals = removals
        self._now_ms = now_ms

    def load_dir(self, directory: LogDir, config_for: Callable[[str], LogConfig]) -> Iterator[None]:
        """Load the logs of a directory; the caller may pause after each."""
        # Thousands of partitions have one topic, and names come in order.
        config_for = lru_cache(maxsize=16)(config_for)
        recovery_points = self._checkpoints.read(directory, RECOVERY_POINT_CHECKPOINT)
        log_starts = self._checkpoints.read(directory, LOG_START_CHECKPOINT)
        high_watermarks = self._checkpoints.read(directory, HIGH_WATERMARK_CHECKPOINT)
        inventory = read_inventory(directory)
        for name in self._context.disk.scan_dirs(directory.path):
            parsed = parse_dir_name(name)
            if parsed is None or parsed.topic == CLUSTER_METADATA_TOPIC:
                continue
            config = config_for(parsed.topic)
            path = f"{directory.path}/{name}"
            if parsed.suffix and not self._is_log(path, parsed, config):
                continue
            topic_id = None
            clean = directory.clean_shutdown
            facts = inventory.get(name)
            if facts is not None and not is_as_recorded(
                self._context.disk, path, facts, clean=clean
            ):
                facts = None
            if facts is None and not clean:
                try:
                    topic_id = read_topic_id(self._context.disk, path)
                except CorruptCheckpoint:
                    self._set_aside(directory, path, parsed)
                    continue
            key = (parsed.topic, parsed.partition)
            if facts is not None and _may_wait(parsed, config, facts, log_starts.get(key, 0)):
                waiting = WaitingLog(
                    self._context,
                    directory,
                    path,
                    parsed.topic,
                    parsed.partition,
                    config,
                    facts=facts,
                    log_start_offset=log_starts.get(key, 0),
                    high_watermark=high_watermarks.get(key, 0),
                    now_ms=self._now_ms(),
                )
                self._add(waiting)
                yield
                continue
            log = open_log(
                self._context,
                directory,
                path,
                parsed.topic,
                parsed.partition,
                config,
                now_ms=self._now_ms(),
                clean_shutdown=clean,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=log_starts.get(key, 0),
                high_watermark=high_watermarks.get(key, 0),
                is_future=parsed.suffix == FUTURE_DIR_SUFFIX,
                facts=facts,
                found_id=topic_id,
            )
            self._add(log)
            yield
        # A log may end before its recovery point (a power failure in the middle of a cut), and a
        # clean stop put it at the very end: what is appended from now on is not durable there.
        for known in self._registry.of_dir(directory):
            self._checkpoints.on_cut(known)

    def _is_log(self, path: str, parsed: DirName, config: LogConfig) -> bool:
        if parsed.suffix == DELETE_DIR_SUFFIX:
            self._removals.directory(path, config.file_delete_delay_ms)
            return False
        if parsed.suffix == STRAY_DIR_SUFFIX:
            logger.warning("%s belongs to no partition of this broker and is not loaded", path)
            return False
        return True

    def _set_aside(self, directory: LogDir, path: str, parsed: DirName) -> None:
        """Flushes cover the topic id, so none has ended where it cannot be read. This may be an
        older topic of the name, deleted just before the power failed."""
        stray = suffixed_dir(
            parsed.topic, parsed.partition, self._registry.new_id(), STRAY_DIR_SUFFIX
        )
        logger.error("%s has no readable topic id; renaming it to %s", path, stray)
        self._context.disk.rename(path, f"{directory.path}/{stray}")

    def _add(self, log: KnownLog) -> None:
        key = log.topic, log.partition
        known: KnownLog | None = (
            self._registry.future.get(key) if log.is_future else self._registry.current.get(key)
        )
        if known is not None:
            # A crash in the middle of a move between log directories: the longer one is whole.
            log, loser = (log, known) if log.log_end_offset > known.log_end_offset else (known, log)
            logger.error(
                "%s and %s hold the same partition; setting the latter aside", log.dir, loser.dir
            )
            self._registry.set_aside(loser, STRAY_DIR_SUFFIX)
        self._registry.add(log)


def _may_wait(parsed: DirName, config: LogConfig, facts: LogFacts, log_start: int) -> bool:
    """Whether the log need not be opened before its first use. Regular flushes ask every log that
    has them, and a move between directories goes on at once."""
    return (
        parsed.suffix != FUTURE_DIR_SUFFIX
        and config.flush_ms == NEVER_MS
        and facts.end_offset >= log_start
    )
