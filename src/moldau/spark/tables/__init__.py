"""Tables as sources and sinks of Spark queries: files, Delta, Iceberg and JDBC.

`check_options` says before anything runs whether a declaration such as
`{delta: /data/orders, upsert: [id]}` can be meant; `read` gives its rows as a DataFrame, batch or
streaming; `start_sink` starts the query that writes a streaming DataFrame into it.
"""

from moldau.spark.tables.machine.formats import FORMATS, SINK, SOURCE, TableFormat
from moldau.spark.tables.machine.options import (
    FILE_KINDS,
    KINDS,
    Options,
    check_options,
    check_output_mode,
)

from .each_batch import check_batches, is_written_once, write_batch
from .errors import (
    ChangedRowsError,
    OptionError,
    RejectedRowError,
    SchemaMismatchError,
    TableError,
)
from .frames import read, register, start_sink

__all__ = [
    "FILE_KINDS",
    "FORMATS",
    "KINDS",
    "SINK",
    "SOURCE",
    "ChangedRowsError",
    "OptionError",
    "Options",
    "RejectedRowError",
    "SchemaMismatchError",
    "TableError",
    "TableFormat",
    "check_batches",
    "check_options",
    "check_output_mode",
    "is_written_once",
    "read",
    "register",
    "start_sink",
    "write_batch",
]
