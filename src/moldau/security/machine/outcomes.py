"""How a SASL exchange fails.

Invariant: `AuthenticationFailed` has a text that the other side may see; the text of `SaslError` is
for this side's log only, since it may reveal whether a user exists.
"""

from __future__ import annotations

__all__ = ["AuthenticationFailed", "SaslError"]


class SaslError(Exception):
    """A message that does not fit, or credentials that are wrong: a detail for the own log."""


class AuthenticationFailed(Exception):
    """The exchange has failed for a reason that the other side is sent."""
