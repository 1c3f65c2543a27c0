"""FileStreamSink: the values of records as lines of a file, or of standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from moldau.connect.api import (
    ConfigDef,
    ConnectError,
    Importance,
    Kind,
    OffsetAndMetadata,
    SinkConnector,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from moldau.data.primitive_bytes import java_text

CONFIG = ConfigDef().define(
    "file",
    Kind.STRING,
    None,
    importance=Importance.HIGH,
    doc="The file to append to; standard output if it is not set.",
)


class FileStreamSinkConnector(SinkConnector):
    DESCRIPTION = "Values of records to lines of a file or to standard output"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    def start(self, props: Mapping[str, str]) -> None:
        CONFIG.parse(props)
        self._props = dict(props)

    def task_class(self) -> type[SinkTask]:
        return FileStreamSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._props) for _ in range(max_tasks)]

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def alter_offsets(
        self, props: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        # All offsets are in Kafka, and any is acceptable.
        return True


class FileStreamSinkTask(SinkTask):
    def __init__(self) -> None:
        super().__init__()
        self._output: TextIO = sys.stdout
        self._filename: str | None = None

    def start(self, props: Mapping[str, str]) -> None:
        self._filename = CONFIG.parse(props)["file"] or None
        if self._filename is not None:
            try:
                # Closed by `stop`.
                self._output = Path(self._filename).open(  # noqa: SIM115
                    "a", encoding="utf-8", newline=""
                )
            except OSError as error:
                raise ConnectError(
                    f"Couldn't find or create file '{self._filename}' for FileStreamSinkTask: "
                    f"{error.strerror}"
                ) from error

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records:
            self._output.write("".join([_line(record.value) for record in records]))
            # Lines are there at once, not only with the next commit.
            self._output.flush()

    def flush(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._output.flush()

    def stop(self) -> None:
        if self._filename is not None and self._output is not sys.stdout:
            self._output.close()


def _line(value: object) -> str:
    return f"{value if isinstance(value, str) else java_text(value)}\n"
