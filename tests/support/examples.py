"""How many examples a property tries that asks for a number of its own.

CI tries the same examples each time, so many of them show no more than some. All of them, new ones
each time, are tried by `make properties`, which is a part of `make test-long`, and on a developer's
machine; HYPOTHESIS_PROFILE=thorough tries ten times as many.
"""

from __future__ import annotations

import os
from typing import Final

IN_CI: Final = bool(os.environ.get("CI"))
PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "moldau")
IN_CI_MIN: Final = 40


def examples(count: int) -> int:
    if PROFILE == "thorough":
        return 10 * count
    return min(count, max(IN_CI_MIN, count // 4)) if IN_CI else count
