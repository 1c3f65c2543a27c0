"""Every message in every version comes back as it went out, and nothing malformed gets through."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.wire import messages
from moldau.wire.codec import decode, decode_prefix, encode
from moldau.wire.errors import WireError
from moldau.wire.message import Message
from support.examples import examples
from support.message_samples import Samples, all_versions

ROOT = Path(__file__).resolve().parents[3]
VERSIONS = list(all_versions())
# A test of each version would take longer to begin than to run.
OF_CLASS: dict[type[Message], list[int]] = {}
for _cls, _version in VERSIONS:
    OF_CLASS.setdefault(_cls, []).append(_version)
each_class = pytest.mark.parametrize("cls", OF_CLASS, ids=lambda cls: cls.__name__)
QUICK = settings(
    max_examples=8,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_every_message_is_there() -> None:
    kinds = [cls.KIND for cls in {cls for cls, _ in VERSIONS}]
    assert kinds.count("request") == kinds.count("response") == 89
    assert len(kinds) == 273
    assert len(VERSIONS) == 739


@each_class
@given(seed=st.integers(0, 2**32))
@QUICK
def test_round_trip(cls: type[Message], seed: int) -> None:
    for version in OF_CLASS[cls]:
        message = Samples(random.Random(seed)).message(cls, version)
        data = encode(message, version)
        assert decode(cls, version, data) == message, version
        # Within other bytes, and in other kinds of buffer.
        padded = b"##" + data + b"tail"
        for buffer in (padded, bytearray(padded), memoryview(padded)):
            assert decode_prefix(cls, version, buffer, 2) == (message, 2 + len(data)), version


@each_class
def test_every_truncation_is_refused(cls: type[Message]) -> None:
    for version in OF_CLASS[cls]:
        message = Samples(random.Random(f"{cls.__name__}{version}")).message(cls, version)
        data = encode(message, version)
        step = max(1, len(data) // 200)
        for size in {*range(min(100, len(data))), *range(0, len(data), step)}:
            with pytest.raises(WireError, match=cls.__name__):
                decode(cls, version, data[:size])


@each_class
@given(seed=st.integers(0, 2**32))
@QUICK
def test_mutations_raise_nothing_but_wire_error(cls: type[Message], seed: int) -> None:
    for version in OF_CLASS[cls]:
        source = random.Random(f"{seed} {version}")
        data = bytearray(encode(Samples(source).message(cls, version), version))
        for _ in range(5):
            mutated = bytearray(data)
            for _ in range(source.randint(1, 4)):
                if mutated:
                    place = source.randrange(len(mutated))
                    mutated[place] = source.choice((0, 1, 127, 128, 255, source.randrange(256)))
            _decode_whatever(cls, version, bytes(mutated))


@given(data=st.data(), noise=st.binary(max_size=300))
@settings(max_examples=examples(500), deadline=None)
def test_noise_raises_nothing_but_wire_error(data: st.DataObject, noise: bytes) -> None:
    cls, version = data.draw(st.sampled_from(VERSIONS))
    _decode_whatever(cls, version, noise)


def _decode_whatever(cls: type[Message], version: int, data: bytes) -> None:
    try:
        message, end = decode_prefix(cls, version, data)
    except WireError:
        return
    assert end <= len(data)
    # What was readable can be written, and reads back the same.
    assert decode(cls, version, encode(message, version)) == message or "nan" in repr(message)


def test_generated_classes_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_messages.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_ready_codecs_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_codecs.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_what_is_ready_is_not_made_again() -> None:
    script = (
        "import sys\n"
        "from moldau.wire.codec import decode, encode\n"
        "from moldau.wire.messages import MetadataRequest, MetadataResponse\n"
        "encode(MetadataRequest(), 13)\n"
        "decode(MetadataResponse, 13, bytes.fromhex('000000000100ffffffff01000000'))\n"
        "assert 'moldau.wire.codec_maker' not in sys.modules\n"
        "encode(MetadataRequest(), 12)\n"
        "assert 'moldau.wire.codec_maker' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_stale_output_is_noticed(tmp_path: Path) -> None:
    script = (
        "import generate_messages as g, pathlib, sys\n"
        f"target = pathlib.Path({str(tmp_path)!r})\n"
        "files = g.generate(g.load(g.SCHEMAS))\n"
        "for name, text in files.items(): (target / name).write_text(text)\n"
        "assert g.stale_files(files, target) == []\n"
        "(target / 'vote.py').write_text('edited by hand')\n"
        "(target / 'fetch.py').unlink()\n"
        "(target / 'left_over.py').write_text('')\n"
        "assert g.stale_files(files, target) == ['fetch.py', 'left_over.py', 'vote.py']\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT / "tools", check=True)


def test_one_message_loads_alone() -> None:
    script = (
        "import sys, moldau.wire.messages as m\n"
        "m.VoteRequest\n"
        "loaded = [n for n in sys.modules if n.startswith('moldau.wire.messages.')]\n"
        "assert loaded == ['moldau.wire.messages.vote'], loaded\n"
        "assert 'dataclasses' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        messages.NoSuchRequest  # type: ignore[attr-defined]  # noqa: B018


class TestMessageClass:
    def test_defaults_are_kafkas(self) -> None:
        request = messages.FetchRequest()
        assert request.max_bytes == 0x7FFFFFFF
        assert request.replica_state == messages.FetchRequest.ReplicaState(
            replica_id=-1, replica_epoch=-1
        )
        assert messages.MetadataRequest().allow_auto_topic_creation is True
        assert messages.ProduceRequest().transactional_id is None

    def test_mutable_defaults_are_not_shared(self) -> None:
        one, other = messages.FetchRequest(), messages.FetchRequest()
        one.topics.append(messages.FetchRequest.FetchTopic(topic="t"))
        one.replica_state.replica_id = 5
        assert other == messages.FetchRequest()

    def test_null_is_distinct_from_empty(self) -> None:
        assert messages.MetadataRequest(topics=None) != messages.MetadataRequest(topics=[])

    def test_equality_needs_the_same_class_and_values(self) -> None:
        vote = messages.VoteRequest(cluster_id="c")
        assert vote == copy.deepcopy(vote)
        assert vote != messages.VoteRequest(cluster_id="d")
        assert vote != messages.VoteResponse()
        marked = copy.deepcopy(vote)
        marked.unknown_tagged_fields = {99: b"x"}
        assert marked != vote

    def test_repr_shows_the_values(self) -> None:
        topic = messages.FetchRequest.ForgottenTopic(topic="t", partitions=[1])
        assert "FetchRequest.ForgottenTopic(topic='t'" in repr(topic)
        assert "partitions=[1]" in repr(topic)

    def test_misspelt_fields_are_refused(self) -> None:
        with pytest.raises(TypeError):
            messages.VoteRequest(clusterid="c")  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            messages.VoteRequest().clusterid = "c"  # type: ignore[attr-defined]
