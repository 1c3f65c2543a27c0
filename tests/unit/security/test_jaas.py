"""JAAS lines as users of Kafka write them."""

from __future__ import annotations

import pytest

from moldau.config import ConfigError
from moldau.security.machine.jaas import find_entry, jaas_line, parse_jaas

KEY = "sasl.jaas.config"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (f'{PLAIN} required username="alice" password="a b;c";',
         {"username": "alice", "password": "a b;c"}),
        (f"{PLAIN} required username=alice password='x\"y' ;",
         {"username": "alice", "password": 'x"y'}),
        (f'{PLAIN} REQUIRED\n  username="a\\"b"\n  password="c\\\\d";',
         {"username": 'a"b', "password": "c\\d"}),
        (f'{PLAIN} required user_admin="admin-secret" user_alice="p=w"; // the end',
         {"user_admin": "admin-secret", "user_alice": "p=w"}),
        (f"{PLAIN} required;", {}),
    ],
)  # fmt: skip
def test_options(line: str, options: dict[str, str]) -> None:
    (entry,) = parse_jaas(KEY, line)
    assert entry.module == PLAIN
    assert entry.short_module == "PlainLoginModule"
    assert entry.options == options
    assert "secret" not in repr(entry)


def test_a_kerberos_line() -> None:
    line = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        'keyTab="/etc/kafka.keytab" principal="kafka/host@REALM";'
    )
    entry = find_entry(KEY, line, "GSSAPI")
    assert entry.options["keyTab"] == "/etc/kafka.keytab"
    assert entry.options["useKeyTab"] == "true"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "it is empty"),
        (PLAIN, "control flag is missing"),
        (f"{PLAIN} perhaps;", "control flag must be one of"),
        (f'{PLAIN} required password="hunter2"', "semicolon at the end is missing"),
        (f"{PLAIN} required password;", "option password has no value"),
        (f'{PLAIN} required password="hunter2;', "quotation mark is not closed"),
        (f"{PLAIN} required =x;", "name of an option is missing"),
    ],
)
def test_a_wrong_line_is_explained_without_its_secrets(line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        parse_jaas(KEY, line)
    assert "hunter2" not in str(caught.value)
    assert KEY in str(caught.value)


def test_the_module_must_fit_the_mechanism() -> None:
    with pytest.raises(ConfigError, match=r"which SCRAM-SHA-256 does not use.*ScramLoginModule"):
        find_entry(KEY, f"{PLAIN} required username=a password=b;", "SCRAM-SHA-256")
    assert find_entry(KEY, "my.own.Module required;", "PLAIN").module == "my.own.Module"


@pytest.mark.parametrize("password", ["plain", 'a "quoted" one', "back\\slash\\n", "two\nlines\t"])
def test_a_written_line_is_read_back(password: str) -> None:
    line = jaas_line("PLAIN", {"username": "alice", "password": password})
    (entry,) = parse_jaas("sasl.jaas.config", line)
    assert entry.short_module == "PlainLoginModule"
    assert entry.options == {"username": "alice", "password": password}
