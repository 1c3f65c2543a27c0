"""The spool directory source.

A file is taken when its name matches and it has not been changed for a while. Its records carry its
name and their number as offset, so a file that was begun is continued; when it is done it is moved
to `finished.path` (or deleted), and one that cannot be read to `error.path`.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectError,
    DataError,
    ExactlyOnceSupport,
    Header,
    Importance,
    Kind,
    OneOf,
    Password,
    Range,
    RetriableError,
    SourceConnector,
    SourceRecord,
    SourceTask,
    ValidRegex,
)
from moldau.connect.connectors.spooldir.places import (
    Found,
    FtpPlace,
    LocalPlace,
    Place,
    SftpPlace,
)
from moldau.connect.connectors.spooldir.readers import define_format, make_reader
from moldau.data.builders import STRING
from moldau.data.schema import Schema
from moldau.data.struct import Struct

_NUMBER: Final = "task.number"
_COUNT: Final = "task.count"

CONFIG: Final = (
    define_format(ConfigDef())
    .define("input.path", Kind.STRING, importance=Importance.HIGH, group="Files",
            doc="Directory with the files")
    .define("input.file.pattern", Kind.STRING, importance=Importance.HIGH, group="Files",
            validator=ValidRegex(), doc="Regular expression of whole file names")
    .define("finished.path", Kind.STRING, "", group="Files",
            doc="Where a file is moved that is done")
    .define("error.path", Kind.STRING, importance=Importance.HIGH, group="Files",
            doc="Where a file is moved that cannot be read")
    .define("cleanup.policy", Kind.STRING, "MOVE", group="Files",
            validator=OneOf(("MOVE", "DELETE", "NONE"), ignore_case=True),
            doc="What happens to a file that is done")
    .define("halt.on.error", Kind.BOOLEAN, True, group="Files",
            doc="Whether the task fails when a file cannot be read")
    .define("file.minimum.age.ms", Kind.LONG, 0, validator=Range(0), group="Files",
            doc="How long a file must not have been changed")
    .define("empty.poll.wait.ms", Kind.LONG, 500, validator=Range(1), group="Files",
            doc="How long to wait when there is no file")
    .define("batch.size", Kind.INT, 1000, validator=Range(1), group="Files",
            doc="How many records one poll returns")
    .define("topic", Kind.STRING, importance=Importance.HIGH, group="Records", doc="Topic")
    .define("key.field", Kind.STRING, "", group="Records", doc="Field that becomes the key")
    .define("input.location", Kind.STRING, "local", group="Server",
            validator=OneOf(("local", "sftp", "ftp"), ignore_case=True),
            doc="local, sftp or ftp")
    .define("sftp.host", Kind.STRING, "", group="Server", doc="Host of SFTP or FTP")
    .define("sftp.port", Kind.INT, 22, validator=Range(1, 65535), group="Server", doc="Its port")
    .define("sftp.username", Kind.STRING, "", group="Server", doc="User")
    .define("sftp.password", Kind.PASSWORD, Password(""), group="Server", doc="Its password")
    .define("tls.private.key", Kind.STRING, "", group="Server", doc="File with the key, for SFTP")
    .define("sftp.known.hosts", Kind.STRING, "", group="Server",
            doc="File with the keys of hosts, for SFTP")
    .define("ftp.tls", Kind.BOOLEAN, False, group="Server", doc="Whether FTP is secured")
)  # fmt: skip


class SpoolDirSourceConnector(SourceConnector):
    DESCRIPTION = "Files of a directory, here or on an SFTP or FTP server, to a topic"

    def __init__(self) -> None:
        super().__init__()
        self._props: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return CONFIG

    def validate(self, props: Mapping[str, str]) -> list[Any]:
        values = super().validate(props)
        by_name = {each.name: each for each in values}
        if by_name["cleanup.policy"].value == "MOVE" and not by_name["finished.path"].value:
            by_name["finished.path"].errors.append(
                "finished.path must be set with cleanup.policy=MOVE"
            )
        return values

    def start(self, props: Mapping[str, str]) -> None:
        CONFIG.parse(props)
        self._props = dict(props)

    def task_class(self) -> type[SourceTask]:
        return SpoolDirSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [
            {**self._props, _NUMBER: str(number), _COUNT: str(max_tasks)}
            for number in range(max_tasks)
        ]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class CsvSpoolDirConnector(SpoolDirSourceConnector):
    DESCRIPTION = "CSV files of a directory to a topic"

    def start(self, props: Mapping[str, str]) -> None:
        super().start({"input.format": "csv", **props})


class JsonSpoolDirConnector(SpoolDirSourceConnector):
    DESCRIPTION = "Files of JSON lines of a directory to a topic"

    def start(self, props: Mapping[str, str]) -> None:
        super().start({"input.format": "json", **props})


class LineSpoolDirConnector(SpoolDirSourceConnector):
    DESCRIPTION = "Lines of the files of a directory to a topic"

    def start(self, props: Mapping[str, str]) -> None:
        super().start({"input.format": "lines", **props})


class AvroSpoolDirConnector(SpoolDirSourceConnector):
    DESCRIPTION = "Avro container files of a directory to a topic"

    def start(self, props: Mapping[str, str]) -> None:
        super().start({"input.format": "avro", **props})


class SftpCsvConnector(SpoolDirSourceConnector):
    DESCRIPTION = "CSV files of an SFTP server to a topic"

    def start(self, props: Mapping[str, str]) -> None:
        super().start({"input.format": "csv", "input.location": "sftp", **props})


class SftpJsonConnector(SpoolDirSourceConnector):
    DESCRIPTION = "Files of JSON lines of an SFTP server to a topic"

    def start(self, props: Mapping[str, str]) -> None:
        super().start({"input.format": "json", "input.location": "sftp", **props})


class SpoolDirSourceTask(SourceTask):
    def __init__(self) -> None:
        super().__init__()
        self._stopped = threading.Event()
        self._place: Place | None = None
        self._records: Iterator[SourceRecord] = iter(())
        self._file: str | None = None
        #: Files whose records were all returned but may not be in Kafka yet.
        self._finished: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self._done: set[str] = set()

    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._pattern = re.compile(config["input.file.pattern"])
        self._reader = make_reader(config)
        self._number, self._count = int(props.get(_NUMBER, 0)), int(props.get(_COUNT, 1))
        if config["input.location"].lower() == "local":
            LocalPlace(config["input.path"])

    def _open(self) -> Place:
        if self._place is None:
            match self._config["input.location"].lower():
                case "sftp":
                    self._place = SftpPlace(self._config)
                case "ftp":
                    self._place = FtpPlace(self._config)
                case _:
                    self._place = LocalPlace(self._config["input.path"])
        return self._place

    def poll(self) -> Sequence[SourceRecord] | None:
        try:
            return self._poll()
        except (ConnectError, ConfigError):
            self._close()
            raise
        except (OSError, EOFError) as error:
            self._close()
            raise RetriableError(f"{self._config['input.path']}: {error}") from error

    def _poll(self) -> Sequence[SourceRecord] | None:
        self._clean_up()
        found: list[SourceRecord] = []
        try:
            for record in self._records:
                found.append(record)
                if len(found) >= self._config["batch.size"]:
                    break
            else:
                self._end_file()
        except DataError as error:
            self._failed(error)
        for record in found:
            self._left[_file_of(record)] = self._left.get(_file_of(record), 0) + 1
        if found:
            return found
        if self._file is None and not self._next_file():
            self._stopped.wait(self._config["empty.poll.wait.ms"] / 1000)
        return None

    def _next_file(self) -> bool:
        now = time.time()
        waiting = sorted(self._open().list(), key=lambda each: (each.modified_s, each.name))
        for each in waiting:
            if self._takes(each, now):
                self._file = each.name
                self._records = self._read(each)
                return True
        return False

    def _takes(self, file: Found, now: float) -> bool:
        age_ms = (now - file.modified_s) * 1000
        return (
            self._pattern.fullmatch(file.name) is not None
            and file.name not in self._finished
            and file.name not in self._done
            and age_ms >= self._config["file.minimum.age.ms"]
            and sum(file.name.encode()) % self._count == self._number
        )

    def _read(self, file: Found) -> Iterator[SourceRecord]:
        source = {"fileName": file.name}
        stored = self.context.offset_storage_reader.offset(source) or {}
        done = int(stored.get("offset", 0)) if stored.get("size", file.size) == file.size else 0
        if self._config["cleanup.policy"].upper() == "NONE" and stored.get("complete"):
            return
        headers = [
            Header("file.name", file.name, STRING),
            Header("file.path", f"{self._config['input.path']}/{file.name}", STRING),
        ]
        for number, each in enumerate(self._reader.read(self._open().read(file.name)), 1):
            if number > done:
                key, key_schema = self._key(each.schema, each.value)
                yield SourceRecord(
                    source,
                    {"offset": number, "size": file.size},
                    self._config["topic"],
                    key=key,
                    key_schema=key_schema,
                    value=each.value,
                    value_schema=each.schema,
                    headers=headers,
                )

    def _key(self, schema: Schema | None, value: Any) -> tuple[Any, Schema | None]:
        name = self._config["key.field"]
        if not name:
            return None, None
        if isinstance(value, Struct) and schema is not None:
            field = schema.field(name)
            if field is not None:
                return value.get(name), field.schema
        if isinstance(value, dict) and name in value:
            return value[name], None
        raise DataError(f"a record has no field {name}, which key.field names")

    def _end_file(self) -> None:
        if self._file is not None:
            self._finished[self._file] = 0
        self._file, self._records = None, iter(())

    def _failed(self, error: DataError) -> None:
        name, self._file, self._records = self._file, None, iter(())
        if name is None:
            raise error
        self._done.add(name)
        self._open().move(name, self._config["error.path"])
        if self._config["halt.on.error"]:
            raise ConnectError(f"file {name} cannot be read: {error}") from error

    def commit_record(self, record: SourceRecord, metadata: Any) -> None:
        name = _file_of(record)
        if name in self._left:
            self._left[name] -= 1

    def _clean_up(self) -> None:
        """A file goes only when all its records are in Kafka."""
        for name in [each for each in self._finished if not self._left.get(each)]:
            del self._finished[name]
            self._left.pop(name, None)
            match self._config["cleanup.policy"].upper():
                case "MOVE":
                    self._open().move(name, self._config["finished.path"])
                case "DELETE":
                    self._open().delete(name)
                case _:
                    self._done.add(name)

    def _close(self) -> None:
        self._file, self._records = None, iter(())
        if self._place is not None:
            self._place.close()
            self._place = None

    def stop(self) -> None:
        self._stopped.set()
        self._close()


def _file_of(record: SourceRecord) -> str:
    return str((record.source_partition or {}).get("fileName"))
