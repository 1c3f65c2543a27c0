"""A principal builder for nodes under test."""

from __future__ import annotations

from moldau.broker.security.principal_builders import AuthenticationContext

#: Connections from here are those of User:restricted.
RESTRICTED_ADDRESS = "127.0.0.2"


class ByAddress:
    """Without a login clients can differ only by where they are."""

    def build(self, context: AuthenticationContext) -> str:
        return "User:restricted" if context.client_host == RESTRICTED_ADDRESS else "User:node"
