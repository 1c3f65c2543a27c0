"""Bulk sinks: connectors whose records a pipeline writes to a table, in batches of Spark.

Their settings become the options of the pipeline's sink, which docs/tables.md describes; what a
connector has no setting for is given as `sink.OPTION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from moldau.connect.api import (
    BulkSinkConnector,
    BulkTable,
    CheckedBy,
    ConfigDef,
    Importance,
    Kind,
    OneOf,
)
from moldau.connect.chain import with_prefix

_TABLE: Final = "Table"
_SINK_OPTIONS: Final = "sink."


def _is_jdbc(key: str, value: Any) -> None:
    if not str(value).startswith("jdbc:"):
        raise ValueError("must begin with jdbc:")


def _define_bulk(config: ConfigDef) -> ConfigDef:
    return (
        config.define("columns", Kind.STRING, None, group=_TABLE,
                      doc="The columns as in CREATE TABLE (id BIGINT, name STRING); empty: those "
                      "of the first and the last records of the topics")
        .define("trigger", Kind.STRING, "10 seconds", group=_TABLE,
                doc="How often a batch is written")
        .define("spark.deployment", Kind.STRING, None, group="Spark",
                doc="Directory of the deployment of Spark; empty: that of the worker")
    )  # fmt: skip


def _define_keys(config: ConfigDef) -> ConfigDef:
    return config.define(
        "pk.fields", Kind.LIST, [], group=_TABLE,
        doc="Columns by which rows are replaced (upsert); empty: rows are added",
    ).define(
        "sequence.by", Kind.STRING, None, group=_TABLE,
        doc="With pk.fields: of rows with the same key the one with the largest value stays",
    )  # fmt: skip


def _define_folder(config: ConfigDef, where: str) -> ConfigDef:
    return config.define(
        "path", Kind.STRING, importance=Importance.HIGH, group=_TABLE, doc=where
    ).define(
        "partition.by", Kind.LIST, [], group=_TABLE, doc="Columns that become directories"
    )  # fmt: skip


class _TableSink(BulkSinkConnector):
    SETTINGS: ClassVar[ConfigDef]
    KIND: ClassVar[str]
    PASSED_ON = (_SINK_OPTIONS,)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.SETTINGS

    def table(self, props: Mapping[str, str]) -> BulkTable:
        values = self.SETTINGS.parse(props)
        named = {
            "partitionBy": values.get("partition.by"),
            "upsert": values.get("pk.fields"),
            "sequenceBy": values.get("sequence.by"),
        }
        options = {name: _listed(value) for name, value in named.items() if value}
        kind, own = self.address(values, props)
        return BulkTable(kind, {**own, **options, **with_prefix(props, _SINK_OPTIONS)})

    def address(
        self, values: Mapping[str, Any], props: Mapping[str, str]
    ) -> tuple[str, dict[str, Any]]:
        """The table's kind, and the options that say where it is."""
        return self.KIND, {self.KIND: values["path"]}


class ParquetSinkConnector(_TableSink):
    DESCRIPTION = "Topics to Parquet files, written in batches by Spark"
    KIND = "parquet"
    SETTINGS = _define_bulk(
        _define_folder(ConfigDef(), "Directory, or hdfs:// or s3a:// URL, of the files")
    )


class DeltaSinkConnector(_TableSink):
    DESCRIPTION = "Topics to a Delta table, written in batches by Spark"
    KIND = "delta"
    SETTINGS = _define_bulk(
        _define_keys(_define_folder(ConfigDef(), "Directory, or s3:// URL, of the table"))
    )


class IcebergSinkConnector(_TableSink):
    DESCRIPTION = "Topics to an Iceberg table, written in batches by Spark"
    KIND = "iceberg"
    SETTINGS = _define_bulk(
        _define_keys(
            _define_folder(ConfigDef(), "Directory of the warehouse").define(
                "table", Kind.STRING, importance=Importance.HIGH, group=_TABLE,
                doc="The table: shop.orders",
            )
        )
    )  # fmt: skip

    def address(
        self, values: Mapping[str, Any], props: Mapping[str, str]
    ) -> tuple[str, dict[str, Any]]:
        return self.KIND, {self.KIND: values["path"], "table": values["table"]}


class JdbcBulkSinkConnector(_TableSink):
    DESCRIPTION = "Topics to a table of a database, written in batches by Spark"
    KIND = "jdbc"
    SETTINGS = _define_bulk(
        _define_keys(
            ConfigDef()
            .define("connection.url", Kind.STRING, importance=Importance.HIGH, group=_TABLE,
                    validator=CheckedBy(_is_jdbc, "a JDBC URL"), doc="JDBC URL of the database")
            .define("connection.user", Kind.STRING, None, group=_TABLE, doc="User of the database")
            .define("connection.password", Kind.PASSWORD, None, group=_TABLE,
                    doc="Password of the user")
            .define("table", Kind.STRING, importance=Importance.HIGH, group=_TABLE,
                    doc="The table; it is created if it is not there")
        )
    )  # fmt: skip

    def address(
        self, values: Mapping[str, Any], props: Mapping[str, str]
    ) -> tuple[str, dict[str, Any]]:
        login = {
            "user": props.get("connection.user"),
            "password": props.get("connection.password"),
        }
        return self.KIND, {
            self.KIND: values["connection.url"],
            "table": values["table"],
            **{name: value for name, value in login.items() if value},
        }


class HdfsBulkSinkConnector(_TableSink):
    DESCRIPTION = "Topics to files of HDFS, written in batches by Spark"
    SETTINGS = _define_bulk(
        ConfigDef()
        .define("hdfs.url", Kind.STRING, importance=Importance.HIGH, group=_TABLE,
                doc="hdfs://HOST:PORT of the file system")
        .define("topics.dir", Kind.STRING, "topics", group=_TABLE,
                doc="The upper folder; the connector's name is a folder in it")
        .define("format", Kind.STRING, "parquet", group=_TABLE,
                validator=OneOf(("parquet", "json", "csv")), doc="Format of the files")
        .define("partition.by", Kind.LIST, [], group=_TABLE, doc="Columns that become directories")
    )  # fmt: skip

    def address(
        self, values: Mapping[str, Any], props: Mapping[str, str]
    ) -> tuple[str, dict[str, Any]]:
        kind = values["format"]
        return kind, {kind: _below(values["hdfs.url"], values, props)}


class S3BulkSinkConnector(_TableSink):
    DESCRIPTION = "Topics to S3 as a Delta table or as files, written in batches by Spark"
    SETTINGS = _define_bulk(
        ConfigDef()
        .define("s3.bucket.name", Kind.STRING, importance=Importance.HIGH, group=_TABLE,
                doc="The bucket")
        .define("s3.region", Kind.STRING, "us-west-2", group=_TABLE, doc="Its region")
        .define("store.url", Kind.STRING, None, group=_TABLE,
                doc="Address of the storage; empty: Amazon's")
        .define("aws.access.key.id", Kind.STRING, "", group=_TABLE,
                doc="Access key; empty: from the environment, as Amazon's tools find it")
        .define("aws.secret.access.key", Kind.PASSWORD, None, group=_TABLE, doc="Secret key")
        .define("topics.dir", Kind.STRING, "topics", group=_TABLE,
                doc="The upper folder; the connector's name is a folder in it")
        .define("format", Kind.STRING, "delta", group=_TABLE,
                validator=OneOf(("delta", "avro", "parquet", "json", "csv")),
                doc="delta and avro need no package of Spark; the others need Hadoop's for S3, "
                "with the storage in Spark's own configuration")
        .define("partition.by", Kind.LIST, [], group=_TABLE, doc="Columns that become directories")
    )  # fmt: skip

    def address(
        self, values: Mapping[str, Any], props: Mapping[str, str]
    ) -> tuple[str, dict[str, Any]]:
        kind = values["format"]
        scheme = "s3" if kind in ("delta", "avro") else "s3a"
        place = _below(f"{scheme}://{values['s3.bucket.name']}", values, props)
        key, secret = props.get("aws.access.key.id"), props.get("aws.secret.access.key")
        url = values["store.url"]
        if kind == "delta":
            storage = {
                "AWS_REGION": values["s3.region"],
                "AWS_ENDPOINT_URL": url,
                "AWS_ALLOW_HTTP": "true" if (url or "").startswith("http:") else None,
                "AWS_ACCESS_KEY_ID": key,
                "AWS_SECRET_ACCESS_KEY": secret,
            }
        elif kind == "avro":
            scheme, _, host = (url or "").rpartition("://")
            storage = {
                "region": values["s3.region"],
                "endpoint_override": host,
                "scheme": scheme,
                "access_key": key,
                "secret_key": secret,
            }
        else:
            storage = {}
        given = {f"storage.{name}": value for name, value in storage.items() if value}
        return kind, {kind: place, **given}


def _below(root: str, values: Mapping[str, Any], props: Mapping[str, str]) -> str:
    return "/".join((root.rstrip("/"), values["topics.dir"].strip("/"), props["name"]))


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
