"""Plug-ins by name, chains of transforms, settings and what is said about wrong ones."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    ConnectError,
    DataError,
    Importance,
    Kind,
    Range,
    SinkRecord,
    SourcePartition,
    SourceRecord,
    Width,
)
from moldau.connect.api.errors import RetriableError, java_name
from moldau.connect.built_in import ALL, PluginKind
from moldau.connect.chain import chain_of
from moldau.connect.connectors.filestream.source import FileStreamSourceConnector
from moldau.connect.plugins import Plugins
from moldau.connect.runtime.clients import connector_client, override_errors
from moldau.connect.runtime.offset_stores import FileOffsets
from moldau.connect.runtime.worker_config import WorkerConfig
from moldau.connect.transforms.java_dates import DateFormat
from moldau.connect.validation import validate_connector

PLUGINS = Plugins()
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def shout(record: SinkRecord, mark: str = "!") -> SinkRecord | None:
    return None if record.value == "drop" else record.new_record(value=record.value + mark)


def wrong(record: SinkRecord) -> str:
    return "no record"


# Plug-ins.


@pytest.mark.parametrize(
    "name",
    [
        SOURCE,
        "FileStreamSource",
        "FileStreamSourceConnector",
        "moldau.connect.connectors.filestream.source:FileStreamSourceConnector",
        "moldau.connect.connectors.filestream.source.FileStreamSourceConnector",
    ],
)
def test_a_connector_has_several_names(name: str) -> None:
    assert PLUGINS.connector(name) is FileStreamSourceConnector


def test_every_row_of_the_box_can_be_loaded() -> None:
    for row in ALL:
        loaded = PLUGINS.find(row.class_name, [row.kind])
        assert isinstance(loaded.config(), ConfigDef), row


def test_entry_points_are_found() -> None:
    target = "moldau.connect.connectors.filestream.sink:FileStreamSinkConnector"
    point = EntryPoint("Mine", target, "moldau.connect")
    broken = EntryPoint("Broken", "no.such.module:X", "moldau.connect")
    plugins = Plugins(built_in=(), installed=(point, broken))
    assert plugins.connector("Mine").__name__ == "FileStreamSinkConnector"
    assert [(each.name, each.kind) for each in plugins.list()] == [("Mine", PluginKind.SINK)]
    with pytest.raises(ConnectError, match="cannot be loaded"):
        plugins.connector("Broken")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FileStreamSorce", "Did you mean FileStreamSource"),
        ("no.such.Class", "Failed to find any class"),
        ("Cast$Value", "does not implement the SourceConnector or SinkConnector"),
        ("os.path", "Failed to find any class"),
    ],
)
def test_a_wrong_class_is_named(name: str, message: str) -> None:
    with pytest.raises(ConnectError, match=message):
        PLUGINS.connector(name)


# Chains.


def test_predicates_choose_the_records() -> None:
    config = {
        "transforms": "mark",
        "transforms.mark.type": "InsertHeader",
        "transforms.mark.header": "h",
        "transforms.mark.value.literal": "1",
        "transforms.mark.predicate": "orders",
        "transforms.mark.negate": "true",
        "predicates": "orders",
        "predicates.orders.type": "TopicNameMatches",
        "predicates.orders.pattern": "order.*",
    }
    chain = chain_of(config, PLUGINS)
    assert [
        len((chain.apply(SourceRecord(None, None, topic)) or SourceRecord(None, None, "")).headers)
        for topic in ("orders", "other")
    ] == [0, 1]


def test_python_functions_are_transforms(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("unit_transforms")
    module.__dict__.update(shout=shout, wrong=wrong)
    monkeypatch.setitem(sys.modules, "unit_transforms", module)
    config = {
        "transforms": "shout",
        "transforms.shout.type": "python:unit_transforms.shout",
        "transforms.shout.mark": "?",
    }
    chain = chain_of(config, PLUGINS)
    record = SinkRecord("t", 0, 0, value="hey")
    changed = chain.apply(record)
    assert changed is not None
    assert changed.value == "hey?"
    assert chain.apply(record.new_record(value="drop")) is None
    broken = chain_of(
        {"transforms": "shout", "transforms.shout.type": "python:unit_transforms.wrong"}, PLUGINS
    )
    with pytest.raises(DataError, match="instead of a record"):
        broken.apply(record)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"transforms": "a"}, 'Missing required configuration "transforms.a.type"'),
        ({"transforms": "a,a", "transforms.a.type": "Filter"}, "Duplicate alias"),
        ({"transforms": "a", "transforms.a.type": "Nothing"}, "transforms.a.type"),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"},
            "it is not in predicates: there are none",
        ),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "true"},
            "without transforms.a.predicate",
        ),
        ({"transforms": "a", "transforms.a.type": "python:nothing"}, "python:module.function"),
        ({"transforms": "a", "transforms.a.type": "python:os.path.sep"}, "is no function"),
        (
            {"transforms": "a", "transforms.a.type": "python:os.path.split", "transforms.a.x": "1"},
            "cannot be called with the settings x",
        ),
    ],
)
def test_a_wrong_chain_is_explained(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(").replace(")", r"\)")):
        chain_of(config, PLUGINS)


# Settings.


class Colours:
    def valid_values(self, name: str, parsed: Any) -> list[Any]:
        return ["red", "blue"]

    def visible(self, name: str, parsed: Any) -> bool:
        return parsed["size"] > 1


DEFINITION = (
    ConfigDef()
    .define("size", Kind.INT, 1, validator=Range(1), group="Shape", importance=Importance.HIGH)
    .define("colour", Kind.STRING, "red", group="Shape", width=Width.SHORT, recommender=Colours())
    .define("secret", Kind.PASSWORD, None)
    .define("names", Kind.LIST, ["a"], dependents=("size",))
    .define("must", Kind.STRING)
)


def test_settings_are_parsed_and_validated() -> None:
    parsed = DEFINITION.parse({"must": "x", "names": "b, c", "secret": "s", "unknown": "?"})
    assert (parsed["size"], parsed["names"], parsed["secret"].value) == (1, ("b", "c"), "s")
    assert DEFINITION.unknown({"must": "x", "other": "y"}) == ["other"]
    assert (DEFINITION["size"].order, DEFINITION["colour"].order) == (1, 2)
    with pytest.raises(ConfigError, match="must"):
        DEFINITION.parse({})
    found = {each.name: each for each in DEFINITION.validate({"size": "0", "secret": "s"})}
    assert found["size"].errors == [
        "Invalid value 0 for configuration size: Value must be at least 1"
    ]
    assert found["must"].errors == [
        'Missing required configuration "must" which has no default value.'
    ]
    assert str(found["secret"].value) == "[hidden]"


def test_recommendations() -> None:
    found = {each.name: each for each in DEFINITION.validate({"size": "1", "must": "x"})}
    assert found["colour"].recommended_values == ["red", "blue"]
    assert not found["colour"].visible


def test_a_setting_is_defined_once_and_defaults_are_checked() -> None:
    with pytest.raises(ConfigError, match="defined twice"):
        ConfigDef().define("a", Kind.INT, 1).define("a", Kind.INT, 1)
    with pytest.raises(ConfigError, match="at least 1"):
        ConfigDef().define("a", Kind.INT, 0, validator=Range(1))


# Validation.


def errors_of(**config: str | None) -> dict[str, list[str]]:
    given = {key.replace("_", "."): value for key, value in config.items()}
    found = validate_connector(given, PLUGINS)
    return {name: each.errors for name, each in found.values.items() if each.errors}


def test_a_right_configuration_has_no_errors() -> None:
    assert errors_of(connector_class=SOURCE, name="x", topic="t") == {}


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({"name": ""}, {"name"}),
        ({"name": "a\tb"}, {"name"}),
        ({"file": None}, {"file"}),
        ({"errors.tolerance": "some"}, {"errors.tolerance"}),
        ({"key.converter": "Nothing"}, {"key.converter"}),
        ({"value.converter": "AvroConverter"}, {"value.converter.schema.registry.url"}),
        ({"exactly.once.support": "required"}, {"exactly.once.support"}),
        ({"transaction.boundary": "connector"}, {"transaction.boundary"}),
        ({"topic.creation.groups": "g"}, {
            "topic.creation.default.replication.factor", "topic.creation.default.partitions"}),
        ({"offsets.storage.topic": " "}, {"offsets.storage.topic"}),
        ({"transforms": "a", "transforms.a.type": "Cast$Value"}, {"transforms.a.spec"}),
    ],
)  # fmt: skip
def test_wrong_settings_are_named(config: dict[str, str | None], keys: set[str]) -> None:
    found = validate_connector(
        {"connector.class": SOURCE, "name": "x", "topic": "t", **config}, PLUGINS
    )
    assert {name for name, each in found.values.items() if each.errors} == keys
    assert found.as_json()["error_count"] == len(found.errors)


KEYS = st.sampled_from(
    [
        *("name", "tasks.max", "topics", "topics.regex", "file", "topic", "transforms"),
        *("transforms.a.type", "transforms.a.spec", "transforms.a.predicate", "predicates"),
        *("predicates.p.type", "predicates.p.pattern", "key.converter", "value.converter"),
        *("errors.retry.timeout", "producer.override.acks", "transforms.a.regex", "a b", ""),
    ]
)
VALUES = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.sampled_from(
        [
            *("a", "p", "a,b", "-1", "99999999999", "true", "(", "*", "Cast$Value", "RegexRouter"),
            *("TopicNameMatches", "python:os.path", "JsonConverter", "os.path", "x:int8", "..."),
        ]
    ),
)


@given(
    config=st.dictionaries(KEYS, VALUES, max_size=8),
    name=st.sampled_from([SOURCE, "FileStreamSink"]),
)
@example(config={"name": None, "key.converter": ".."}, name="FileStreamSink")
def test_any_configuration_gets_an_answer(config: dict[str, str | None], name: str) -> None:
    """Errors with texts, never an exception of another kind."""
    found = validate_connector({**config, "connector.class": name}, PLUGINS)
    assert all(isinstance(each, str) and each for each in found.errors)
    assert found.as_json()["configs"]


# Workers.

WORKER = {
    "bootstrap.servers": "b:9092",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
}
DISTRIBUTED = {
    **WORKER,
    "group.id": "g",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"key.converter": None}, "key.converter"),
        ({"status.storage.topic": "c"}, "three different topics"),
        ({"heartbeat.interval.ms": "10000"}, "less than session.timeout.ms"),
        (
            {"exactly.once.source.support": "enabled", "connect.protocol": "eager"},
            "needs sessioned",
        ),
        ({"connector.client.config.override.policy": "Mine"}, "All, Allowlist, None or Principal"),
    ],
)
def test_wrong_workers_are_refused(settings: dict[str, str | None], message: str) -> None:
    given = {key: each for key, each in {**DISTRIBUTED, **settings}.items() if each is not None}
    with pytest.raises(ConfigError, match=message):
        WorkerConfig.of(given, distributed=True)


def test_variables_of_connectors_are_replaced(tmp_path: Any) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=hidden\n")
    config = WorkerConfig.of({**DISTRIBUTED, "config.providers": "file"}, distributed=True)
    found = config.resolved({"a": f"${{file:{secrets}:password}}", "b": "${env:HOME}", "c": None})
    assert found == {"a": "hidden", "b": "${env:HOME}"}


def test_settings_of_clients() -> None:
    worker = {**DISTRIBUTED, "producer.linger.ms": "5", "security.protocol": "SSL"}
    found = connector_client(
        worker, "producer", {"producer.override.acks": "1"}, defaults={"acks": "all"}
    )
    assert found == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "SSL",
        "linger.ms": "5",
        "acks": "1",
    }
    assert override_errors("All", {"producer.override.acks": "1"}) == {}
    assert set(override_errors("None", {"producer.override.acks": "1"})) == {
        "producer.override.acks"
    }
    given = {"consumer.override.sasl.jaas.config": "x", "consumer.override.group.id": "x"}
    assert override_errors("Principal", given) == {
        "consumer.override.group.id": "The 'Principal' policy does not allow 'group.id' to be "
        "overridden in the connector configuration."
    }
    java = "org.apache.kafka.connect.connector.policy.AllowlistConnectorClientConfigOverridePolicy"
    for policy in ("Allowlist", java):
        assert set(override_errors(policy, given)) == set(given)
        assert set(override_errors(policy, given, ("group.id",))) == {
            "consumer.override.sasl.jaas.config"
        }


def test_offsets_in_a_file(tmp_path: Any) -> None:
    path = tmp_path / "offsets"
    store = FileOffsets(path)
    store.put("c", {SourcePartition({"f": "ä"}): {"n": 1}}, 1.0)
    store.put("d", {SourcePartition({"f": "b"}): {"n": 2}}, 1.0)
    assert FileOffsets(path).get("c", {"f": "ä"}) == {"n": 1}
    store.put("c", {SourcePartition({"f": "ä"}): None}, 1.0)
    assert FileOffsets(path).all("c") == {}
    path.write_bytes(b"\xac\xed\x00\x05sr")
    with pytest.raises(ConnectError, match="only Java reads"):
        FileOffsets(path)
    path.write_text("rubbish\n")
    with pytest.raises(ConnectError, match="line 1"):
        FileOffsets(path)


def test_errors_have_javas_names() -> None:
    assert java_name(DataError("x")) == "org.apache.kafka.connect.errors.DataException"
    assert java_name(RetriableError("x")) == "org.apache.kafka.connect.errors.RetriableException"
    assert java_name(KeyError("x")) == "builtins.KeyError"


# Dates.


@pytest.mark.parametrize(
    ("pattern", "text", "since_epoch"),
    [
        ("yyyyMMdd", "20260102", 1767312000000),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-01-02T03:04:05.006Z", 1767323045006),
        ("EEE, d MMM yyyy hh:mm a", "Fri, 2 Jan 2026 03:04 AM", 1767323040000),
        ("''yyyy''", "'2026'", 1767225600000),
    ],
)
def test_dates_are_written_and_read_as_java_does(pattern: str, text: str, since_epoch: int) -> None:
    form = DateFormat(pattern)
    assert form.format(since_epoch) == text
    assert form.parse(text) == since_epoch


def test_times_with_an_offset_are_read() -> None:
    form = DateFormat("yyyy-MM-dd HH:mm Z")
    assert form.parse("2026-01-02 03:04 +0100") == form.parse("2026-01-02 02:04 UTC")
    with pytest.raises(ValueError, match="time zone"):
        form.parse("2026-01-02 03:04 nowhere")
    with pytest.raises(ValueError, match="Illegal pattern character"):
        DateFormat("bad")


def test_a_form_can_be_made_of_what_validation_says() -> None:
    """As Kafka's worker answers: the worker's converters as defaults, settings of converters."""
    worker = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}
    given: dict[str, str | None] = {
        "connector.class": "FileStreamSource",
        "name": "",
        "topic": "t",
        "errors.tolerance": "some",
        "tasks.max": None,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "perhaps",
        "transforms": "a,b",
        "transforms.a.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.a.negate": "false",
        "transforms.b.type": "NoSuch",
    }
    answer = validate_connector(given, Plugins(), worker=worker).as_json()
    definitions = {each["definition"]["name"]: each["definition"] for each in answer["configs"]}
    values = {each["value"]["name"]: each["value"] for each in answer["configs"]}
    order = [definitions[each]["order_in_group"] for each in ("name", "tasks.max", "transforms")]
    assert order == [1, 4, 12]
    assert definitions["file"]["order_in_group"] == -1
    assert definitions["key.converter"]["default_value"] == worker["key.converter"]
    assert values["key.converter"]["value"] == worker["key.converter"]
    assert worker["key.converter"] in values["value.converter"]["recommended_values"]
    assert {"Schemas", "Serialization"} <= set(answer["groups"])
    assert values["value.converter.converter.type"]["value"] == "value"
    # What is refused is shown, and null is neither missing nor the default.
    assert values["errors.tolerance"]["value"] == "some"
    assert values["tasks.max"]["value"] is None
    errors = {name: each["errors"] for name, each in values.items() if each["errors"]}
    assert errors["name"] == ["Invalid value for configuration name: String may not be empty"]
    assert errors["value.converter.schemas.enable"] == [
        "Invalid value perhaps for configuration schemas.enable: Expected value to be either true "
        "or false"
    ]
    assert errors["transforms.a.type"] == [
        "Config 'transforms.a.negate' was provided but there is no config 'transforms.a.predicate' "
        "defining a predicate to be negated."
    ]
    assert "Class NoSuch could not be found." in errors["transforms.b.type"][0]
    assert values["transforms.b.type"]["value"] is None
    assert answer["error_count"] == sum(map(len, errors.values()))


def test_a_dead_letter_topic_that_the_connector_would_read_is_refused() -> None:
    given = {
        "connector.class": "FileStreamSink",
        "name": "x",
        "topics.regex": "t.*",
        "errors.deadletterqueue.topic.name": "t-bad",
    }
    assert validate_connector(given, Plugins()).errors == [
        "The DLQ topic 't-bad' may not be matched by the regex for the topics "
        "('topics.regex=t.*') consumed by the connector"
    ]
