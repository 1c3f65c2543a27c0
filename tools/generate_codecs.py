"""Writes the functions that a client needs when it starts into `src/moldau/wire/messages/ready`.

    python tools/generate_codecs.py            write what changed
    python tools/generate_codecs.py --check    write nothing, fail if anything would change

`moldau.wire.codec_maker` makes such functions at run time, for any message and version; compiling
those of a dozen messages takes a client longer than to connect. One module for each API writes its
request and reads its response. Run this after `generate_messages.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generate_messages import stale_files

from moldau.wire import codec_functions, messages
from moldau.wire.codec_source import FunctionSource
from moldau.wire.reader_source import reader_source
from moldau.wire.writer_source import writer_source

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "moldau" / "wire" / "messages" / "ready"
GENERATED = "Made by tools/generate_codecs.py; edit what it is made from instead."

#: What producers, consumers and applications of Streams send before they handle a record, in the
#: versions in which our clients send it to a broker that has them all.
WRITTEN = {
    "AddOffsetsToTxnRequest": 4,
    "AddPartitionsToTxnRequest": 5,
    "ApiVersionsRequest": 4,
    "ConsumerGroupHeartbeatRequest": 1,
    "CreateTopicsRequest": 7,
    "DescribeGroupsRequest": 6,
    "EndTxnRequest": 5,
    "FetchRequest": 18,
    "FindCoordinatorRequest": 6,
    "GetTelemetrySubscriptionsRequest": 0,
    "HeartbeatRequest": 4,
    "InitProducerIdRequest": 5,
    "JoinGroupRequest": 9,
    "ListOffsetsRequest": 11,
    "MetadataRequest": 13,
    "OffsetCommitRequest": 9,
    "OffsetFetchRequest": 9,
    "ProduceRequest": 13,
    "StreamsGroupHeartbeatRequest": 0,
    "SyncGroupRequest": 5,
    "TxnOffsetCommitRequest": 5,
}
#: The answers, but for that of Fetch, which `wire/fetch_response.py` reads in place.
READ = {
    name.replace("Request", "Response"): version
    for name, version in WRITTEN.items()
    if name != "FetchRequest"
}


def module_text(module: str) -> str:
    """One API's module: what its functions use, and the functions."""
    functions = [writer_source(getattr(messages, n), v) for n, v in _of(WRITTEN, module)]
    functions += [reader_source(getattr(messages, n), v) for n, v in _of(READ, module)]
    versions = [f"{n} v{v}" for n, v in (*_of(WRITTEN, module), *_of(READ, module))]
    lines = [f'"""{" and ".join(versions)}. {GENERATED}"""', "", *_imports(module, functions), ""]
    for function in functions:
        lines += [f"{name} = {made_by}" for name, made_by in function.methods.items()]
        for name, cls in function.classes.items():
            lines += [f"{name} = {cls.__qualname__}"] if name != cls.__qualname__ else []
    for function in functions:
        lines += ["", "", function.text.rstrip()]
    return "\n".join(lines) + "\n"


def _of(table: dict[str, int], module: str) -> list[tuple[str, int]]:
    return [(n, v) for n, v in table.items() if messages.MODULES[n] == module]


def _imports(module: str, functions: list[FunctionSource]) -> list[str]:
    text = "\n".join(line for each in functions for line in (*each.methods.values(), each.text))
    words = set(re.findall(r"\w+", text))
    used = ", ".join(name for name in sorted(codec_functions.__all__) if name in words)
    owners = sorted({c.__qualname__.split(".")[0] for f in functions for c in f.classes.values()})
    lines = [f"from moldau.wire.codec_functions import {used}"]
    if owners:
        lines.append(f"from moldau.wire.messages.{module} import {', '.join(owners)}")
    return lines


def package_text() -> str:
    lines = [
        f'"""Functions that were made in advance, imported on first use. {GENERATED}"""',
        "",
        "from __future__ import annotations",
        "",
        "from importlib import import_module",
        "",
        "from moldau.wire.codec_functions import Decoder, Encoder",
    ]
    for kind, table in (("encoder", WRITTEN), ("decoder", READ)):
        modules = f"_MODULES_OF_{kind.upper()}S"
        lines += ["", f"{modules} = {{"]
        lines += [f'    ("{n}", {v}): "{messages.MODULES[n]}",' for n, v in table.items()]
        lines += [
            "}",
            "",
            "",
            f"def ready_{kind}(message: str, version: int) -> {kind.capitalize()} | None:",
            f"    module = {modules}.get((message, version))",
            "    if module is None:",
            "        return None",
            '    module = f"{__name__}.{module}"',
            f"    {kind}: {kind.capitalize()} = import_module(module).{kind.removesuffix('r')}",
            f"    return {kind}",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def generate() -> dict[str, str]:
    """File name to text of everything under TARGET."""
    modules = sorted({messages.MODULES[name] for name in WRITTEN})
    files = {f"{module}.py": module_text(module) for module in modules}
    files["__init__.py"] = package_text()
    return files


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.stderr.write(__doc__ or "")
        return 2
    files = generate()
    stale = stale_files(files, TARGET)
    if arguments == ["--check"]:
        for name in stale:
            sys.stderr.write(f"stale: {TARGET / name}; run python tools/generate_codecs.py\n")
        return 1 if stale else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in files:
            (TARGET / name).write_text(files[name], encoding="utf-8")
        else:
            (TARGET / name).unlink()
    sys.stdout.write(f"{len(stale)} of {len(files)} files written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
