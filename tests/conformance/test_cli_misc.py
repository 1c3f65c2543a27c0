"""What only Apache Kafka can show: quotas, SCRAM credentials, and its metadata in the shell.

The broker is always Apache Kafka. `moldau configs` is compared with its own tool, the tree of
`moldau metadata-shell` with what Kafka's own classes make of the same file.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import Tools, moldau_cli
from support.java import KafkaTools, run_program
from support.processes import BrokerProcess, apache_kafka, kafka_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    with apache_kafka(tmp_path_factory.mktemp("kafka"), settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def tools(kafka: BrokerProcess) -> Iterator[Tools]:
    with KafkaTools(kafka.bootstrap) as theirs:
        yield Tools(kafka.bootstrap, theirs)


def alter(tools: Tools, *words: str) -> str:
    return tools.run("configs", "--alter", *words)


@pytest.mark.parametrize(
    ("entity", "added", "key"),
    [
        ("--user alice", "producer_byte_rate=12345678", "producer_byte_rate"),
        ("--user-defaults", "consumer_byte_rate=1024", "consumer_byte_rate"),
        ("--client app", "request_percentage=50", "request_percentage"),
        ("--user alice --client app", "consumer_byte_rate=1e3", "consumer_byte_rate"),
        (
            "--entity-type users --entity-name bob --entity-type clients --entity-default",
            "controller_mutation_rate=0.5",
            "controller_mutation_rate",
        ),
        ("--ip 127.0.0.1", "connection_creation_rate=10", "connection_creation_rate"),
        ("--ip-defaults", "connection_creation_rate=20", "connection_creation_rate"),
    ],
)
def test_quotas(tools: Tools, entity: str, added: str, key: str) -> None:
    words = entity.split()
    done = alter(tools, *words, "--add-config", added)
    assert done == tools.ask_kafka("configs", "--alter", *words, "--add-config", added).output
    eventually(
        lambda: key in tools.ask_kafka("configs", "--describe", *words).output,
        what=f"{added} is set",
    )
    assert key in tools.same("configs", "--describe", *words)
    assert alter(tools, *words, "--delete-config", key) == done
    eventually(
        lambda: key not in tools.run("configs", "--describe", *words), what=f"{key} is not set"
    )
    assert tools.same("configs", "--describe", *words) == ""


def test_credentials(tools: Tools) -> None:
    other = "SCRAM-SHA-512=[password=other]"
    alter(tools, "--user", "carol", "--add-config", other)
    added = "SCRAM-SHA-256=[iterations=8192,password=secret]"
    done = alter(tools, "--user", "carol", "--add-config", added)
    assert done == "Completed updating config for user carol.\n"
    assert "secret" not in done
    eventually(
        lambda: "8192" in tools.run("configs", "--describe", "--user", "carol"), what="it is known"
    )
    shown = tools.same("configs", "--describe", "--user", "carol")
    start, _, credentials = shown.rstrip("\n").partition(" are ")
    assert start == "SCRAM credential configs for user-principal 'carol'"
    # Kafka's broker lists them in another order after each start.
    wanted = ["SCRAM-SHA-256=iterations=8192", "SCRAM-SHA-512=iterations=4096"]
    assert sorted(credentials.split(", ")) == wanted
    assert shown == tools.same("configs", "--describe", "--entity-type", "users")
    ended = tools.ask("configs", "--alter", "--user", "carol", "--add-config", f"{added},{other}")
    assert ended.status == 1
    assert "cannot be altered twice in the same request" in ended.err
    assert "secret" not in ended.err
    for name in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        alter(tools, "--user", "carol", "--delete-config", name)
    eventually(
        lambda: not tools.run("configs", "--describe", "--entity-type", "users"), what="it is gone"
    )
    tools.same("configs", "--describe", "--user", "carol")


def test_all_entities_of_a_type(tools: Tools) -> None:
    for name in ("erin", "frank"):
        alter(tools, "--user", name, "--add-config", "producer_byte_rate=1000")
    eventually(
        lambda: tools.run("configs", "--describe", "--entity-type", "users").count("\n") == 2,
        what="both have a quota",
    )
    tools.same("configs", "--describe", "--entity-type", "users", ordered=False)
    assert (
        tools.same("configs", *["--describe", "--entity-type", "users", "--entity-type", "clients"])
        == ""
    )
    assert tools.same("configs", "--describe", "--entity-type", "ips") == ""
    found = json.loads(tools.run("configs", "--describe", "--user", "erin", "--json"))
    assert found["quotas"] == [{"entity": {"user": "erin"}, "values": {"producer_byte_rate": 1000}}]
    for name in ("erin", "frank"):
        alter(tools, "--user", name, "--delete-config", "producer_byte_rate")


@pytest.mark.parametrize(
    "words",
    [
        "--alter --user alice --add-config producer_byte_rate=many",
        "--alter --user alice --delete-config producer_byte_rate",
    ],
)
def test_the_same_is_refused(tools: Tools, words: str) -> None:
    tools.same_failure("configs", *words.split())


# The metadata shell.


@pytest.fixture(scope="module")
def log(kafka: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a controller that was given something of everything."""
    tools = Tools(kafka.bootstrap)
    tools.run("topics", "--create", "--topic", "alpha", "--partitions", "11")
    eventually(lambda: "alpha" in tools.run("topics", "--list"), what="the topic is known")
    for words in (
        "--topic alpha --add-config retention.ms=5000",
        "--broker-defaults --add-config num.io.threads=9",
        "--user alice --add-config producer_byte_rate=12345678",
        "--user a(b)\\c --client app --add-config consumer_byte_rate=1024",
        "--user alice --add-config SCRAM-SHA-256=[password=secret]",
        "--client-metrics watch --add-config interval.ms=1000",
    ):
        tools.run("configs", "--alter", *words.split())
    acl = "--add --topic alpha --allow-principal User:eve --operation Read"
    tools.run("acls", *acl.split())
    (folder,) = kafka.data_folders
    name = "00000000000000000000.log"
    # It goes on being written.
    copy = tmp_path_factory.mktemp("log") / name
    return Path(shutil.copy(folder / "__cluster_metadata-0" / name, copy))


def shell(log: Path, *words: str) -> str:
    ended = moldau_cli("metadata-shell", "--snapshot", str(log), *words)
    assert (ended.status, ended.err) == (0, "")
    return ended.out


def test_the_tree_is_kafkas(log: Path) -> None:
    ours = shell(log, "tree", "/image")
    assert ours == run_program("MetadataTree.java", str(log))
    for part in (
        "clientId(app)_user(a\\(b\\)\\\\c):",
        "producer_byte_rate:\n      1.2345678E7",
        "StandardAcl[resourceType=TOPIC, resourceName=alpha, patternType=LITERAL, "
        "principal=User:eve, host=*, operation=READ, permissionType=ALLOW]",
        "ScramCredentialData(salt=",
        "TOPIC:alpha:\n    retention.ms:\n      5000",
    ):
        assert part in ours


def test_single_commands(log: Path) -> None:
    assert shell(log, "ls") == "image\nlocal\n"
    assert shell(log, "ls", "/image/topics/byName") == "alpha\n"
    partitions = shell(log, "ls", "/image/topics/byName/alpha").split()
    assert partitions == [*sorted(map(str, range(11))), "id", "name"]
    assert shell(log, "cat", "/image/topics/byName/alpha/name") == "alpha\n"
    assert shell(log, "cat", "/image/configs/TOPIC:*/retention.ms") == "5000\n"
    assert shell(log, "ls", "/image/{scram,producerIds}") == (
        "producerIds:\nnextProducerId\n\nscram:\nSCRAM-SHA-256\nSCRAM-SHA-512\n"
    )
    assert shell(log, "find", "/image/scram") == (
        "/image/scram\n/image/scram/SCRAM-SHA-256\n/image/scram/SCRAM-SHA-256/alice\n"
        "/image/scram/SCRAM-SHA-512\n"
    )
    assert re.match(
        r"offset \d+, epoch \d+, time .*Z\[UTC\]\n", shell(log, "cat", "/image/provenance")
    )


def test_commands_that_find_nothing(log: Path) -> None:
    assert shell(log, "cat", "/nothing") == "cat: /nothing: No such file or directory.\n"
    assert shell(log, "cat", "/image") == "cat: /image: Is a directory\n"
    assert shell(log, "ls", "/image/x*") == "ls: /image/x*: no such file or directory.\n"
    assert shell(log, "find", "x") == "find: x: no such file or directory.\n"
    assert shell(log, "tree", "x") == "tree: x: No such file or directory.\n"
    assert "invalid choice: 'tre'. Did you mean tree?" in shell(log, "tre")
    assert "too few arguments" in shell(log, "cat")
    # Only where there is a session they mean something.
    assert "invalid choice: 'cd'" in shell(log, "cd", "/image")


def test_a_session(log: Path) -> None:
    typed = "cd image/topics\npwd\nls\ncd byName/../..\npwd\ncd nothing\ncd provenance\nman ls\n"
    done = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "metadata-shell", "-s", str(log)],
        input=f"{typed}exit\nls\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = done.stdout.replace(">> ", "")
    assert said == (
        "Loading...\nStarting...\n[ Kafka Metadata Shell ]\n"
        "/image/topics\nbyId  byName\n/image\ncd: nothing: no such directory.\n"
        "cd: provenance: not a directory.\nls: list directories\n\nusage: ls [PATH ...]\n"
    )


def test_a_file_that_is_none(log: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "odd.log").write_bytes(b"x" * 200)
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    (tmp_path / "damaged.log").write_bytes(data)
    for name, words in (
        ("missing.log", "No such file"),
        ("empty.log", "contains no records"),
        ("odd.log", "magic"),
        ("damaged.log", "damaged"),
    ):
        ended = moldau_cli("metadata-shell", "-s", str(tmp_path / name), "ls")
        assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1)
        assert words in ended.err
