"""The logs of the partitions that the metadata assigns to this node: found, created, or stray."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from moldau.broker.config import LogConfig
from moldau.broker.log.log import Log
from moldau.broker.log.log_dirs import LogDir
from moldau.broker.log.manager import LogManager
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Partition as PartitionState
from moldau.broker.metadata.machine.model import Topic, is_reserved_directory
from moldau.wire.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)


class HostedLogs:
    """Opens and deletes logs as the metadata asks, and reports where they are."""

    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        log_config: Callable[[str], LogConfig],
        report_directory: Callable[[UUID, int, UUID], None],
    ) -> None:
        """`log_config(topic)` returns a topic's current config; `report_directory(topic id,
        partition, directory id)` reports to the controller where a replica was put."""
        self._node_id = node_id
        self._logs = logs
        self._log_config = log_config
        self._report_directory = report_directory

    def is_loaded(self, topic: str, index: int) -> bool:
        """Whether the log is there, so that no files have to be created for the partition."""
        return self._logs.known_log(topic, index) is not None

    def open(self, topic: Topic, index: int, state: PartitionState) -> Log | None:
        """The partition's log, created if there is none; None if its directory cannot be used."""
        try:
            return self._open(topic, index, state)
        except ApiError as failure:
            logger.error("%s-%d cannot be served: %s", topic.name, index, failure.message)
            return None

    def _open(self, topic: Topic, index: int, state: PartitionState) -> Log:
        config = self._log_config(topic.name)
        log = self._logs.get_log(topic.name, index)
        if log is not None and log.topic_id not in (None, topic.id):
            # Left behind by a deleted topic of the same name.
            self._logs.set_stray(log)
            log = None
        if log is None:
            directory = self._assigned_dir(state)
            return self._logs.create_log(
                topic.name, index, config, topic_id=topic.id, directory=directory
            )
        if log.dir_state.failure is not None:
            raise log.dir_state.failure.again()
        log.set_topic_id(topic.id)
        if log.config != config:
            self._logs.update_config(topic.name, config)
        return log

    def _assigned_dir(self, state: PartitionState) -> LogDir | None:
        """The directory that the metadata asks for, None if this node may choose."""
        directory_id = state.directory_of(self._node_id)
        if directory_id is None or is_reserved_directory(directory_id):
            return None
        directory = self._logs.dir_by_id(directory_id)
        if directory is None and self._logs.offline_dirs:
            # It may be in a directory that could not even be opened. A new, empty log in another
            # one would look like a replica that has lost everything.
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {directory_id} is not online"
            )
        return directory

    def report(self, log: Log, topic_id: UUID, index: int, state: PartitionState) -> None:
        """Report to the controller where the replica is, if the metadata says otherwise."""
        directory = log.dir_state
        directory_id = directory.directory_id if isinstance(directory, LogDir) else None
        if directory_id is not None and state.directory_of(self._node_id) != directory_id:
            self._report_directory(topic_id, index, directory_id)

    def replace_by_future_log(self, topic: str, index: int) -> Log:
        return self._logs.replace_by_future_log(topic, index)

    def update_config(self, topic: str, current: list[Log]) -> bool:
        """Apply a topic's config to its logs; whether it has changed for any of them."""
        config = self._log_config(topic)
        if all(log.config == config for log in current):
            return False
        self._logs.update_config(topic, config)
        return True

    def delete(self, topic: str, index: int) -> None:
        try:
            self._logs.delete_log(topic, index)
        except ApiError as failure:
            logger.error("%s-%d cannot be deleted: %s", topic, index, failure.message)

    def set_strays_aside(self, image: MetadataImage) -> None:
        """Rename the logs that a complete image does not assign to this node."""
        for log in self._logs.known_logs():
            topic = image.topics_by_name.get(log.topic)
            state = None if topic is None else topic.partitions.get(log.partition)
            if (
                topic is None
                or state is None
                or self._node_id not in state.replicas
                or log.topic_id not in (None, topic.id)
            ):
                logger.warning("%s is not assigned to this broker; renaming it to *-stray", log.dir)
                self._logs.set_stray(log)
