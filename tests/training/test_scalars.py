"""The figures of every step stand in the folder once."""

import json
import math

from tensorboardX.proto.event_pb2 import Event, SessionLog

from adaptiveembed.training.scalars import Scalars, read_scalars


def test_a_reopened_log_goes_on_behind_the_step_that_is_done(tmp_path):
    first = Scalars(tmp_path, done=0)
    for step in (1, 2, 3):
        first.write(step, {"loss": 1 / step})
    first.close()
    second = Scalars(tmp_path, done=1)
    second.write(2, {"loss": 0.25})
    second.close()
    assert read_scalars(tmp_path) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.25}]


def test_a_half_written_line_is_forgotten(tmp_path):
    (tmp_path / "scalars.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    Scalars(tmp_path, done=2).close()
    assert (tmp_path / "scalars.jsonl").read_text() == '{"step": 1, "loss": 2.0}\n'


def test_lines_are_strict_json_even_of_what_is_no_number(tmp_path):
    log = Scalars(tmp_path, done=0)
    log.write(1, {"share": math.nan, "loss": 0.5})
    log.close()
    line = (tmp_path / "scalars.jsonl").read_text()
    assert json.loads(line, parse_constant=lambda text: 1 / 0) == {
        "step": 1,
        "share": None,
        "loss": 0.5,
    }


def test_tensorboard_finds_an_event_file(tmp_path):
    log = Scalars(tmp_path, done=0)
    log.write(1, {"loss": 0.5})
    log.close()
    (events,) = (tmp_path / "tensorboard").glob("events.out.tfevents.*")
    assert b"loss" in events.read_bytes()


def test_a_reopened_log_has_tensorboard_forget_the_steps_behind_it(tmp_path):
    for done in (0, 4):
        log = Scalars(tmp_path, done)
        log.write(done + 1, {"loss": 0.5})
        log.close()
    files = sorted((tmp_path / "tensorboard").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    forgotten = [
        event.step
        for event in events_of(files[-1])
        if event.session_log.status == SessionLog.START  # from this step on
    ]
    assert forgotten == [5]


def events_of(path):
    """Length in 8 bytes, 4 of checksum, the event, 4 of checksum, and so on."""
    content = path.read_bytes()
    while content:
        end = 12 + int.from_bytes(content[:8], "little")
        yield Event.FromString(content[12:end])
        content = content[end + 4 :]
