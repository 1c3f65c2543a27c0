"""Programs that end without `close` or `flush`: what they have buffered is sent, or counted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from moldau.testing import Broker
from support.ports import free_port

# Longer than a program runs: nothing is sent because it has waited long enough.
LINGER_MS = 60_000


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def run(program: str, bootstrap: str) -> subprocess.CompletedProcess[str]:
    head = f"WHERE = {{'bootstrap_servers': {bootstrap!r}, 'linger_ms': {LINGER_MS}}}\n"
    return subprocess.run(
        [sys.executable, "-c", head + program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


ENDS = {
    "falls off its end": "",
    "exits": "import sys; sys.exit(3)",
    "raises": "raise KeyError('oops')",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_program_that_ends_still_sends(node: Broker, how: str) -> None:
    topic = "ends-" + how.replace(" ", "-")
    program = f"""
from moldau.client import Producer
first, second = Producer(**WHERE), Producer(**WHERE)
for number in range(1000):
    (first if number % 2 else second).send({topic!r}, b"%d" % number)
{ENDS[how]}
"""
    ended = run(program, node.bootstrap_servers)
    assert ended.returncode == {"exits": 3, "raises": 1}.get(how, 0)
    assert sorted(map(int, node.values(topic))) == list(range(1000))
    assert "lost" not in ended.stderr


def test_what_cannot_be_sent_is_counted(node: Broker) -> None:
    # The broker is gone when the program ends: its records cannot be sent any more.
    program = """
import sys
from moldau.client import Producer
from moldau.client.producer import at_exit
at_exit.EXIT_SECONDS_MAX = 1.0
producer = Producer(client_id="left-alone", **WHERE)
producer.send("gone", b"x").add_done_callback(print)
for _ in range(36):
    producer.send("gone", b"x")
print("ready", flush=True)
sys.stdin.readline()
"""
    with Broker() as short_lived:
        head = f"WHERE = {{'bootstrap_servers': {short_lived.bootstrap_servers!r}, "
        head += f"'linger_ms': {LINGER_MS}}}\n"
        child = subprocess.Popen(
            [sys.executable, "-c", head + program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    _, errors = child.communicate("\n", timeout=60)
    assert child.returncode == 0
    assert (
        "Producer 'left-alone' was not closed: 37 records were not acknowledged within 1 s and may "
        "be lost. Call flush() or close() before the program ends"
    ) in errors


def test_a_program_without_a_broker_ends_at_once() -> None:
    program = """
from moldau.client import Producer
from moldau.client.producer import at_exit
at_exit.EXIT_SECONDS_MAX = 3600.0
producer = Producer(max_block_ms=200, **WHERE)
print(type(producer.send("nowhere", b"x").exception()).__name__)
"""
    # There is nothing left to wait for, or else it would take an hour.
    ended = run(program, f"127.0.0.1:{free_port()}")
    assert (ended.returncode, ended.stdout) == (0, "KafkaTimeoutError\n")


def test_a_forked_child_does_not_send_what_its_parent_has_buffered(node: Broker) -> None:
    program = """
import os, sys
from moldau.client import Producer
producer = Producer(**WHERE)
producer.send("forked", b"once")
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    ended = run(program, node.bootstrap_servers)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert node.values("forked") == [b"once"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_of_multiprocessing_sends_its_own(node: Broker, method: str) -> None:
    topic = f"child-{method}"
    program = f"""
import multiprocessing, sys, types
CODE = '''
def work(where):
    from moldau.client import Producer
    global producer
    producer = Producer(**where)
    producer.send({topic!r}, b"from a child")
'''
import tempfile, pathlib
folder = tempfile.mkdtemp()
pathlib.Path(folder, "unsent_work.py").write_text(CODE)
sys.path.insert(0, folder)
import unsent_work
if __name__ == "__main__":
    child = multiprocessing.get_context({method!r}).Process(target=unsent_work.work, args=(WHERE,))
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
    ended = run(program, node.bootstrap_servers)
    assert ended.returncode == 0, ended.stderr
    assert node.values(topic) == [b"from a child"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "forgotten"])
def test_a_program_for_asyncio_still_sends(node: Broker, loop: str, kept: bool) -> None:
    topic = f"{loop}-{'kept' if kept else 'forgotten'}"
    program = f"""
import asyncio, {loop}
from moldau.client import AsyncProducer
everything = []

async def main():
    producer = AsyncProducer(**WHERE)
    {"everything.append(producer)" if kept else ""}
    for number in range(100):
        await producer.send({topic!r}, b"%d" % number)

{loop}.run(main())
"""
    ended = run(program, node.bootstrap_servers)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(map(int, node.values(topic))) == list(range(100))


def test_a_loop_that_is_closed_by_hand_leaves_a_warning(node: Broker) -> None:
    program = """
import asyncio
from moldau.client import AsyncProducer

async def main():
    global producer
    producer = AsyncProducer(client_id="cut-off", **WHERE)
    await producer.send("cut", b"x")

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
"""
    ended = run(program, node.bootstrap_servers)
    assert ended.returncode == 0
    assert "Producer 'cut-off' was not closed: 1 record was not acknowledged" in ended.stderr
