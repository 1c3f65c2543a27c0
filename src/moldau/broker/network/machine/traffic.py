"""What a listener's connections have carried so far, for metrics."""

from __future__ import annotations


class Traffic:
    """Counts of one listener; its connections add to them."""

    __slots__ = (
        "accepted",
        "closed",
        "expired",
        "failed_logins",
        "logins",
        "received",
        "sent",
    )

    def __init__(self) -> None:
        self.accepted = 0
        self.closed = 0
        #: Closed because a session had ended and the client did not log in again.
        self.expired = 0
        #: Bytes, without those of TLS.
        self.received = 0
        self.sent = 0
        self.logins = 0
        self.failed_logins = 0
