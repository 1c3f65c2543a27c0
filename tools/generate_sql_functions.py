"""Writes docs/sql-functions.md from the declarations of SQL's functions.

python tools/generate_sql_functions.py            write it if it changed
python tools/generate_sql_functions.py --check    write nothing, fail if it would change
"""

from __future__ import annotations

import sys
from pathlib import Path

from moldau.sql.functions.declarations import Declaration, Function
from moldau.sql.functions.registry import built_in

TARGET = Path(__file__).resolve().parent.parent / "docs/sql-functions.md"

HEADER = """\
# SQL's functions

The functions that are built in, with ksqlDB's names, signatures and results. `DESCRIBE FUNCTION
name;` shows the same. T, K, V, R and S stand for any type, `x...` for any number of values. Unless
a function says otherwise, a NULL argument makes the result NULL, and so does an error in a row: the
processing log says what it was. Functions of your own: [the SQL server](sql-server.md).
<!-- Made by tools/generate_sql_functions.py from the functions' declarations. -->
"""
_TITLES = {"scalar": "Scalar functions", "table": "Table functions", "aggregate": "Aggregates"}


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if TARGET.read_text() != text:
            print(f"{TARGET} is stale: run tools/generate_sql_functions.py")
            return 1
        return 0
    TARGET.write_text(text)
    return 0


def page() -> str:
    registry = built_in()
    parts = [HEADER]
    for kind, title in _TITLES.items():
        found = [each for known, each in registry.declarations() if known == kind]
        categories = sorted({each.category for each in found})
        parts.append(f"## {title}\n")
        for category in categories:
            if len(categories) > 1:
                parts.append(f"### {category.capitalize()}\n")
            lines = [
                _entry(each, registry.function(each.name))
                for each in found
                if each.category == category
            ]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _entry(declaration: Declaration, function: Function) -> str:
    name = declaration.name.upper()
    shown = " or ".join(
        f"`{name}({', '.join(map(str, each.signature.parameters))})`"
        for each in function.overloads[:3]
    )
    more = len(function.overloads) - 3
    others = f" and {more} more by type" if more > 0 else ""
    return (
        f"- **{name}**: {declaration.description} {shown}{others}. "
        f"Example: `{declaration.example}`."
    )


if __name__ == "__main__":
    sys.exit(main())
