"""Contains a fault: a bug in one step is logged and does not keep the next ones from running.

Kafka's broker does the same with what it applies from the metadata log (LoggingFaultHandler): to
stop the process would stop it on every node that applies the same record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")

logger = logging.getLogger(__name__)


def contained(what: str, step: Callable[P, object], *args: P.args, **options: P.kwargs) -> bool:
    """Whether the step ended without an exception; if not, `what` is in the log with it."""
    try:
        step(*args, **options)
    except Exception:
        logger.exception("%s failed", what)
        return False
    return True
