"""Topic filters, and which record a message is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.config.errors import ConfigError
from moldau.services.mqtt.machine.mapping import Mapper, Target, parse_rules
from moldau.services.mqtt.machine.reasons import MqttError
from moldau.services.mqtt.machine.records import Message
from moldau.services.mqtt.machine.retained import RetainedMessages
from moldau.services.mqtt.machine.topics import (
    FilterIndex,
    SharedFilter,
    check_filter,
    matches,
    parse_shared,
)

#: From the specification, section 4.7.
CASES = [
    ("sport/tennis/player1/#", "sport/tennis/player1", True),
    ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
    ("sport/#", "sport", True),
    ("#", "sport/tennis", True),
    ("sport/tennis/+", "sport/tennis/player1", True),
    ("sport/tennis/+", "sport/tennis/player1/ranking", False),
    ("sport/+", "sport", False),
    ("sport/+", "sport/", True),
    ("+/+", "/finance", True),
    ("/+", "/finance", True),
    ("+", "/finance", False),
    ("#", "$SYS/x", False),
    ("+/monitor/Clients", "$SYS/monitor/Clients", False),
    ("$SYS/#", "$SYS/x", True),
    ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
]


@pytest.mark.parametrize(("text", "topic", "wanted"), CASES)
def test_filters_match(text: str, topic: str, wanted: bool) -> None:
    assert matches(text, topic) is wanted
    index: FilterIndex[str] = FilterIndex()
    index.put(text, "me", "found")
    assert index.match(topic) == (["found"] if wanted else [])
    kept = RetainedMessages()
    kept.put(Message(topic, b""))
    assert [each.topic for each in kept.match(text)] == ([topic] if wanted else [])


LEVEL = st.sampled_from(["a", "b", "", "$x"])
FILTER = st.lists(st.one_of(LEVEL, st.just("+")), min_size=1, max_size=4).flatmap(
    lambda levels: st.sampled_from(["/".join(levels), "/".join([*levels, "#"])])
)
TOPIC = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)


@given(st.lists(FILTER, max_size=6), st.lists(TOPIC, max_size=6), st.data())
def test_the_indexes_find_what_comparing_finds(
    filters: list[str], topics: list[str], data: st.DataObject
) -> None:
    index: FilterIndex[str] = FilterIndex()
    for text in filters:
        index.put(text, "me", text)
    kept = RetainedMessages()
    for topic in topics:
        kept.put(Message(topic, b""))
    gone = data.draw(st.lists(st.sampled_from(filters), unique=True)) if filters else []
    for text in gone:
        index.remove(text, "me")
    left = set(filters) - set(gone)
    assert len(index) == len(left)
    for topic in topics:
        assert sorted(index.match(topic)) == sorted(text for text in left if matches(text, topic))
    for text in filters:
        wanted = sorted({topic for topic in topics if matches(text, topic)})
        assert sorted(each.topic for each in kept.match(text)) == wanted
    for topic in topics:
        kept.remove(topic)
    assert (len(kept), list(kept.match("#"))) == (0, [])


@pytest.mark.parametrize("text", ["", "a/#/b", "a#", "a+/b", "a/b+", "/".join("a" * 200)])
def test_wrong_filters_are_refused(text: str) -> None:
    with pytest.raises(MqttError):
        check_filter(text)


def test_shared_filters() -> None:
    assert parse_shared("a/b") is None
    assert parse_shared("$share/crew/a/+") == SharedFilter("crew", "a/+")
    for text in ("$share/crew", "$share//a", "$share/c+/a", "$share/crew/"):
        with pytest.raises(MqttError):
            parse_shared(text)


# Mapping.


def test_the_default_mapping() -> None:
    mapper = Mapper(fallback="mqtt")
    assert mapper.to_kafka("sensors/7/temp") == Target("sensors", b"sensors/7/temp")
    assert mapper.to_kafka("sensors") == Target("sensors", b"sensors")
    assert mapper.to_kafka("/x") == Target("mqtt", b"/x")
    assert mapper.to_kafka("ü/x") == Target("mqtt", "ü/x".encode())
    assert mapper.to_kafka("__consumer_offsets/x") is None
    assert mapper.to_kafka("$SYS/x") is None
    assert mapper.to_mqtt("sensors", b"sensors/7", ()) == "sensors/7"
    assert mapper.to_mqtt("sensors", b"sensors", ()) == "sensors"
    for key in (None, b"other/7", b"sensorsx/7", b"sensors/+", b"\xff"):
        assert mapper.to_mqtt("sensors", key, ()) is None
    assert mapper.to_mqtt("mqtt", b"/x", ()) == "/x"
    # Else a record of one topic could look like a message of another.
    assert mapper.to_mqtt("mqtt", b"sensors/7", ()) is None
    assert Mapper().to_kafka("/x") is None


def test_the_topics_that_a_filter_needs() -> None:
    mapper = Mapper(fallback="mqtt")
    assert mapper.named_topics("sensors/+/temp") == {"sensors"}
    assert mapper.named_topics("+/temp") == {"mqtt"}
    assert mapper.is_open("+/temp")
    assert mapper.is_open("#")
    assert not mapper.is_open("sensors/#")
    assert mapper.wants("#", "anything")
    assert not mapper.wants("#", "__consumer_offsets")
    assert not mapper.wants("sensors/#", "other")


def mapper_of(**settings: str) -> Mapper:
    texts = {f"rule.r.{name.replace('_', '.')}": value for name, value in settings.items()}
    return Mapper(parse_rules(texts, ["r"]), default=False)


@pytest.mark.parametrize(
    ("settings", "topic", "target"),
    [
        pytest.param({"mqtt": "s/+/t", "topic": "temps", "key": "{1}"}, "s/7/t",
                     Target("temps", b"7"), id="number"),
        pytest.param({"mqtt": "s/{id}/t", "topic": "temps", "key": "{id}"}, "s/7/t",
                     Target("temps", b"7"), id="name"),
        pytest.param({"mqtt": "a/{x}/#", "topic": "t-{x}", "key": "{2}"}, "a/b/c/d",
                     Target("t-b", b"c/d"), id="rest"),
        pytest.param({"mqtt": "a/{x}/{y}", "topic": "t", "key": "{x}-{y}", "header_from": "{y}"},
                     "a/1/2", Target("t", b"1-2", (("from", b"2"),)), id="header"),
    ],
)  # fmt: skip
def test_rules_in_both_directions(settings: dict[str, str], topic: str, target: Target) -> None:
    mapper = mapper_of(**settings)
    assert mapper.to_kafka(topic) == target
    assert mapper.to_mqtt(target.topic, target.key, target.headers) == topic
    assert mapper.to_kafka("elsewhere") is None
    assert mapper.to_mqtt("elsewhere", b"k", ()) is None


def test_a_rule_that_loses_a_capture_is_one_way() -> None:
    mapper = mapper_of(mqtt="s/+/t", topic="temps")
    assert mapper.to_kafka("s/7/t") == Target("temps", None)
    assert mapper.to_mqtt("temps", None, ()) is None
    with pytest.raises(ConfigError, match=r"\{1\} is in neither"):
        mapper_of(mqtt="s/+/t", topic="temps", direction="both")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"topic": "t"}, r"rule\.r\.mqtt is missing"),
        ({"mqtt": "a/x+", "topic": "t"}, "whole levels"),
        ({"mqtt": "#/a", "topic": "t"}, "must be the last level"),
        ({"mqtt": "a/+", "topic": "t", "key": "{2}"}, "not captured"),
        ({"mqtt": "{x}/{x}", "topic": "t"}, "same name"),
        ({"mqtt": "{x}/{y}", "topic": "t", "key": "{x}{y}"}, "nothing between"),
        ({"mqtt": "a", "topic": "t", "direction": "up"}, "direction"),
    ],
)
def test_wrong_rules_are_refused_in_words(settings: dict[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        mapper_of(**settings)


def test_rules_that_are_not_listed_are_refused() -> None:
    with pytest.raises(ConfigError, match="does not list r"):
        parse_rules({"rule.r.mqtt": "a"}, [])
    with pytest.raises(ConfigError, match="not part of a rule"):
        parse_rules({"rule.r.colour": "a"}, ["r"])
