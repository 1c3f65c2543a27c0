"""A task that keeps topics as files. S3 and HDFS give it a storage."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from moldau.connect.api import (
    DataError,
    OffsetAndMetadata,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from moldau.connect.connectors.files.formats import Format
from moldau.connect.connectors.files.machine.partitioners import (
    is_time_based,
    make_extractor,
    make_partitioner,
)
from moldau.connect.connectors.files.machine.rotation import OpenFile, PartitionFiles, Rotation
from moldau.connect.connectors.files.machine.zones import offset_ms_of

logger = logging.getLogger(__name__)


class Storage(Protocol):
    def write(self, path: str, data: bytes) -> None:
        """Store a file under a path, in place of one that may be there: all of it or nothing."""

    def close(self) -> None: ...


class FilesSinkTask(SinkTask):
    """Files are kept in memory until they are complete, up to `flush.size` records each."""

    #: Whether rotate.interval.ms is for partitioners by time only, and with it a change of the
    #: folder ends files, as with S3. Else it is by the wall clock with other partitioners.
    INTERVAL_NEEDS_TIME: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._config: dict[str, Any] = {}
        self._files: dict[TopicPartition, PartitionFiles] = {}
        self._committed: dict[TopicPartition, int] = {}
        #: After a failed put: what comes again from before these offsets is stored.
        self._resumed_at: dict[TopicPartition, int] = {}
        #: Of these the ones that did not come again yet: nothing after them may be committed.
        self._awaited: dict[TopicPartition, int] = {}

    @abstractmethod
    def parse(self, props: Mapping[str, str]) -> dict[str, Any]: ...

    @abstractmethod
    def open_storage(self, config: dict[str, Any]) -> tuple[Storage, Format]: ...

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = self.parse(props)
        self._storage, self._format = self.open_storage(config)
        by_time = is_time_based(config["partitioner.class"])
        rotate_ms = config["rotate.interval.ms"]
        if rotate_ms > 0 and not by_time and self.INTERVAL_NEEDS_TIME:
            logger.warning(
                "rotate.interval.ms has no effect: it needs a partitioner by time, not %s",
                config["partitioner.class"],
            )
            rotate_ms = -1
        self._rotation = Rotation(
            config["flush.size"],
            rotate_ms,
            config["rotate.schedule.interval.ms"],
            config["schema.compatibility"].upper(),
            wall_clock=not by_time,
            changes_of_folder=self.INTERVAL_NEEDS_TIME
            and config["rotate.file.on.partition.change"],
            keys=config.get("store.kafka.keys", False),
        )
        self._partitioner = make_partitioner(config, offset_ms_of(config["timezone"]))
        self._timestamp = make_extractor(config)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self._files[each] = self._new_files()

    def _new_files(self) -> PartitionFiles:
        return PartitionFiles(self._rotation, self._partitioner, self._timestamp)

    def put(self, records: Sequence[SinkRecord]) -> None:
        now_ms = int(time.time() * 1000)
        taken: dict[TopicPartition, int] = {}
        try:
            for record in records:
                at = TopicPartition(record.original_topic, record.original_partition)
                taken.setdefault(at, record.original_offset)
                self._take(at, record, now_ms)
            for at, files in self._files.items():
                if files.is_due(now_ms):
                    self._store(at, files)
        except Exception:
            # The same records come again, also those whose files are stored.
            self._rewind(taken)
            raise

    def _take(self, at: TopicPartition, record: SinkRecord, now_ms: int) -> None:
        if record.original_offset < self._resumed_at.get(at, 0):
            return
        self._awaited.pop(at, None)
        files = self._files.get(at)
        if files is None:
            files = self._files[at] = self._new_files()
        if record.value is None:
            if self._config["behavior.on.null.values"].lower() == "ignore":
                return
            self._refuse(
                record,
                DataError(
                    f"record {record.topic}-{record.partition}@{record.offset} has no value, and "
                    "behavior.on.null.values is fail"
                ),
            )
            return
        try:
            self.check(record)
            complete = files.is_complete_before(record, now_ms)
        except DataError as error:
            self._refuse(record, error)
            return
        if complete:
            self._store(at, files)
        else:
            try:
                record = files.fitted(record, now_ms)
            except DataError as error:
                self._refuse(record, error)
                return
        if files.take(record, now_ms):
            self._store(at, files)

    def _refuse(self, record: SinkRecord, error: DataError) -> None:
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error)

    def _rewind(self, taken: Mapping[TopicPartition, int]) -> None:
        """Forget what is open of these partitions, and go on after the last file that is stored:
        a file that began anywhere else would have some of its records again."""
        for at, offset in taken.items():
            stored = max(self._committed.get(at, offset), offset)
            first = min(
                [each.first_offset for each in self._files[at].open_files()], default=stored
            )
            self._files[at] = self._new_files()
            self._resumed_at[at] = self._awaited[at] = first
            if first < offset:
                self.context.offset({at: first})

    def _store(self, at: TopicPartition, files: PartitionFiles) -> None:
        found = []
        for each in files.open_files():
            path = self._path(at, each)
            data = self._format.write(each.schema, each.records)
            found.append((f"{path}{self._format.extension}", data))
            found += [(f"{path}{ending}", more) for ending, more in self.beside(each)]
        if found:
            self.store_files(at, found)
        offset = files.stored()
        if offset is not None:
            self._committed[at] = offset

    def beside(self, file: OpenFile) -> Sequence[tuple[str, bytes]]:
        """What is stored with a file: the end of a name, and contents."""
        return ()

    def check(self, record: SinkRecord) -> None:
        """DataError for a record that cannot be stored."""

    def store_files(self, at: TopicPartition, files: Sequence[tuple[str, bytes]]) -> None:
        """Store the files of a partition that are complete together, as path and contents."""
        for path, data in files:
            self._storage.write(path, data)

    def name_of(self, at: TopicPartition, file: OpenFile) -> str:
        """The name of a file, without its extension."""
        number = str(file.first_offset).zfill(self._config["filename.offset.zero.pad.width"])
        delimiter: str = self._config["file.delim"]
        return delimiter.join([file.records[0].topic, str(at.partition), number])

    def _path(self, at: TopicPartition, file: OpenFile) -> str:
        parts = [self._config["topics.dir"], file.records[0].topic, file.folder]
        path: str = self._config["directory.delim"].join([*parts, self.name_of(at, file)])
        return path.removeprefix("/")

    def pre_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Only what is stored: everything else is read again after a failure."""
        found = {}
        for at, given in offsets.items():
            files = self._files.get(at)
            awaited = self._awaited.get(at)
            if awaited is not None:
                # What was open is forgotten, though it had been put without a failure.
                found[at] = OffsetAndMetadata(min(given.offset, awaited))
            elif files is None or files.is_empty:
                found[at] = given
            elif at in self._committed:
                found[at] = OffsetAndMetadata(self._committed[at])
        return found

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self._files.pop(each, None)
            self._committed.pop(each, None)
            self._resumed_at.pop(each, None)
            self._awaited.pop(each, None)

    def stop(self) -> None:
        self._storage.close()
