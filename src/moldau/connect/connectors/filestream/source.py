"""FileStreamSource: the lines of a file, or of standard input, as records.

The offset of a record is the position in the file after its line, so a task continues there. A line
counts once its line end has been written.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    Importance,
    Kind,
    NonEmpty,
    SourceConnector,
    SourcePartition,
    SourceRecord,
    SourceTask,
)
from moldau.data.builders import STRING

FILENAME_FIELD = "filename"
POSITION_FIELD = "position"
_READ_SIZE = 1 << 16
_WAIT_S = 0.1

CONFIG = (
    ConfigDef()
    .define(
        "file",
        Kind.STRING,
        None,
        importance=Importance.HIGH,
        doc="The file to read; standard input if it is not set.",
    )
    .define(
        "topic",
        Kind.STRING,
        validator=NonEmpty(),
        importance=Importance.HIGH,
        doc="The topic to write to.",
    )
    .define(
        "batch.size",
        Kind.INT,
        2000,
        importance=Importance.LOW,
        doc="How many lines one poll returns at most.",
    )
)


class FileStreamSourceConnector(SourceConnector):
    DESCRIPTION = "Lines of a file or of standard input to a topic"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    def start(self, props: Mapping[str, str]) -> None:
        CONFIG.parse(props)
        self._props = dict(props)

    def task_class(self) -> type[SourceTask]:
        return FileStreamSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [self._props]

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        # Standard input cannot be read again.
        if CONFIG.parse(props)["file"]:
            return ExactlyOnceSupport.SUPPORTED
        return ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(
        self, props: Mapping[str, str]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self,
        props: Mapping[str, str],
        offsets: Mapping[SourcePartition, Mapping[str, Any] | None],
    ) -> bool:
        if not CONFIG.parse(props)["file"]:
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. This is "
                "because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets.items():
            if offset is None:
                continue
            if POSITION_FIELD not in offset:
                raise ConnectError(
                    f"Offset objects should either be null or contain the key '{POSITION_FIELD}'"
                )
            position = offset[POSITION_FIELD]
            if not isinstance(position, int) or isinstance(position, bool):
                raise ConnectError(
                    f"The value for the '{POSITION_FIELD}' key in the offset is expected to be a "
                    "Long value"
                )
            if position < 0:
                raise ConnectError(
                    f"The value for the '{POSITION_FIELD}' key in the offset should be a "
                    "non-negative value"
                )
            if FILENAME_FIELD not in partition:
                raise ConnectError(f"Partition objects should contain the key '{FILENAME_FIELD}'")
        return True


class FileStreamSourceTask(SourceTask):
    """Reads in blocks and splits them into lines, `batch.size` at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._stream: io.RawIOBase | None = None
        self._filename: str | None = None
        self._topic = ""
        self._batch_size = 0
        self._partition: dict[str, Any] | None = None
        self._position: int | None = None
        self._rest = b""

    def start(self, props: Mapping[str, str]) -> None:
        config = CONFIG.parse(props)
        self._topic = config["topic"]
        self._batch_size = max(config["batch.size"], 1)
        self._filename = config["file"] or None
        if self._filename is None:
            self._stream = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
        else:
            self._partition = {FILENAME_FIELD: self._filename}

    def _open(self) -> io.RawIOBase | None:
        if self._stream is not None or self._filename is None:
            return self._stream
        try:
            stream = io.FileIO(self._filename)
        except FileNotFoundError:
            return None
        stored = self.context.offset_storage_reader.offset({FILENAME_FIELD: self._filename})
        position = (stored or {}).get(POSITION_FIELD)
        if position is not None and not isinstance(position, int):
            raise ConnectError("Offset position is the incorrect type")
        self._position = position or 0
        stream.seek(self._position)
        self._stream = stream
        return stream

    def poll(self) -> Sequence[SourceRecord] | None:
        stream = self._open()
        if stream is None:
            self._stopped.wait(1.0)
            return None
        lines = self._lines(stream)
        if lines is None:
            self._stopped.wait(_WAIT_S)
            return None
        return self._records(lines)

    def _lines(self, stream: io.RawIOBase) -> list[bytes] | None:
        """Up to `batch.size` lines without their line ends; None if there is no whole one."""
        *lines, rest = self._rest.split(b"\n", self._batch_size)
        while len(lines) < self._batch_size and not self._stopped.is_set():
            more = stream.read(_READ_SIZE)
            if not more:
                break
            *added, rest = (rest + more).split(b"\n", self._batch_size - len(lines))
            lines += added
            if self._filename is None:
                break
        self._rest = rest
        return lines or None

    def _records(self, lines: list[bytes]) -> list[SourceRecord]:
        topic, partition, position = self._topic, self._partition, self._position
        # Decoded as a whole: one call instead of thousands.
        texts = b"\n".join(lines).decode("utf-8", "replace").split("\n")
        records = []
        for line, text in zip(lines, texts, strict=True):
            offset = None
            if position is not None:
                position += len(line) + 1
                offset = {POSITION_FIELD: position}
            if text.endswith("\r"):
                text = text.rstrip("\r")
            records.append(SourceRecord(partition, offset, topic, value=text, value_schema=STRING))
        self._position = position
        return records

    def stop(self) -> None:
        self._stopped.set()
        if self._stream is not None and self._filename is not None:
            self._stream.close()
