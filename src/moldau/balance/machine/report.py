"""A plan in words, numbers and bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.balance.machine.model import Loads, Plan, Resource

__all__ = ["as_document", "bars", "bytes_text", "duration_text", "load_rows", "summary"]

_BAR_WIDTH = 30
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_COUNTS = (Resource.REPLICAS, Resource.LEADERS)
_RATES = (Resource.NETWORK_IN, Resource.NETWORK_OUT)


def bytes_text(amount: float) -> str:
    for unit in _UNITS:
        if amount < 1000 or unit == _UNITS[-1]:
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if amount >= 100 or unit == "B" else f"{amount:.1f} {unit}"


def duration_text(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _text(resource: Resource, amount: float) -> str:
    if resource in _COUNTS:
        return f"{amount:.0f}"
    if resource is Resource.CPU:
        return f"{amount:.0%}"
    return bytes_text(max(0.0, amount)) + ("/s" if resource in _RATES else "")


def shown_resources(plan: Plan) -> list[Resource]:
    """Those of which anything is known."""
    loads = plan.before.values()
    return [each for each in Resource if each in _COUNTS or any(load[each] for load in loads)]


def load_rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    """By broker each resource before and after; the first row has the headers."""
    resources = shown_resources(plan)
    yield ("BROKER", *(each.label.upper() for each in resources))
    for broker in sorted(plan.before):
        cells = []
        for each in resources:
            before = _text(each, plan.before[broker][each])
            after = _text(each, plan.after[broker][each])
            cells.append(before if before == after else f"{before} > {after}")
        yield (str(broker), *cells)


def bars(plan: Plan) -> Iterator[str]:
    """Disk of each broker before and after, or replicas where all are empty."""
    resource = Resource.DISK
    if not any(load[resource] for load in plan.before.values()):
        resource = Resource.REPLICAS
    highest = max(load[resource] for side in (plan.before, plan.after) for load in side.values())
    if highest <= 0:
        return
    even = sum(load[resource] for load in plan.after.values()) / len(plan.after)
    width = max(len(str(broker)) for broker in plan.before)
    yield f"{resource.label} before and after, | is the mean"
    mark = round(even / highest * _BAR_WIDTH)
    for broker in sorted(plan.before):
        sides = (_bar(side[broker][resource] / highest, mark) for side in (plan.before, plan.after))
        yield f"{broker:>{width}}  {'  '.join(sides)}".rstrip()


def _bar(part: float, mark: int) -> str:
    filled = round(max(0.0, part) * _BAR_WIDTH)
    cells = ["█" if each < filled else "·" for each in range(_BAR_WIDTH)]
    cells.insert(mark, "|")
    return "".join(cells)


def summary(plan: Plan, throttle: int | None) -> Iterator[str]:
    if not plan.reassignments:
        yield "Nothing to move."
        return
    copies = sum(len(each.adding) for each in plan.reassignments)
    yield (
        f"{len(plan.reassignments)} partitions change, {copies} replicas are copied: "
        f"{bytes_text(plan.bytes_moved)}."
    )
    if throttle is not None and plan.bytes_moved:
        seconds = plan.seconds_at(throttle)
        yield f"At {bytes_text(throttle)}/s that takes at least {duration_text(seconds)}."


def as_document(plan: Plan, throttle: int | None) -> dict[str, Any]:
    """A file for `reassign-partitions`, with what the planner knows beside it."""
    partitions = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "replicas": list(each.after),
            "currentReplicas": list(each.before),
            "bytes": int(each.bytes_moved),
            "reason": each.reason,
        }
        for each in plan.reassignments
    ]
    return {
        "version": 1,
        "partitions": partitions,
        "bytesMoved": int(plan.bytes_moved),
        "secondsAtThrottle": plan.seconds_at(throttle) if throttle else None,
        "before": _loads_document(plan.before),
        "after": _loads_document(plan.after),
        "unmet": list(plan.unmet),
    }


def _loads_document(loads: Mapping[int, Loads]) -> dict[str, dict[str, float]]:
    return {
        str(broker): {each.label: round(load[each], 3) for each in Resource}
        for broker, load in sorted(loads.items())
    }
