"""Configurations made up at random: validation says what is wrong, and nothing else is raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.connect.api import ConnectError
from moldau.connect.built_in import CONNECTORS, BuiltIn
from moldau.connect.connector_config import SINK, SOURCE
from moldau.connect.plugins import Plugins
from moldau.connect.validation import validate_connector
from moldau.testing.connect import _connector_class

PLUGINS = Plugins()
#: Texts that settings often have, and those that a parser may not expect.
TEXTS = st.sampled_from(
    [
        "", " ", "true", "TRUE", "no", "0", "-1", "1", "5000", "99999999999999999999", "1e3", "NaN",
        "a,b", ",", "a,,b", "x", "[", "(", "*", "${file:/x:y}", "${topic}", "%s", "\x00", "ä", "𝄞",
        "http://", "http://[::1", "http://h:99999", "jdbc:postgresql://h/d", "jdbc:sqlite:", "mongodb://",
        "redis://", "tcp://h:1", "bolt://h", "hdfs://h", "id=value", "/nowhere", "java.lang.String",
        "org.apache.kafka.connect.transforms.Filter", "python:os.path.join", "python:", "python:x",
        "JsonFormat", "TimeBasedPartitioner", "YYYY", "'", "Europe/Prague", "Nowhere/Land", "{",
        "null",
    ]
) | st.text(max_size=12)  # fmt: skip
VALUES = TEXTS | st.none()
WORDS = (
    "transforms", "transforms.a.type", "transforms.a.predicate", "transforms.a.negate",
    "transforms.a.field", "predicates", "predicates.p.type", "key.converter",
    "value.converter", "value.converter.schemas.enable", "header.converter", "topics",
    "topics.regex",
    "topic.creation.groups", "topic.creation.default.partitions", "topic.creation.g.include",
    "topic.creation.default.replication.factor", "producer.override.acks",
    "producer.override.nothing", "consumer.override.group.id", "errors.tolerance", "tasks.max",
    "topic.t.k.table.mapping", "neo4j.pattern.topic.t", "neo4j.cypher.topic.t", "no.such.setting",
)  # fmt: skip


def keys_of(row: BuiltIn) -> list[str]:
    own = _connector_class(row.name, PLUGINS).config()
    return [*own, *WORDS, *SINK, *SOURCE]


@pytest.mark.parametrize("row", CONNECTORS, ids=lambda row: row.name)
def test_a_configuration_made_up_at_random_is_refused_in_words(row: BuiltIn) -> None:
    keys = st.sampled_from(keys_of(row))

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(config=st.dictionaries(keys, VALUES, max_size=14))
    def check(config: dict[str, Any]) -> None:
        config = {**config, "name": "fuzzed", "connector.class": row.class_name}
        try:
            found = validate_connector(config, PLUGINS)
        except ConnectError:
            return
        for each in found.errors:
            assert each
            assert "Traceback" not in each
        # What REST answers.
        json.dumps(found.as_json())

    check()
