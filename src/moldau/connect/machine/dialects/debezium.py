"""Change data capture by Debezium."""

from __future__ import annotations

from moldau.connect.machine.dialects.model import (
    CLIENT,
    STORES,
    Dialect,
    because,
    names,
    refused,
)

_DEBEZIUM_NO_EFFECT = {
    **because("memory is bounded by max.batch.size", "max.queue.size max.queue.size.in.bytes"),
    **because("names are kept as they are", "schema.name.adjustment.mode topic.cache.size"),
    **because("names are kept as they are", "field.name.adjustment.mode"),
    **because("the worker restarts and repeats", "retriable.restart.connector.wait.ms"),
    **because("the worker restarts and repeats", "errors.max.retries slot.max.retries"),
    **because("the worker restarts and repeats", "slot.retry.delay.ms"),
    **because("metrics have the connector's name", "custom.metric.tags"),
    **because("a snapshot is read by one connection", "snapshot.max.threads snapshot.delay.ms"),
    **because("a snapshot takes no locks", "snapshot.lock.timeout.ms snapshot.locking.mode"),
    **because("there are no signals", "incremental.snapshot.*"),
    **because(CLIENT, "database.tcpKeepAlive database.query.timeout.ms connect.timeout.ms"),
    **because(CLIENT, "connect.keep.alive connect.keep.alive.interval.ms binlog.buffer.size"),
    **because(CLIENT, "min.row.count.to.stream.results database.protocol database.jdbc.driver"),
    **because(CLIENT, "streaming.delay.ms use.nongraceful.disconnect xmin.fetch.interval.ms"),
    **because("tables are described by the log itself", "schema.history.internal*"),
    **because("schemas follow the log", "schema.refresh.mode"),
    **because("system tables are never read", "table.ignore.builtin"),
    **STORES,
}
_DEBEZIUM_MISSING = names(
    "notification.* event.processing.failure.handling.mode "
    "event.deserialization.failure.handling.mode inconsistent.schema.handling.mode "
    "include.schema.comments enable.time.adjuster slot.failover slot.stream.params "
    "flush.lsn.source lsn.flush.mode replica.identity.autoset.values "
    "snapshot.isolation.mode column.propagate.source.type "
    "datatype.propagate.source.type signal.enabled.channels"
)
_DEBEZIUM_REFUSED = {
    **refused("signal.data.collection converters post.processors"),
    **refused("read.only", "false"),
    **refused("topic.naming.strategy", "io.debezium.schema.schematopicnamingstrategy"),
    **refused("sourceinfo.struct.maker"),
    **refused("snapshot.query.mode", "select_all"),
}
POSTGRES = Dialect(
    no_effect={
        **_DEBEZIUM_NO_EFFECT,
        **because("PostgreSQL has no such events", "include.schema.changes"),
    },
    missing=_DEBEZIUM_MISSING,
    refused={
        **_DEBEZIUM_REFUSED,
        **refused("database.sslcert database.sslpassword database.sslkey"),
        **refused("message.prefix.*"),
    },
)
MYSQL = Dialect(
    no_effect=_DEBEZIUM_NO_EFFECT,
    missing=(*_DEBEZIUM_MISSING, "include.schema.changes", "snapshot.fetch.size"),
    refused={
        **_DEBEZIUM_REFUSED,
        **refused("include.query", "false"),
        **refused("database.ssl.mode", "preferred"),
        **refused("database.ssl.* gtid.source.* database.connectionTimeZone"),
    },
)
