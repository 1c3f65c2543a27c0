"""The HTTP side of a worker's settings: Connect's keys for what `moldau.http` calls otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.config import ConfigError
from moldau.connect.chain import with_prefix
from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.http.config import HttpConfig
from moldau.http.keys import HTTP_KEYS

DEFAULT_PORT = 8083
_OWN = (
    "access.control.allow.origin",
    "access.control.allow.methods",
    "access.control.allow.headers",
    "response.http.headers.config",
)


def http_config(config: WorkerConfig) -> HttpConfig:
    """Raises ConfigError. TLS is set by `listeners.https.ssl.*` or, as in Kafka, by `ssl.*`."""
    return _http_config(config, config.values["listeners"], "listeners.https.")


def admin_http_config(config: WorkerConfig) -> HttpConfig | None:
    """That of `admin.listeners`; None where they are not set, or set to nothing."""
    listeners = config.values["admin.listeners"]
    return _http_config(config, listeners, "admin.listeners.https.") if listeners else None


def _http_config(config: WorkerConfig, listeners: Sequence[str], tls: str) -> HttpConfig:
    settings = config.settings
    given = {
        key: value
        for key, value in settings.items()
        if key in HTTP_KEYS and (key.startswith(("ssl.", "authentication.")) or key in _OWN)
    }
    given.update(
        (key, value) for key, value in with_prefix(settings, tls).items() if key in HTTP_KEYS
    )
    given["listeners"] = ",".join(_listener(each) for each in listeners)
    # Longer than any request takes: handlers limit themselves.
    given["request.timeout.ms"] = "90000"
    return HttpConfig.of(HTTP_KEYS.parse(given), default_port=DEFAULT_PORT)


def _listener(text: str) -> str:
    """`http://:8083` is every interface in Kafka."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ConfigError.invalid("listeners", text, "write http://HOST:PORT")
    return (
        f"{scheme.lower()}://0.0.0.0{rest}"
        if rest.startswith(":")
        else f"{scheme.lower()}://{rest}"
    )


def advertised_url(config: WorkerConfig, urls: list[str]) -> str:
    """Where other workers reach this one."""
    values = config.values
    wanted = (values["rest.advertised.listener"] or "").lower()
    url = next((each for each in urls if each.startswith(f"{wanted}:")), urls[0])
    scheme, _, address = url.partition("://")
    host, _, port = address.rpartition(":")
    if host in ("0.0.0.0", "[::]"):
        import socket

        host = socket.getfqdn()
    host = values["rest.advertised.host.name"] or host
    return f"{scheme}://{host}:{values['rest.advertised.port'] or port}"
