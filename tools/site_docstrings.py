"""An extension of Griffe for the site: examples of docstrings (`>>>` lines) become code blocks."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"(?:^[ \t]*(?:>>>|\.\.\.) ?.*(?:\n|$))+", re.MULTILINE)


class Examples(Extension):
    """Markdown would take `>>>` for a quotation."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_block, obj.docstring.value)


def _block(found: re.Match[str]) -> str:
    lines = [re.sub(r"^[ \t]*(?:>>>|\.\.\.) ?", "", line) for line in found[0].splitlines()]
    return "\n```python\n" + "\n".join(lines) + "\n```\n"
