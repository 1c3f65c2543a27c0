"""Every key works, is refused or is listed as having no effect: none is silently ignored.

Whether a key works is looked up in the source: something has to read the key itself, or the field
of a section that has its value. Rules across keys do not count, they only refuse combinations.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

import moldau.broker.app  # noqa: F401  (defines the sections)
from moldau.broker.config import BrokerConfig, LogConfig
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.broker.config.checks import PYTHON_CLASSES
from moldau.broker.config.no_effect import GROUP_REASONS, REASONS, TOPIC_REASONS
from moldau.broker.config.resource_keys import (
    CLIENT_METRICS_KEYS,
    DYNAMIC_ONLY_KEYS,
    GROUP_KEYS,
    group_key_synonym,
)
from moldau.broker.config.topic_keys import TOPIC_KEYS, TOPIC_SYNONYMS
from moldau.broker.machine.supported import REFUSED, check_supported
from moldau.cli.nodes.configuration import standalone_properties
from moldau.client.config import ADMIN_KEYS, CONSUMER_KEYS, PRODUCER_KEYS, no_effect
from moldau.client.consumer.settings import ConsumerSettings
from moldau.client.network_settings import NetworkSettings
from moldau.client.producer.settings import ProducerSettings
from moldau.client.share.settings import REFUSED as REFUSED_BY_SHARE_CONSUMERS
from moldau.client.share.settings import ShareSettings
from moldau.config import ConfigDef, ConfigError
from moldau.config.no_effect import Reasons, reason_for
from moldau.config.section import Section
from moldau.config.values import ConfigType

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "moldau"
# Tables, texts and rules: to be named there is not to be read.
NOT_READERS = {
    "broker/config/alterations.py",
    "broker/config/broker_keys.py",
    "broker/config/checks.py",
    "broker/config/describe.py",
    "broker/config/key_texts.py",
    "broker/config/layers.py",
    "broker/config/no_effect.py",
    "broker/config/resource_keys.py",
    "broker/config/topic_keys.py",
    "broker/machine/supported.py",
}


class Reads:
    """What a part of the source reads: keys in quotes, patterns of them, and attributes."""

    def __init__(self, trees: Iterable[ast.Module]) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        patterns: set[str] = set()
        for tree in trees:
            for node in ast.walk(tree):
                match node:
                    case ast.JoinedStr(values=parts) if _is_pattern_of_keys(parts):
                        patterns.add("".join(map(_regex, parts)))
                    case ast.Constant(value=str(text)):
                        self.names.add(text)
                    case ast.Attribute(attr=name, ctx=ast.Load()):
                        self.attributes.add(name)
        self.patterns = [re.compile(pattern) for pattern in patterns]

    def key(self, name: str) -> bool:
        return name in self.names or any(each.fullmatch(name) for each in self.patterns)


def _is_pattern_of_keys(parts: list[ast.expr]) -> bool:
    """Such as f"{topic}.segment.bytes" and f"compression.{codec}.level"."""
    first, last = (p.value if isinstance(p, ast.Constant) else "" for p in (parts[0], parts[-1]))
    words = r"(\.[a-z]+)+" if re.fullmatch(r"[a-z.]+\.", str(first)) else r"(\.[a-z]+){2,}"
    return re.fullmatch(words, str(last)) is not None


def _regex(part: ast.expr) -> str:
    return re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[a-z0-9.]+"


@cache
def broker_reads() -> Reads:
    paths = [
        path
        for folder in ("broker", "security")
        for path in (SOURCE / folder).rglob("*.py")
        if path.relative_to(SOURCE).as_posix() not in NOT_READERS
    ]
    return Reads(ast.parse(path.read_text()) for path in paths)


def broker_sections() -> list[type[Section]]:
    sections = Section.__subclasses__()
    return [each for each in sections if each.__module__.startswith("moldau.broker.")]


@cache
def read_fields(*, of_topics: bool) -> frozenset[str]:
    """The keys whose field in a section is read."""
    return frozenset(
        key
        for section in broker_sections()
        if (section is LogConfig) == of_topics
        for field, key in section.KEYS.items()
        if field in broker_reads().attributes
    )


def topic_key_works(name: str) -> bool:
    return name in read_fields(of_topics=True) or broker_reads().key(name)


def group_key_works(name: str) -> bool:
    return broker_reads().key(name)


def broker_key_works(name: str) -> bool:
    if name in read_fields(of_topics=False) or broker_reads().key(name):
        return True
    if any(name in synonyms and topic_key_works(key) for key, synonyms in TOPIC_SYNONYMS.items()):
        return True
    for key in filter(group_key_works, GROUP_KEYS):
        kind, _, stem = key.partition(".")
        bounds = (f"group.{kind}.min.{stem}", f"group.{kind}.max.{stem}")
        if name == group_key_synonym(key) or name in bounds:
            return True
    return False


def is_refused(name: str) -> bool:
    """Whether another value than the default does not start."""
    key = BROKER_KEYS[name]
    text = "true" if key.type is ConfigType.BOOLEAN else "com.example.Plugin"
    properties = standalone_properties(port=0, data="/data") | {name: text}
    try:
        check_supported(BrokerConfig.from_properties(properties))
    except ConfigError as error:
        return error.key == name
    return False


def can_be_refused(name: str) -> bool:
    return name not in PYTHON_CLASSES and (
        name in REFUSED
        or BROKER_KEYS[name].type is ConfigType.CLASS
        or name in ("metric.reporters", "kafka.metrics.reporters")
    )


@pytest.mark.parametrize("name", BROKER_KEYS)
def test_a_broker_key_has_one_standing(name: str) -> None:
    refused = can_be_refused(name)
    if refused:
        assert is_refused(name)
    works = not refused and broker_key_works(name)
    listed = not refused and reason_for(name, REASONS) is not None
    assert [works, refused, listed].count(True) == 1, standing(works, refused, listed)


@pytest.mark.parametrize("name", [*DYNAMIC_ONLY_KEYS])
def test_a_key_that_is_only_dynamic_works_or_is_listed(name: str) -> None:
    assert broker_key_works(name) != (reason_for(name, REASONS) is not None)


@pytest.mark.parametrize("name", TOPIC_KEYS)
def test_a_topic_key_has_one_standing(name: str) -> None:
    # Kafka refuses it for as long as the broker has no remote storage.
    refused = name == "remote.storage.enable"
    works = not refused and topic_key_works(name)
    listed = reason_for(name, TOPIC_REASONS) is not None
    assert [works, refused, listed].count(True) == 1, standing(works, refused, listed)


@pytest.mark.parametrize("name", GROUP_KEYS)
def test_a_group_key_has_one_standing(name: str) -> None:
    assert group_key_works(name) != (reason_for(name, GROUP_REASONS) is not None)


@pytest.mark.parametrize("name", CLIENT_METRICS_KEYS)
def test_a_key_of_client_metrics_works(name: str) -> None:
    assert broker_reads().key(name)


REFUSED_BY_CLIENTS = ("ssl.engine.factory.class", "transaction.two.phase.commit.enable")
#: Read where settings are gathered, for all clients alike.
READ_BEFORE = ("config.providers",)


@cache
def client_reads(package: str) -> Reads:
    """What the code of one kind of client reads, and what all of them share."""
    folders = (package, "metrics", "telemetry")
    paths = [*(SOURCE / "client").glob("*.py"), *(SOURCE / "security").rglob("*.py")]
    for folder in folders:
        paths += (SOURCE / "client" / folder).rglob("*.py")
    return Reads(ast.parse(path.read_text()) for path in paths)


#: Beside those of the network, which all have.
SECTIONS: Mapping[str, type[Section]] = {"producer": ProducerSettings, "consumer": ConsumerSettings}


def client_key_works(package: str, name: str) -> bool:
    reads = client_reads(package)
    sections = [NetworkSettings, *filter(None, [SECTIONS.get(package)])]
    fields = {field for each in sections for field, key in each.KEYS.items() if key == name}
    return reads.key(name) or not fields.isdisjoint(reads.attributes)


@pytest.mark.parametrize(
    ("package", "name", "reasons"),
    [
        *(("producer", name, no_effect.PRODUCER) for name in PRODUCER_KEYS),
        *(("consumer", name, no_effect.CONSUMER) for name in CONSUMER_KEYS),
        *(("share", name, no_effect.SHARE_CONSUMER) for name in CONSUMER_KEYS),
        *(("admin", name, no_effect.ADMIN) for name in ADMIN_KEYS),
    ],
)
def test_a_client_key_has_one_standing(package: str, name: str, reasons: Reasons) -> None:
    refused = name in REFUSED_BY_CLIENTS
    refused |= package == "share" and name in REFUSED_BY_SHARE_CONSUMERS
    works = name in READ_BEFORE or (not refused and client_key_works(package, name))
    listed = reason_for(name, reasons) is not None
    assert [works, refused, listed].count(True) == 1, standing(works, refused, listed)


@pytest.mark.parametrize(
    ("package", "settings"),
    [
        ("producer", ProducerSettings),
        ("consumer", ConsumerSettings),
        ("share", ShareSettings),
        *((package, NetworkSettings) for package in ("producer", "consumer", "share")),
    ],
)
def test_clients_read_all_of_their_settings(package: str, settings: type) -> None:
    fields = settings.__annotations__
    assert [name for name in fields if name not in client_reads(package).attributes] == []


def standing(works: bool, refused: bool, listed: bool) -> str:
    found = [
        word
        for word, holds in (("is read", works), ("is refused", refused), ("is listed", listed))
        if holds
    ]
    return (
        f"{' and '.join(found) or 'is neither read, refused nor listed'}: let something read the "
        "key, refuse it in supported.py or name it in no_effect.py, one of the three"
    )


@pytest.mark.parametrize(
    ("reasons", "tables"),
    [
        pytest.param(REASONS, (BROKER_KEYS, DYNAMIC_ONLY_KEYS), id="broker"),
        pytest.param(TOPIC_REASONS, (TOPIC_KEYS,), id="topic"),
        pytest.param(GROUP_REASONS, (GROUP_KEYS,), id="group"),
        pytest.param(no_effect.PRODUCER, (PRODUCER_KEYS,), id="producer"),
        pytest.param(no_effect.CONSUMER, (CONSUMER_KEYS,), id="consumer"),
        pytest.param(no_effect.SHARE_CONSUMER, (CONSUMER_KEYS,), id="share consumer"),
        pytest.param(no_effect.ADMIN, (ADMIN_KEYS,), id="admin"),
    ],
)
def test_what_is_listed_exists(reasons: Reasons, tables: tuple[ConfigDef, ...]) -> None:
    known = {name for table in tables for name in table}
    open_families = {"listener.name.", "rlmm.config.", "rsm.config."}
    for name in {each for names in reasons.values() for each in names} - open_families:
        is_family = name.endswith(".")
        assert any(each.startswith(name) if is_family else each == name for each in known), name


@pytest.mark.parametrize(
    ("title", "reasons"),
    [
        ("broker", REASONS),
        ("topic", TOPIC_REASONS),
        ("group", GROUP_REASONS),
        ("producer", no_effect.PRODUCER),
        ("consumer", no_effect.CONSUMER),
        ("share consumer", no_effect.SHARE_CONSUMER),
        ("admin client", no_effect.ADMIN),
    ],
)
def test_the_documentation_lists_the_same(title: str, reasons: Reasons) -> None:
    def shown(name: str) -> str:
        return f"`{name}*`" if name.endswith(".") else f"`{name}`"

    rows = [f"| {', '.join(map(shown, names))} | {reason} |" for reason, names in reasons.items()]
    table = "\n".join([f"| {title} | why |", "|---|---|", *rows, ""])
    assert table in (ROOT / "docs" / "configuration.md").read_text()


def test_a_section_has_no_field_that_nothing_reads() -> None:
    assert len(broker_sections()) > 10
    unread = [
        f"{section.__name__}.{field}"
        for section in broker_sections()
        for field in section.__annotations__
        if field not in broker_reads().attributes
    ]
    assert unread == []


def test_a_new_key_without_a_reader_is_found() -> None:
    assert not broker_key_works("new.key.without.reader")
    assert not topic_key_works("new.key.without.reader")
    assert not client_key_works("producer", "new.key.without.reader")
    assert reason_for("new.key.without.reader", REASONS) is None


@pytest.mark.parametrize(
    ("source", "name", "is_read"),
    [
        ('config["num.io.threads"]', "num.io.threads", True),
        ('config[f"{topic}.segment.bytes"]', "offsets.topic.segment.bytes", True),
        ('f"compression.{codec}.level"', "compression.lz4.level", True),
        ('f"{topic}.segment.bytes"', "num.io.threads", False),
        ('f"{topic}.bytes"', "offsets.topic.segment.bytes", False),
        ("# num.io.threads", "num.io.threads", False),
    ],
)
def test_readers_are_found(source: str, name: str, is_read: bool) -> None:
    assert Reads([ast.parse(source)]).key(name) == is_read
