"""Settings of connectors known by Java class names that are called otherwise here, or are not here.

A configuration is translated before anything reads it: a name becomes ours, a value what it means
here. What remains is of three kinds: settings without effect here, for a reason; settings that are
not supported, which are named; and settings that decide what data or who may see it, which are
refused unless they have the original's default: to ignore one would be worse than to stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from moldau.connect.machine.dialects import debezium, services, stores
from moldau.connect.machine.dialects.model import SHARED_PREFIXES, Dialect

__all__ = [
    "DIALECTS",
    "SHARED_PREFIXES",
    "Dialect",
    "dialect_of",
    "refusals",
    "remarks",
    "translated",
    "translates",
]


def translated(config: Mapping[str, str]) -> dict[str, str]:
    """The configuration by our names. A setting that is given by our name counts."""
    dialect = dialect_of(config.get("connector.class"))
    if dialect is None:
        return dict(config)
    found: dict[str, str] = {}
    for key, value in config.items():
        computed = dialect.computed.get(key)
        made = {_ours(dialect, key): value} if computed is None else computed(value)
        for name, each in made.items():
            if name == key or name not in config:
                found[name] = each
    return found


def translates(dialect: Dialect, key: str) -> str | None:
    """What a name becomes, if it is not ours; None for a name that is kept."""
    if key in dialect.computed:
        return key
    ours = _ours(dialect, key)
    return None if ours == key else ours


def _ours(dialect: Dialect, key: str) -> str:
    if key in dialect.renamed:
        return dialect.renamed[key]
    for theirs, ours in dialect.renamed.items():
        if theirs.endswith("*") and key.startswith(theirs[:-1]):
            return ours.removesuffix("*") + key.removeprefix(theirs[:-1])
    return key


def remarks(config: Mapping[str, str], unread: Iterable[str]) -> list[str]:
    """What to say of settings that nothing reads, a sentence each."""
    dialect = dialect_of(config.get("connector.class")) or Dialect()
    found = []
    for key in unread:
        reason = next((why for name, why in dialect.no_effect.items() if _is(key, name)), None)
        if reason is not None:
            found.append(f"{key} has no effect: {reason}")
        elif any(_is(key, name) for name in dialect.missing):
            found.append(f"{key} is not supported")
        else:
            found.append(f"nothing reads {key}")
    return found


def refusals(config: Mapping[str, str]) -> dict[str, str]:
    """The settings that cannot be kept and must not be ignored, with what is wrong."""
    dialect = dialect_of(config.get("connector.class"))
    if dialect is None:
        return {}
    found = {}
    for key, value in config.items():
        for name, default in dialect.refused.items():
            if any(_is(key, each) for each in dialect.no_effect):
                break
            if _is(key, name) and value.strip().lower() != default:
                found[key] = (
                    f"{key} is not supported, and without it the data would be other than it says: "
                    "remove it" + (f", or set it to {default}" if default else "")
                )
    return found


def _is(key: str, pattern: str) -> bool:
    return key == pattern or ("*" in pattern and fnmatchcase(key, pattern))


def dialect_of(class_name: str | None) -> Dialect | None:
    return DIALECTS.get(class_name or "")


_SPOOLDIR_CLASS = "com.github.jcustenborder.kafka.connect.spooldir.SpoolDir{}SourceConnector"
_SFTP_CLASS = "io.confluent.connect.sftp.Sftp{}SourceConnector"
DIALECTS: Mapping[str, Dialect] = {
    "io.confluent.connect.jdbc.JdbcSourceConnector": stores.JDBC_SOURCE,
    "io.aiven.connect.jdbc.JdbcSourceConnector": stores.JDBC_SOURCE,
    "io.confluent.connect.jdbc.JdbcSinkConnector": stores.JDBC_SINK,
    "io.aiven.connect.jdbc.JdbcSinkConnector": stores.JDBC_SINK,
    "io.debezium.connector.jdbc.JdbcSinkConnector": stores.DEBEZIUM_JDBC,
    "io.confluent.connect.s3.S3SinkConnector": stores.S3_SINK,
    "io.confluent.connect.s3.source.S3SourceConnector": stores.S3_SOURCE,
    "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector": stores.AIVEN_S3,
    "io.confluent.connect.hdfs3.Hdfs3SinkConnector": stores.HDFS,
    "io.confluent.connect.hdfs.HdfsSinkConnector": stores.HDFS,
    "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector": services.ELASTICSEARCH,
    "io.aiven.connect.elasticsearch.ElasticsearchSinkConnector": services.ELASTICSEARCH,
    "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector": services.ELASTICSEARCH,
    "io.confluent.connect.http.HttpSinkConnector": services.HTTP_SINK,
    "io.aiven.kafka.connect.http.HttpSinkConnector": services.AIVEN_HTTP,
    "com.github.castorm.kafka.connect.http.HttpSourceConnector": services.CASTORM,
    "io.confluent.connect.mqtt.MqttSourceConnector": services.MQTT,
    "io.confluent.connect.mqtt.MqttSinkConnector": services.MQTT,
    "com.redis.kafka.connect.RedisSinkConnector": services.REDIS,
    "com.redis.kafka.connect.RedisStreamSourceConnector": services.REDIS,
    "com.github.jcustenborder.kafka.connect.redis.RedisSinkConnector": services.OLD_REDIS,
    "com.mongodb.kafka.connect.MongoSinkConnector": services.MONGO_SINK,
    "com.mongodb.kafka.connect.MongoSourceConnector": services.MONGO_SOURCE,
    "io.confluent.connect.cassandra.CassandraSinkConnector": services.CASSANDRA,
    "com.datastax.oss.kafka.sink.CassandraSinkConnector": services.DATASTAX,
    "com.datastax.kafkaconnector.DseSinkConnector": services.DATASTAX,
    "org.neo4j.connectors.kafka.sink.Neo4jConnector": services.NEO4J,
    "streams.kafka.connect.sink.Neo4jSinkConnector": services.NEO4J,
    "io.confluent.influxdb.InfluxDBSinkConnector": services.INFLUXDB,
    "io.confluent.influxdb.source.InfluxdbSourceConnector": services.INFLUXDB_SOURCE,
    "com.splunk.kafka.connect.SplunkSinkConnector": services.SPLUNK,
    "io.confluent.connect.syslog.SyslogSourceConnector": services.SYSLOG,
    **{
        _SPOOLDIR_CLASS.format(kind): stores.SPOOLDIR
        for kind in ("Csv", "Json", "SchemaLessJson", "LineDelimited", "Avro")
    },
    **{_SFTP_CLASS.format(kind): stores.SPOOLDIR for kind in ("Csv", "Json", "SchemaLessJson")},
    "io.confluent.connect.sftp.SftpSinkConnector": stores.SFTP_SINK,
    "io.debezium.connector.postgresql.PostgresConnector": debezium.POSTGRES,
    "io.debezium.connector.mysql.MySqlConnector": debezium.MYSQL,
    "io.debezium.connector.mariadb.MariaDbConnector": debezium.MYSQL,
}
