"""Connect's REST interface: answers, states, offsets, errors with Connect's codes and texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Producer
from moldau.connect.api import ConnectError, SourceTask
from moldau.connect.connectors.filestream.source import (
    FileStreamSourceConnector,
    FileStreamSourceTask,
)
from support.connect_workers import (
    WorkerUnderTest,
    call,
    distributed_worker,
    standalone_worker,
)
from support.processes import BrokerProcess
from support.waiting import eventually

FILE_SOURCE = "FileStreamSource"


@pytest.fixture(scope="module")
def worker(broker: BrokerProcess) -> Iterator[WorkerUnderTest]:
    with distributed_worker(broker.bootstrap, "rest") as found:
        yield found


@pytest.fixture
def source(worker: WorkerUnderTest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A running source connector, `lines`."""
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    config = {"connector.class": FILE_SOURCE, "file": str(file), "topic": "lines"}
    assert worker.call("PUT", "/connectors/lines/config", config).status == 201
    worker.wait_for("lines", "RUNNING", "RUNNING")
    yield config
    worker.call("DELETE", "/connectors/lines")
    eventually(
        lambda: worker.call("GET", "/connectors/lines/status").status == 404, what="it to be gone"
    )


def test_the_worker(worker: WorkerUnderTest) -> None:
    root = worker.call("GET", "/").body
    assert root.keys() == {"version", "commit", "kafka_cluster_id"}
    assert root["kafka_cluster_id"]
    assert worker.call("GET", "/health").body == {
        "status": "healthy",
        "message": "Worker has completed startup and is ready to handle requests.",
    }


def test_reading_a_connector(worker: WorkerUnderTest, source: dict[str, str]) -> None:
    info = worker.call("GET", "/connectors/lines").body
    assert info == {
        "name": "lines",
        "config": {**source, "name": "lines"},
        "tasks": [{"connector": "lines", "task": 0}],
        "type": "source",
    }
    assert worker.call("GET", "/connectors/lines/config").body == info["config"]
    tasks = worker.call("GET", "/connectors/lines/tasks").body
    assert tasks[0]["id"] == {"connector": "lines", "task": 0}
    assert tasks[0]["config"]["file"] == source["file"]
    assert "task.class" in tasks[0]["config"]
    expanded = worker.call("GET", "/connectors?expand=status&expand=info").body
    assert expanded["lines"]["info"] == info
    assert expanded["lines"]["status"]["connector"]["state"] == "RUNNING"
    task = worker.call("GET", "/connectors/lines/tasks/0/status").body
    assert (task["id"], task["state"]) == (0, "RUNNING")


def test_pause_resume_stop_and_offsets(worker: WorkerUnderTest, source: dict[str, str]) -> None:
    path = "/connectors/lines"
    # Offsets outlive their connector, so those of earlier tests are there too.
    wanted = {"partition": {"filename": source["file"]}, "offset": {"position": 8}}

    def is_stored() -> bool:
        return wanted in worker.call("GET", f"{path}/offsets").body["offsets"]

    eventually(is_stored, what="the offsets")
    assert worker.call("PUT", f"{path}/pause").status == 202
    worker.wait_for("lines", "PAUSED", "PAUSED")
    assert worker.call("PUT", f"{path}/resume").status == 202
    worker.wait_for("lines", "RUNNING", "RUNNING")
    refused = worker.call("DELETE", f"{path}/offsets")
    assert refused.status == 400
    assert "must be in the STOPPED state" in refused.body["message"]
    assert worker.call("PUT", f"{path}/stop").status == 204
    worker.wait_for("lines", "STOPPED")
    altered = worker.call(
        "PATCH",
        f"{path}/offsets",
        {"offsets": [{"partition": {"filename": source["file"]}, "offset": {"position": 4}}]},
    )
    assert (altered.status, altered.body) == (
        200,
        {"message": "The offsets for this connector have been altered successfully"},
    )
    bad = worker.call(
        "PATCH",
        f"{path}/offsets",
        {"offsets": [{"partition": {"filename": "x"}, "offset": {"position": -1}}]},
    )
    assert bad.status == 500
    assert "non-negative" in bad.body["message"]
    assert worker.call("PUT", f"{path}/resume").status == 202
    worker.wait_for("lines", "RUNNING", "RUNNING")
    eventually(is_stored, what="one line more")
    worker.call("PUT", f"{path}/stop")
    reset = worker.call("DELETE", f"{path}/offsets").body["message"]
    assert reset == "The offsets for this connector have been reset successfully"
    assert worker.call("GET", f"{path}/offsets").body == {"offsets": []}


def test_a_sink_has_the_offsets_of_its_group(
    worker: WorkerUnderTest, source: dict[str, str], tmp_path: Path
) -> None:
    result = tmp_path / "out.txt"
    config = {"connector.class": "FileStreamSink", "file": str(result), "topics": "lines"}
    made = worker.call(
        "POST", "/connectors", {"name": "out", "config": config, "initial_state": "STOPPED"}
    )
    assert made.status == 201
    worker.wait_for("out", "STOPPED")
    partition = {"kafka_topic": "lines", "kafka_partition": 0}
    altered = worker.call(
        "PATCH",
        "/connectors/out/offsets",
        {"offsets": [{"partition": partition, "offset": {"kafka_offset": "1"}}]},
    )
    assert altered.status == 200, altered.body
    assert worker.call("GET", "/connectors/out/offsets").body == {
        "offsets": [{"partition": partition, "offset": {"kafka_offset": 1}}]
    }
    worker.call("PUT", "/connectors/out/resume")
    eventually(
        lambda: result.exists() and result.read_text().startswith("two\n"), what="the second line"
    )
    worker.call("DELETE", "/connectors/out")


def test_a_connector_that_is_created_again_at_once(worker: WorkerUnderTest, tmp_path: Path) -> None:
    """Also before the group has noticed that it was deleted."""
    file = tmp_path / "in.txt"
    file.write_text("x\n")
    config = {"connector.class": FILE_SOURCE, "file": str(file), "topic": "again"}
    for _ in range(5):
        assert worker.call("PUT", "/connectors/again/config", config).status == 201
        assert worker.call("DELETE", "/connectors/again").status == 204
    worker.call("PUT", "/connectors/again/config", config)
    worker.wait_for("again", "RUNNING", "RUNNING")
    assert worker.call("PUT", "/connectors/again/stop").status == 204
    assert worker.call("PUT", "/connectors/again/resume").status == 202
    worker.wait_for("again", "RUNNING", "RUNNING")
    worker.call("DELETE", "/connectors/again")


def test_metrics_of_tasks(worker: WorkerUnderTest, source: dict[str, str]) -> None:
    wanted = 'kafka_connect_source_task_source_record_write_total{connector="lines",task="0"} 2'
    eventually(lambda: wanted in worker.call("GET", "/metrics").body, what="two records written")
    assert "kafka_connect_worker_task_count 1" in worker.call("GET", "/metrics").body


class MeasuredTask(FileStreamSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        metrics = self.context.plugin_metrics
        metrics.add_metric("queue-size", lambda: 7, description="Waiting", tags={"kind": 'a"b'})
        metrics.add_metric("broken", lambda: 1 / 0)
        gone = metrics.add_metric("gone", lambda: 1)
        metrics.remove_metric(gone)
        with pytest.raises(ConnectError, match="already exists"):
            metrics.add_metric("queue-size", lambda: 8, tags={"kind": 'a"b'})


class MeasuredSource(FileStreamSourceConnector):
    def start(self, props: Mapping[str, str]) -> None:
        super().start(props)
        self.context.plugin_metrics.add_metric("tables", lambda: 2.5)

    def task_class(self) -> type[SourceTask]:
        return MeasuredTask


def test_metrics_of_plug_ins(worker: WorkerUnderTest, tmp_path: Path) -> None:
    config = {
        "connector.class": f"{__name__}.MeasuredSource", "file": str(tmp_path / "in"),
        "topic": "measured",
    }  # fmt: skip
    assert worker.call("PUT", "/connectors/measured/config", config).status == 201
    worker.wait_for("measured", "RUNNING", "RUNNING")
    shown = worker.call("GET", "/metrics").body
    of_task = 'connector="measured",task="0"'
    assert f'kafka_connect_plugin_queue_size{{{of_task},kind="a\\"b"}} 7\n' in shown
    assert "# HELP kafka_connect_plugin_queue_size Waiting\n" in shown
    assert 'kafka_connect_plugin_tables{connector="measured"} 2.5\n' in shown
    assert "plugin_gone" not in shown
    assert "plugin_broken" not in shown
    worker.call("DELETE", "/connectors/measured")
    eventually(lambda: "plugin" not in worker.call("GET", "/metrics").body, what="no metrics")


def test_restarts(worker: WorkerUnderTest, source: dict[str, str]) -> None:
    path = "/connectors/lines"
    assert worker.call("POST", f"{path}/restart").status == 204
    shown = worker.call("POST", f"{path}/restart?includeTasks=true&onlyFailed=false")
    assert shown.status == 202
    assert shown.body["connector"]["state"] == "RESTARTING"
    assert shown.body["tasks"][0]["state"] == "RESTARTING"
    worker.wait_for("lines", "RUNNING", "RUNNING")
    assert worker.call("POST", f"{path}/tasks/0/restart").status == 204
    worker.wait_for("lines", "RUNNING", "RUNNING")


def test_a_failed_task_says_why_and_can_be_restarted(
    worker: WorkerUnderTest, tmp_path: Path
) -> None:
    folder = tmp_path / "missing"
    config = {"connector.class": "FileStreamSink", "file": f"{folder}/x", "topics": "lines"}
    worker.call("PUT", "/connectors/broken/config", config)
    worker.wait_for("broken", "RUNNING", "FAILED")
    trace = worker.call("GET", "/connectors/broken/tasks/0/status").body["trace"]
    assert "Couldn't find or create file" in trace
    folder.mkdir()
    worker.call("POST", "/connectors/broken/restart?includeTasks=true&onlyFailed=true")
    worker.wait_for("broken", "RUNNING", "RUNNING")
    worker.call("DELETE", "/connectors/broken")


def test_patching_a_configuration(worker: WorkerUnderTest, source: dict[str, str]) -> None:
    patched = worker.call(
        "PATCH", "/connectors/lines/config", {"batch.size": "10", "topic": "others"}
    )
    assert patched.status == 200
    assert patched.body["config"]["batch.size"] == "10"
    removed = worker.call("PATCH", "/connectors/lines/config", {"batch.size": None})
    assert "batch.size" not in removed.body["config"]
    assert removed.body["config"]["topic"] == "others"
    worker.wait_for("lines", "RUNNING", "RUNNING")


def error(worker: WorkerUnderTest, method: str, path: str, body: Any = None) -> tuple[int, str]:
    found = worker.call(method, path, body)
    assert found.body["error_code"] == found.status
    return found.status, found.body["message"]


def test_errors(worker: WorkerUnderTest, source: dict[str, str]) -> None:
    assert error(worker, "GET", "/connectors/none") == (404, "Connector none not found")
    assert error(worker, "GET", "/connectors/none/status") == (
        404,
        "No status found for connector none",
    )
    assert error(worker, "PUT", "/connectors/none/pause") == (404, "Unknown connector none")
    assert error(worker, "POST", "/connectors/lines/tasks/7/restart") == (
        404,
        "Unknown task: lines-7",
    )
    config = {"connector.class": FILE_SOURCE, "topic": "t"}
    assert error(worker, "POST", "/connectors", {"name": "lines", "config": config}) == (
        409,
        "Connector lines already exists",
    )
    status, message = error(
        worker, "POST", "/connectors", {"name": "x", "config": {"connector.class": FILE_SOURCE}}
    )
    assert status == 400
    assert message.startswith(
        "Connector configuration is invalid and contains the following 1 error(s):\n"
        'Missing required configuration "topic" which has no default value.\n'
    )
    status, message = error(worker, "PUT", "/connectors/x/config", {"name": "y", **config})
    assert (status, message) == (
        400,
        "Connector name configuration (y) doesn't match connector name in the URL (x)",
    )
    status, message = error(
        worker, "PUT", "/connectors/x/config", {"connector.class": "no.such.Connector"}
    )
    assert status == 400
    assert "Failed to find any class" in message
    assert worker.call("POST", "/connectors/lines/tasks", []).status == 400


def test_plugins_and_validation(worker: WorkerUnderTest) -> None:
    plugins = worker.call("GET", "/connector-plugins").body
    assert {
        "class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "type": "sink",
        "version": plugins[0]["version"],
    } in plugins
    every = worker.call("GET", "/connector-plugins?connectorsOnly=false").body
    assert {each["type"] for each in every} == {
        *("source", "sink", "converter", "header_converter", "transformation", "predicate")
    }
    settings = worker.call("GET", "/connector-plugins/HoistField$Value/config").body
    assert [(each["name"], each["type"], each["required"]) for each in settings] == [
        ("field", "STRING", True)
    ]
    assert worker.call("GET", "/connector-plugins/Nothing/config").status == 404
    found = worker.call(
        "PUT",
        "/connector-plugins/FileStreamSinkConnector/config/validate",
        {
            "connector.class": "FileStreamSink",
            "name": "x",
            "tasks.max": "many",
            "transforms": "cast",
            "transforms.cast.type": "Cast$Value",
            "transforms.cast.spec": "a:nothing",
        },
    ).body
    errors = {
        each["value"]["name"]: each["value"]["errors"]
        for each in found["configs"]
        if each["value"]["errors"]
    }
    assert errors.keys() == {"tasks.max", "topics", "topics.regex", "transforms.cast.spec"}
    assert found["error_count"] == 5
    assert "Not a number of type INT" in errors["tasks.max"][0]
    assert found["groups"][0] == "Common"
    assert "Transforms: cast" in found["groups"]


def test_logger_levels(worker: WorkerUnderTest) -> None:
    path = "/admin/loggers/moldau.connect.some"
    assert worker.call("PUT", path, {"level": "DEBUG"}).body == ["moldau.connect.some"]
    found = worker.call("GET", path).body
    assert found["level"] == "DEBUG"
    assert found["last_modified"] > 0
    assert worker.call("GET", "/admin/loggers").body["moldau.connect.some"]["level"] == "DEBUG"
    assert worker.call("PUT", path, {"level": "LOUD"}).status == 404
    assert worker.call("PUT", path, {}).status == 400
    assert worker.call("PUT", f"{path}?scope=cluster", {"level": "ERROR"}).status == 204
    eventually(lambda: worker.call("GET", path).body["level"] == "ERROR", what="the new level")
    assert worker.call("GET", "/admin/loggers/no.such").status == 404


def test_values_of_providers_stay_out_of_the_config_topic_and_are_reloaded(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    secrets, target = tmp_path / "secrets.properties", tmp_path / "one.txt"
    secrets.write_text(f"file={tmp_path}/one.txt\n")
    settings = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.file.param.ttl.ms": "500",
    }
    keys = {key.replace(".", "_"): value for key, value in settings.items()}
    config = {
        "connector.class": "FileStreamSink",
        "topics": "secret-lines",
        "file": f"${{file:{secrets}:file}}",
    }
    with (
        Producer(bootstrap_servers=broker.bootstrap) as producer,
        standalone_worker(broker.bootstrap, tmp_path, **keys) as worker,
    ):
        producer.send("secret-lines", b"first")
        producer.flush()
        assert worker.call("PUT", "/connectors/hidden/config", config).status == 201
        eventually(lambda: target.exists() and target.read_text() == "first\n", what="a line")
        tasks = worker.call("GET", "/connectors/hidden/tasks").body
        assert [each["config"]["file"] for each in tasks] == [config["file"]]
        secrets.write_text(f"file={tmp_path}/two.txt\n")
        other = tmp_path / "two.txt"
        eventually(other.exists, what="the task starts again with the new value")
        producer.send("secret-lines", b"second")
        producer.flush()
        eventually(lambda: other.read_text() == "second\n", what="the second line")


def test_admin_on_a_listener_of_its_own_and_headers_of_all_answers(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    settings = {
        "admin_listeners": "http://127.0.0.1:0",
        "response_http_headers_config": "set X-Frame-Options: DENY",
    }
    with standalone_worker(broker.bootstrap, tmp_path, **settings) as worker:
        (admin,) = worker.service.admin_urls
        assert worker.call("GET", "/admin/loggers").status == 404
        assert call(admin, "GET", "/admin/loggers").status == 200
        assert call(admin, "GET", "/connectors").status == 404
        for url in (worker.url, admin):
            for path in ("/health", "/nothing"):
                assert call(url, "GET", path).headers["x-frame-options"] == "DENY"


def test_admin_may_be_switched_off(broker: BrokerProcess, tmp_path: Path) -> None:
    with standalone_worker(broker.bootstrap, tmp_path, admin_listeners="") as worker:
        assert worker.service.admin_urls == []
        assert worker.call("GET", "/admin/loggers").status == 404
        assert worker.call("GET", "/connectors").status == 200


def test_only_allowed_settings_of_clients_are_overridden(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    settings = {
        "connector_client_config_override_policy": "Allowlist",
        "connector_client_config_override_allowlist": "linger.ms,acks",
    }
    source = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "in"), "topic": "allowed"}
    with standalone_worker(broker.bootstrap, tmp_path, **settings) as worker:
        refused = worker.call(
            "PUT", "/connectors/a/config", {**source, "producer.override.batch.size": "1"}
        )
        assert refused.status == 400
        assert "The 'Allowlist' policy does not allow 'batch.size'" in refused.body["message"]
        allowed = {**source, "producer.override.linger.ms": "1"}
        assert worker.call("PUT", "/connectors/a/config", allowed).status == 201
