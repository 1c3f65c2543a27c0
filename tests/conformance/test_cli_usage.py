"""docs/cli.md: its table is the catalogue, its examples run as they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.cli.catalogue import TOOLS
from support.cli import moldau_cli
from support.processes import ROOT, BrokerProcess
from support.shell import shell

DOCUMENT = (ROOT / "docs" / "cli.md").read_text()


def test_the_table_names_every_tool() -> None:
    rows = re.findall(r"^\| `moldau ([\w-]+)` \| (?:`([\w-]+)\.sh`)? *\| (.*) \|$", DOCUMENT, re.M)
    assert rows == [(tool.name, tool.script or "", tool.help) for tool in TOOLS.values()]


def test_the_examples_run(
    broker: BrokerProcess, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    # The data of the broker that is meant.
    (data,) = broker.data_folders
    (tmp_path / "moldau-data").symlink_to(data)
    program = "set -eu\n" + "\n".join(blocks).replace("127.0.0.1:9092", broker.bootstrap)
    with shell(tmp_path_factory.mktemp("shell")) as quick:
        done = quick.run(
            program,
            tmp_path,
            {
                "MOLDAU_BOOTSTRAP_SERVERS": broker.bootstrap,
                "XDG_CONFIG_HOME": str(tmp_path / "config"),
            },
        )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr}"
    for part in (
        "Commands now use the profile local.",
        "client.id=laptop\n",
        "Created topic orders.",
        "\tanna\t1 apple\n",
        "Completed updating config for topic orders.\n",
        "cleanup.policy=delete,compact",
        "Cluster ID: ",
        "Reassignment of partition orders-5 is completed.",
        "clientQuotas\n",
        "\nLog starting offset: 0\n",
        "\n6\n",
    ):
        assert part in done.stdout, part


def test_the_mistake_of_the_document(capfd: object) -> None:
    typed, answer = re.findall(r"^\$ (moldau .*)\n(.*)$", DOCUMENT, re.MULTILINE)[0]
    ended = moldau_cli(*typed.split()[1:])
    assert (ended.status, ended.out, ended.err) == (1, "", f"{answer}\n")
