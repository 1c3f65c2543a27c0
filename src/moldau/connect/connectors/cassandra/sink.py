"""The Cassandra sinks: with the settings of Confluent's connector, and with those of DataStax's.

All writes are upserts and deletes by primary key: a record that comes again changes nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    ConfigDef,
    ConfigValue,
    ConnectError,
    DataError,
    Importance,
    Kind,
    OneOf,
    Range,
    RetriableError,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.cassandra.client import Cassandra
from moldau.connect.connectors.cassandra.machine import statements
from moldau.connect.connectors.cassandra.machine.statements import Rules, Statement
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import plain

CONFIG: Final = (
    ConfigDef()
    .define("cassandra.contact.points", Kind.LIST, ("localhost",), importance=Importance.HIGH,
            group="Cassandra", doc="Hosts to begin with")
    .define("cassandra.port", Kind.INT, 9042, validator=Range(1, 65535), group="Cassandra",
            doc="Port of all hosts")
    .define("cassandra.username", Kind.STRING, "", group="Cassandra", doc="User")
    .define("cassandra.password", Kind.PASSWORD, None, group="Cassandra", doc="Its password")
    .define("cassandra.local.datacenter", Kind.STRING, "", group="Cassandra",
            doc="Data centre whose hosts are asked; empty: all")
    .define("cassandra.ssl.enabled", Kind.BOOLEAN, False, group="Cassandra", doc="Whether with TLS")
    .define("cassandra.ssl.truststore.path", Kind.STRING, "", group="Cassandra",
            doc="File with PEM certificates to trust; empty: those of the system")
    .define("cassandra.compression", Kind.STRING, "NONE", group="Cassandra",
            validator=OneOf(("NONE", "LZ4", "SNAPPY"), ignore_case=True),
            doc="Compression of requests, if the driver has it")
    .define("cassandra.execute.timeout.ms", Kind.LONG, 30_000, validator=Range(1),
            group="Cassandra", doc="How long to wait for an answer")
    .define("cassandra.consistency.level", Kind.STRING, "LOCAL_QUORUM", group="Writing",
            doc="How many replicas must have a write: LOCAL_QUORUM, ONE, QUORUM, ALL, ...")
    .define("cassandra.keyspace", Kind.STRING, importance=Importance.HIGH, group="Writing",
            doc="Keyspace")
    .define("cassandra.keyspace.create.enabled", Kind.BOOLEAN, True, group="Writing",
            doc="Whether to create the keyspace if it is missing")
    .define("cassandra.keyspace.create.replication.factor", Kind.INT, 1, validator=Range(1),
            group="Writing", doc="Replication factor of a keyspace that is created")
    .define("cassandra.table", Kind.STRING, "${topic}", group="Writing",
            doc="Table; ${topic} is replaced")
    .define("cassandra.table.manage.enabled", Kind.BOOLEAN, True, group="Writing",
            doc="Whether to create tables and add columns, for records with schemas")
    .define("cassandra.table.create.caching", Kind.STRING, "", group="Writing",
            doc="Caching of tables that are created: ALL, KEYS_ONLY, ROWS_ONLY, NONE")
    .define("cassandra.write.mode", Kind.STRING, "Insert", group="Writing",
            validator=OneOf(("Insert", "Update"), ignore_case=True), doc="Insert or Update")
    .define("cassandra.deletes.enabled", Kind.BOOLEAN, True, group="Writing",
            doc="Whether a record without a value deletes")
    .define("cassandra.ttl", Kind.INT, 0, validator=Range(0), group="Writing",
            doc="How long rows live, in seconds; 0: for ever")
)  # fmt: skip

DATASTAX: Final = (
    ConfigDef()
    .define("contactPoints", Kind.LIST, ("localhost",), importance=Importance.HIGH,
            group="Cassandra", doc="Hosts to begin with")
    .define("port", Kind.INT, 9042, validator=Range(1, 65535), group="Cassandra",
            doc="Port of all hosts")
    .define("loadBalancing.localDc", Kind.STRING, "", group="Cassandra",
            doc="Data centre whose hosts are asked")
    .define("auth.provider", Kind.STRING, "None", group="Cassandra",
            validator=OneOf(("None", "PLAIN"), ignore_case=True), doc="None or PLAIN")
    .define("auth.username", Kind.STRING, "", group="Cassandra", doc="User")
    .define("auth.password", Kind.PASSWORD, None, group="Cassandra", doc="Its password")
    .define("ssl.provider", Kind.STRING, "None", group="Cassandra",
            validator=OneOf(("None", "JDK", "OpenSSL"), ignore_case=True),
            doc="JDK or OpenSSL: with TLS")
    .define("ssl.openssl.keyCertChain", Kind.STRING, "", group="Cassandra",
            doc="File with PEM certificates to trust")
    .define("queryExecutionTimeout", Kind.INT, 30, validator=Range(1), group="Cassandra",
            doc="How long to wait for an answer, in seconds")
    .define("compression", Kind.STRING, "None", group="Cassandra",
            validator=OneOf(("None", "LZ4", "Snappy"), ignore_case=True),
            doc="Compression of requests")
    .define("consistencyLevel", Kind.STRING, "LOCAL_ONE", group="Writing",
            doc="How many replicas must have a write")
    .define("ignoreErrors", Kind.STRING, "None", group="Writing",
            validator=OneOf(("None", "All", "Driver"), ignore_case=True),
            doc="All, Driver: what the server refuses is reported and left out")
    .define("topic.TOPIC.KEYSPACE.TABLE.mapping", Kind.STRING, "", group="Writing",
            doc="Columns: COLUMN=value.FIELD, COLUMN=key, COLUMN=header.NAME, COLUMN=now(). "
            "Also .ttl, .ttlTimeUnit, .deletesEnabled and .nullToUnset")
)  # fmt: skip


class CassandraSinkConnector(PlainSink):
    DESCRIPTION = "Records to rows of Cassandra's tables, by the fields of key and value"
    SETTINGS = CONFIG

    def task_class(self) -> type[SinkTask]:
        return CassandraSinkTask


class DataStaxSinkConnector(PlainSink):
    DESCRIPTION = "Records to rows of Cassandra's tables, by a mapping of each topic"
    SETTINGS = DATASTAX

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        at = next(each for each in values if each.name.startswith("topic."))
        try:
            mapped = statements.mappings(props)
        except ValueError as error:
            at.errors.append(str(error))
            return values
        topics = [each.strip() for each in props.get("topics", "").split(",") if each.strip()]
        missing = [each for each in topics if each not in mapped]
        if missing:
            at.errors.append(
                f"there is no mapping for {', '.join(missing)}: set "
                f"topic.{missing[0]}.KEYSPACE.TABLE.mapping"
            )
        return values

    def task_class(self) -> type[SinkTask]:
        return DataStaxSinkTask


class _Task(SinkTask):
    _cassandra: Cassandra

    def put(self, records: Sequence[SinkRecord]) -> None:
        try:
            ready: list[Statement] = []
            for record in records:
                try:
                    ready += self.statements(record)
                except DataError as error:
                    self.refuse(record, error)
            for batch in statements.rounds(ready):
                outcome = self._cassandra.run([(each.cql, each.values) for each in batch])
                for each, refusal in zip(batch, outcome, strict=True):
                    if refusal is not None:
                        self.refuse(each.record, refusal)
        except RetriableError:
            self._cassandra.close()
            raise

    @abstractmethod
    def statements(self, record: SinkRecord) -> list[Statement]: ...

    def refuse(self, record: SinkRecord, error: Exception) -> None:
        place = f"record {record.topic}-{record.partition}@{record.offset}"
        found = (
            error
            if isinstance(error, (ConnectError, DataError))
            else DataError(f"{place} does not fit the table: {error}")
        )
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise found
        reporter.report(record, found)

    def stop(self) -> None:
        self._cassandra.close()


class CassandraSinkTask(_Task):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._rules = Rules(
            config["cassandra.keyspace"],
            config["cassandra.write.mode"].lower(),
            config["cassandra.deletes.enabled"],
            config["cassandra.ttl"],
        )
        self._cassandra = Cassandra(
            config["cassandra.contact.points"],
            config["cassandra.port"],
            user=config["cassandra.username"],
            password=plain(config["cassandra.password"]) or "",
            datacenter=config["cassandra.local.datacenter"],
            consistency=config["cassandra.consistency.level"],
            timeout_s=config["cassandra.execute.timeout.ms"] / 1000,
            tls=config["cassandra.ssl.enabled"],
            trusted=config["cassandra.ssl.truststore.path"],
            compression=config["cassandra.compression"].upper() != "NONE",
        )
        self._keyspace_made = not config["cassandra.keyspace.create.enabled"]
        self._fitted: dict[str, Any] = {}

    def statements(self, record: SinkRecord) -> list[Statement]:
        table = self._config["cassandra.table"].replace("${topic}", record.topic)
        found = statements.statement(self._rules, table, record)
        if found is None:
            return []
        if record.value is not None:
            self._prepare_table(table, record)
        return [found]

    def _prepare_table(self, table: str, record: SinkRecord) -> None:
        if not self._keyspace_made:
            factor = self._config["cassandra.keyspace.create.replication.factor"]
            self._cassandra.execute(
                f"CREATE KEYSPACE IF NOT EXISTS {statements.quoted(self._rules.keyspace)} WITH "
                f"replication = {{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"
            )
            self._keyspace_made = True
        schema = record.value_schema
        if self._fitted.get(table) is not None and self._fitted[table] == schema:
            return
        known = self._cassandra.columns(self._rules.keyspace, table)
        if self._config["cassandra.table.manage.enabled"]:
            if known is None:
                changes = [statements.create_table(self._rules, table, record, self._options())]
            else:
                changes = statements.add_columns(self._rules, table, record, known[0])
            for each in changes:
                self._cassandra.execute(each)
            if changes:
                self._cassandra.forget_statements()
        elif known is None:
            raise ConnectError(
                f"Cassandra: the table {self._rules.keyspace}.{table} is missing: create it, or "
                "set cassandra.table.manage.enabled=true"
            )
        self._fitted[table] = schema

    def _options(self) -> str:
        caching = self._config["cassandra.table.create.caching"].upper()
        if not caching:
            return ""
        keys = "ALL" if caching in ("ALL", "KEYS_ONLY") else "NONE"
        rows = "ALL" if caching in ("ALL", "ROWS_ONLY") else "NONE"
        return f" WITH caching = {{'keys': '{keys}', 'rows_per_partition': '{rows}'}}"


class DataStaxSinkTask(_Task):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = DATASTAX.parse(props)
        self._mapped = statements.mappings(props)
        self._ignores = config["ignoreErrors"].lower() != "none"
        self._cassandra = Cassandra(
            config["contactPoints"],
            config["port"],
            user=config["auth.username"],
            password=plain(config["auth.password"]) or "",
            datacenter=config["loadBalancing.localDc"],
            consistency=config["consistencyLevel"],
            timeout_s=float(config["queryExecutionTimeout"]),
            tls=config["ssl.provider"].lower() != "none",
            trusted=config["ssl.openssl.keyCertChain"],
            compression=config["compression"].lower() != "none",
        )

    def statements(self, record: SinkRecord) -> list[Statement]:
        tables = self._mapped.get(record.topic)
        if not tables:
            raise DataError(
                f"topic {record.topic} has no mapping: set "
                f"topic.{record.topic}.KEYSPACE.TABLE.mapping"
            )
        found = []
        for each in tables:
            known = self._cassandra.columns(each.rules.keyspace, each.table)
            if known is None:
                raise ConnectError(
                    f"Cassandra: the table {each.rules.keyspace}.{each.table} is missing"
                )
            made = each.statement(record, known[1], self._cassandra.unset)
            if made is not None:
                found.append(made)
        return found

    def refuse(self, record: SinkRecord, error: Exception) -> None:
        if self._ignores or self.context.errant_record_reporter is None:
            super().refuse(record, error)
            return
        # As DataStax's: what is refused fails the task unless ignoreErrors says otherwise.
        raise error if isinstance(error, (ConnectError, DataError)) else DataError(str(error))
