"""Databases by JDBC, and files: S3, HDFS, SFTP, spool directories."""

from __future__ import annotations

from moldau.connect.machine.dialects.model import (
    CLIENT,
    LICENCE,
    STORES,
    Dialect,
    because,
    names,
    refused,
    when_true,
)

_JDBC = {
    **because("the address says which database it is", "dialect.name"),
    **because("names are always quoted", "quote.sql.identifiers sql.quote.identifiers"),
    **because("values are never logged", "trim.sensitive.log"),
    **STORES,
}
JDBC_SOURCE = Dialect(
    renamed={"timestamp.initial.ms": "timestamp.initial"},
    computed={"numeric.precision.mapping": when_true("numeric.mapping", "precision_only")},
    no_effect={
        **_JDBC,
        **because("queries are not logged", "query.masked"),
        **because("a poll returns batch.max.rows", "max.buffer.size poll.linger.ms"),
    },
    missing=names(
        "query.retry.attempts transaction.isolation.mode table.monitoring.startup.polling.limit.ms "
        "date.calendar.system table.names.qualify"
    ),
    refused={
        **refused("timestamp.fields.list incrementing.initial jdbc.credentials.provider.*"),
        **refused("ssl.*"),
    },
)
JDBC_SINK = Dialect(
    no_effect={**_JDBC, **because("it is for SQL Server", "mssql.use.merge.holdlock")},
    missing=names("table.types date.calendar.system"),
    refused={
        **refused("topics.to.tables.mapping jdbc.credentials.provider.*"),
        **refused("table.name.normalize", "false"),
    },
)


def _evolution(text: str) -> dict[str, str]:
    on = "true" if text.strip().lower() == "basic" else "false"
    return {"auto.create": on, "auto.evolve": on}


DEBEZIUM_JDBC = Dialect(
    renamed={
        "connection.username": "connection.user",
        "primary.key.mode": "pk.mode",
        "primary.key.fields": "pk.fields",
        "collection.name.format": "table.name.format",
        "use.time.zone": "db.timezone",
        "database.time_zone": "db.timezone",
        "flush.max.retries": "max.retries",
        "flush.retry.delay.ms": "retry.backoff.ms",
        "flush.failure.retries": "max.retries",
        "flush.failure.retry.wait.ms": "retry.backoff.ms",
    },
    computed={"schema.evolution": _evolution},
    no_effect={
        **because("a task has one connection", "connection.provider connection.pool.*"),
        **because("a lost connection is made again", "connection.restart.*"),
        **because("names are always quoted", "quote.identifiers"),
        **because("batches are written as one", "use.reduction.buffer"),
        **because("there is no Hibernate", "hibernate.* dialect.*"),
    },
    refused={
        **refused("truncate.enabled", "false"),
        **refused("field.include.list field.exclude.list column.naming.strategy"),
        **refused("table.naming.strategy collection.naming.strategy"),
    },
)

_FILES = {
    **because(CLIENT, "schema.cache.size shutdown.timeout.ms retry.backoff.ms"),
    **because("the connector's class says where files go", "storage.class"),
    **because("an object's schema is the record's", "enhanced.avro.schema.support"),
    **because("metadata is not read by others", "connect.meta.data allow.optional.map.keys"),
    **because("all open files are kept", "partitioner.max.open.files"),
    **because("a file that is there is the same file", "enable.conditional.writes"),
    **because("a file that is there is the same file", "max.files.scan.limit"),
    **because("a put stores what is complete", "max.write.duration"),
}
_S3_CLIENT = {
    **because(CLIENT, "s3.part.size s3.part.retries s3.retry.backoff.ms s3.wan.mode"),
    **because(CLIENT, "s3.http.send.expect.continue s3.elastic.buffer.* send.digest"),
    **because("buckets are in the path where store.url is set", "s3.path.style.access.enabled"),
}
_S3_REFUSED = refused("s3.credentials.provider.class s3.credentials.provider.*")
S3_SINK = Dialect(
    no_effect={**_FILES, **_S3_CLIENT},
    missing=names(
        "s3.object.behavior.on.tagging.error s3.delete.markers report.null.records.to.dlq"
    ),
    refused={
        **_S3_REFUSED,
        **refused("s3.ssea.name s3.sse.* s3.object.tagging.key.value.pairs"),
        **refused("s3.object.tagging", "false"),
        **refused("s3.schema.partition.affix.type", "none"),
        **refused("tombstone.encoded.partition"),
        **refused("decimal.format"),
        **refused("schemas.enable", "false"),
    },
)
S3_SOURCE = Dialect(
    renamed={"s3.poll.interval.ms": "poll.interval.ms"},
    no_effect={
        **_S3_CLIENT,
        **because(CLIENT, "schema.cache.size task.batch.size"),
        **because(
            "folders are followed as they are",
            "partitioner.class partition.field.name path.format locale timezone timestamp.field "
            "directory.delim max.partition.tasks",
        ),
    },
    missing=names("behavior.on.error format.bytearray.extensions"),
    refused={
        **_S3_REFUSED,
        **refused("s3.sse.customer.key folders topic.regex.list format.bytearray.separator"),
        **refused("mode", "restore_backup"),
        **refused("file.discovery.starting.timestamp", "0"),
        **refused("format.json.schema.enable", "false"),
    },
)


def _aiven_format(text: str) -> dict[str, str]:
    kinds = {"jsonl": "JsonFormat", "avro": "AvroFormat", "parquet": "ParquetFormat"}
    return {"format.class": kinds.get(text.strip().lower(), text)}


AIVEN_S3 = Dialect(
    renamed={
        "aws.s3.bucket.name": "s3.bucket.name",
        "aws.s3.endpoint": "store.url",
        "aws.s3.region": "s3.region",
        "aws.s3.prefix": "topics.dir",
        "file.compression.type": "s3.compression.type",
        "file.max.records": "flush.size",
        "file.name.timestamp.timezone": "timezone",
    },
    computed={"format.output.type": _aiven_format},
    no_effect=because(CLIENT, "aws.s3.part.size.bytes aws.s3.backoff.* kafka.retry.backoff.ms"),
    missing=names("file.name.template file.name.prefix file.name.timestamp.source"),
    refused={
        **refused("aws.credentials.provider aws.sts.* aws.s3.sse.algorithm"),
        **refused("format.output.fields", "value"),
        **refused("format.output.envelope", "false"),
        **refused("format.output.fields.value.encoding", "none"),
    },
)
_KERBEROS = "kerberos.* hdfs.authentication.kerberos connect.hdfs.principal connect.hdfs.keytab"
HDFS = Dialect(
    renamed={"store.url": "hdfs.url"},
    no_effect={
        **_FILES,
        **because("there is no Hadoop client", "hadoop.conf.dir hadoop.home hive.conf.dir"),
        **because("there is no Hadoop client", "hive.home"),
    },
    missing=names("null.values"),
    refused={
        **refused(_KERBEROS, "false"),
        **refused("hdfs.namenode.principal"),
        **refused("hive.integration", "false"),
        **refused("hive.metastore.uris hive.database hive.table.name"),
    },
)
_SFTP_LOGIN = refused("tls.public.key tls.passphrase kerberos.*")
SFTP_SINK = Dialect(
    no_effect={**_FILES, **LICENCE, **because("sftp.host says it", "store.url")},
    refused=_SFTP_LOGIN,
)

SPOOLDIR = Dialect(
    renamed={"file.charset": "input.charset", "kafka.topic": "topic"},
    computed={
        "schema.generation.key.fields": lambda text: {"key.field": text},
        "behavior.on.error": lambda text: {
            "halt.on.error": "true" if text.strip().lower() == "fail" else "false"
        },
    },
    no_effect={
        **LICENCE,
        **because(
            "one task reads a file at a time, under its own name",
            "processing.file.extension file.buffer.size.bytes task.count task.partitioner",
        ),
        **because(
            "types come from the values",
            "schema.generation.key.name schema.generation.value.name "
            "parser.timestamp.date.formats parser.timestamp.timezone",
        ),
        **because("topic.creation.enable decides", "auto.topic.creation"),
        **because("Python's csv module reads it", "csv.rfc.4180.parser.enabled csv.verify.reader"),
        **because("Python's csv module reads it", "csv.keep.carriage.return csv.strict.quotes"),
    },
    missing=names(
        "cleanup.policy.maintain.relative.path file.sort.attributes files.sort.attributes "
        "metadata.field metadata.location"
    ),
    refused={
        **_SFTP_LOGIN,
        **refused("topic.prefix bucket.path value.schema key.schema timestamp.field"),
        **refused("input.path.walk.recursively csv.ignore.quotations", "false"),
        **refused("timestamp.mode", "process_time"),
        **refused("csv.case.sensitive.field.names csv.ignore.leading.whitespace", "true"),
        **refused("csv.escape.char", "92"),
        **refused("csv.null.field.indicator", "neither"),
        **refused("csv.skip.lines", "0"),
    },
)
