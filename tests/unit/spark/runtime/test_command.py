"""The settings of a server: ours, the user's, and what becomes of both."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePath

import pytest

from moldau.spark.runtime.errors import SparkRuntimeError
from moldau.spark.runtime.machine.checkpoint_class import CLASS_NAME
from moldau.spark.runtime.machine.command import (
    Environment,
    Shipped,
    log_settings,
    master_of,
    properties_text,
    server_conf,
    spark_submit,
)
from moldau.spark.runtime.machine.settings import ServerSettings, ServerState, parse_conf
from moldau.spark.runtime.places import Places, cache_folder

GIB = 1 << 30


def conf_of(
    settings: ServerSettings, *, places: Places | None = None, **environment: object
) -> dict[str, str]:
    given = {"cores": 4, "memory_bytes": 16 * GIB, "port": 15002} | environment
    return server_conf(
        settings,
        places or Places("/deploy"),
        Environment(**given),  # type: ignore[arg-type]
    )


def test_a_local_server_is_small_and_for_this_machine_only() -> None:
    conf = conf_of(ServerSettings())
    assert conf["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert conf["spark.connect.grpc.binding.port"] == "15002"
    assert conf["spark.connect.session.manager.defaultSessionTimeout"] == "7d"
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.sql.shuffle.partitions"] == "4"
    assert conf["spark.driver.memory"] == "2g"
    assert conf["spark.eventLog.dir"] == "file:///deploy/events"
    assert conf["spark.moldau.connector"] == "moldau"
    assert "spark.archives" not in conf


def test_files_of_checkpoints_are_written_without_processes_on_one_machine_only() -> None:
    key, path = "spark.sql.streaming.checkpointFileManagerClass", "spark.driver.extraClassPath"
    conf = conf_of(ServerSettings())
    assert (conf[key], conf[path]) == (CLASS_NAME, "/deploy/checkpoint-files.jar")
    assert conf_of(ServerSettings(master="spark://host:7077")).keys().isdisjoint({key, path})
    own = conf_of(ServerSettings(conf={key: "org.example.Own", path: "/own.jar"}))
    assert own[key] == "org.example.Own"
    assert own[path] == "/deploy/checkpoint-files.jar:/own.jar"
    assert conf_of(ServerSettings(), places=Places("/a:b")).keys().isdisjoint({key, path})


def test_a_cluster_gets_the_packages_and_its_own_defaults() -> None:
    shipped = Shipped("/cache/abc.tar.gz", "/cache/abc")
    conf = conf_of(ServerSettings(master="spark://host:7077"), shipped=shipped)
    assert conf["spark.archives"] == "/cache/abc.tar.gz#moldau_packages"
    assert conf["spark.executorEnv.PYTHONPATH"] == "moldau_packages:../moldau_packages"
    assert "spark.sql.shuffle.partitions" not in conf
    assert "spark.driver.host" not in conf


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://10.0.0.1:7077", False),
        ("k8s://https://10.0.0.1:6443", False),
    ],
)
def test_the_driver_listens_for_others_only_where_others_are(master: str, here: bool) -> None:
    conf = conf_of(ServerSettings(master=master))
    assert conf.get("spark.driver.bindAddress") == ("127.0.0.1" if here else None)


def test_the_users_settings_win_and_lists_are_joined() -> None:
    own = {
        "spark.driver.memory": "8g",
        "spark.jars": "/own.jar",
        "spark.archives": "/env.tar.gz#env",
        "spark.executorEnv.PYTHONPATH": "env",
        "spark.driver.extraJavaOptions": "-Dx=y",
    }
    conf = conf_of(
        ServerSettings(master="yarn", conf=own),
        jars=["/kafka.jar"],
        shipped=Shipped("/a.tar.gz", "/a"),
    )
    assert conf["spark.driver.memory"] == "8g"
    assert conf["spark.jars"] == "/kafka.jar,/own.jar"
    assert conf["spark.moldau.connector"] == "kafka"
    assert conf["spark.archives"] == "/a.tar.gz#moldau_packages,/env.tar.gz#env"
    assert conf["spark.executorEnv.PYTHONPATH"] == "moldau_packages:../moldau_packages:env"
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Dx=y")
    assert "ExitOnOutOfMemoryError" in conf["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(
    ("master", "given", "environ", "collectors"),
    [
        ("local[*]", "", "", ["-XX:+UseSerialGC"]),
        ("local[*]", "-XX:+UseZGC", "", ["-XX:+UseZGC"]),
        ("local[*]", "", "-XX:+UseParallelGC", []),
        ("yarn", "", "", []),
    ],
)
def test_java_takes_little_memory_and_has_one_collector(
    master: str, given: str, environ: str, collectors: list[str]
) -> None:
    own = {"spark.driver.extraJavaOptions": given}
    conf = conf_of(ServerSettings(master=master, conf=own), java_options=environ)
    options = conf["spark.driver.extraJavaOptions"].split()
    assert [each for each in options if each.endswith("GC")] == collectors
    assert ("-Xms64m" in options) == (master != "yarn")
    assert ("-XX:-UsePerfData" in options) == (master != "yarn")


def test_python_talks_over_sockets_where_there_is_a_folder_for_them() -> None:
    enabled, folder = (f"spark.python.unix.domain.socket.{each}" for each in ("enabled", "dir"))
    assert enabled not in conf_of(ServerSettings())
    conf = conf_of(ServerSettings(), sockets="/d/sockets")
    assert (conf[enabled], conf[folder]) == ("true", "/d/sockets")
    assert conf_of(ServerSettings(conf={enabled: "false"}), sockets="/d")[enabled] == "false"


def test_a_connector_that_the_user_brings_is_known() -> None:
    coordinate = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
    for settings in (
        ServerSettings(packages=(coordinate,)),
        ServerSettings(conf={"spark.jars.packages": coordinate}),
    ):
        assert conf_of(settings)["spark.moldau.connector"] == "kafka"


def test_the_command_line() -> None:
    settings = ServerSettings(master="local[2]")
    conf = {"b": "2", "a": "1"}
    secrets = PurePath("/f/secret.conf")
    program = "/spark/bin/spark-submit"
    command = spark_submit(program, settings, conf, ["g:a:1"], secrets=secrets, cores=2)
    assert command[:7] == [
        *("/spark/bin/spark-submit", "--master", "local[2]", "--conf", "a=1", "--conf", "b=2")
    ]
    assert command[7:9] == ["--packages", "g:a:1"]
    assert command[-1] == "spark-internal"


def test_secrets_are_in_a_file_instead_of_the_command_line() -> None:
    settings = ServerSettings(conf={"spark.ssl.keyPassword": " a\\b\nc", "spark.x": "y"})
    conf = conf_of(settings)
    command = spark_submit(
        "submit", settings, conf, [], secrets=PurePath("/f/secret.conf"), cores=2
    )
    assert command[3:6] == ["--properties-file", "/f/secret.conf", "--load-spark-defaults"]
    assert not any("keyPassword" in word for word in command)
    assert "spark.x=y" in command
    assert properties_text(conf) == "spark.ssl.keyPassword=\\ a\\\\b\\nc\n"


@pytest.mark.parametrize(
    ("key", "redacted"),
    [
        ("kafka.sasl.jaas.config", True),
        ("kafka.ssl.keystore.key", True),
        ("kafka.ssl.keystore.certificate.chain", True),
        ("kafka.ssl.truststore.certificates", True),
        ("kafka.ssl.truststore.password", True),
        ("kafka.sasl.oauthbearer.client.credentials.client.secret", True),
        ("kafka.sasl.oauthbearer.assertion.private.key.passphrase", True),
        ("spark.connect.authenticate.token", True),
        ("spark.own.thing", True),
        ("kafka.sasl.mechanism", False),
        ("kafka.ssl.keystore.location", False),
        ("kafka.ssl.keystore.type", False),
        ("spark.driver.memory", False),
    ],
)
def test_what_spark_does_not_show(key: str, redacted: bool) -> None:
    own = ServerSettings(conf={"spark.redaction.regex": "own[.]thing"})
    pattern = conf_of(own)["spark.redaction.regex"]
    assert (re.search(pattern, key) is not None) is redacted


def test_what_spark_does_not_show_of_requests() -> None:
    pattern = conf_of(ServerSettings())["spark.redaction.string.regex"]
    request = (
        'options {\n  key: "kafka.sasl.jaas.config"\n  value: "X required password=\\"p\\";"\n}\n'
        'options {\n  key: "kafka.sasl.mechanism"\n  value: "PLAIN"\n}\n'
        'options {\n  key: "kafka.ssl.key.password"\n  value: "cut of'
    )
    assert re.sub(pattern, "-", request) == (
        'options {\n  -"\n}\n'
        'options {\n  key: "kafka.sasl.mechanism"\n  value: "PLAIN"\n}\n'
        "options {\n  -"
    )


def test_the_log_rolls_over() -> None:
    text = log_settings(Places("/deploy"))
    assert "appender.file.fileName = /deploy/server.log" in text
    assert "%d{yyyy-MM-dd HH:mm:ss}" in text
    assert "strategy.max = 5" in text


def test_settings_and_state_survive_a_file() -> None:
    settings = ServerSettings(master="yarn", conf={"a": "b"}, packages=("g:a:1",), port=4)
    assert ServerSettings.from_json(settings.to_json()) == settings
    state = ServerState(
        pid=3, mark="m", url="sc://h:1", master="yarn", log="l", versions={"a": "b"}
    )
    assert ServerState.from_json(state.to_json()) == state
    newer = json.dumps({**json.loads(state.to_json()), "of_tomorrow": 1})
    assert ServerState.from_json(newer) == state
    for text in ("", "[]", '{"pid": 1}'):
        with pytest.raises(ValueError):
            ServerState.from_json(text)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"connector": "kafak"}, "choose one of auto, moldau, kafka"),
        ({"port": 70000}, "between 0 and 65535"),
        ({"master": " "}, "master is empty"),
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(SparkRuntimeError, match=words):
        ServerSettings(**wrong)  # type: ignore[arg-type]


def test_confs_are_parsed_as_by_spark_submit() -> None:
    assert parse_conf(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(SparkRuntimeError, match=r"--conf nothing: expected key=value"):
        parse_conf(["nothing"])


def test_where_the_cache_is() -> None:
    assert cache_folder({"MOLDAU_CACHE": "/x"}) == Path("/x")
    assert cache_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/moldau/spark")
    assert cache_folder({}) == Path.home() / ".cache" / "moldau" / "spark"


@pytest.mark.parametrize(
    ("master", "cores", "given"),
    [
        ("local[*]", 2, "local[16,4]"),
        ("local[*]", 32, "local[64,4]"),
        ("local[2]", 2, "local[2]"),
        ("spark://h:7077", 2, "spark://h:7077"),
    ],
)
def test_the_default_has_slots_for_hosted_instances(master: str, cores: int, given: str) -> None:
    assert master_of(ServerSettings(master=master), cores=cores) == given
