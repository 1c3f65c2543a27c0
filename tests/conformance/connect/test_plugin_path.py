"""A worker with `plugin.path`: two versions of one connector run side by side."""

from __future__ import annotations

from pathlib import Path

from moldau.client import Consumer
from support.connect_workers import standalone_worker
from support.processes import BrokerProcess
from support.waiting import eventually

PLUGIN = """
from library import NUMBER
from moldau.connect.api import ConfigDef, Kind, SourceConnector, SourceRecord, SourceTask
from moldau.data.builders import STRING

class OneLine(SourceConnector):
    @classmethod
    def config(cls):
        return ConfigDef().define("topic", Kind.STRING, doc="Topic")
    def start(self, props):
        self.props = dict(props)
    def task_class(self):
        return OneLineTask
    def task_configs(self, max_tasks):
        return [self.props]
    def stop(self): ...

class OneLineTask(SourceTask):
    def start(self, props):
        import threading
        self.topic, self.sent, self.stopped = props["topic"], False, threading.Event()
    def poll(self):
        if self.sent:
            self.stopped.wait(0.2)
            return None
        self.sent = True
        return [SourceRecord({}, {}, self.topic, value=f"library {NUMBER}", value_schema=STRING)]
    def stop(self):
        self.stopped.set()
"""


def write_plugin(folder: Path, version: str) -> None:
    info = folder / f"one_line-{version}.dist-info"
    info.mkdir(parents=True)
    (folder / "one_line.py").write_text(PLUGIN)
    (folder / "library.py").write_text(f"NUMBER = {version!r}")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: one-line\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[moldau.connect]\nOneLine = one_line:OneLine\n")


def test_two_versions_run_side_by_side(broker: BrokerProcess, tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        write_plugin(tmp_path / "plugins" / f"one-line-{version}", version)
    settings = {"plugin_path": str(tmp_path / "plugins")}
    with standalone_worker(broker.bootstrap, tmp_path, **settings) as worker:
        listed = worker.call("GET", "/connector-plugins").body
        found = [each["version"] for each in listed if each["class"] == "one_line.OneLine"]
        assert found == ["1.0", "2.0"]
        for name, version in (("old", "[1,2)"), ("new", "latest")):
            config = {"connector.class": "OneLine", "topic": name}
            config["connector.plugin.version"] = version
            made = worker.call("PUT", f"/connectors/{name}/config", config)
            assert made.status == 201, made.body
            worker.wait_for(name, "RUNNING", "RUNNING")
        shown = {
            name: worker.call("GET", f"/connectors/{name}/status").body["connector"]["version"]
            for name in ("old", "new")
        }
        assert shown == {"old": "1.0", "new": "2.0"}
        assert first_value(broker.bootstrap, "old") == "library 1.0"
        assert first_value(broker.bootstrap, "new") == "library 2.0"
        tasks = worker.call("GET", "/connectors/old/tasks").body
        assert tasks[0]["config"]["task.class"] == "one_line.OneLineTask"
        bad = worker.call(
            "PUT",
            "/connectors/bad/config",
            {"connector.class": "OneLine", "topic": "t", "connector.plugin.version": "3"},
        )
        assert bad.status == 400
        assert "available versions: [1.0, 2.0]" in bad.body["message"]


def first_value(bootstrap: str, topic: str) -> str:
    found: list[str] = []

    def has_one() -> bool:
        found.extend(each.value.decode() for each in consumer.poll(0.5))
        return bool(found)

    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.partitions_for(topic), what=f"the topic {topic}")
        consumer.assign([(topic, each.partition) for each in consumer.partitions_for(topic)])
        eventually(has_one, what=f"a record in {topic}")
    return found[0]
