"""Our Java class in a Java with Spark's jars: where it writes itself, and where it leaves it to
Spark's; and in a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.spark.runtime import checkpoint_jar
from moldau.spark.runtime.java import find_java
from moldau.spark.runtime.machine.checkpoint_class import CLASS_NAME
from moldau.spark.runtime.places import cache_folder, spark_home
from spark.running import finished


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What a Java has that was started with the jar."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    jar = tmp_path_factory.mktemp("jar") / "checkpoint-files.jar"
    checkpoint_jar.install(jar)
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraClassPath", str(jar))
    conf.set("spark.driver.memory", "256m")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", find_java(os.environ, cache_folder(os.environ)).home)
        patch.setenv("SPARK_HOME", str(spark_home()))
        gateway = launch_gateway(conf)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)


def manager(java: Any, folder: str, conf: Any = None) -> Any:
    kind = java
    for name in CLASS_NAME.split("."):
        kind = getattr(kind, name)
    return kind(path(java, folder), conf or java.org.apache.hadoop.conf.Configuration())


def path(java: Any, name: str) -> Any:
    return java.org.apache.hadoop.fs.Path(name)


def write(stream: Any, data: bytes) -> None:
    stream.write(data)
    stream.close()


def test_a_file_is_written_without_a_process(java: Any, tmp_path: Path) -> None:
    """Hadoop's way would be seen by the file of checksums."""
    files = manager(java, f"file:{tmp_path}")
    write(files.createTempFile(path(java, f"file:{tmp_path}/a b")), b"offsets")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a b": b"offsets"}
    (tmp_path / "plain").touch()
    assert (tmp_path / "a b").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_is_replaced_with_its_checksums(java: Any, tmp_path: Path) -> None:
    """As by Spark's default; a batch that runs again writes its state again."""
    target = path(java, f"file:{tmp_path}/1")
    conf = java.org.apache.hadoop.conf.Configuration()
    local = java.org.apache.hadoop.fs.FileSystem.getLocal(conf)
    write(local.create(target, True), b"before")
    assert (tmp_path / ".1.crc").exists()
    write(manager(java, f"file:{tmp_path}").createAtomic(target, True), b"after")
    read = local.open(target)
    assert bytes(read.readAllBytes()) == b"after"
    read.close()
    assert [each.name for each in tmp_path.iterdir()] == ["1"]


def test_a_file_that_must_not_be_there_is_kept(java: Any, tmp_path: Path) -> None:
    """The offsets of a batch, which another run of the query has written."""
    files, target = manager(java, f"file:{tmp_path}"), path(java, f"file:{tmp_path}/1")
    write(files.createAtomic(target, False), b"first")
    with pytest.raises(Exception, match="AlreadyExists"):
        write(files.createAtomic(target, False), b"second")
    assert (tmp_path / "1").read_bytes() == b"first"


def test_folders_are_made(java: Any, tmp_path: Path) -> None:
    files = manager(java, f"file:{tmp_path}")
    write(files.createTempFile(path(java, f"file:{tmp_path}/new/1")), b"state")
    assert (tmp_path / "new" / "1").read_bytes() == b"state"


def test_files_of_other_places_are_hadoops(java: Any, tmp_path: Path) -> None:
    conf = java.org.apache.hadoop.conf.Configuration()
    conf.set("fs.viewfs.mounttable.far.link./there", f"file:{tmp_path}")
    files = manager(java, "viewfs://far/there", conf)
    write(files.createTempFile(path(java, "viewfs://far/there/1")), b"commits")
    assert (tmp_path / "1").read_bytes() == b"commits"
    assert (tmp_path / ".1.crc").exists()


def test_a_server_of_this_machine_has_it(spark: Any, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "lines", tmp_path / "checkpoint"
    source.mkdir()
    (source / "1.txt").write_text("one\n")
    writer = spark.readStream.text(str(source)).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    finished(lambda: [writer.start()])
    written = {str(each.relative_to(checkpoint)) for each in checkpoint.rglob("*")}
    assert {"metadata", "offsets/0", "commits/0", "sources/0/0"} <= written
    assert not [name for name in written if name.endswith(".crc")]
