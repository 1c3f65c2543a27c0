"""Sinks that are tables of Spark: Parquet, Delta, Iceberg, S3, HDFS and databases in bulk."""
