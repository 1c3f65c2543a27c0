"""Topic names and filters of MQTT: what is valid, what matches, and an index of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from moldau.services.mqtt.machine.reasons import MqttError, Reason, protocol_error

__all__ = [
    "FilterIndex",
    "SharedFilter",
    "check_filter",
    "check_topic_name",
    "is_topic_name",
    "matches",
    "parse_shared",
]

_BYTES_MAX: Final = 65_535
LEVELS_MAX: Final = 128
SHARE: Final = "$share/"

T = TypeVar("T")


def is_topic_name(text: str) -> bool:
    return (
        text != ""
        and "+" not in text
        and "#" not in text
        and "\0" not in text
        and (len(text) < 16_384 or len(text.encode()) <= _BYTES_MAX)
        and text.count("/") < LEVELS_MAX
    )


def check_topic_name(text: str) -> None:
    """Raises MqttError."""
    if not is_topic_name(text):
        raise MqttError(
            Reason.TOPIC_NAME_INVALID,
            f"{text[:100]!r} is not a topic name: it is empty, has a wildcard or has more than "
            f"{LEVELS_MAX} levels",
        )


def check_filter(text: str) -> None:
    """Raises MqttError."""
    levels = text.split("/")
    if not text or len(levels) > LEVELS_MAX:
        raise _invalid(text, f"a filter has 1 to {LEVELS_MAX} levels")
    for number, level in enumerate(levels):
        if level == "#" and number == len(levels) - 1:
            continue
        if "#" in level:
            raise _invalid(text, "# must be the whole last level")
        if "+" in level and level != "+":
            raise _invalid(text, "+ must be a whole level")


def _invalid(text: str, why: str) -> MqttError:
    return MqttError(Reason.TOPIC_FILTER_INVALID, f"{text[:100]!r} is not a topic filter: {why}")


@dataclass(frozen=True, slots=True)
class SharedFilter:
    """`$share/NAME/FILTER`."""

    name: str
    filter: str


def parse_shared(text: str) -> SharedFilter | None:
    """None for a filter that is not shared. Raises MqttError for a wrong one."""
    if not text.startswith(SHARE):
        return None
    name, separator, rest = text.removeprefix(SHARE).partition("/")
    if not name or not separator or not rest or "+" in name or "#" in name:
        raise protocol_error(f"{text[:100]!r} is not a shared subscription: use $share/NAME/FILTER")
    return SharedFilter(name, rest)


def matches(filter_text: str, topic: str) -> bool:
    """Whether a filter matches a topic name; wildcards do not match a first level with `$`."""
    levels, names = filter_text.split("/"), topic.split("/")
    if topic.startswith("$") and levels[0] in ("+", "#"):
        return False
    for number, level in enumerate(levels):
        if level == "#":
            return True
        if number >= len(names) or level not in ("+", names[number]):
            return False
    return len(levels) == len(names)


class _Node(Generic[T]):
    __slots__ = ("children", "values")

    def __init__(self) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.values: dict[object, T] = {}


class FilterIndex(Generic[T]):
    """Values by filter and owner; a topic finds all whose filter matches.

    A look-up takes time by the levels of the topic and the filters that match, not by the number
    of filters.
    """

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._size = 0
        self._found: dict[str, list[T]] = {}

    def __len__(self) -> int:
        return self._size

    def put(self, filter_text: str, owner: object, value: T) -> None:
        """Replaces the owner's value of the same filter."""
        node = self._root
        for level in filter_text.split("/"):
            node = node.children.setdefault(level, _Node())
        self._size += owner not in node.values
        node.values[owner] = value
        self._found.clear()

    def remove(self, filter_text: str, owner: object) -> T | None:
        path = [self._root]
        levels = filter_text.split("/")
        for level in levels:
            found = path[-1].children.get(level)
            if found is None:
                return None
            path.append(found)
        value = path[-1].values.pop(owner, None)
        if value is None:
            return None
        self._size -= 1
        self._found.clear()
        for number in range(len(levels), 0, -1):
            node = path[number]
            if node.values or node.children:
                break
            del path[number - 1].children[levels[number - 1]]
        return value

    def match(self, topic: str) -> list[T]:
        """Remembered until an entry changes, for a bounded number of topics."""
        found = self._found.get(topic)
        if found is None:
            if len(self._found) >= _REMEMBERED_MAX:
                self._found.clear()
            found = self._found[topic] = list(self._walk(topic))
        return found

    def _walk(self, topic: str) -> Iterator[T]:
        names = topic.split("/")
        hidden = topic.startswith("$")
        nodes = [self._root]
        for number, name in enumerate(names):
            wild = not (hidden and number == 0)
            following = []
            for node in nodes:
                if wild and (rest := node.children.get("#")) is not None:
                    yield from rest.values.values()
                if (exact := node.children.get(name)) is not None:
                    following.append(exact)
                if wild and (any_one := node.children.get("+")) is not None:
                    following.append(any_one)
            nodes = following
        for node in nodes:
            yield from node.values.values()
            # `a/#` matches `a` too.
            if (rest := node.children.get("#")) is not None:
                yield from rest.values.values()


_REMEMBERED_MAX: Final = 10_000
