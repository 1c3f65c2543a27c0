"""Processes that belong to another `moldau` command and end with it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import MutableMapping
from typing import Final

from moldau.cli.support.failures import Failure

__all__ = ["PARENT_VARIABLE", "end_with_parent"]

#: The process of the `moldau cluster`, `moldau up` or `moldau start --spark` that this one is
#: a part of.
PARENT_VARIABLE: Final = "MOLDAU_PARENT"
_SET_PARENT_DEATH_SIGNAL: Final = 1


def end_with_parent(environment: MutableMapping[str, str]) -> bool:
    """Stop when the process that is named in the environment ends, also if it is killed (on Linux).

    Returns whether one is named. The variable is removed: it does not apply to this process's own
    children.
    """
    parent = environment.pop(PARENT_VARIABLE, None)
    if parent is None:
        return False
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if str(os.getppid()) != parent:
            raise Failure("the command that this process belongs to has ended")
    return True
