"""A real Prometheus beside the tests, which scrapes often and has the shipped rules at a pace."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from moldau.monitoring.machine.troubles import rules
from support.ports import free_port
from support.waiting import eventually

#: The windows of the rules are so many times shorter: 5 minutes are 6 seconds.
PACE = 50


def prometheus_missing() -> str | None:
    """Why Prometheus cannot run here, or None."""
    if shutil.which("prometheus") is None:
        return "no Prometheus on this machine: `make tools` installs Debian's"
    return None


class Prometheus:
    """`with` starts it and ends it, by its id."""

    def __init__(
        self, folder: Path, *, pace: float = PACE, relabelled: list[dict[str, Any]] | None = None
    ) -> None:
        """`relabelled` is a `metric_relabel_configs`."""
        self._relabelled = relabelled or []
        self._folder = folder
        self._pace = pace
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def watch(self, *ports: int | None) -> None:
        """Scrape these ports of this machine, and no others."""
        targets = [f"127.0.0.1:{port}" for port in ports if port is not None]
        path = self._folder / "targets.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps([{"targets": targets}]))
        new.rename(path)

    def __enter__(self) -> Prometheus:
        self._folder.mkdir(parents=True, exist_ok=True)
        self.watch()
        (self._folder / "rules.yml").write_text(yaml.safe_dump(rules(pace=self._pace)))
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms",
                       "evaluation_interval": "500ms"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {"job_name": "moldau", "metric_relabel_configs": self._relabelled,
                 "file_sd_configs": [{"files": ["targets.json"], "refresh_interval": "1s"}]}
            ],
        }  # fmt: skip
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
            )
        eventually(lambda: self._get("/-/ready") is not None, what="Prometheus is ready")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)

    def _get(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                text: str = answer.read().decode()
                return text
        except OSError:
            return None

    def query(self, expression: str) -> list[dict[str, Any]]:
        text = self._get(f"/api/v1/query?query={urllib.parse.quote(expression)}")
        result: list[dict[str, Any]] = [] if text is None else json.loads(text)["data"]["result"]
        return result

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """The labels of alerts that fire, by name."""
        found: dict[str, list[dict[str, str]]] = {}
        text = self._get("/api/v1/alerts")
        for alert in [] if text is None else json.loads(text)["data"]["alerts"]:
            if alert["state"] == "firing":
                found.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return found

    def rule_names(self) -> set[str]:
        text = self._get("/api/v1/rules") or '{"data":{"groups":[]}}'
        groups = json.loads(text)["data"]["groups"]
        return {rule["name"] for group in groups for rule in group["rules"]}

    def await_alert(self, name: str, seconds_max: float = 60, **labels: str) -> None:
        """Wait until it fires, with these labels."""

        def fires() -> bool:
            return any(labels.items() <= found.items() for found in self.firing().get(name, []))

        try:
            eventually(fires, what=name, seconds_max=seconds_max)
        except AssertionError:
            firing = self.firing()
            raise AssertionError(f"{name} {labels} does not fire; firing: {firing}") from None
