"""The examples of docs/admin.md run as they are printed."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from moldau.client.admin import AsyncAdmin
from support.processes import BrokerProcess
from support.waiting import eventually

PAGE = Path(__file__).resolve().parents[2] / "docs" / "admin.md"


def test_examples_run_one_after_the_other(broker: BrokerProcess) -> None:
    text = PAGE.read_text().replace("127.0.0.1:9092", broker.bootstrap)
    topics, several, configs, groups, loop = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert printed(topics) == "shipments 3\n"
    assert printed(several) == "shipments True\n['payments']\n"
    # A broker may hear of the change only after it was asked.
    eventually(lambda: printed(configs) == "3600000 DEFAULT_CONFIG\n", what="it is set")
    shown = printed(groups)
    assert shown.startswith("['billing']\n")
    assert shown.endswith("Empty\n")
    assert printed(loop) == "1 True\n"


def printed(source: str) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(source, {"__name__": "example"})
    return shown.getvalue()


def test_table_names_every_operation() -> None:
    table = PAGE.read_text().partition("## Everything there is")[2]
    for name in dir(AsyncAdmin):
        if (
            hasattr(AsyncAdmin, name)
            and not name.startswith("_")
            and not name.endswith("_group_offsets")
        ):
            assert f"`{name}`" in table, name
