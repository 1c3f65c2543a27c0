"""The client and its request: what handlers may use about a connection and one request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from moldau.broker.metrics.phases import Phases
from moldau.broker.network.machine.traffic import Traffic

if TYPE_CHECKING:
    from moldau.wire.apis import ApiKey

ANONYMOUS = "User:ANONYMOUS"

#: By topic; empty for what the audit log leaves out.
AuditTexts: TypeAlias = dict[str | bytes, str]


class Grants:
    """The topics, by name or id, that a connection was allowed to read and write.

    The authorization adds them, and clears them when something that decides may have changed. Where
    the audit log gets what is allowed, its texts are kept here too: those of one client id, as
    nearly every connection has only one.
    """

    __slots__ = ("client_id", "read_texts", "reads", "write_texts", "writes")

    def __init__(self) -> None:
        self.reads: set[str | bytes] = set()
        self.writes: set[str | bytes] = set()
        self.read_texts: AuditTexts = {}
        self.write_texts: AuditTexts = {}
        self.client_id: str | None = None

    def clear(self) -> None:
        self.reads.clear()
        self.writes.clear()
        self.read_texts.clear()
        self.write_texts.clear()


class ConnectionInfo:
    """What is known about one client connection; the same object for all its requests.

    `principal` and `ssl_peer_name`, the distinguished name of the client's certificate, are set by
    the listener's security, the software fields by ApiVersions.
    `grants` is what the authorization need not be asked again.
    `login_bytes_max` is the largest request before the login, None on a listener without one. A
    handler sets `mute_ms` to have no further request handled for so long; the connection resets it.
    """

    __slots__ = (
        "_close_listeners",
        "client_host",
        "client_port",
        "client_software_name",
        "client_software_version",
        "connection_id",
        "grants",
        "is_follower",
        "listener_name",
        "login_bytes_max",
        "mute_ms",
        "on_logged_in",
        "phases",
        "principal",
        "security_protocol",
        "ssl_peer_name",
        "token_authenticated",
        "traffic",
    )

    def __init__(
        self,
        *,
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        principal: str = ANONYMOUS,
        client_host: str = "127.0.0.1",
        client_port: int = 0,
        connection_id: str = "",
        traffic: Traffic | None = None,
    ) -> None:
        self.traffic = traffic if traffic is not None else Traffic()
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.principal = principal
        self.client_host = client_host
        self.client_port = client_port
        self.connection_id = connection_id
        self.ssl_peer_name: str | None = None
        # Whether the client has logged in with a delegation token (KIP-48).
        self.token_authenticated = False
        self.login_bytes_max: int | None = None
        self.on_logged_in: Callable[[], None] | None = None
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.mute_ms = 0
        self.phases = Phases()
        self.grants = Grants()
        # For metrics: whether a follower fetches here.
        self.is_follower = False
        self._close_listeners: dict[Callable[[ConnectionInfo], None], None] | None = {}

    @property
    def origin(self) -> str:
        """For the log: where the client is, and on which listener."""
        return f"from {self.peer} on {self.listener_name}"

    def when_closed(self, listener: Callable[[ConnectionInfo], None]) -> None:
        """Have `listener` called once when the connection is closed, or now if it is already."""
        if self._close_listeners is None:
            listener(self)
        else:
            self._close_listeners[listener] = None

    def logged_in(self) -> None:
        """Called by the listener's security once the principal is known."""
        self.grants.clear()
        if self.on_logged_in is not None:
            self.on_logged_in()

    def closed(self) -> None:
        """Called by the connection's owner once it is closed."""
        listeners, self._close_listeners = self._close_listeners, None
        for listener in listeners or ():
            listener(self)

    @property
    def peer(self) -> str:
        """The client's address, for log messages."""
        if ":" in self.client_host:
            return f"[{self.client_host}]:{self.client_port}"
        return f"{self.client_host}:{self.client_port}"


class RequestContext:
    """One request's header and where it came from."""

    __slots__ = (
        "api_key",
        "api_version",
        "client_host",
        "client_id",
        "connection",
        "connection_id",
        "correlation_id",
        "listener_name",
        "principal",
        "security_protocol",
    )

    def __init__(
        self,
        api_key: ApiKey,
        api_version: int,
        correlation_id: int = 0,
        client_id: str | None = None,
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        principal: str = ANONYMOUS,
        client_host: str = "127.0.0.1",
        connection_id: str = "",
        connection: ConnectionInfo | None = None,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.principal = principal
        self.client_host = client_host
        self.connection_id = connection_id
        self.connection = connection or ConnectionInfo(
            listener_name=listener_name,
            security_protocol=security_protocol,
            principal=principal,
            client_host=client_host,
            connection_id=connection_id,
        )
