"""What a JDBC address of MariaDB means."""

from __future__ import annotations

import urllib.parse

from moldau.spark.tables.errors import OptionError

__all__ = ["mariadb_parameters"]

# Names in MariaDB's JDBC driver, in lower case, and what Python's driver calls them.
_NAMES = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "serversslcert": "ssl_ca",
    "connecttimeout": "connect_timeout",
    "sockettimeout": "read_timeout",
}
_SSL_MODES = ("disable", "trust", "verify-ca", "verify-full")
_PORT = "3306"


def mariadb_parameters(rest: str) -> dict[str, str]:
    """Of an address without its `jdbc:mariadb:`."""
    location, _, query = rest.partition("?")
    if not location.startswith("//"):
        raise OptionError(
            "the MariaDB address names no host", "Write jdbc:mariadb://host:3306/database"
        )
    host, _, name = location.removeprefix("//").partition("/")
    if not name:
        raise OptionError(
            "the MariaDB address names no database", "Write jdbc:mariadb://host:3306/database"
        )
    if "," in host:
        raise OptionError(
            f"the MariaDB address names several hosts: {host}", "Give the one that takes writes"
        )
    address, port = _host_and_port(host)
    parameters = {"host": address, "port": port, "database": urllib.parse.unquote(name)}
    for key, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        if key.lower() not in _NAMES:
            raise OptionError(
                f"the MariaDB address has the parameter {key}={value}, which is not known here",
                f"Known are {', '.join(sorted(_NAMES))}",
            )
        parameters[_NAMES[key.lower()]] = value
    if parameters.get("sslmode", "disable") not in _SSL_MODES:
        raise OptionError(
            f"sslMode={parameters['sslmode']} is not known", f"Known are {', '.join(_SSL_MODES)}"
        )
    return parameters


def _host_and_port(text: str) -> tuple[str, str]:
    host, _, port = text.rpartition(":")
    if not host or text.endswith("]"):
        return text.strip("[]") or "localhost", _PORT
    if not port.isdigit():
        raise OptionError(f"the MariaDB address has the port {port!r}, which is no number")
    return host.strip("[]"), port
