"""What it costs to decrypt TLS records of a few sizes, with the loop compiled and as plain Python:
`PYTHONPATH=tests python -m bench.tls_records`.

In instructions (`hot_path.py`), which do not depend on what else the machine does, and in CPU time
of rounds in turns. OpenSSL's own part is in both.
"""

from __future__ import annotations

import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, reduce
from pathlib import Path
from typing import Any

import moldau.broker.network.security
from bench.hot_path import counted
from bench.tls import Certificates
from moldau.broker.network.security import _tls_records
from support.plain import load_plain

RECORDS = 2_000
ROUNDS = 31
SIZES = (10, 1_000, 16_384)
LOADED = {
    "plain": load_plain(moldau.broker.network.security, "_tls_records"),
    "installed": _tls_records,
}
FORMS = tuple(LOADED)
#: What arrives at once, and the room for it.
PIECE_BYTES = 128 * 1024


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Those of a server and a client."""
    with tempfile.TemporaryDirectory(prefix="tls-records-") as folder:
        certificates = Certificates(Path(folder))
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(Path(folder) / "store.pem")
        return server, ssl.create_default_context(cafile=str(certificates.certificate))


def prepared(form: str, size: int) -> tuple[Callable[[int, bytes], int], list[bytes]]:
    """Decrypts a piece of ciphertext, and the pieces."""
    module = LOADED[form]
    server_tls, client_tls = contexts()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_tls.wrap_bio(incoming, outgoing, server_side=True)
    client = client_tls.wrap_bio(outgoing, incoming, server_hostname="127.0.0.1")
    waiting = [client, server]
    while waiting:
        for side in tuple(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
    for _ in range(RECORDS):
        client.write(bytes(size))
    stream = incoming.read()
    inner: Any = server
    read = inner._sslobj.read
    buffer = memoryview(bytearray(PIECE_BYTES))

    def decrypt(total: int, piece: bytes) -> int:
        incoming.write(piece)
        count: int = module.read_records(read, incoming, buffer)[0]
        return total + count

    pieces = [stream[start : start + PIECE_BYTES] for start in range(0, len(stream), PIECE_BYTES)]
    return decrypt, pieces


def work(form: str, size: int) -> float:
    """Decrypt all records; the CPU seconds of it."""
    decrypt, pieces = prepared(form, size)
    started = time.thread_time()
    total = reduce(decrypt, pieces, 0)
    seconds = time.thread_time() - started
    assert total == RECORDS * size
    return seconds


def main() -> None:
    print("records of    instructions: plain   compiled  of plain    CPU time, of plain")
    for size in SIZES:
        plain, compiled = (counted("bench.tls_records", form, str(size)) for form in FORMS)
        ratios = []
        for number in range(ROUNDS):
            order = FORMS if number % 2 else FORMS[::-1]
            seconds = {form: work(form, size) for form in order}
            ratios.append(seconds["installed"] / seconds["plain"])
        print(
            f"{size:>8,} B {plain / RECORDS:>21,.0f} {compiled / RECORDS:>10,.0f}"
            f" {compiled / plain:>9.3f} {statistics.median(ratios):>21.3f}",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1], int(sys.argv[2]))
    else:
        main()
