"""The examples, as `moldau sql -f` runs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.processes import ROOT
from support.sql_server import SqlServer

EXAMPLES = ROOT / "examples" / "sql"
SHOWN = {
    "errors_per_minute": {
        "503\t1699999980000\t1",
        "503\t1699999980000\t2",
        "404\t1700000040000\t1",
    },
    "suspicious_cards": {"4111-1\t4"},
    "platinum_clicks": {"Ada\t/offers", "Ada\t/cart"},
}


def test_every_example_is_run() -> None:
    assert {each.stem for each in EXAMPLES.glob("*.sql")} == set(SHOWN)


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_an_example(server: SqlServer, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "sql", "--server", server.url, "-f",
         str(EXAMPLES / f"{name}.sql")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert SHOWN[name] <= set(done.stdout.splitlines()), done.stdout
