"""Writes one batch of a query into a table, for queries that write to several places at once.

A batch is named by its query and its number, and is in the table once, however often it is written.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moldau.spark.tables.machine.formats import FORMATS, SINK
from moldau.spark.tables.machine.options import Options, check_options, check_output_mode

from .errors import OptionError
from .files import _spark_options
from .frames import _is_other_database, register
from .jdbc.by_driver import DriverBatch

__all__ = ["check_batches", "is_written_once", "write_batch"]

#: Readers leave out what begins with an underscore.
_STAGING: Final = "_moldau"


def check_batches(kind: str, options: Mapping[str, object]) -> None:
    """Raises TableError for tables that cannot be written batch by batch."""
    checked = check_options(kind, SINK, options)
    if FORMATS[kind].data_source is None and "://" in checked.address:
        raise OptionError(
            f"{kind} sink: files of a store in the network are written by a query of their own",
            "Use delta or iceberg, or give this sink a pipeline of its own",
        )


def is_written_once(kind: str, options: Mapping[str, object]) -> bool:
    """Whether the table itself remembers its batches, so that one that is written again is not."""
    if FORMATS[kind].data_source is None:
        return False
    return not _is_other_database(check_options(kind, SINK, options))


def write_batch(
    frame: Any,
    kind: str,
    options: Mapping[str, object],
    *,
    query_id: str,
    batch_id: int,
    output_mode: str = "append",
) -> None:
    checked = check_options(kind, SINK, options)
    mode = check_output_mode(checked, output_mode)
    if FORMATS[kind].data_source is None:
        _write_files(frame, checked, query_id, batch_id)
        return
    if _is_other_database(checked):
        DriverBatch(checked, mode)(frame, batch_id)
        return
    writer = frame.write.format(register(frame.sparkSession, kind))
    transaction = {"txnAppId": query_id, "txnVersion": str(batch_id)}
    writer = writer.mode("overwrite" if mode == "complete" else "append")
    writer.options(**checked.as_spark(), **transaction).save()


def _write_files(frame: Any, options: Options, query_id: str, batch_id: int) -> None:
    """Files that are named by their batch: a second copy takes the place of the first."""
    folder = Path(options.address.removeprefix("file://").removeprefix("file:"))
    name = f"{query_id}-{batch_id:010}"
    staging = folder / _STAGING / name
    writer = frame.write.mode("overwrite").options(**_spark_options(options))
    if "partitionBy" in options:
        writer = writer.partitionBy(*options.names("partitionBy"))
    writer.format(options.kind).save(str(staging))
    parts = sorted(
        path.relative_to(staging)
        for path in staging.rglob("part-*")
        if path.is_file() and path.stat().st_size
    )
    moved = set()
    for number, path in enumerate(parts):
        target = folder / path.parent / f"part-{name}-{number:05}{''.join(path.suffixes)}"
        target.parent.mkdir(parents=True, exist_ok=True)
        (staging / path).replace(target)
        moved.add(target)
    for left in set(folder.rglob(f"part-{name}-*")) - moved:
        # Of an earlier try that had more files.
        left.unlink()
    shutil.rmtree(staging)
