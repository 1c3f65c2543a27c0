"""What a JDBC address means: which database, and how Python reaches it.

The addresses of PostgreSQL, MariaDB and SQLite are understood as their JDBC drivers do;
every other one is left to Spark's own JDBC source with the driver that the user brings.
"""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

from moldau.spark.tables.errors import OptionError
from moldau.spark.tables.jdbc.machine.mariadb_address import mariadb_parameters

POSTGRESQL = "postgresql"
MARIADB = "mariadb"
SQLITE = "sqlite"
OTHER = "other"

# The JDBC driver's parameter names and libpq's.
_LIBPQ_NAMES = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "applicationname": "application_name",
    "connecttimeout": "connect_timeout",
    "logintimeout": "connect_timeout",
    "targetservertype": "target_session_attrs",
    "options": "options",
    "gssencmode": "gssencmode",
    "channelbinding": "channel_binding",
}
_SESSION_KINDS = {
    "any": "any",
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "preferSecondary": "prefer-standby",
}


@dataclass(frozen=True, slots=True)
class Address:
    """`parameters` are those of the database's driver for Python; `path` is SQLite's file."""

    database: str
    parameters: tuple[tuple[str, str], ...] = ()
    path: str = ""


def parse_address(url: str, user: str = "", password: str = "") -> Address:
    if url.startswith("jdbc:sqlite:"):
        path = url.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]
        if not path or path == ":memory:":
            raise OptionError(
                f"{url}: a database in memory ends with its process",
                "Write jdbc:sqlite:/folder/file.db",
            )
        return Address(SQLITE, path=path)
    if url.startswith("jdbc:postgresql:"):
        database, parameters = POSTGRESQL, _postgresql(url.removeprefix("jdbc:postgresql:"))
    elif url.startswith("jdbc:mariadb:"):
        database, parameters = MARIADB, mariadb_parameters(url.removeprefix("jdbc:mariadb:"))
    else:
        return Address(OTHER)
    if user:
        parameters["user"] = user
    if password:
        parameters["password"] = password
    return Address(database, tuple(sorted(parameters.items())))


def _postgresql(rest: str) -> dict[str, str]:
    location, _, query = rest.partition("?")
    parameters: dict[str, str] = {}
    if location.startswith("//"):
        hosts, _, name = location.removeprefix("//").partition("/")
        found = [_host_and_port(part) for part in hosts.split(",")]
        if hosts:
            parameters["host"] = ",".join(host for host, _ in found)
            parameters["port"] = ",".join(port for _, port in found)
    else:
        name = location
    if name:
        parameters["dbname"] = urllib.parse.unquote(name)
    for key, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        _add_parameter(parameters, key, value)
    return parameters


def _host_and_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text.removeprefix("[").partition("]")
        return host, rest.removeprefix(":") or "5432"
    host, _, port = text.partition(":")
    return host, port or "5432"


def _add_parameter(parameters: dict[str, str], key: str, value: str) -> None:
    lowered = key.lower()
    if lowered == "currentschema":
        # libpq takes the schema as a server setting; spaces separate settings there.
        schema = value.replace("\\", "\\\\").replace(" ", "\\ ")
        parameters["options"] = f"{parameters.get('options', '')} -csearch_path={schema}".strip()
    elif lowered == "ssl":
        parameters.setdefault("sslmode", "disable" if value.lower() == "false" else "verify-full")
    elif lowered == "targetservertype" and value in _SESSION_KINDS:
        parameters["target_session_attrs"] = _SESSION_KINDS[value]
    elif lowered in _LIBPQ_NAMES and lowered != "targetservertype":
        parameters[_LIBPQ_NAMES[lowered]] = value
    else:
        raise OptionError(
            f"the PostgreSQL address has the parameter {key}={value}, which is not known here",
            f"Known are currentSchema, ssl, {', '.join(sorted(_LIBPQ_NAMES))}",
        )
