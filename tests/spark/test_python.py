"""The Python processes of a local server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyspark


def test_workers_have_the_installed_pyspark_which_is_compiled(spark: Any) -> None:
    def place(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow
        import pyspark

        for batch in batches:
            yield pyarrow.record_batch([[pyspark.__file__] * batch.num_rows], names=["file"])

    rows = spark.range(1, numPartitions=1).mapInArrow(place, "file string").collect()
    assert [row.file for row in rows] == [pyspark.__file__]
