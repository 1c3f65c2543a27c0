"""The table of APIs: which versions each has, which nodes serve it, and its messages.

Versions are those of Kafka 4.3. A version that Kafka calls unstable is readable and writable but
not to be advertised: `max_version` leaves it out.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from moldau.wire import messages
from moldau.wire.message import Message
from moldau.wire.messages.tables import APIS, ApiKey

__all__ = ["API_BY_KEY", "Api", "ApiKey"]


class Api(NamedTuple):
    """One API. The message classes are loaded when they are first asked for."""

    key: ApiKey
    name: str
    min_version: int
    # The highest stable version: what may be advertised.
    max_version: int
    # No version is flexible if this is above them all.
    flexible_from: int
    # Of "broker" and "controller".
    listeners: tuple[str, ...]
    # The one version above max_version exists but is not stable.
    latest_unstable: bool
    # A broker passes the request on to the active controller.
    forwarded: bool
    # Needs the ClusterAction permission: brokers and controllers among themselves.
    cluster_action: bool

    @property
    def request(self) -> type[Message]:
        return cast(type[Message], getattr(messages, self.name + "Request"))

    @property
    def response(self) -> type[Message]:
        return cast(type[Message], getattr(messages, self.name + "Response"))

    @property
    def max_version_unstable(self) -> int:
        """The highest version there is, stable or not."""
        return self.max_version + self.latest_unstable

    def response_header_version(self, version: int) -> int:
        # A client that asked for an unknown version must be able to read the answer, so the
        # header of ApiVersions responses never became flexible (KIP-511).
        if self.key is ApiKey.API_VERSIONS:
            return 0
        return 1 if version >= self.flexible_from else 0


def _table() -> dict[int, Api]:
    table = {}
    for number, name, low, high, flexible, listeners, unstable, forwarded, cluster in APIS:
        key = ApiKey(number)
        stable = high - 1 if unstable else high
        table[number] = Api(
            key, name, low, stable, flexible, listeners, unstable, forwarded, cluster
        )
    return table


API_BY_KEY: dict[int, Api] = _table()
