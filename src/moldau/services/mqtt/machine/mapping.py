"""Which record an MQTT message is, and which MQTT topic a record is published under.

Rules are tried in their order, then the default: the first level of the MQTT topic is the Kafka
topic and the whole MQTT topic the key. MQTT topics whose first level is no name of a Kafka topic go
to the fallback topic. Kafka topics that begin with `__` are never mapped, in either direction.

A rule's MQTT topic is a pattern: `+` and `{name}` stand for one level, `#` and `{name#}` for all
that follow. What they stand for is `{1}`, `{2}`, ... and `{name}` in the rule's Kafka topic, key
and headers. In the other direction the same texts are read: a record has to match all of them, and
each capture must occur in one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import re2

from moldau.config.errors import ConfigError
from moldau.services.mqtt.machine.topics import is_topic_name

__all__ = ["Mapper", "Rule", "Target", "is_kafka_topic", "parse_rules"]

_KAFKA_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NAMED: Final = re.compile(r"\{([A-Za-z_]\w*)(#?)\}")
_PLACE: Final = re.compile(r"\{(\w+)\}")
_REMEMBERED_MAX: Final = 10_000
_DIRECTIONS: Final = ("both", "in", "out")
_RULE_KEY: Final = re.compile(r"rule\.([\w-]+)\.(mqtt|topic|key|direction|header\..+)")


def is_kafka_topic(name: str) -> bool:
    return _KAFKA_NAME.fullmatch(name) is not None and name not in (".", "..")


@dataclass(frozen=True, slots=True)
class Target:
    topic: str
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class _Template:
    """A text with captures in it, to be filled or to be read."""

    def __init__(self, rule: str, text: str, kinds: Mapping[str, bool]) -> None:
        """`kinds` has all captures, and whether each may stand for several levels."""
        self.text = text
        parts = _PLACE.split(text)
        self.names = parts[1::2]
        for name in self.names:
            if name not in kinds:
                raise _wrong(rule, f"{{{name}}} is not captured by its MQTT topic")
        if len(set(self.names)) < len(self.names):
            raise _wrong(rule, f"{text!r} has a capture twice")
        if any(not each for each in parts[2:-1:2]):
            raise _wrong(rule, f"{text!r} has two captures with nothing between them")
        self._parts = parts
        pattern = "".join(
            re2.escape(part) if number % 2 == 0 else (r"(.+)" if kinds[part] else r"([^/]+)")
            for number, part in enumerate(parts)
        )
        self._pattern: Any = re2.compile(f"(?s:{pattern})")

    def fill(self, captures: Mapping[str, str]) -> str:
        return "".join(
            part if number % 2 == 0 else captures[part] for number, part in enumerate(self._parts)
        )

    def read(self, text: str, captures: dict[str, str]) -> bool:
        """Add to the captures; False if the text is another one, or contradicts them."""
        found = self._pattern.fullmatch(text)
        if found is None:
            return False
        for name, value in zip(self.names, found.groups(), strict=True):
            if captures.setdefault(name, value) != value:
                return False
        return True

    def may_be(self, text: str) -> bool:
        return self._pattern.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `levels` of the MQTT topic: a text, or None for one level; `rest` captures the
    levels after them."""

    name: str
    levels: tuple[str | None, ...]
    captures: tuple[str, ...]
    rest: bool
    topic: _Template
    key: _Template | None
    headers: tuple[tuple[str, _Template], ...]
    inwards: bool
    outwards: bool

    def read_mqtt(self, topic: str) -> dict[str, str] | None:
        names = topic.split("/")
        count = len(self.levels)
        if len(names) < count or (len(names) > count) != self.rest:
            return None
        if topic.startswith("$") and (not count or self.levels[0] is None):
            return None
        found = []
        for level, name in zip(self.levels, names, strict=False):
            if level is None:
                found.append(name)
            elif level != name:
                return None
        if self.rest:
            found.append("/".join(names[count:]))
        return dict(zip(self.captures, found, strict=True))

    def write_mqtt(self, captures: Mapping[str, str]) -> str:
        values = iter(self.captures)
        parts = [captures[next(values)] if each is None else each for each in self.levels]
        if self.rest:
            parts.append(captures[next(values)])
        return "/".join(parts)

    def overlaps(self, filter_levels: Sequence[str]) -> bool:
        """Whether some topic could match both this rule and a filter."""
        for number, wanted in enumerate(filter_levels):
            if wanted == "#":
                return True
            if number >= len(self.levels):
                return self.rest
            level = self.levels[number]
            if level is not None and wanted not in ("+", level):
                return False
        return len(filter_levels) == len(self.levels) or (
            self.rest and len(filter_levels) > len(self.levels)
        )


def parse_rules(settings: Mapping[str, str], order: Iterable[str]) -> tuple[Rule, ...]:
    """From `rules=a,b` and `rule.a.mqtt`, `.topic`, `.key`, `.direction`, `.header.NAME`.

    Raises ConfigError.
    """
    parts: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        if key.startswith("rule."):
            found = _RULE_KEY.fullmatch(key)
            if found is None:
                raise ConfigError(
                    f"{key} is not part of a rule: use rule.NAME.mqtt, .topic, .key, .direction or "
                    ".header.HEADER",
                    key=key,
                )
            parts.setdefault(found[1], {})[found[2]] = value
    names = [name.strip() for name in order]
    for name in parts:
        if name not in names:
            raise ConfigError(f"rule.{name}.* is set, but rules does not list {name}", key="rules")
    return tuple(_rule(name, parts.get(name, {})) for name in names)


def _rule(name: str, parts: Mapping[str, str]) -> Rule:
    for needed in ("mqtt", "topic"):
        if not parts.get(needed):
            raise _wrong(name, f"rule.{name}.{needed} is missing")
    levels, captures, rest = _pattern_levels(name, parts["mqtt"])
    kinds: dict[str, bool] = {}
    for number, capture in enumerate(captures):
        several = rest and number == len(captures) - 1
        kinds[capture] = kinds[str(number + 1)] = several
    topic = _Template(name, _by_name(parts["topic"], captures), kinds)
    key = None if "key" not in parts else _Template(name, _by_name(parts["key"], captures), kinds)
    headers = tuple(
        (part.removeprefix("header."), _Template(name, _by_name(text, captures), kinds))
        for part, text in parts.items()
        if part.startswith("header.")
    )
    direction = parts.get("direction", "")
    if direction not in (*_DIRECTIONS, ""):
        raise _wrong(name, f"rule.{name}.direction is {direction!r}: use one of {_DIRECTIONS}")
    known = {*topic.names, *(key.names if key else ())}
    known.update(each for _, template in headers for each in template.names)
    lost = [each for each in captures if each not in known]
    if lost and direction in ("both", "out"):
        raise _wrong(
            name,
            f"{{{lost[0]}}} is in neither its topic nor its key nor a header, so a record does "
            "not determine its MQTT topic: add it, or set direction to in",
        )
    return Rule(
        name, levels, captures, rest, topic, key, headers,
        inwards=direction != "out", outwards=direction != "in" and not lost,
    )  # fmt: skip


def _pattern_levels(name: str, text: str) -> tuple[tuple[str | None, ...], tuple[str, ...], bool]:
    levels: list[str | None] = []
    captures: list[str] = []
    parts = text.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        named = _NAMED.fullmatch(part)
        if part == "#" or (named is not None and named[2]):
            if not last:
                raise _wrong(name, f"{part} must be the last level of {text!r}")
            captures.append(named[1] if named else str(len(captures) + 1))
            return tuple(levels), _distinct(name, captures), True
        if part == "+" or named is not None:
            captures.append(named[1] if named else str(len(captures) + 1))
            levels.append(None)
        elif any(each in part for each in "+#{}"):
            raise _wrong(name, f"{part!r} in {text!r}: wildcards and captures are whole levels")
        else:
            levels.append(part)
    return tuple(levels), _distinct(name, captures), False


def _distinct(name: str, captures: list[str]) -> tuple[str, ...]:
    if len(set(captures)) < len(captures):
        raise _wrong(name, "two captures have the same name")
    return tuple(captures)


def _by_name(text: str, captures: Sequence[str]) -> str:
    """`{2}` is the second capture, whatever its name."""

    def name_of(found: re.Match[str]) -> str:
        number = found[1]
        if number.isdigit() and 0 < int(number) <= len(captures):
            return f"{{{captures[int(number) - 1]}}}"
        return found[0]

    return _PLACE.sub(name_of, text)


def _wrong(name: str, why: str) -> ConfigError:
    return ConfigError(f"rule {name}: {why}", key=f"rule.{name}")


class Mapper:
    """See the module."""

    def __init__(
        self, rules: Sequence[Rule] = (), *, default: bool = True, fallback: str = ""
    ) -> None:
        """`fallback` is the Kafka topic for MQTT topics that name none; empty for no such topic."""
        self._rules = tuple(rules)
        self._default = default
        self._fallback = fallback
        self._targets: dict[str, Target | None] = {}
        #: The same by the bytes of a topic that was found to be valid.
        self._plain_targets: dict[bytes, Target] = {}

    def to_kafka(self, topic: str) -> Target | None:
        """Where a message goes; None if nowhere."""
        try:
            return self._targets[topic]
        except KeyError:
            if len(self._targets) >= _REMEMBERED_MAX:
                self._targets.clear()
            found = self._targets[topic] = self._target(topic)
            return found

    def plain_target(self, raw: bytes) -> Target | None:
        """As `to_kafka`, for a topic as a client has sent it; None also if it is none."""
        try:
            return self._plain_targets[raw]
        except KeyError:
            pass
        try:
            topic = raw.decode()
        except UnicodeDecodeError:
            return None
        found = self.to_kafka(topic) if is_topic_name(topic) else None
        if found is not None:
            if len(self._plain_targets) >= _REMEMBERED_MAX:
                self._plain_targets.clear()
            self._plain_targets[raw] = found
        return found

    def _target(self, topic: str) -> Target | None:
        for rule in self._rules:
            if rule.inwards and (captures := rule.read_mqtt(topic)) is not None:
                name = rule.topic.fill(captures)
                if not is_kafka_topic(name) or name.startswith("__"):
                    return None
                key = None if rule.key is None else rule.key.fill(captures).encode()
                headers = tuple((each, text.fill(captures).encode()) for each, text in rule.headers)
                return Target(name, key, headers)
        if not self._default:
            return None
        first = topic.split("/", 1)[0]
        if is_kafka_topic(first):
            return None if first.startswith("__") else Target(first, topic.encode())
        if self._fallback and first not in ("$SYS", "$share"):
            return Target(self._fallback, topic.encode())
        return None

    def to_mqtt(
        self, topic: str, key: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> str | None:
        """The MQTT topic of a record, None if it has none."""
        for rule in self._rules:
            if rule.outwards and (found := _read_record(rule, topic, key, headers)) is not None:
                return found
        if not self._default or key is None:
            return None
        try:
            text = key.decode()
        except UnicodeDecodeError:
            return None
        first = text.split("/", 1)[0]
        if first != topic and (topic != self._fallback or is_kafka_topic(first)):
            return None
        return text if is_topic_name(text) else None

    def named_topics(self, filter_text: str) -> set[str]:
        """The Kafka topics that a filter names, whether they exist or not."""
        levels = filter_text.split("/")
        found = {
            rule.topic.text
            for rule in self._rules
            if rule.outwards and not rule.topic.names and rule.overlaps(levels)
        }
        if self._default:
            first = levels[0]
            if is_kafka_topic(first):
                found.add(first)
            elif self._fallback:
                found.add(self._fallback)
        return {each for each in found if not each.startswith("__")}

    def is_open(self, filter_text: str) -> bool:
        """Whether records of topics that the filter does not name can match it."""
        levels = filter_text.split("/")
        return (self._default and levels[0] in ("+", "#")) or any(
            rule.outwards and rule.topic.names and rule.overlaps(levels) for rule in self._rules
        )

    def wants(self, filter_text: str, topic: str) -> bool:
        """Whether records of a Kafka topic can match the filter."""
        if topic.startswith("__"):
            return False
        levels = filter_text.split("/")
        if topic in self.named_topics(filter_text):
            return True
        if self._default and levels[0] in ("+", "#"):
            return True
        return any(
            rule.outwards and rule.topic.may_be(topic) and rule.overlaps(levels)
            for rule in self._rules
        )


def _read_record(
    rule: Rule, topic: str, key: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> str | None:
    captures: dict[str, str] = {}
    if not rule.topic.read(topic, captures):
        return None
    try:
        if rule.key is not None and (key is None or not rule.key.read(key.decode(), captures)):
            return None
        for name, template in rule.headers:
            values = [value for each, value in headers if each == name]
            if not values or values[-1] is None:
                return None
            if not template.read(values[-1].decode(), captures):
                return None
    except UnicodeDecodeError:
        return None
    found = rule.write_mqtt(captures)
    return found if is_topic_name(found) else None
