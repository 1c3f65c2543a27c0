"""Spark's own connector: which jars, from where, and what is said where they cannot be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moldau.spark import sessions
from moldau.spark.runtime import connector
from moldau.spark.runtime.connector import cached, candidates, coordinate, fetch, maven_problem
from moldau.spark.runtime.errors import ConnectorUnavailable, SparkRuntimeError
from moldau.spark.runtime.java import JavaHome
from moldau.spark.sessions import topic_format

# Has the artifacts that `HAS` lists, else says what Maven says.
MAVEN = f"""#!{sys.executable}
import os, sys
given = dict(word[2:].split("=", 1) for word in sys.argv if word.startswith("-D"))
group, name, version = given["artifact"].split(":")
with open(os.environ["ASKED"], "a") as file:
    print(f"{{name}}:{{version}}", file=file)
if os.environ.get("OFFLINE"):
    sys.exit("[ERROR] Failed: Connect to repo failed: Connection refused")
if version not in os.environ["HAS"].split(","):
    sys.exit(f"[ERROR] Could not find artifact {{given['artifact']}} in central")
open(os.path.join(given["outputDirectory"], f"{{name}}-{{version}}.jar"), "w").close()
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mvn").write_text(MAVEN)
    (tmp_path / "bin" / "mvn").chmod(0o755)
    (tmp_path / "asked").write_text("")
    return {
        "PATH": str(tmp_path / "bin"),
        "ASKED": str(tmp_path / "asked"),
        "HAS": "4.2.0,3.9.1,2.12.0",
    }


def test_it_is_asked_for_at_sparks_own_version_first() -> None:
    assert coordinate("4.3.0") == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
    first, *_ = candidates("4.3.0")
    assert first.versions[:2] == ("4.3.0", "4.2.0")
    assert candidates("4.2.0")[0].versions[:2] == ("4.2.0", "4.1.1")


def test_each_jar_is_the_newest_that_can_be_had(tmp_path: Path, environ: dict[str, str]) -> None:
    jars = fetch(tmp_path / "cache", "4.3.0", environ)
    assert [jar.name for jar in jars] == [
        "commons-pool2-2.12.0.jar",
        "kafka-clients-3.9.1.jar",
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.2.0.jar",
    ]
    asked = (tmp_path / "asked").read_text()
    assert fetch(tmp_path / "cache", "4.3.0", environ) == jars
    assert (tmp_path / "asked").read_text() == asked, "what was had once is not asked for again"


def test_offline_is_one_line_after_one_question(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConnectorUnavailable) as told:
        fetch(tmp_path / "cache", "4.3.0", environ | {"OFFLINE": "1"})
    assert str(told.value) == (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0 cannot be fetched with Maven here "
        "(no repository can be reached)"
    )
    assert (tmp_path / "asked").read_text().count("\n") == 1
    assert cached(tmp_path / "cache", "4.3.0") == []


def test_half_of_it_is_not_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConnectorUnavailable, match=r"commons-pool2:2\.12\.1.*no repository has it"):
        fetch(tmp_path / "cache", "4.3.0", environ | {"HAS": "4.3.0,3.9.1"})
    assert list((tmp_path / "cache").iterdir()) == []


def test_other_words_of_maven() -> None:
    assert maven_problem("[INFO] x\n[ERROR] Something odd\n[ERROR] more") == "Something odd"
    assert maven_problem("") == "it failed without a message"


def test_of_what_spark_resolves_only_what_it_lacks_is_kept() -> None:
    found = [
        Path("org.apache.spark_spark-sql-kafka-0-10_2.13-4.2.0.jar"),
        Path("org.apache.kafka_kafka-clients-3.9.1.jar"),
        Path("org.slf4j_slf4j-api-2.0.16.jar"),
    ]
    assert connector._needed(found) == found[:2]


# In the place of Spark's script: has the version that `HAS` says, with one jar too many.
SPARK_SUBMIT = f"""#!{sys.executable}
import os, sys
wanted = sys.argv[sys.argv.index("--packages") + 1].split(":")
with open(os.environ["ASKED"], "a") as file:
    print(":".join(wanted[1:]), os.environ["JAVA_HOME"], file=file)
if os.environ.get("OFFLINE"):
    sys.exit("Server access error at url\\n:: unresolved dependency: a#b;1: not found")
if wanted[2] not in os.environ["HAS"]:
    sys.exit(":: unresolved dependency: a#b;1: not found")
ivy = next(word for word in sys.argv if word.startswith("spark.jars.ivy=")).partition("=")[2]
os.makedirs(f"{{ivy}}/jars")
for name in (f"org.apache.spark_{{wanted[1]}}-{{wanted[2]}}", "org.slf4j_slf4j-api-2.0.16"):
    open(f"{{ivy}}/jars/{{name}}.jar", "w").close()
"""


@pytest.fixture
def without_maven(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    (tmp_path / "bin" / "mvn").unlink()
    (tmp_path / "bin" / "spark-submit").write_text(SPARK_SUBMIT)
    (tmp_path / "bin" / "spark-submit").chmod(0o755)
    monkeypatch.setattr(connector, "spark_home", lambda: tmp_path)
    java = JavaHome("/jvm", 21, "PATH", "/usr/bin/java")
    monkeypatch.setattr(connector, "find_java", lambda environ, cache: java)
    return environ


def test_without_maven_spark_resolves_it(tmp_path: Path, without_maven: dict[str, str]) -> None:
    jars = fetch(tmp_path / "cache", "4.3.0", without_maven)
    assert [jar.name for jar in jars] == ["spark-sql-kafka-0-10_2.13-4.2.0.jar"]
    assert (tmp_path / "asked").read_text().splitlines() == [
        "spark-sql-kafka-0-10_2.13:4.3.0 /jvm",
        "spark-sql-kafka-0-10_2.13:4.2.0 /jvm",
    ]


def test_without_maven_and_offline(tmp_path: Path, without_maven: dict[str, str]) -> None:
    with pytest.raises(ConnectorUnavailable, match=r"resolver here \(no repository can be reached"):
        fetch(tmp_path / "cache", "4.3.0", without_maven | {"OFFLINE": "1"})
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


class Session:
    """What is asked of a session: its settings."""

    def __init__(self, **settings: str) -> None:
        self.conf = {key.replace("_", "."): value for key, value in settings.items()}


@pytest.mark.parametrize(
    ("settings", "asked", "got"),
    [
        ({"spark_moldau_connector": "kafka"}, "auto", "kafka"),
        ({"spark_moldau_connector": "kafka"}, "moldau", "moldau"),
        ({"spark_moldau_connector": "moldau"}, "auto", "moldau"),
        ({"spark_jars_packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"},
         "kafka", "kafka"),
        ({}, "auto", "moldau"),
    ],
)  # fmt: skip
def test_which_connector_topics_go_through(settings: dict[str, str], asked: str, got: str) -> None:
    assert topic_format(Session(**settings), asked) == got


def test_a_connector_that_is_not_there() -> None:
    with pytest.raises(SparkRuntimeError, match="moldau spark start --connector kafka"):
        topic_format(Session(), "kafka")
    with pytest.raises(SparkRuntimeError, match="choose one of"):
        topic_format(Session(), "kafak")


@pytest.mark.parametrize(
    ("url", "got"),
    [
        ("sc://h:1", "sc://h:1/;user_id=moldau"),
        ("sc://h:1/;token=a;user_id=x", "sc://h:1/;token=a;user_id=moldau"),
    ],
)
def test_parameters_of_an_address(url: str, got: str) -> None:
    assert sessions._with_parameter(url, "user_id", "moldau") == got


@pytest.mark.parametrize(
    ("url", "left", "token"),
    [
        pytest.param("sc://localhost:1", "sc://localhost:1", "env", id="from the environment"),
        pytest.param("sc://127.0.0.1:1/;token=a%2Fb", "sc://127.0.0.1:1", "a/b", id="in the URL"),
        pytest.param(
            "sc://[::1]:1/;user_id=x;token=a;y=z", "sc://[::1]:1/;user_id=x;y=z", "a",
            id="among others",
        ),
        pytest.param(
            "sc://10.0.0.1:1/;use_ssl=false;token=a", "sc://10.0.0.1:1/;use_ssl=false", "a",
            id="elsewhere, as the URL says",
        ),
        pytest.param("sc://h:1/;token=a", "sc://h:1/;token=a", None, id="elsewhere: by TLS"),
        pytest.param(
            "sc://localhost:1/;use_ssl=true;token=a", "sc://localhost:1/;use_ssl=true;token=a",
            None, id="here by TLS",
        ),
    ],
)  # fmt: skip
def test_a_token_is_sent_in_the_clear_to_this_machine_only(
    url: str, left: str, token: str | None
) -> None:
    assert sessions.split_token(url, "env") == (left, token)


def test_a_session_proves_itself_to_the_address_that_the_server_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "of another server")
    channel = sessions._channel("sc://localhost:7/;user_id=me", "abc")
    assert channel.endpoint == "127.0.0.1:7"
    assert not channel.secure
    assert channel.metadata() == [("authorization", "Bearer abc")]
