"""Topics as a data source of Spark: `format("moldau")`.

Only the doors are here. What they open is imported when it is used: Spark looks at this class in
every new Python worker, also in those that only write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.installation import pip_install

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
except ImportError as error:
    raise ImportError(f"pyspark is missing: {pip_install('spark')}") from error

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["TopicDataSource"]


class TopicDataSource(DataSource):
    """Reads and writes topics, with the options and columns of Spark's own Kafka connector."""

    @classmethod
    def name(cls) -> str:
        return "moldau"

    def schema(self) -> StructType:
        # Spark asks for it when a DataFrame to read is made: options are refused there, not when
        # the query starts.
        from moldau.spark.source.machine.options import parse_options
        from moldau.spark.source.schema import topic_schema

        options = parse_options(self.options)
        plain = topic_schema(include_headers=options.include_headers)
        if not options.schemas:
            return plain
        from moldau.spark.schemas.source import with_types

        return with_types(plain, options.schemas)

    def reader(self, schema: StructType) -> DataSourceReader:
        from moldau.spark.source.readers import topic_reader

        return topic_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from moldau.spark.source.readers import topic_stream_reader

        return topic_stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from moldau.spark import sink

        return sink.writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from moldau.spark import sink

        return sink.stream_writer(self.options, schema, overwrite)
