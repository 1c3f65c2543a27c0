"""What is asked of the database: its catalogue, slots, publications, snapshots and the stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import ConnectError, RetriableError
from moldau.connect.connectors.capture.machine.envelope import TableColumn
from moldau.connect.connectors.capture.machine.filters import Filters
from moldau.connect.connectors.capture.records import statements
from moldau.connect.connectors.postgres_cdc.machine.pgoutput import Row
from moldau.connect.connectors.postgres_cdc.machine.progress import lsn_of
from moldau.connect.connectors.postgres_cdc.machine.types import Options, PgType, column_type
from moldau.connect.connectors.support.libraries import library
from moldau.connect.connectors.support.web import plain
from moldau.readable import wait_readable

#: Texts of values must be in these forms, whatever the server's own settings are.
_FORMS: Final = (
    "-c datestyle=ISO -c timezone=UTC -c bytea_output=hex -c extra_float_digits=3 "
    "-c intervalstyle=iso_8601"
)
_DOMAIN_DEPTH_MAX: Final = 10


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Server:
    """Ordinary connections and the one that replicates; made on demand."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._driver = library("psycopg2")
        self._extras = library("psycopg2.extras")
        self._config = config
        self.database = str(config["database.dbname"])
        self.slot = str(config["slot.name"])
        self._by_root = bool(config["publish.via.partition.root"])
        self._ordinary: Any = None
        self._replication: Any = None
        self._stream: Any = None
        self._types: dict[int, PgType] = {}

    def _connect(self, **options: Any) -> Any:
        config = self._config
        connection = self._driver.connect(
            host=config["database.hostname"],
            port=config["database.port"],
            user=config["database.user"],
            password=plain(config["database.password"]),
            dbname=self.database,
            sslmode=config["database.sslmode"],
            sslrootcert=config["database.sslrootcert"],
            connect_timeout=10,
            options=_FORMS,
            **options,
        )
        if not options:
            for statement in statements(config["database.initial.statements"]):
                with connection.cursor() as cursor:
                    cursor.execute(statement)
            connection.commit()
        return connection

    def failure(self, error: Exception) -> ConnectError:
        """What to raise for an error of the driver."""
        driver = self._driver
        away = isinstance(error, (driver.OperationalError, driver.InterfaceError))
        # A stream that breaks off is an error of no kind, without a code of the server.
        away |= type(error) is driver.DatabaseError and getattr(error, "pgcode", None) is None
        kind = RetriableError if away else ConnectError
        place = f"{self._config['database.hostname']}:{self._config['database.port']}"
        return kind(f"{self.database} at {place}: {error}")

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._ordinary is None or self._ordinary.closed:
            self._ordinary = self._connect()
            self._ordinary.autocommit = True
        with self._ordinary.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall()) if cursor.description else []

    # The catalogue.

    def tables(self, filters: Filters) -> list[tuple[str, str]]:
        # The stream names the partition of a row, or the table that it is a partition of.
        kinds = "'r', 'p') AND NOT (c.relispartition" if self._by_root else "'r') AND NOT (false"
        found = self.rows(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n "
            f"ON n.oid = c.relnamespace WHERE c.relkind IN ({kinds}) "
            "AND n.nspname NOT IN ('pg_catalog', 'information_schema') "
            "AND n.nspname NOT LIKE 'pg_%%' ORDER BY 1, 2".replace("%%", "%")
        )
        return [(schema, table) for schema, table in found if filters.takes(schema, table)]

    def columns(self, schema: str, table: str, options: Options) -> list[TableColumn]:
        rows = self.rows(
            "SELECT a.attname, a.atttypid::int8, a.atttypmod, NOT a.attnotnull, "
            "coalesce(a.attnum = ANY(i.indkey), false) FROM pg_attribute a "
            "LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
            "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped "
            "ORDER BY a.attnum",
            f"{_quoted(schema)}.{_quoted(table)}",
        )
        return [
            TableColumn(name, column_type(self.type(oid), modifier, options), optional, is_key)
            for name, oid, modifier, optional, is_key in rows
        ]

    def type(self, oid: int, depth: int = 0) -> PgType:
        found = self._types.get(oid)
        if found is None:
            found = self._types[oid] = self._find_type(oid, depth)
        return found

    def _find_type(self, oid: int, depth: int) -> PgType:
        rows = self.rows(
            "SELECT typname, typtype, typcategory, typelem::int8, typbasetype::int8, "
            "ARRAY(SELECT enumlabel FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder) "
            "FROM pg_type t WHERE oid = %s",
            oid,
        )
        if not rows:
            return PgType(f"type {oid}")
        name, kind, category, element, base, labels = rows[0]
        if kind == "d" and depth < _DOMAIN_DEPTH_MAX:
            return self.type(base, depth + 1)
        if category == "A" and element:
            return PgType(name, element=self.type(element, depth + 1))
        return PgType(name, kind, labels=tuple(labels))

    # Publication and slot.

    def ensure_publication(self, filters: Filters) -> None:
        name, mode = self._config["publication.name"], self._config["publication.autocreate.mode"]
        if self.rows("SELECT 1 FROM pg_publication WHERE pubname = %s", name):
            return
        if mode == "disabled":
            raise ConnectError(
                f"there is no publication {name}, and publication.autocreate.mode is disabled: "
                f"CREATE PUBLICATION {_quoted(name)} FOR ALL TABLES"
            )
        how = " WITH (publish_via_partition_root = true)" if self._by_root else ""
        if mode in ("all_tables", "no_tables"):
            which = " FOR ALL TABLES" if mode == "all_tables" else ""
            self.rows(f"CREATE PUBLICATION {_quoted(name)}{which}{how}")
            return
        tables = ", ".join(
            f"{_quoted(schema)}.{_quoted(table)}" for schema, table in self.tables(filters)
        )
        self.rows(f"CREATE PUBLICATION {_quoted(name)} FOR TABLE {tables}{how}")

    def has_slot(self) -> bool:
        return bool(self.rows("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", self.slot))

    def drop_slot(self) -> None:
        if self.has_slot():
            self.rows("SELECT pg_drop_replication_slot(%s)", self.slot)

    def create_slot(self) -> tuple[int, str]:
        """Where its changes begin, and a snapshot of everything before that."""
        self._replication = self._connect(
            connection_factory=self._extras.LogicalReplicationConnection
        )
        cursor = self._replication.cursor()
        cursor.execute(f"CREATE_REPLICATION_SLOT {_quoted(self.slot)} LOGICAL pgoutput")
        _, place, snapshot, _ = cursor.fetchone()
        # The snapshot lives until the connection does anything else.
        return lsn_of(place), str(snapshot)

    # Rows that are there already.

    def snapshot_rows(
        self,
        snapshot: str,
        tables: Sequence[tuple[str, str, Sequence[str]]],
        size: int,
        selects: Mapping[str, str],
    ) -> Iterator[tuple[str, str, Row]]:
        """The rows of tables with their schema and name, all at one point in time, as texts.
        `selects` are statements for some, by SCHEMA.TABLE."""
        connection = self._connect()
        try:
            connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION SNAPSHOT %s", (snapshot,))
            for schema, table, columns in tables:
                names = ", ".join(f"{_quoted(name)}::text" for name in columns)
                with connection.cursor(name="moldau_snapshot") as cursor:
                    cursor.itersize = size
                    select = selects.get(f"{schema}.{table}")
                    place = (
                        f"({select}) AS rows" if select else f"{_quoted(schema)}.{_quoted(table)}"
                    )
                    cursor.execute(f"SELECT {names} FROM {place}")
                    for row in cursor:
                        yield schema, table, row
        finally:
            connection.close()

    # The stream of changes.

    def start_stream(self, lsn: int) -> None:
        if self._replication is None or self._replication.closed:
            self._replication = self._connect(
                connection_factory=self._extras.LogicalReplicationConnection
            )
        self._stream = self._replication.cursor()
        self._stream.start_replication(
            slot_name=self.slot,
            decode=False,
            start_lsn=lsn,
            options={
                "proto_version": "1",
                "publication_names": _quoted(self._config["publication.name"]),
            },
        )

    @property
    def is_streaming(self) -> bool:
        return self._stream is not None

    def next_message(self, wait_s: float) -> tuple[int, bytes] | None:
        """The place and the bytes of the next message; None after the wait."""
        stream = self._stream
        message = stream.read_message()
        if message is None and wait_s > 0:
            wait_readable(stream, wait_s)
            message = stream.read_message()
        return None if message is None else (int(message.data_start), bytes(message.payload))

    def report(self, flushed_lsn: int) -> None:
        """Everything before this place may be forgotten by the server."""
        if self._stream is not None:
            self._stream.send_feedback(flush_lsn=flushed_lsn, reply=False)

    def close(self) -> None:
        for connection in (self._ordinary, self._replication):
            if connection is not None:
                connection.close()
        self._ordinary = self._replication = self._stream = None
