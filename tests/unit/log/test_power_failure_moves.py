"""Moves between folders and topics of one name, when the power fails around them."""

from __future__ import annotations

from uuid import UUID

from moldau.broker.log.moves import copy_step
from support.log_folder import NOW_MS, append, read_all, values_of
from support.power import TOPIC_ID, Machine, UndoNames, abort_one


def move(machine: Machine, path: str) -> None:
    directory = machine.manager.dir_by_path(path)
    assert directory is not None
    machine.manager.create_future_log("t", 0, directory)
    machine.manager.replace_by_future_log("t", 0)


def test_a_topic_made_again_has_nothing_of_the_checkpoints_of_the_former() -> None:
    machine = Machine()
    log = machine.create()
    for _ in range(20):
        append(log, b"x" * 100)
    log.flush()
    log.advance_log_start_offset(10)
    machine.manager.checkpoint_recovery_points()
    machine.manager.checkpoint_log_starts()
    machine.manager.checkpoint_high_watermarks()
    machine.manager.delete_log("t", 0)
    append(machine.create(), b"new")
    machine.log().flush()
    machine.lose_power()
    log = machine.log()
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 1, 0)
    assert values_of(read_all(log)) == [(0, b"new")]


def test_what_was_flushed_before_a_move_is_durable_after_it() -> None:
    machine = Machine(dirs=2)
    log = machine.create()
    append(log, b"a")
    log.flush()
    move(machine, "/data2")
    machine.lose_power()
    assert machine.log().dir == "/data2/t-0"
    assert values_of(read_all(machine.log())) == [(0, b"a")]


def test_a_move_is_durable_before_anything_is_flushed_in_the_new_place() -> None:
    machine = Machine(dirs=2, fate=UndoNames())
    append(machine.create(), b"a")
    move(machine, "/data2")
    machine.lose_power()
    assert machine.log().dir == "/data2/t-0"


def test_a_checkpointed_log_start_moves_with_the_log() -> None:
    machine = Machine(dirs=2)
    log = machine.create()
    append(log, b"a")
    append(log, b"b")
    directory = machine.manager.dir_by_path("/data2")
    assert directory is not None
    future = machine.manager.create_future_log("t", 0, directory)
    assert copy_step(log, future, now_ms=NOW_MS)
    log.advance_log_start_offset(1)
    machine.manager.checkpoint_log_starts()
    machine.manager.replace_by_future_log("t", 0)
    machine.kill()
    assert machine.log().log_start_offset == 1


def test_a_log_that_comes_back_to_a_folder_has_nothing_of_its_former_checkpoint_there() -> None:
    machine = Machine(dirs=2)
    log = machine.create()
    append(log, b"a", b"b", b"c")
    log.flush()
    machine.manager.checkpoint_recovery_points()
    move(machine, "/data2")
    directory = machine.manager.dir_by_path("/data1")
    assert directory is not None
    machine.manager.create_future_log("t", 0, directory)
    text = machine.platter.disk.read_bytes("/data1/recovery-point-offset-checkpoint")
    assert text == b"0\n0\n"


def test_a_log_that_starts_inside_a_batch_can_be_moved() -> None:
    machine = Machine(dirs=2)
    log = machine.create()
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    log.advance_log_start_offset(1)
    move(machine, "/data2")
    log = machine.log()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 4, 4)
    assert values_of(read_all(log)) == [(1, b"b"), (2, b"c"), (3, b"d")]


def test_a_moved_log_can_have_its_first_aborted_transaction() -> None:
    machine = Machine(dirs=2)
    append(machine.create(), b"a")
    move(machine, "/data2")
    abort_one(machine.log())
    assert not machine.log().offline
    assert [entry.producer_id for entry in machine.log().aborted_transactions(0, 9)] == [5]
    assert machine.platter.disk.exists("/data2/t-0/00000000000000000000.txnindex")


def test_a_copy_of_a_deleted_topic_is_not_taken_for_one_of_the_topic_after_it() -> None:
    machine = Machine(dirs=2)
    append(machine.create(), b"old")
    directory = machine.manager.dir_by_path("/data2")
    assert directory is not None
    future = machine.manager.create_future_log("t", 0, directory)
    copied_to = future.dir
    machine.manager.delete_log("t", 0)
    target = machine.manager.dir_by_path("/data1")
    machine.manager.create_log("t", 0, machine.config, topic_id=UUID(int=8), directory=target)
    # A power failure has undone the one name and not the other.
    machine.platter.disk.rename(future.dir, copied_to)
    machine.kill()
    assert machine.log().topic_id == UUID(int=8)
    assert machine.manager.get_future_log("t", 0) is None


def test_a_copy_that_outlived_what_the_power_failure_took_begins_anew() -> None:
    machine = Machine(dirs=2)
    append(machine.create(), b"a")
    machine.log().flush()
    append(machine.log(), b"lost")
    directory = machine.manager.dir_by_path("/data2")
    assert directory is not None
    future = machine.manager.create_future_log("t", 0, directory)
    copy_step(machine.log(), future, now_ms=NOW_MS)
    future.flush()
    machine.lose_power()
    append(machine.log(), b"b", leader_epoch=0)
    machine.manager.replace_by_future_log("t", 0)
    assert values_of(read_all(machine.log())) == [(0, b"a"), (1, b"b")]


def test_a_new_log_is_not_replaced_by_a_copy_of_a_former_topic() -> None:
    machine = Machine(dirs=3)
    append(machine.create(), b"old")
    directory = machine.manager.dir_by_path("/data2")
    assert directory is not None
    machine.manager.create_future_log("t", 0, directory)
    machine.platter.stop()
    machine.platter.start().remove_tree("/data1/t-0")
    machine.platter.break_folder("/data3/", 0)
    machine.start()
    assert machine.manager.get_future_log("t", 0) is not None
    machine.create(topic_id=UUID(int=8))
    assert machine.manager.get_future_log("t", 0) is None


def test_what_a_killed_process_had_flushed_is_durable_after_a_move() -> None:
    machine = Machine(dirs=2)
    append(machine.create(), b"a")
    machine.log().flush()
    machine.kill()
    assert machine.log().recovery_point == 0
    move(machine, "/data2")
    machine.lose_power()
    assert values_of(read_all(machine.log())) == [(0, b"a")]


def test_records_whose_topic_id_was_lost_are_not_taken_for_those_of_a_new_topic() -> None:
    machine = Machine()
    append(machine.create(), b"old")
    machine.platter.files["/data1/t-0/00000000000000000000.log"].sync()
    machine.lose_power()
    assert machine.manager.get_log("t", 0) is None
    names = machine.platter.disk.list_dir("/data1")
    assert [name for name in names if name.startswith("t-0.") and name.endswith("-stray")]


def test_a_copy_made_before_the_topic_id_was_known_gets_it_with_the_move() -> None:
    machine = Machine(dirs=2)
    machine.manager.create_log("t", 0, machine.config)
    directory = machine.manager.dir_by_path("/data2")
    assert directory is not None
    machine.manager.create_future_log("t", 0, directory)
    machine.log().set_topic_id(TOPIC_ID)
    machine.manager.replace_by_future_log("t", 0)
    machine.kill()
    assert machine.log().topic_id == TOPIC_ID


def test_a_copy_that_cannot_begin_anew_takes_its_folder_offline_and_not_the_start() -> None:
    machine = Machine(dirs=2)
    append(machine.create(), b"a")
    directory = machine.manager.dir_by_path("/data2")
    assert directory is not None
    future = machine.manager.create_future_log("t", 0, directory)
    copy_step(machine.log(), future, now_ms=NOW_MS)
    machine.platter.stop()
    machine.platter.fill_folder(future.dir, 0)
    machine.start()
    assert [d.path for d in machine.manager.offline_dirs] == ["/data2"]
    assert values_of(read_all(machine.log())) == [(0, b"a")]


def test_a_moved_log_keeps_its_end_where_no_batch_tells_of_it() -> None:
    machine = Machine(dirs=2)
    log = machine.create()
    append(log, b"a", b"b", b"c")
    log.truncate_to(2, now_ms=NOW_MS)
    assert log.log_end_offset == 2
    move(machine, "/data2")
    machine.stop()
    machine.start()
    assert machine.log().log_end_offset == 2
