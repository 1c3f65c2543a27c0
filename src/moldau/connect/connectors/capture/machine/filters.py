"""Which tables are captured, by regular expressions over their whole names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


class Filters:
    """Of settings such as `table.include.list`. `outer` is what a database calls the part in front
    of a table's name."""

    def __init__(self, config: Mapping[str, Any], outer: str = "schema") -> None:
        self._outer = outer
        self._lists = {
            name: [re.compile(each.strip(), re.IGNORECASE) for each in config[name]]
            for name in (
                f"{outer}.include.list", f"{outer}.exclude.list", "table.include.list",
                "table.exclude.list",
            )
        }  # fmt: skip

    def takes(self, schema: str, table: str) -> bool:
        for kind, name in ((self._outer, schema), ("table", f"{schema}.{table}")):
            include = self._lists[f"{kind}.include.list"]
            if include and not any(each.fullmatch(name) for each in include):
                return False
            if any(each.fullmatch(name) for each in self._lists[f"{kind}.exclude.list"]):
                return False
        return True
