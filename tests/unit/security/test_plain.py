"""SASL/PLAIN messages."""

from __future__ import annotations

import pytest

from moldau.security.machine.outcomes import AuthenticationFailed
from moldau.security.machine.plain import encode_plain, parse_plain


def test_a_message_is_read_back() -> None:
    assert parse_plain(encode_plain("älice", "pw=,")) == ("älice", "pw=,", "")
    assert "pw" not in repr(parse_plain(encode_plain("alice", "pw")))


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        (b"", "expected 3 tokens, got 1"),
        (b"alice\0pw", "expected 3 tokens, got 2"),
        (b"\0alice\0pw\0", "expected 3 tokens, got 4"),
        (b"\0" * 100_000, "expected 3 tokens, got 4"),
    ],
)
def test_other_bytes_are_refused(token: bytes, problem: str) -> None:
    with pytest.raises(AuthenticationFailed, match=problem):
        parse_plain(token)


@pytest.mark.parametrize(
    ("token", "problem"), [(b"\0\0pw", "username not spec"), (b"\0alice\0", "password not spec")]
)
def test_empty_parts_are_refused(token: bytes, problem: str) -> None:
    with pytest.raises(AuthenticationFailed, match=problem):
        parse_plain(token)


def test_nobody_acts_for_somebody_else() -> None:
    parse_plain(b"alice\0alice\0pw").check_authorization_id()
    with pytest.raises(AuthenticationFailed, match="different from username"):
        parse_plain(b"admin\0alice\0pw").check_authorization_id()
