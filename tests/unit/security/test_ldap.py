"""What LDAP's messages look like, and who is nobody else by another spelling."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from moldau.broker.security.authentication.ldap_users import LdapUsers
from moldau.config.errors import ConfigError
from moldau.security.machine.ldap import (
    LdapError,
    bind_name,
    bind_request,
    is_canonical,
    length_of,
    result_of,
    start_tls_request,
    unbind_request,
)

DN = "uid={user},ou=people,dc=example,dc=com"


def test_requests_are_those_of_the_standard() -> None:
    assert bind_request(2, "cn=a", "pw").hex() == (
        "3012020102600d0201030404636e3d618002" + b"pw".hex()
    )
    assert start_tls_request(1).hex() == ("301d02010177188016" + b"1.3.6.1.4.1.1466.20037".hex())
    assert unbind_request(3).hex() == "30050201034200"
    long = bind_request(2, "cn=" + "x" * 300, "pw")
    assert length_of(long[:3]) is None
    assert length_of(long[:4]) == len(long) - 4


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ("alice", "uid=alice,ou=people,dc=example,dc=com"),
        ("a.b-c_1", "uid=a.b-c_1,ou=people,dc=example,dc=com"),
        ("alice,ou=admins", r"uid=alice\2cou\3dadmins,ou=people,dc=example,dc=com"),
        ("a+b\\c\0", r"uid=a\2bb\5cc\00,ou=people,dc=example,dc=com"),
        ("jürgen", "uid=jürgen,ou=people,dc=example,dc=com"),
    ],
)
def test_a_user_names_no_other_branch(user: str, name: str) -> None:
    assert bind_name(DN, user) == name


def test_a_name_that_is_no_dn_is_used_as_it_is() -> None:
    assert bind_name("{user}@example.com", "o'neil") == "o'neil@example.com"


@pytest.mark.parametrize(
    ("user", "canonical"),
    [
        ("alice", True),
        ("jürgen", True),
        ("a b", True),
        ("Alice", False),
        (" alice", False),
        ("alice ", False),
        ("a  b", False),
        ("\uff41lice", False),  # A wide letter, which a directory takes for the usual one.
        ("", False),
    ],
)
def test_one_user_has_one_spelling(user: str, canonical: bool) -> None:
    assert is_canonical(user) is canonical


def result(code: int, *, message_id: int = 2, tag: int = 0x61, text: bytes = b"") -> bytes:
    inner = bytes([0x0A, 1, code, 4, 0, 4, len(text)]) + text
    return bytes([2, 1, message_id, tag, len(inner)]) + inner


@pytest.mark.parametrize("code", [32, 34, 48, 49])
def test_a_wrong_name_or_password_is_a_no(code: int) -> None:
    assert result_of(result(0), 2) is True
    assert result_of(result(code), 2) is False


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (result(51, text=b"too busy"), "result 51: too busy"),
        (result(0, message_id=1), "another request"),
        (result(0, tag=0x65), "does not answer"),
        (result(0)[:-3], "cut off"),
        (b"", "cut off"),
    ],
)
def test_other_answers_are_no_verdict(body: bytes, words: str) -> None:
    with pytest.raises(LdapError, match=words):
        result_of(body, 2)


@pytest.mark.parametrize("header", [b"HTTP", b"\x30\x85", b"\x30\x80", b"\x30\x84\x7f\xff\xff\xff"])
def test_what_is_no_message_is_refused(header: bytes) -> None:
    with pytest.raises(LdapError):
        length_of(header)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, "ldap.url"),
        ({"ldap.url": "http://directory"}, "ldap.url"),
        ({"ldap.url": "ldaps://"}, "ldap.url"),
        ({"ldap.url": "ldaps://directory"}, "ldap.user.dn"),
        ({"ldap.url": "ldaps://directory", "ldap.user.dn": "uid=alice"}, "ldap.user.dn"),
        ({"ldap.url": "ldap://directory", "ldap.user.dn": DN, "ldap.start.tls": "no"}, "start.tls"),
        ({"ldap.url": "ldap://d", "ldap.user.dn": DN, "ldap.timeout.ms": "0"}, "timeout.ms"),
        ({"ldap.url": "ldap://d", "ldap.user.dn": DN, "ldap.ca.location": "/none"}, "ca.location"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        LdapUsers().configure(settings)


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server for one connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(30)


def users(port: int, **more: str) -> LdapUsers:
    made = LdapUsers()
    made.configure({"ldap.url": f"ldap://127.0.0.1:{port}", "ldap.user.dn": DN, **more})
    return made


def test_an_answer_in_the_clear_before_tls_is_not_taken_for_that_of_the_bind() -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1000)
        success = result(0, message_id=1, tag=0x78)
        forged = result(0)
        for each in (success, forged):
            connection.sendall(bytes([0x30, len(each)]) + each)
        connection.settimeout(5)
        while connection.recv(1000):
            pass

    with answering(answer) as port, pytest.raises(LdapError):
        asyncio.run(users(port).authenticate("alice", "wrong"))


def test_a_directory_that_is_silent_or_away_is_no_verdict(caplog: pytest.LogCaptureFixture) -> None:
    with answering(lambda connection: connection.recv(1000) and None) as port:
        checked = users(port, **{"ldap.start.tls": "false", "ldap.timeout.ms": "500"})
        with pytest.raises(LdapError, match="closed"):
            asyncio.run(checked.authenticate("alice", "the-secret"))
    with pytest.raises(LdapError):
        asyncio.run(checked.authenticate("alice", "the-secret"))
    assert len(caplog.records) == 2
    assert "the-secret" not in caplog.text


def test_nobody_logs_in_without_a_password() -> None:
    # No directory is asked: an anonymous bind would succeed.
    assert asyncio.run(users(1).authenticate("alice", "")) is False
    assert asyncio.run(users(1).authenticate("Alice", "alice-secret")) is False
