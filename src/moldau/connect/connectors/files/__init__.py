"""Topics as files of a storage: partitioners, rotation, formats. S3 and HDFS are storages."""
