"""Topics as sinks of Spark: `write` and `writeStream` with `format("moldau")`, exactly once.

`protocol` decides, `shell` asks brokers, `tasks` write rows, `writers` are what Spark calls.
Nothing of pyspark is imported before a writer is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.spark.sink.writers import TopicStreamWriter, TopicWriter

__all__ = ["stream_writer", "writer"]


def writer(options: Mapping[str, str], schema: Any, overwrite: bool) -> TopicWriter:
    """For `df.write.format("moldau")`."""
    from moldau.spark.sink.writers import make_writer

    return make_writer(options, schema, overwrite)


def stream_writer(options: Mapping[str, str], schema: Any, overwrite: bool) -> TopicStreamWriter:
    """For `df.writeStream.format("moldau")`."""
    from moldau.spark.sink.writers import make_stream_writer

    return make_stream_writer(options, schema, overwrite)
