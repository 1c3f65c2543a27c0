"""The shape of the source tree: what decides and what acts, what may use what, and sizes.

`support/tidy.py` has the rules; here are the exceptions, each with its reason. An exception that is
no longer needed fails too, so the lists only ever shrink.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import tidy
from support.tidy import Tree

ROOT = Path(__file__).parents[2]
GENERATED = ("moldau.wire.messages",)

#: Modules that act, a little, and that machines may use all the same.
EXCUSED = {
    "moldau.wire.messages": "imports the module of a message when it is first used",
    "moldau.wire.messages.ready": "imports functions when they are first used",
    "moldau.client.config.settings": "logs configuration keys that nobody knows",
    "moldau.wire.checksums": "finds a compiled module of another package when it is imported",
}
#: Compiled together with the futures that wait for a batch. Machines only read and number it.
TYPES_EXCUSED = {"moldau.client.producer._batch"}

_VALUES = "values that users of the package pass and get"
_COMPILED = "compiled, and compiled modules stay where they are"
_CONNECTOR = "the settings of a connector, with what a form shows of them"
#: Pure modules beside a machine folder.
BESIDE = {
    "moldau.broker.network.context": "what every handler is given",
    "moldau.broker.network.settings": "the settings of a listener",
    "moldau.broker.replication.surroundings": "what a partition needs from its node: only types",
    "moldau.broker.security.authorization.interface": "what users implement",
    "moldau.cli.perf.metrics": "prints what a client has measured",
    "moldau.client._fetch_reader": _COMPILED,
    "moldau.client._records": _COMPILED,
    "moldau.client.admin.acl_values": _VALUES,
    "moldau.client.admin.cluster_values": _VALUES,
    "moldau.client.admin.config_values": _VALUES,
    "moldau.client.admin.enums": _VALUES,
    "moldau.client.admin.group_values": _VALUES,
    "moldau.client.admin.offset_values": _VALUES,
    "moldau.client.admin.partition_values": _VALUES,
    "moldau.client.admin.topic_values": _VALUES,
    "moldau.client.admin.transaction_values": _VALUES,
    "moldau.client.consumer_record": "the public name of the compiled record",
    "moldau.client.consumer.rebalance_listener": "what an application implements",
    "moldau.client.network_settings": "the settings of a client",
    "moldau.client.other_clients": "what users of other clients look for",
    "moldau.client.producer._murmur2": _COMPILED,
    "moldau.client.results": _VALUES,
    "moldau.client.topics": _VALUES,
    "moldau.client.type_parameters": "type variables of the generic clients",
    "moldau.connect.connectors.capture.config": _CONNECTOR,
    "moldau.connect.connectors.jdbc.config": _CONNECTOR,
    "moldau.connect.connectors.mariadb_cdc.config": _CONNECTOR,
    "moldau.connect.connectors.postgres_cdc.config": _CONNECTOR,
    "moldau.connect.built_in": "the table of plug-ins, where a connector adds its row",
    "moldau.connect.connector_config": "the settings of every connector",
    "moldau.http.config": "the settings of an HTTP service",
    "moldau.http.keys": "the keys of an HTTP service, which services add theirs to",
    "moldau.pipelines.errors": _VALUES,
    "moldau.services.connect.membership": "what a herder asks of its group: only types",
    "moldau.services.registry.config_keys": "the keys of its properties file",
    "moldau.services.console.config": "the settings of the Control Center",
    "moldau.services.rest.config": "the settings of the REST Proxy",
    "moldau.services.sql.config": "the settings of the SQL server",
    "moldau.spark.columns._decoder": _COMPILED,
    "moldau.spark.columns._rows": _COMPILED,
    "moldau.spark.columns.column_buffers": "the columns that the compiled decoder fills",
    "moldau.spark.columns.errors": _VALUES,
    "moldau.spark.tables.errors": _VALUES,
    "moldau.spark.tables.jdbc.by_driver": "writes through the DataFrame it is given",
    "moldau.streams._records": _VALUES,
    "moldau.streams._serdes": "the compiled part of serdes",
    "moldau.streams.errors": _VALUES,
    "moldau.streams.longs": "what compiled modules of stores and machine inline",
    "moldau.streams.records": _VALUES,
    "moldau.streams.serdes": "what users name, and implement",
    "moldau.streams.windows": _VALUES,
    "moldau.testing.errors": _VALUES,
    "moldau.testing.registry": "the clusters that run in this process",
}

#: Inside the broker, from top to bottom. Who is in a line uses only the lines below.
LAYERS = (
    ("app",),
    ("own_topics",),
    ("gauges",),
    ("broker_server", "controller_server"),
    ("api_table", "controller_table"),
    ("shared", "coordinators"),
    ("handlers",),
    ("audit_topic", "schemas", "share", "transactions", "log_moves"),
    ("topic_writer",),
    ("coordinator", "fetch_sessions"),
    (
        "calls",
        "controller_registration",
        "environment",
        "image_waits",
        "lifecycle",
        "replication",
        "token_sweeper",
        "topic_creation",
    ),
    ("node_security",),
    ("security",),
    ("metadata",),
    ("forwarding", "maintenance", "raft"),
    ("log",),
    ("local_channel", "log_lines", "loggers", "telemetry_store"),
    ("machine",),
    ("config", "controller_channel", "core_files", "directory_reports", "faults", "network"),
    ("metrics",),
)

_LOOP = "one loop in C over a record's fields: calls would cost more than they explain"
#: What is larger than allowed, how large it may be, and why.
LARGE = {
    "moldau.client._records.BatchReader.fill": (89, _LOOP),
    "moldau.client.admin.blocking": (1250, "generated"),
    "moldau.client.admin.blocking.Admin": (1150, "generated"),
    "moldau.client.errors.broker": (607, "a class for each of Kafka's error codes"),
    "moldau.spark.columns._decoder.ColumnDecoder._append_rows": (80, _LOOP),
    "moldau.streams.topology.dsl": (660, "each class of the language makes the others"),
    "moldau.wire._record_codec._scan": (102, _LOOP),
    "moldau.wire._record_codec.encode_records": (81, _LOOP),
}

FILE_LINES_MAX, FUNCTION_LINES_MAX, CLASS_LINES_MAX = 600, 70, 350


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(ROOT / "src" / "moldau", generated=GENERATED)


def compiled_modules() -> list[str]:
    text = (ROOT / "setup.py").read_text()
    listed = re.search(r"MODULES = \((.*?)\)", text, re.DOTALL)
    assert listed is not None
    return re.findall(r'"([\w.]+)"', listed.group(1))


def test_machines_import_only_pure_code(tree: Tree) -> None:
    assert tidy.impure_machines(tree, excused=EXCUSED, types_excused=TYPES_EXCUSED) == []


def test_what_is_pure_beside_a_machine_folder_has_a_reason(tree: Tree) -> None:
    assert tidy.pure_beside_machine(tree, excused=EXCUSED, beside=BESIDE) == []


def test_typed_data_is_pure(tree: Tree) -> None:
    impure = tree.pure(EXCUSED)
    assert {name: why for name, why in impure.items() if name.startswith("moldau.data")} == {}


def test_layers_hold_inside_the_broker(tree: Tree) -> None:
    assert tidy.broken_layers(tree, "moldau.broker", LAYERS) == []


def test_there_are_no_import_cycles_not_even_for_types(tree: Tree) -> None:
    assert tidy.import_cycles(tree) == []


def test_files_functions_and_classes_are_small(tree: Tree) -> None:
    found = tidy.too_large(
        tree,
        file=FILE_LINES_MAX,
        function=FUNCTION_LINES_MAX,
        class_=CLASS_LINES_MAX,
        known=LARGE,
    )
    assert found == []


def test_no_production_code_has_an_assert(tree: Tree) -> None:
    assert tidy.asserts(tree) == []


def test_an_underscore_says_that_a_module_is_compiled(tree: Tree) -> None:
    assert tidy.wrong_underscores(tree, compiled_modules()) == []


# Each rule fails on a violation that is planted.


_FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "


def plant(folder: Path, **files: str) -> Tree:
    """A package `shop`; a name's double underscores are dots."""
    for name, text in files.items():
        path = folder / "shop" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.relative_to(folder).parents:
            if parent.name:
                (folder / parent / "__init__.py").touch()
        path.write_text(text)
    return Tree(folder / "shop")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import time", id="a clock"),
        pytest.param("from random import Random", id="randomness"),
        pytest.param("import socket", id="a socket"),
        pytest.param("from threading import Lock", id="a thread"),
        pytest.param("import os.path", id="the system"),
        pytest.param("from pathlib import Path", id="files"),
        pytest.param("import logging", id="logs"),
        pytest.param("def f():\n    import asyncio", id="a loop, inside a function"),
        pytest.param("import requests", id="what is not known"),
        pytest.param("async def f(): ...", id="something that waits"),
        pytest.param("from uuid import uuid4", id="a random id"),
        pytest.param("import uuid\nx = uuid.uuid4()", id="a random id, by its module"),
        pytest.param("from datetime import datetime\nx = datetime.now()", id="the time of day"),
        pytest.param("def f(path):\n    return open(path)", id="an open file"),
        pytest.param("from shop.shell import send", id="what acts"),
        pytest.param("from shop.middle import passed_on", id="what acts, by way of another"),
        pytest.param(
            _FOR_TYPES + "from shop.shell import Sender",
            id="a type of what acts",
        ),
    ],
)
def test_a_machine_that_is_not_pure_is_found(text: str, tmp_path: Path) -> None:
    tree = plant(
        tmp_path,
        machine__orders=text,
        middle="from shop.shell import send as passed_on",
        shell="import socket\ndef send(): ...\nclass Sender: ...",
    )
    found = tidy.impure_machines(tree, excused={})
    assert len(found) == 1
    assert found[0].startswith("shop.machine.orders ")


def test_a_pure_machine_is_left_alone(tmp_path: Path) -> None:
    text = "import uuid\nfrom pathlib import PurePath\nfrom shop.values import Order\n"
    tree = plant(tmp_path, machine__orders=text, values="class Order: ...")
    assert tidy.impure_machines(tree, excused={}) == []


def test_pure_code_beside_a_machine_is_found(tmp_path: Path) -> None:
    tree = plant(tmp_path, machine__orders="", prices="x = 1", shell="import socket")
    found = tidy.pure_beside_machine(tree, excused={}, beside={"shop.shell": "no longer pure"})
    assert found == [
        "shop.prices is pure: move it to shop.machine, or say in BESIDE why not",
        "shop.shell in BESIDE is not needed",
    ]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param(
            {"a": "import shop.b", "b": "def f():\n    from shop import a"},
            "import one another: shop.a, shop.b",
            id="modules",
        ),
        pytest.param(
            {
                "a": "from shop.b import B",
                "b": _FOR_TYPES + "from shop.a import A",
            },
            "import one another: shop.a, shop.b",
            id="modules, for types",
        ),
        pytest.param(
            {
                "cellar__wine": "import shop.kitchen.oven",
                "kitchen__oven": "",
                "kitchen__sink": "from shop.cellar import wine",
            },
            "import one another: shop.cellar, shop.kitchen",
            id="packages, though no modules",
        ),
    ],
)
def test_an_import_cycle_is_found(files: dict[str, str], found: str, tmp_path: Path) -> None:
    assert tidy.import_cycles(plant(tmp_path, **files)) == [found]


def test_a_use_of_a_higher_layer_is_found(tmp_path: Path) -> None:
    tree = plant(
        tmp_path, roof="", walls__north="import shop.roof", walls__south="import shop.door", door=""
    )
    assert tidy.broken_layers(tree, "shop", [("roof",), ("walls", "door")]) == [
        "shop.walls uses shop.door, which is not below it",
        "shop.walls uses shop.roof, which is not below it",
    ]
    assert tidy.broken_layers(tree, "shop", [("walls",), ("roof",)]) == [
        "shop.door has no layer: put it into LAYERS"
    ]


def test_what_grows_too_large_is_found(tmp_path: Path) -> None:
    text = "class Till:\n    def count(self):\n" + "        self.sum += 1\n" * 9
    tree = plant(tmp_path, till=text)

    def found(known: dict[str, tuple[int, str]]) -> list[str]:
        return tidy.too_large(tree, file=10, function=8, class_=9, known=known)

    assert found({}) == [
        "shop.till has 11 lines, more than 10",
        "shop.till.Till has 11 lines, more than 9",
        "shop.till.Till.count has 10 lines, more than 8",
    ]
    reason = "for now"
    known = {"shop.till": (11, reason), "shop.till.Till": (10, reason), "shop.old": (20, reason)}
    assert found({**known, "shop.till.Till.count": (12, reason)}) == [
        "shop.till.Till has 11 lines, more than 10",
        "shop.old is small enough now",
    ]


def test_an_assert_is_found(tmp_path: Path) -> None:
    tree = plant(tmp_path, till="def f(x):\n    if x:\n        assert x > 0")
    assert tidy.asserts(tree) == ["shop.till line 3: use moldau.invariant, not assert"]


@pytest.mark.parametrize(
    ("compiled", "found"),
    [
        (["shop._coins", "shop.till"], "shop.till is compiled: its name begins with an underscore"),
        (["shop._coins", "shop._gone"], "shop._gone is compiled and missing"),
        ([], "shop._coins is not compiled: no underscore"),
    ],
)
def test_a_wrong_underscore_is_found(compiled: list[str], found: str, tmp_path: Path) -> None:
    tree = plant(tmp_path, till="", _coins="")
    assert tidy.wrong_underscores(tree, compiled) == [found]
