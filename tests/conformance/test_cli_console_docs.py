"""docs/cli-groups-console.md: what it tells to type works."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.cli import moldau_console
from support.processes import ROOT, BrokerProcess

DOCUMENT = (ROOT / "docs" / "cli-groups-console.md").read_text()
# A shell expands the examples; what it would start is written down and run in this process.
NOTE = """
moldau() {
    { printf '%s\\n' "$@"; printf '\\001'
      case $1 in console-producer) cat ;; esac
      printf '\\002'; } >> noted
}
"""


def test_the_examples_run(
    broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(blocks) >= 5
    script = NOTE + "\n".join(blocks).replace("127.0.0.1:9092", broker.bootstrap)
    subprocess.run(["sh", "-euc", script], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    printed = ""
    for noted in (tmp_path / "noted").read_text().split("\002")[:-1]:
        words, _, typed = noted.partition("\001")
        ended = moldau_console(*words.splitlines(), typed=typed)
        assert ended.status == 0, (words, ended)
        printed += ended.out
        if "--export" in words.splitlines():
            (tmp_path / "offsets.csv").write_text(ended.out)
    # The record that was typed with all its parts is printed with all of them.
    assert "shop:web,lang:de\tcustomer-1\tplums" in printed
    assert '"group":"shop"' in printed
    assert (tmp_path / "offsets.csv").read_text().count("orders,") == 3
    assert "Deletion of requested consumer groups ('shop') was successful." in printed
    assert "Error:" not in printed
