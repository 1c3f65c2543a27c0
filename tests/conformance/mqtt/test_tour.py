"""The lines of docs/mqtt.md, pasted into a shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.services.mqtt.config import MQTT_KEYS
from moldau.services.mqtt.machine.mapping import parse_rules
from support.processes import ROOT, BrokerProcess

PAGE = (ROOT / "docs" / "mqtt.md").read_text()


@pytest.mark.skipif(
    shutil.which("mosquitto_pub") is None, reason="mosquitto-clients is not installed"
)
def test_the_tour(broker: BrokerProcess, proxy: int) -> None:
    section = PAGE.partition("## A tour\n")[2].partition("\n## ")[0]
    lines = "".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))
    lines = lines.replace("-p 1883", f"-p {proxy}")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    found = subprocess.run(
        ["bash", "-e", "-c", lines],
        env={**os.environ, "PATH": path, "MOLDAU_BOOTSTRAP_SERVERS": broker.bootstrap},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    shown = found.stdout.splitlines()
    assert "sensors/7/temp\t21.5" in shown
    assert "on" in shown
    assert shown[-1] == "sensors/7/limit 30"


def test_every_setting_is_documented() -> None:
    own = [name for name in MQTT_KEYS if not name.startswith("ssl.")]
    undocumented = [
        name
        for name in own
        if f"`{name}`" not in PAGE and name not in ("bootstrap.servers", "client.id.length.max")
    ]
    assert undocumented == []


def test_the_rules_of_the_page_are_rules() -> None:
    block = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)[0]
    texts = dict(line.split("=", 1) for line in block.splitlines())
    assert len(parse_rules(texts, texts.pop("rules").split(","))) == 2
