"""Headers of all answers: rules are read, refused with Kafka's messages, and applied in order."""

from __future__ import annotations

import pytest

from moldau.config import ConfigError
from moldau.http.config import HttpConfig
from moldau.http.keys import HTTP_KEYS
from moldau.http.machine.response_headers import parse_header_rules, with_header_rules


def test_rules_change_the_headers_in_their_order() -> None:
    rules = parse_header_rules(
        'add Cache-Control: no-cache, "set X-Frame-Options: DENY, or so",'
        "SETDATE Expires: 1000, adddate Date:-1000, set X-Time: 10:30, set content-type:a"
    )
    given = [(b"content-type", b"text/plain"), (b"cache-control", b"private")]
    assert with_header_rules(rules, given, 0.0) == [
        (b"cache-control", b"private"),
        (b"cache-control", b"no-cache"),
        (b"x-frame-options", b"DENY, or so"),
        (b"expires", b"Thu, 01 Jan 1970 00:00:01 GMT"),
        (b"date", b"Wed, 31 Dec 1969 23:59:59 GMT"),
        (b"x-time", b"10:30"),
        (b"content-type", b"a"),
    ]
    assert parse_header_rules("  ") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("set", "Invalid format of header config 'set'."),
        ("put X: 1", "Invalid header config action: 'put'. Expected one of [set, add,"),
        ("set X", "Invalid format of header name and header value pair 'X'."),
        ("set X Y: 1", "Invalid header name 'X Y'."),
        ("set X: 1,", "Invalid format of header config ''."),
        ("set X: a\x00", "Invalid header config"),
        ("setDate X: soon", "no milliseconds"),
    ],
)
def test_wrong_rules_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_header_rules(text)
    assert message in str(raised.value)
    with pytest.raises(ConfigError, match=r"response\.http\.headers\.config"):
        HttpConfig.of(
            HTTP_KEYS.parse({"listeners": "http://:1", "response.http.headers.config": text}),
            default_port=1,
        )
