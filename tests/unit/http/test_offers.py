"""Offers to go on as HTTP/2 are taken out of requests, however these arrive."""

from __future__ import annotations

import pytest

from moldau.http.machine.offers import Offers

BODY = b'{"upgrade": "\r\nUpgrade: h2c\r\n\r\n"}'
BEFORE = b"POST /inserts-stream HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
AFTER = b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 33\r\n\r\n" + BODY


def passed(*pieces: bytes) -> bytes:
    offers = Offers()
    return b"".join(offers.passed(piece) for piece in pieces)


@pytest.mark.parametrize("line", [b"Upgrade: h2c\r\n", b"upgrade:h2c \r\n", b"UPGRADE:\th2c\r\n"])
def test_an_offer_is_taken_out_wherever_it_is_cut(line: bytes) -> None:
    whole = BEFORE + line + AFTER
    end = whole.index(b"\r\n\r\n") + 4
    for first in range(end):
        for second in range(first, end, 7):
            pieces = whole[:first], whole[first:second], whole[second:]
            assert passed(*pieces) == BEFORE + AFTER
    headers = passed(*(whole[at : at + 1] for at in range(end)))
    assert headers + BODY == BEFORE + AFTER


@pytest.mark.parametrize(
    "line", [b"", b"Upgrade: websocket\r\n", b"Upgrade: h2c-14\r\n", b"X-Upgrade: h2c\r\n"]
)
def test_everything_else_passes(line: bytes) -> None:
    whole = BEFORE + line + AFTER
    for cut in range(whole.index(b"\r\n\r\n") + 4):
        assert passed(whole[:cut], whole[cut:]) == whole


def test_what_has_no_lines_is_not_held() -> None:
    assert passed(b"\x16\x03\x01") == b"\x16\x03\x01"
    assert passed(b"GET / HT", b"TP/1.1") == b"GET / HTTP/1.1"
