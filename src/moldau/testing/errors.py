"""What can go wrong with a broker under test."""

from __future__ import annotations

__all__ = ["BrokerError", "BrokerNotRunning", "BrokerStartError", "WaitTimeout"]


class BrokerError(Exception):
    """A broker under test did not do what it was asked to; the message has the reason."""


class BrokerStartError(BrokerError):
    """A node did not come up; the message holds the end of its log."""


class BrokerNotRunning(BrokerError):
    """Something was asked of a node that is stopped, killed or was never started."""


class WaitTimeout(BrokerError, AssertionError):
    """What was waited for has not come true in time."""
