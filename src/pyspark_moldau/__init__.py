"""What Spark looks for by itself: a package named pyspark_* with a `DefaultSource`.

With moldau installed, `spark.read.format("moldau")` therefore needs no registration.
"""

from __future__ import annotations

from moldau.spark.datasource import TopicDataSource as DefaultSource

__all__ = ["DefaultSource"]
