"""A table's rows as a DataFrame, and a streaming DataFrame's rows into a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .files import configure_files_sink, read_files
from .options import FILE_KINDS, SINK, SOURCE, Options, check_options, check_output_mode


def read(spark: Any, kind: str, options: Mapping[str, object], streaming: bool) -> Any:
    """The table as a DataFrame; with `streaming` one that goes on as the table grows."""
    checked = _resolved(check_options(kind, SOURCE, options))
    return read_files(spark, checked, streaming=streaming)


def start_sink(
    frame: Any,
    kind: str,
    options: Mapping[str, object],
    *,
    query_name: str,
    trigger: Mapping[str, Any],
    checkpoint: str,
    output_mode: str = "append",
) -> Any:
    """Start the query that writes `frame` into the table, and give its StreamingQuery.

    `trigger` holds the arguments of DataStreamWriter.trigger, such as {"availableNow": True}.
    """
    checked = _resolved(check_options(kind, SINK, options))
    mode = check_output_mode(checked, output_mode)
    writer = frame.writeStream.queryName(query_name).outputMode(mode)
    writer = writer.option("checkpointLocation", checkpoint)
    if trigger:
        writer = writer.trigger(**trigger)
    return configure_files_sink(writer, checked).start()


def _resolved(options: Options) -> Options:
    """A relative folder means the caller's, not that of the server that runs the query."""
    address = options.address
    if options.kind not in FILE_KINDS + ("delta", "iceberg") or "://" in address:
        return options
    return Options(options.kind, options.role, {**options.given, "path": os.path.abspath(address)})
