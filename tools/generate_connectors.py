"""Writes docs/connectors.md from the declarations of the connectors in the box.

python tools/generate_connectors.py            write it if it changed
python tools/generate_connectors.py --check    write nothing, fail if it would change
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from moldau.connect.api import ConfigKey
from moldau.connect.built_in import CONNECTORS, BuiltIn
from moldau.connect.machine.dialects import DIALECTS

TARGET = Path(__file__).resolve().parent.parent / "docs/connectors.md"

HEADER = """\
# Connectors in the box

<!-- Made by tools/generate_connectors.py from the connectors' own declarations. -->

`connector.class` takes the short name or any of the Java class names, so configurations for other
distributions can be used as they are: settings that have other names here are translated. A setting
that a connector does not have is named in the log and by `moldau connect create`; one that decides
what the data is, or who may see it, is refused unless it has the original's default.
[connect.md](connect.md) describes workers, converters, transforms and error handling; the settings
below come in addition to those that all connectors share.

| connector | kind | what it does |
|---|---|---|
"""


def main() -> int:
    made = page()
    if TARGET.exists() and TARGET.read_text() == made:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{TARGET} is stale: run tools/generate_connectors.py", file=sys.stderr)
        return 1
    TARGET.write_text(made)
    print(f"wrote {TARGET}")
    return 0


def page() -> str:
    rows = sorted(CONNECTORS, key=lambda each: each.name.lower())
    lines = [HEADER]
    for row in rows:
        anchor = row.name.lower()
        lines.append(f"| [{row.name}](#{anchor}) | {row.kind.value} | {load(row).DESCRIPTION} |\n")
    for row in rows:
        lines.append(section(row))
    return "".join(lines)


def load(row: BuiltIn) -> Any:
    module, _, name = row.target.partition(":")
    return getattr(import_module(module), name)


def section(row: BuiltIn) -> str:
    connector = load(row)
    extra = f" Needs `pip install '.[{row.extra}]'`." if row.extra else ""
    names = "".join(f"- `{name}`\n" for name in row.java_names)
    known = f"\nAlso chosen by:\n\n{names}" if names else ""
    table = "".join(setting(key) for key in connector.config().values() if not key.internal)
    return (
        f"\n## {row.name}\n\n{connector.DESCRIPTION}.{extra}\n{known}"
        f"\n| setting | type | default | meaning |\n|---|---|---|---|\n{table}{others(row)}"
    )


def others(row: BuiltIn) -> str:
    """Settings of the originals that are called otherwise, or are not here."""
    found = list(dict.fromkeys(id(DIALECTS[each]) for each in row.java_names if each in DIALECTS))
    dialects = {id(each): each for each in DIALECTS.values()}
    lines = []
    for dialect in (dialects[each] for each in found):
        renamed = [f"`{a}` is `{b}`" for a, b in dialect.renamed.items()]
        renamed += [f"`{each}`" for each in dialect.computed]
        for what, names in (
            ("Translated", renamed),
            ("Without effect", [f"`{each}`" for each in dialect.no_effect]),
            ("Not supported", [f"`{each}`" for each in dialect.missing]),
            ("Refused unless it is the default", [f"`{each}`" for each in dialect.refused]),
        ):
            if names:
                lines.append(f"- {what}: {', '.join(sorted(names))}\n")
    return f"\nSettings of the original:\n\n{''.join(lines)}" if lines else ""


def setting(key: ConfigKey) -> str:
    default = "required" if key.required else f"`{key.render(key.default) or ''}`"
    doc = " ".join(key.doc.replace("|", "\\|").split())
    shown = default if default != "``" else ""
    return f"| `{key.name}` | {key.type.name.lower()} | {shown} | {doc} |\n"


if __name__ == "__main__":
    sys.exit(main())
