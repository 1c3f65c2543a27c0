"""How a call to another node ends: with a response, or with one of these errors."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class ChannelError(ConnectionError):
    """A call without a response; the message names the peer, the API and the reason."""


class CallTimedOut(ChannelError):
    """No response within the call's own time."""


class NotConnected(ChannelError):
    """A connection could not be made: to which peer, and for what reason."""

    def __init__(self, message: str, peer: str, reason: str) -> None:
        super().__init__(message)
        self.peer = peer
        self.reason = reason


class ConnectionRefused(NotConnected):
    """The peer's machine answered that nothing listens at the address; nothing was sent."""


class NotKafka(NotConnected):
    """Something answered at the address, and it does not speak Kafka's protocol."""


class AuthenticationFailed(NotConnected):
    """The peer's certificate, the own one or a login was rejected: trying again does not help."""

    def __init__(self, message: str, peer: str, reason: str, *, tls: bool) -> None:
        super().__init__(message, peer, reason)
        self.tls = tls


class UnsupportedVersion(ChannelError):
    """The peer does not serve the API, or in no version that is known here."""


class RawResponse(NamedTuple):
    """A response as it was received. `body` belongs to the caller: nothing else writes to it."""

    version: int
    body: memoryview


class Reach(Enum):
    """What an attempt to connect to an address showed."""

    ACCEPTED = "accepted"
    #: The machine answers and nothing listens there.
    REFUSED = "refused"
    #: No answer in time, no route to the machine, an unknown name: the process may be alive.
    UNKNOWN = "unknown"
