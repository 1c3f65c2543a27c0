"""The `listeners` key."""

from __future__ import annotations

import pytest

from moldau.config.errors import ConfigError
from moldau.http.machine.listeners import Listener, parse_listeners


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ((), [Listener("http", False, "127.0.0.1", 8081)]),
        (("http://0.0.0.0:9",), [Listener("http", False, "0.0.0.0", 9)]),
        (("http://:9",), [Listener("http", False, "127.0.0.1", 9)]),
        (("https://[::1]:9/",), [Listener("https", True, "::1", 9)]),
        (("INSIDE://h:1",), [Listener("inside", True, "h", 1)]),
        (
            ("http://h:1", "https://h:2"),
            [Listener("http", False, "h", 1), Listener("https", True, "h", 2)],
        ),
    ],
)
def test_listeners(texts: tuple[str, ...], found: list[Listener]) -> None:
    listeners = parse_listeners(texts, default_port=8081, protocols=("INSIDE:https",))
    assert list(listeners) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("8081", "use http://host:port"),
        ("http://host", "use http://host:port"),
        ("ftp://host:1", "ftp is neither http nor https"),
        ("http://h:1,https://h:1", "two listeners have the same port"),
    ],
)
def test_what_is_refused_says_why(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_listeners(text.split(","), default_port=1)
