"""Takes the offer to go on as HTTP/2 out of the headers of a request.

Clients such as curl and Java's make it, and go on with HTTP/1.1 where it is not answered; uvicorn's
parser would take the request's body for the other protocol.

Invariant: what `passed` returns is what it was given, in order, without lines of offers; it holds
back no more than the last line, which may be the first part of one.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Offers"]

_LINE_END: Final = b"\r\n"
_OFFER: Final = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n)", re.IGNORECASE)


class Offers:
    """Of one connection."""

    def __init__(self) -> None:
        self._held = b""

    def passed(self, data: bytes) -> bytes:
        """What of the headers goes on to the parser. `data` may contain their end, and more."""
        data = self._held + data
        self._held = b""
        head, end, rest = data.partition(_LINE_END * 2)
        if end:
            if b"h2c" in head:
                # The last header's line ends with the first half of `end`.
                head = _OFFER.sub(b"", head + _LINE_END, count=1).removesuffix(_LINE_END)
            return head + end + rest
        if b"h2c" in data:
            data = _OFFER.sub(b"", data, count=1)
        last = data.rfind(_LINE_END)
        if last < 0:
            # The request's first line, which may end here.
            last = len(data) - data.endswith(b"\r")
        self._held = data[last:]
        return data[:last]
