"""`moldau console start` as a command, and the lines of docs/control-center.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from support.processes import ROOT, BrokerProcess

DOCUMENT = ROOT / "docs" / "control-center.md"


def test_the_command_and_the_api(broker: BrokerProcess, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "moldau.cli", "console", "start", "--port", "0"]
    command += ["--bootstrap-server", broker.bootstrap]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line
            if "Ctrl-C" in line:
                break
        found = re.search(r"listening +(\S+)", text)
        assert found is not None, text
        assert "login      none" in text
        section = DOCUMENT.read_text().partition("## The API\n")[2]
        (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        program = "\n".join(f"{line}; echo" for line in block.splitlines())
        done = subprocess.run(
            ["bash", "-euc", program.replace("http://127.0.0.1:9021", found[1])],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    finally:
        process.terminate()
        assert process.wait(60) == 0
    listed, created, stored, *lines = (
        json.loads(line) for line in done.stdout.splitlines() if line.strip()
    )
    assert listed["total"] == 0
    assert created["partitions"] == 3
    assert stored["data"][0]["offset"] == 0
    assert lines[0]["record"]["value"]["value"] == {"amount": 7}
    assert lines[-1]["done"]


def test_a_taken_port_is_named_with_who_has_it(broker: BrokerProcess) -> None:
    command = [sys.executable, "-m", "moldau.cli", "console", "start"]
    command += ["--port", str(broker.port), "--bootstrap-server", broker.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert f"port {broker.port} is in use by" in done.stderr
    assert f"process {broker.pid}" in done.stderr
