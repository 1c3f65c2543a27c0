"""docs/connectors.md is made from the declarations, and every declaration can be shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.connect.built_in import CONNECTORS, BuiltIn
from moldau.connect.plugins import Plugins

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools/generate_connectors.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("row", CONNECTORS, ids=lambda row: row.name)
def test_every_setting_is_explained_and_every_name_finds_the_connector(row: BuiltIn) -> None:
    found = Plugins().connector(row.name)
    assert found.DESCRIPTION
    assert not found.DESCRIPTION.endswith(".")
    assert all(key.doc for key in found.config().values())
    for name in row.java_names:
        assert Plugins().connector(name) is found
