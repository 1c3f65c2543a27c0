"""The protocol reference that lies beside a developer's checkout; absent elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT.parent / "shared" / "reference" / "protocol"


def load_reference(name: str) -> Any:
    """The parsed JSON file, or a skip that says what is missing."""
    path = PROTOCOL / name
    if not path.is_file():
        pytest.skip(f"the protocol reference {name} is not at hand (looked for {path})")
    return json.loads(path.read_text(encoding="utf-8"))
