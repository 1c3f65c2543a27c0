"""How many tasks a Spark server runs at the same time, and whether more instances fit.

An instance occupies a slot for as long as it runs. Spark lets a task without a slot wait for ever
and reports nothing, so slots are counted before an application starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["refusal", "reserved", "slots_of"]

_LOCAL: Final = re.compile(r"local(?:\[(?P<slots>\d+|\*)(?:,\d+)?\])?")
_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[(\d+),(\d+),\d+\]")


def slots_of(master: str, *, cores: int, cores_max: int | None = None) -> int | None:
    """`cores` are this machine's, `cores_max` is spark.cores.max; None if it cannot be known."""
    local = _LOCAL.fullmatch(master)
    if local is not None:
        named = local["slots"]
        return 1 if named is None else cores if named == "*" else int(named)
    workers = _LOCAL_CLUSTER.fullmatch(master)
    if workers is not None:
        return int(workers[1]) * int(workers[2])
    return cores_max


def reserved(total: int) -> int:
    """The slots that micro-batches always find free."""
    return 2 if total > 4 else 1


def refusal(
    name: str, wanted: int, *, total: int | None, taken: Mapping[str, int]
) -> tuple[str, str] | None:
    """Why `wanted` instances cannot start beside those of `taken`, and what to do; None if they
    fit, or if the slots are not known."""
    if total is None:
        return None
    others = {other: count for other, count in taken.items() if other != name}
    free = max(0, total - reserved(total) - sum(others.values()))
    if wanted <= free:
        return None
    used = ", ".join(f"{other} uses {count}" for other, count in sorted(others.items()))
    beside = f" ({used})" if used else ""
    needed = wanted + reserved(total) + sum(others.values())
    return (
        f"{name}: {wanted} {_instances(wanted)} {'needs' if wanted == 1 else 'need'} a slot each. "
        f"Spark has {total}, of which {free} {'is' if free == 1 else 'are'} free{beside} and "
        f"{reserved(total)} {'is' if reserved(total) == 1 else 'are'} kept for micro-batches",
        f"start fewer instances, or restart Spark with more slots: moldau spark start --master "
        f"'local[{needed},4]'",
    )


def _instances(count: int) -> str:
    return "instance" if count == 1 else "instances"
