"""What an application does not import: its start and its memory are made of modules."""

from __future__ import annotations

import subprocess
import sys

import pytest

import moldau.client.admin
import moldau.streams
from moldau.client.admin import acl_values, security_values, topic_values

NOT_NEEDED = (
    "bz2",
    "cramjam",
    "datetime",
    "hashlib",
    "html",
    "moldau.client.admin.acl_values",
    "moldau.client.admin.asynchronous",
    "moldau.client.admin.group_values",
    "moldau.client.admin.partitions",
    "moldau.client.config.keywords",
    "moldau.client.consumer.assignors.range",
    "moldau.metrics.otlp",
    "moldau.security.tls",
    "moldau.streams.hosts.assignor",
    "moldau.streams.hosts.driver",
    "moldau.streams.hosts.queries",
    "moldau.streams.hosts.thread_metadata",
    "moldau.streams.machine.foreign_key",
    "moldau.streams.machine.sliding",
    "moldau.streams.machine.store_queries",
    "moldau.streams.machine.window_aggregates",
    "moldau.streams.stores._windows",
    "moldau.streams.stores.disk_segments",
    "moldau.streams.stores.versioned",
    "moldau.streams.stores.with_headers",
    "moldau.streams.topology.join_steps",
    "moldau.streams.topology.picture",
    "moldau.wire.codec_maker",
    "shutil",
    "tempfile",
)
PROGRAM = """\
import sys
from moldau.streams import KafkaStreams, StreamsBuilder

builder = StreamsBuilder()
builder.stream("in").group_by_key().count().to_stream().to("out")
KafkaStreams(
    builder.build(), application_id="app", bootstrap_servers="127.0.0.1:1", state_dir="state"
)
import moldau.client.consumer.blocking, moldau.client.producer.blocking
print(*sys.modules, sep="\\n")
"""


def test_an_application_imports_no_more_than_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert sorted(set(NOT_NEEDED) & set(done.stdout.split())) == []


@pytest.mark.parametrize("name", moldau.streams.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(moldau.streams, name) is not None


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="KafkaStream'"):
        moldau.streams.KafkaStream  # noqa: B018


def test_the_admin_package_has_the_names_of_its_modules() -> None:
    for module in (acl_values, security_values, topic_values):
        for name in module.__all__:
            assert getattr(moldau.client.admin, name) is getattr(module, name)
    assert not hasattr(moldau.client.admin, "NoSuchName")
