"""The lines of docs/rest-proxy.md, pasted into a shell; and the proxy as a command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import ROOT, BrokerProcess

DOCUMENT = ROOT / "docs" / "rest-proxy.md"


class Command:
    """A proxy as users start it, and what it printed when it was up."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        self.text = "".join(lines)
        found = re.search(r"listening +(\S+)", self.text)
        assert found is not None, self.text
        self.url = found[1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def blocks(heading: str) -> list[str]:
    section = DOCUMENT.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def test_the_tour(broker: BrokerProcess, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    file = tmp_path / "kafka-rest.properties"
    file.write_text(
        f"bootstrap.servers={broker.bootstrap}\nlisteners=http://127.0.0.1:0\nid=tour\n"
    )
    script = str(ROOT / "bin" / "kafka-rest-start")
    proxy = Command([script, str(file)], {})
    try:
        assert "schemas    no Schema Registry" in proxy.text
        program = "\n".join(
            line if line.startswith("CLUSTER=") else f"{line}; echo"
            for block in blocks("A tour")
            for line in block.splitlines()
        ).replace("http://127.0.0.1:8082", proxy.url)
        done = subprocess.run(
            ["bash", "-euc", program], capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        answers = [_read(line) for line in done.stdout.split("\n")[:-1]]
    finally:
        assert proxy.stop() == 0
    created, topics, partitions, v2, v3_one, v3_two, made, subscribed, records, deleted, *rest = (
        answers
    )
    assert created["topic_name"] == "jsontest"
    assert "jsontest" in topics
    assert [each["partition"] for each in partitions] == [0]
    assert [each["offset"] for each in v2["offsets"]] == [0, 1]
    assert (v3_one["offset"], v3_two["offset"]) == (2, 3)
    assert made["instance_id"] == "my_instance"
    assert (subscribed, deleted) == ("", "")
    assert [each["offset"] for each in records] == [0, 1, 2, 3]
    everything, some, group, gone = rest
    assert len(everything["data"]) == 4
    assert [each["value"]["type"] for each in some["data"]] == ["JSON", "BINARY"]
    assert group["consumer_group_id"] == "my_group"
    assert gone == ""


def _read(line: str) -> Any:
    return json.loads(line) if line.strip() else ""


def test_the_line_that_a_start_prints(broker: BrokerProcess) -> None:
    command = [sys.executable, "-m", "moldau.cli", "rest", "start", "--port", "0"]
    proxy = Command(
        [*command, "--bootstrap-server", broker.bootstrap, "--override", "api.v3.enable=false"], {}
    )
    try:
        assert httpx.get(proxy.url + "/topics").status_code == 200
        assert httpx.get(proxy.url + "/v3/clusters").status_code == 404
        assert f"{proxy.url}/topics/greetings" in proxy.text
        assert f"cluster    {broker.bootstrap}" in proxy.text
    finally:
        assert proxy.stop() == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "99999"], "a port must be between 0 and 65535"),
        (["--override", "fetch.min.bytes=much"], "fetch.min.bytes"),
        (["--override", "listeners=ftp://x:1"], "neither http nor https"),
        (["none.properties"], "cannot read none.properties"),
        (["--override", "listeners=https://127.0.0.1:0"], "needs a certificate"),
        (["--override", "authentication.method=BASIC"], "authentication.users.file"),
    ],
)
def test_a_start_that_cannot_be_is_refused_in_words(options: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "rest", "start", *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
