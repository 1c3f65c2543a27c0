"""Python workers of Spark that are used again and again.

After every use of a worker Spark's daemon collects garbage. With the modules of Spark, of Arrow and
of the client loaded that is a walk through 65,000 objects that live as long as the process: 30 ms
of a core, in each of the four processes that a micro-batch from topic to topic goes through. So
what is alive when a worker is used for the second time, just after a collection, is put out of the
collector's sight. Invariants: it is done once in a process, and in Spark's workers only;
what comes later is collected as ever.
"""

from __future__ import annotations

import gc
import os

__all__ = ["used"]

_use_count = 0


def used() -> None:
    """To be called at the beginning of each use of a worker."""
    global _use_count
    _use_count += 1
    # The daemon reads this variable to decide whether workers are used again.
    if _use_count == 2 and os.environ.get("SPARK_REUSE_WORKER"):
        gc.freeze()
