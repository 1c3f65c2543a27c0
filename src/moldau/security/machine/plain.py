"""SASL/PLAIN (RFC 4616): one message with the user and the password, as Kafka reads it."""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.security.machine.outcomes import AuthenticationFailed

__all__ = ["INVALID", "PlainMessage", "encode_plain", "parse_plain"]

#: For a wrong password and an unknown user alike.
INVALID: Final = "Authentication failed: Invalid username or password"


class PlainMessage(NamedTuple):
    username: str
    password: str
    authorization_id: str

    def __repr__(self) -> str:
        return f"PlainMessage(username={self.username!r})"

    def check_authorization_id(self) -> None:
        """Nobody acts for somebody else. To be called once the password is known to be right."""
        if self.authorization_id and self.authorization_id != self.username:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )


def parse_plain(token: bytes) -> PlainMessage:
    """Raises AuthenticationFailed for what is no such message, and for empty parts."""
    parts = token.decode(errors="replace").split("\0", 3)
    if len(parts) != 3:
        raise AuthenticationFailed(
            f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
        )
    authorization_id, username, password = parts
    if not username:
        raise AuthenticationFailed("Authentication failed: username not specified")
    if not password:
        raise AuthenticationFailed("Authentication failed: password not specified")
    return PlainMessage(username, password, authorization_id)


def encode_plain(username: str, password: str) -> bytes:
    return f"\0{username}\0{password}".encode()
