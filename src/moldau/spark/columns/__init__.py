"""Between Kafka's record batches and Arrow's columns, without a Python object per record.

`reading.read_range` gives a range of one partition's offsets as Arrow batches,
`writing.ColumnWriter` produces the rows of Arrow batches. Both need pyarrow, which only they import
(the extra `spark`).
"""

from __future__ import annotations

from moldau.spark.columns.errors import (
    ColumnsError,
    DataLossError,
    OpenTransactionError,
    RowError,
)

__all__ = ["ColumnsError", "DataLossError", "OpenTransactionError", "RowError"]
