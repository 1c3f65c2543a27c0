"""Which share group a queue or a subscription is."""

from __future__ import annotations

__all__ = ["durable_group", "ends_with_its_consumers", "queue_group", "shared_group"]


def queue_group(queue: str) -> str:
    return f"queue:{queue}"


def durable_group(client_id: str, name: str) -> str:
    return f"durable:{client_id}:{name}"


def ends_with_its_consumers(group: str) -> bool:
    """Whether it is a shared subscription that is not durable."""
    return group.startswith("shared:")


def shared_group(client_id: str | None, name: str, topic: str, *, durable: bool) -> str:
    kind = "shared-durable" if durable else "shared"
    owner = client_id or ""
    return f"{kind}:{owner}:{name}" if durable else f"{kind}:{owner}:{name}:{topic}"
