"""The plug-ins in the box: by which names they are chosen, and where their classes are.

A connector's class is imported when it is used, so the table costs nothing. To add a connector, add
a row to CONNECTORS: its short name, kind, module and class, and the Java class names it stands for.
The first Java name is the one that listings show.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

_CONNECTORS = "moldau.connect.connectors."
_TRANSFORMS = "org.apache.kafka.connect.transforms."
_PREDICATES = _TRANSFORMS + "predicates."


class PluginKind(Enum):
    """The kinds of plug-ins, called as Connect's REST calls them."""

    SOURCE = "source"
    SINK = "sink"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    name: str
    kind: PluginKind
    target: str
    """`module:Class`."""
    java_names: tuple[str, ...] = ()
    extra: str | None = None
    """The extra of `pip install moldau[...]` that it needs."""

    @property
    def class_name(self) -> str:
        """What listings show as the class."""
        return self.java_names[0] if self.java_names else self.target.replace(":", ".")


def _connector(
    name: str, kind: PluginKind, target: str, *java_names: str, extra: str | None = None
) -> BuiltIn:
    return BuiltIn(name, kind, _CONNECTORS + target, java_names, extra)


CONNECTORS: tuple[BuiltIn, ...] = (
    _connector(
        "FileStreamSource",
        PluginKind.SOURCE,
        "filestream.source:FileStreamSourceConnector",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
    ),
    _connector(
        "FileStreamSink",
        PluginKind.SINK,
        "filestream.sink:FileStreamSinkConnector",
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
    ),
    _connector(
        "Datagen",
        PluginKind.SOURCE,
        "datagen.source:DatagenConnector",
        "io.confluent.kafka.connect.datagen.DatagenConnector",
        extra="schemas",
    ),
    _connector(
        "CassandraSink",
        PluginKind.SINK,
        "cassandra.sink:CassandraSinkConnector",
        "io.confluent.connect.cassandra.CassandraSinkConnector",
        extra="cassandra",
    ),
    _connector(
        "CassandraMappedSink",
        PluginKind.SINK,
        "cassandra.sink:DataStaxSinkConnector",
        "com.datastax.oss.kafka.sink.CassandraSinkConnector",
        "com.datastax.kafkaconnector.DseSinkConnector",
        extra="cassandra",
    ),
    _connector(
        "HdfsSink",
        PluginKind.SINK,
        "hdfs.sink:HdfsSinkConnector",
        "io.confluent.connect.hdfs3.Hdfs3SinkConnector",
        "io.confluent.connect.hdfs.HdfsSinkConnector",
        extra="connect",
    ),
    _connector(
        "Neo4jSink",
        PluginKind.SINK,
        "neo4j.sink:Neo4jSinkConnector",
        "org.neo4j.connectors.kafka.sink.Neo4jConnector",
        "streams.kafka.connect.sink.Neo4jSinkConnector",
        extra="neo4j",
    ),
    _connector(
        "ElasticsearchSink",
        PluginKind.SINK,
        "elasticsearch.sink:ElasticsearchSinkConnector",
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
        "io.aiven.connect.elasticsearch.ElasticsearchSinkConnector",
        "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",
    ),
    _connector(
        "HttpSink",
        PluginKind.SINK,
        "http.sink:HttpSinkConnector",
        "io.confluent.connect.http.HttpSinkConnector",
        "io.aiven.kafka.connect.http.HttpSinkConnector",
    ),
    _connector(
        "HttpSource",
        PluginKind.SOURCE,
        "http.source:HttpSourceConnector",
        "com.github.castorm.kafka.connect.http.HttpSourceConnector",
    ),
    _connector(
        "InfluxDbSink",
        PluginKind.SINK,
        "influxdb.sink:InfluxDbSinkConnector",
        "io.confluent.influxdb.InfluxDBSinkConnector",
    ),
    _connector(
        "InfluxDbSource",
        PluginKind.SOURCE,
        "influxdb.source:InfluxDbSourceConnector",
        "io.confluent.influxdb.source.InfluxdbSourceConnector",
    ),
    _connector(
        "JdbcSource",
        PluginKind.SOURCE,
        "jdbc.source:JdbcSourceConnector",
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
        extra="connect",
    ),
    _connector(
        "JdbcSink",
        PluginKind.SINK,
        "jdbc.sink:JdbcSinkConnector",
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
        extra="connect",
    ),
    _connector(
        "JdbcChangesSink",
        PluginKind.SINK,
        "jdbc.changes:ChangesSinkConnector",
        "io.debezium.connector.jdbc.JdbcSinkConnector",
        extra="connect",
    ),
    *(
        _connector(
            f"{name}Sink", PluginKind.SINK, f"tables.sink:{name}SinkConnector", extra="spark"
        )
        for name in ("Delta", "HdfsBulk", "Iceberg", "JdbcBulk", "Parquet", "S3Bulk")
    ),
    _connector(
        "MariaDbCdc",
        PluginKind.SOURCE,
        "mariadb_cdc.source:MariaDbConnector",
        "io.debezium.connector.mysql.MySqlConnector",
        "io.debezium.connector.mariadb.MariaDbConnector",
        extra="connect",
    ),
    *(
        _connector(
            f"Mirror{name}",
            PluginKind.SOURCE,
            f"mirror.{name.lower()}:Mirror{name}Connector",
            f"org.apache.kafka.connect.mirror.Mirror{name}Connector",
        )
        for name in ("Checkpoint", "Heartbeat", "Source")
    ),
    _connector(
        "MongoSink",
        PluginKind.SINK,
        "mongodb.sink:MongoSinkConnector",
        "com.mongodb.kafka.connect.MongoSinkConnector",
        extra="connect",
    ),
    _connector(
        "MongoSource",
        PluginKind.SOURCE,
        "mongodb.source:MongoSourceConnector",
        "com.mongodb.kafka.connect.MongoSourceConnector",
        extra="connect",
    ),
    _connector(
        "MqttSink",
        PluginKind.SINK,
        "mqtt.sink:MqttSinkConnector",
        "io.confluent.connect.mqtt.MqttSinkConnector",
        extra="connect",
    ),
    _connector(
        "MqttSource",
        PluginKind.SOURCE,
        "mqtt.source:MqttSourceConnector",
        "io.confluent.connect.mqtt.MqttSourceConnector",
        extra="connect",
    ),
    _connector(
        "PostgresCdc",
        PluginKind.SOURCE,
        "postgres_cdc.source:PostgresConnector",
        "io.debezium.connector.postgresql.PostgresConnector",
        extra="connect",
    ),
    _connector(
        "Redrive",
        PluginKind.SOURCE,
        "redrive.source:RedriveConnector",
    ),
    _connector(
        "RedisSink",
        PluginKind.SINK,
        "redis.sink:RedisSinkConnector",
        "com.redis.kafka.connect.RedisSinkConnector",
        "com.github.jcustenborder.kafka.connect.redis.RedisSinkConnector",
        extra="connect",
    ),
    _connector(
        "RedisStreamSource",
        PluginKind.SOURCE,
        "redis.source:RedisStreamSourceConnector",
        "com.redis.kafka.connect.RedisStreamSourceConnector",
        extra="connect",
    ),
    _connector(
        "S3Sink",
        PluginKind.SINK,
        "s3.sink:S3SinkConnector",
        "io.confluent.connect.s3.S3SinkConnector",
        "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
        extra="connect",
    ),
    _connector(
        "S3Source",
        PluginKind.SOURCE,
        "s3.source:S3SourceConnector",
        "io.confluent.connect.s3.source.S3SourceConnector",
        extra="connect",
    ),
    _connector(
        "SplunkSink",
        PluginKind.SINK,
        "splunk.sink:SplunkSinkConnector",
        "com.splunk.kafka.connect.SplunkSinkConnector",
    ),
    _connector(
        "SpoolDirSource",
        PluginKind.SOURCE,
        "spooldir.source:SpoolDirSourceConnector",
    ),
    _connector(
        "SpoolDirCsvSource",
        PluginKind.SOURCE,
        "spooldir.source:CsvSpoolDirConnector",
        "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector",
    ),
    _connector(
        "SftpCsvSource",
        PluginKind.SOURCE,
        "spooldir.source:SftpCsvConnector",
        "io.confluent.connect.sftp.SftpCsvSourceConnector",
        extra="connect",
    ),
    _connector(
        "SftpJsonSource",
        PluginKind.SOURCE,
        "spooldir.source:SftpJsonConnector",
        "io.confluent.connect.sftp.SftpSchemaLessJsonSourceConnector",
        "io.confluent.connect.sftp.SftpJsonSourceConnector",
        extra="connect",
    ),
    _connector(
        "SftpSink",
        PluginKind.SINK,
        "sftp.sink:SftpSinkConnector",
        "io.confluent.connect.sftp.SftpSinkConnector",
        extra="connect",
    ),
    _connector(
        "SpoolDirAvroSource",
        PluginKind.SOURCE,
        "spooldir.source:AvroSpoolDirConnector",
        "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirAvroSourceConnector",
        extra="connect",
    ),
    _connector(
        "SpoolDirJsonSource",
        PluginKind.SOURCE,
        "spooldir.source:JsonSpoolDirConnector",
        "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirSchemaLessJsonSourceConnector",
        "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirJsonSourceConnector",
    ),
    _connector(
        "SpoolDirLineSource",
        PluginKind.SOURCE,
        "spooldir.source:LineSpoolDirConnector",
        "com.github.jcustenborder.kafka.connect.spooldir.SpoolDirLineDelimitedSourceConnector",
    ),
    _connector(
        "SyslogSource",
        PluginKind.SOURCE,
        "syslog.source:SyslogSourceConnector",
        "io.confluent.connect.syslog.SyslogSourceConnector",
    ),
)


def _transform(name: str, target: str) -> BuiltIn:
    module = "moldau.connect.transforms."
    return BuiltIn(name, PluginKind.TRANSFORMATION, module + target, (_TRANSFORMS + name,))


def _for_key_and_value(name: str, module: str) -> list[BuiltIn]:
    return [_transform(f"{name}${part}", f"{module}:{name}{part}") for part in ("Key", "Value")]


TRANSFORMS: tuple[BuiltIn, ...] = (
    *_for_key_and_value("Cast", "cast"),
    _transform("DropHeaders", "headers:DropHeaders"),
    *_for_key_and_value("ExtractField", "fields"),
    BuiltIn(
        "ExtractNewRecordState",
        PluginKind.TRANSFORMATION,
        "moldau.connect.transforms.debezium:ExtractNewRecordState",
        ("io.debezium.transforms.ExtractNewRecordState",),
    ),
    _transform("Filter", "routing:Filter"),
    *_for_key_and_value("Flatten", "fields"),
    *_for_key_and_value("HeaderFrom", "headers"),
    *_for_key_and_value("HoistField", "fields"),
    *_for_key_and_value("InsertField", "contents"),
    _transform("InsertHeader", "headers:InsertHeader"),
    *_for_key_and_value("MaskField", "contents"),
    _transform("RegexRouter", "routing:RegexRouter"),
    *_for_key_and_value("ReplaceField", "fields"),
    *_for_key_and_value("SetSchemaMetadata", "contents"),
    *_for_key_and_value("TimestampConverter", "timestamps"),
    _transform("TimestampRouter", "routing:TimestampRouter"),
    _transform("ValueToKey", "fields:ValueToKey"),
)

PREDICATES: tuple[BuiltIn, ...] = tuple(
    BuiltIn(
        name,
        PluginKind.PREDICATE,
        f"moldau.connect.transforms.predicates:{name}",
        (_PREDICATES + name,),
    )
    for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
)

_SIMPLE = "moldau.connect.converters.simple:"
_REGISTRY = "moldau.connect.converters.registry:"


def _converter(name: str, target: str, package: str, kind: PluginKind) -> BuiltIn:
    return BuiltIn(name, kind, target + name, (f"{package}.{name}",), extra="schemas")


_NUMBERS = ("Boolean", "Double", "Float", "Integer", "Long", "Short")
_BOTH_KINDS = (
    *((f"{each}Converter", "org.apache.kafka.connect.converters") for each in _NUMBERS),
    ("ByteArrayConverter", "org.apache.kafka.connect.converters"),
    ("JsonConverter", "org.apache.kafka.connect.json"),
    ("StringConverter", "org.apache.kafka.connect.storage"),
)
CONVERTERS: tuple[BuiltIn, ...] = (
    *(_converter(name, _SIMPLE, package, PluginKind.CONVERTER) for name, package in _BOTH_KINDS),
    _converter("AvroConverter", _REGISTRY, "io.confluent.connect.avro", PluginKind.CONVERTER),
    _converter("JsonSchemaConverter", _REGISTRY, "io.confluent.connect.json", PluginKind.CONVERTER),
    _converter(
        "ProtobufConverter", _REGISTRY, "io.confluent.connect.protobuf", PluginKind.CONVERTER
    ),
)
HEADER_CONVERTERS: tuple[BuiltIn, ...] = (
    *(
        _converter(name, _SIMPLE, package, PluginKind.HEADER_CONVERTER)
        for name, package in _BOTH_KINDS
    ),
    _converter(
        "SimpleHeaderConverter",
        _SIMPLE,
        "org.apache.kafka.connect.storage",
        PluginKind.HEADER_CONVERTER,
    ),
)

ALL: tuple[BuiltIn, ...] = (
    *CONNECTORS,
    *TRANSFORMS,
    *PREDICATES,
    *CONVERTERS,
    *HEADER_CONVERTERS,
)
