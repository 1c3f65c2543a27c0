"""The format of a node's log: one event, one line.

Names in requests are written by clients, and may hold line ends that would begin a line of their
own, or sequences that a terminal obeys. Control characters are therefore escaped, except in
tracebacks.
"""

from __future__ import annotations

import logging
from typing import Final

_CONTROLS: Final = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_ESCAPES: Final = {code: repr(chr(code))[1:-1] for code in _CONTROLS}


class LineFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("[%(asctime)s] %(levelname)s %(message)s (%(name)s)")

    def formatMessage(self, record: logging.LogRecord) -> str:
        return super().formatMessage(record).translate(_ESCAPES)


def configure_logging(level: int | str = logging.INFO) -> None:
    """Log to the standard error stream, unless the program already logs elsewhere."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level, handlers=[handler])
