"""RetainedMessages: the last retained message of every topic, found by filter."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.services.mqtt.machine.records import Message

__all__ = ["RetainedMessages"]


class _Node:
    __slots__ = ("children", "message")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.message: Message | None = None


class RetainedMessages:
    """A tree by levels: a filter visits only the branches that it can match."""

    def __init__(self) -> None:
        self._root = _Node()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, topic: str) -> Message | None:
        node: _Node | None = self._root
        for level in topic.split("/"):
            node = None if node is None else node.children.get(level)
        return None if node is None else node.message

    def put(self, message: Message) -> None:
        node = self._root
        for level in message.topic.split("/"):
            node = node.children.setdefault(level, _Node())
        self._count += node.message is None
        node.message = message

    def remove(self, topic: str) -> None:
        path = [self._root]
        levels = topic.split("/")
        for level in levels:
            found = path[-1].children.get(level)
            if found is None:
                return
            path.append(found)
        if path[-1].message is None:
            return
        path[-1].message = None
        self._count -= 1
        for number in range(len(levels), 0, -1):
            if path[number].message is not None or path[number].children:
                break
            del path[number - 1].children[levels[number - 1]]

    def match(self, filter_text: str) -> Iterator[Message]:
        """In no particular order. The tree must not change meanwhile."""
        levels = filter_text.split("/")
        nodes = [self._root]
        for number, level in enumerate(levels):
            if level == "#":
                for node in nodes:
                    yield from _all_below(node, hide=number == 0)
                return
            following = []
            for node in nodes:
                if level != "+":
                    if (found := node.children.get(level)) is not None:
                        following.append(found)
                    continue
                following += [
                    child
                    for name, child in node.children.items()
                    if number or not name.startswith("$")
                ]
            nodes = following
        yield from (node.message for node in nodes if node.message is not None)

    def expired(self, now_ms: int) -> list[str]:
        return [
            each.topic
            for each in _all_below(self._root, hide=False)
            if each.expires_ms and each.expires_ms <= now_ms
        ]


def _all_below(node: _Node, *, hide: bool) -> Iterator[Message]:
    """Messages of a node and all below it; `hide` leaves out topics with `$`."""
    waiting = [node]
    first = hide
    while waiting:
        each = waiting.pop()
        if each.message is not None:
            yield each.message
        waiting += [
            child for name, child in each.children.items() if not (first and name.startswith("$"))
        ]
        first = False
