"""The cases with the originals' answers, kept beside the repository; tests skip without them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "vectors"


def text(name: str) -> str:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not there", allow_module_level=True)
    return path.read_text()


def cases(name: str) -> Any:
    """A file of cases, its fractions as exact decimals."""
    return json.loads(text(name), parse_float=Decimal)
