"""What commands print of a definition: a line of it, and a warning about its secrets."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["own_line", "warn_of_secrets"]


def own_line(where: str | None, base: Path) -> str | None:
    """The line of a file that `where` names, as it is there now; None if it cannot be found."""
    match = re.fullmatch(r"(.+?):(\d+)(?::\d+)?", where or "")
    if match is None:
        return None
    for folder in (base, Path()):
        try:
            lines = (folder / match[1]).read_text(encoding="utf-8").splitlines()
            line = lines[int(match[2]) - 1].strip()
        except (OSError, UnicodeDecodeError, IndexError):
            continue
        # The definition as a whole: its name adds nothing.
        return None if line.startswith("name:") else f"  {match[2]} | {line}"
    return None


def warn_of_secrets(fields: Mapping[str, object]) -> None:
    """The registry is a topic: whoever may read it reads what a definition holds."""
    from moldau.pipelines.definition.secrets import stored_secrets

    for name in stored_secrets(fields):
        print(
            f"moldau: warning: {name} is written in the definition, and so to the registry's "
            "topic. Write ${file:PATH:KEY} or ${env:NAME} instead, or use --command-config",
            file=sys.stderr,
        )
