"""A table's folder, local or in an object store, through pyarrow's file systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow.fs as arrow_fs

from moldau.spark.tables.machine.batches import (
    MARKER_FOLDER,
    Attempt,
    Marker,
    finished_markers,
    losing_tokens,
    parse_markers,
    tokens_of,
)

from .errors import TableError


class Storage:
    """Paths are relative to the table's folder and use `/`. It travels to tasks by pickle."""

    def __init__(self, file_system: Any, root: str) -> None:
        self._files = file_system
        self._root = root.rstrip("/")

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if self._root else path

    def create(self, path: str) -> Any:
        full = self._full(path)
        if folder := full.rpartition("/")[0]:
            self._files.create_dir(folder, recursive=True)
        return self._files.open_output_stream(full)

    def open(self, path: str) -> Any:
        return self._files.open_input_file(self._full(path))

    def read(self, path: str) -> bytes:
        with self._files.open_input_stream(self._full(path)) as stream:
            data: bytes = stream.read()
            return data

    def size(self, path: str) -> int:
        return int(self._files.get_file_info([self._full(path)])[0].size)

    def exists(self, path: str) -> bool:
        info = self._files.get_file_info([self._full(path)])[0]
        return bool(info.type == arrow_fs.FileType.File)

    def put(self, path: str, data: bytes) -> None:
        """A whole file or none: readers never see a part of it."""
        temporary = f"{path}.new"
        with self.create(temporary) as stream:
            stream.write(data)
        self.move(temporary, path)

    def move(self, path: str, target: str) -> None:
        self._files.move(self._full(path), self._full(target))

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files; one that is gone already is as good as removed."""
        for path in paths:
            try:
                self._files.delete_file(self._full(path))
            except FileNotFoundError:
                continue

    def walk(self, folder: str = "", *, recursive: bool = True) -> Iterator[str]:
        """Paths of all files below a folder; none if there is no such folder."""
        selector = arrow_fs.FileSelector(
            self._full(folder) if folder else self._root, allow_not_found=True, recursive=recursive
        )
        for info in self._files.get_file_info(selector):
            if info.type == arrow_fs.FileType.File:
                yield info.path.removeprefix(self._root).lstrip("/")

    def mark(self, attempt: Attempt) -> None:
        """Say that files with the attempt's token may exist from now on."""
        with self.create(attempt.marker):
            pass

    def markers(self) -> list[Marker]:
        names = (path.rpartition("/")[2] for path in self.walk(MARKER_FOLDER, recursive=False))
        return parse_markers(names)

    def settle(
        self,
        *,
        query_id: str,
        batch_id: int,
        winners: set[str] | None,
        table_files: Callable[[], Iterable[str]],
    ) -> None:
        """Remove what other attempts at a committed batch have left, then the batch's markers.

        `winners` are the tokens whose files were committed; None if that was before our time, then
        the names of the table's files tell.
        """
        markers = self.markers()
        tokens = tokens_of(markers, query_id=query_id, batch_id=batch_id)
        if winners is None:
            losers = losing_tokens(tokens, table_files()) if tokens else set()
        else:
            losers = tokens - winners
        self.delete_attempts(losers)
        self.delete(finished_markers(markers, query_id=query_id, batch_id=batch_id))

    def delete_attempts(self, tokens: Iterable[str]) -> None:
        """Remove all data files of these attempts, wherever in the table's folder they are."""
        wanted = tuple(tokens)
        if wanted:
            # A crash is rare, so looking through the whole folder then is no loss.
            self.delete(
                path
                for path in list(self.walk())
                if path.endswith(".parquet")
                and any(token in path.rpartition("/")[2] for token in wanted)
            )


def folder_storage(folder: str, settings: Mapping[str, str]) -> Storage:
    """A folder of this machine, or `s3://bucket/folder` with the settings of pyarrow's S3FileSystem
    (`access_key`, `secret_key`, `endpoint_override`, `region`, `scheme`)."""
    scheme, _, rest = folder.rpartition("://")
    if scheme in ("", "file"):
        return local_storage(rest)
    if scheme in ("s3", "s3a"):
        return Storage(arrow_fs.S3FileSystem(**settings), rest)
    raise TableError(
        f"{folder}: files cannot be written there by Python",
        "Use a local or s3:// folder, or a parquet, json or csv sink, which Spark writes",
    )


def local_storage(folder: str) -> Storage:
    return Storage(arrow_fs.LocalFileSystem(), folder)
