"""The simulator does what it says: the same each time, losing only what the model lets it lose."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from random import Random

import pytest

from moldau.sim.__main__ import main
from moldau.sim.disk import Platter, SimDisk, Stopped
from moldau.sim.loop import Deadlock, VirtualLoop
from moldau.sim.runner import run_seed
from support.repeats import mostly_long

SEEDS = (1, 3, 5, 10, 31)


@pytest.mark.parametrize("seed", mostly_long(SEEDS, "more seeds", keep=2))
def test_the_same_seed_tells_the_same_story(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first == second
    assert first.steps > 0
    assert first.faults


def test_seeds_tell_different_stories() -> None:
    some = SEEDS[:3]
    assert len({run_seed(seed).digest for seed in some}) == len(some)


def test_a_seed_tells_the_same_story_in_another_process() -> None:
    """Hashes of strings differ between processes; nothing may depend on them."""
    code = "from moldau.sim.runner import run_seed; print(run_seed(3).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    }
    assert len(digests) == 1


class TestCommandLine:
    def test_a_good_run_says_how_much_it_has_covered(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["--seeds", "2", "--jobs", "1"]) == 0
        told = capsys.readouterr().out
        assert "2 seeds in" in told
        assert "per minute" in told
        assert "virtual hours" in told
        assert "power failure" in told
        assert "every invariant held" in told

    def test_jobs_do_not_change_what_is_found(self, capsys: pytest.CaptureFixture[str]) -> None:
        def steps(jobs: str) -> str:
            main(["--seeds", "3", "--jobs", jobs])
            return capsys.readouterr().out.partition("), ")[2]

        assert steps("1") == steps("2")

    def test_a_replay_tells_every_step(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--seed", "3"]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 50


class TestVirtualTime:
    def test_time_passes_only_in_the_loop(self) -> None:
        loop = VirtualLoop()

        async def sleep_a_day() -> float:
            await asyncio.sleep(86_400)
            return loop.time()

        assert loop.run(sleep_a_day()) == pytest.approx(86_400)

    def test_a_deadlock_is_told(self) -> None:
        loop = VirtualLoop()

        async def wait() -> None:
            await loop.create_future()

        with pytest.raises(Deadlock):
            loop.run(wait())


class Fate(Random):
    """Chance that always falls the same way."""

    def __init__(self, value: float, choice: int) -> None:
        super().__init__()
        self._value = value
        self._choice = choice

    def random(self) -> float:
        return self._value

    def randrange(self, start: int, *args: object, **kwargs: object) -> int:  # type: ignore[override]
        return min(self._choice, start - 1)


LOSE_ALL = Fate(0.3, 10**9)
UNDO_NAMES = Fate(0.3, 0)
TEAR = Fate(0.9, 1)


def machine(fate: Random) -> tuple[Platter, SimDisk]:
    platter = Platter(lambda: 0, fate)
    platter.disk.make_dirs("/d")
    platter.disk.sync_dir("/d")
    platter.disk.sync_dir("/")
    return platter, platter.disk


class TestDisk:
    def test_synced_bytes_survive_and_others_do_not(self) -> None:
        platter, disk = machine(LOSE_ALL)
        file = disk.open("/d/f", create=True)
        file.write(b"synced", 0)
        file.sync()
        disk.sync_dir("/d")
        file.write(b"lost", 6)
        assert platter.lose_power() == 1
        assert platter.start().read_bytes("/d/f") == b"synced"

    def test_a_write_can_be_torn_and_a_lost_one_before_it_reads_as_zeros(self) -> None:
        platter, disk = machine(TEAR)
        file = disk.open("/d/f", create=True)
        disk.sync_dir("/d")
        file.write(b"aa", 0)
        file.write(b"bb", 2)
        platter.lose_power()
        assert platter.start().read_bytes("/d/f") == b"aab"
        file = platter.disk.open("/d/f")
        file.write(b"z", 5)
        assert platter.disk.read_bytes("/d/f") == b"aab\0\0z"

    def test_a_file_can_keep_its_size_without_its_data(self) -> None:
        found = set()
        for seed in range(200):
            platter, disk = machine(Random(seed))
            file = disk.open("/d/f", create=True)
            file.write(b"s" * 100, 0)
            file.sync()
            disk.sync_dir("/d")
            file.write(b"n" * 100, 100)
            platter.lose_power()
            left = platter.start().read_bytes("/d/f")
            assert left[:100] == b"s" * 100, "synced bytes are never damaged"
            if len(left) == 200:
                missing = left[100:].replace(b"n", b"")
                found.add("whole" if not missing else "zeros" if not any(missing) else "old data")
        assert found == {"whole", "zeros", "old data"}

    def test_a_name_is_durable_with_its_folder_only(self) -> None:
        platter, disk = machine(UNDO_NAMES)
        kept = disk.open("/d/kept", create=True)
        kept.sync()
        disk.sync_dir("/d")
        disk.open("/d/lost", create=True).sync()
        disk.rename("/d/kept", "/d/renamed")
        platter.lose_power()
        assert platter.start().list_dir("/d") == ["kept"]

    def test_bytes_after_an_undone_cut_are_gone_with_it(self) -> None:
        platter, disk = machine(Fate(0.1, 0))
        file = disk.open("/d/f", create=True)
        file.write(b"old", 0)
        file.sync()
        disk.sync_dir("/d")
        file.truncate(0)
        file.write(b"newer", 0)
        platter.lose_power()
        assert platter.start().read_bytes("/d/f") == b"old"

    def test_a_removed_file_and_a_moved_folder_can_come_back(self) -> None:
        platter, disk = machine(UNDO_NAMES)
        disk.make_dirs("/d/p")
        disk.open("/d/p/f", create=True)
        disk.sync_dir("/d/p")
        disk.rename("/d/p", "/d/q")
        disk.remove_tree("/d/q")
        assert disk.list_dir("/d") == []
        platter.lose_power()
        assert platter.start().list_dir("/d/p") == ["f"]

    def test_nothing_of_a_dead_process_reaches_the_disk(self) -> None:
        platter, disk = machine(LOSE_ALL)
        file = disk.open("/d/f", create=True)
        platter.stop()
        with pytest.raises(Stopped):
            file.write(b"x", 0)
        with pytest.raises(Stopped):
            disk.list_dir("/d")
        assert platter.start().read_bytes("/d/f") == b""

    def test_a_process_stops_in_front_of_the_change_it_is_told_to(self) -> None:
        platter, disk = machine(LOSE_ALL)
        file = disk.open("/d/f", create=True)
        platter.stop_after(1)
        file.write(b"a", 0)
        with pytest.raises(Stopped):
            file.write(b"b", 1)
        assert platter.start().read_bytes("/d/f") == b"a"

    def test_full_and_broken_folders_refuse_until_healed(self) -> None:
        platter, disk = machine(LOSE_ALL)
        disk.make_dirs("/e")
        file = disk.open("/d/f", create=True)
        platter.fill_folder("/d/", 3)
        file.write(b"abc", 0)
        with pytest.raises(OSError, match="no space"):
            file.write(b"d", 3)
        platter.break_folder("/d/", 1)
        assert file.read(0, 3) == b"abc"
        with pytest.raises(OSError, match="broken"):
            file.read(0, 3)
        disk.open("/e/f", create=True).write(b"other folders are well", 0)
        platter.heal()
        assert disk.read_bytes("/d/f") == b"abc"
