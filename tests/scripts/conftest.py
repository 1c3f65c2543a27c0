"""`pytest tests/scripts --rewrite` replaces the traces in the scripts; review them as a diff."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write what the scripts produce now into them"
    )
