"""docs/schema-registry.md: the tour gives what it shows."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from moldau.testing import Broker
from support.processes import ROOT
from support.registry.stage import registry_on

DOCUMENT = (ROOT / "docs" / "schema-registry.md").read_text()
TOUR = re.findall(r"```sh\n(curl.*?)```\n\n```json\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_the_tour_gives_what_it_shows() -> None:
    assert len(TOUR) >= 10
    with Broker() as broker, registry_on(broker.bootstrap_servers) as stage:
        for command, shown in TOUR:
            script = command.replace("http://127.0.0.1:8081", stage.running.url)
            ended = subprocess.run(
                ["sh", "-euc", script], capture_output=True, text=True, check=True, timeout=60
            )
            assert _timeless(ended.stdout) == _timeless(shown), command


def _timeless(text: str) -> str:
    return re.sub(r'"ts":\d+', '"ts":0', text.strip())
