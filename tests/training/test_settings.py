"""The defaults are the paper's, and a setting that cannot work is refused."""

import math

import pytest

from adaptiveembed.errors import SettingError
from adaptiveembed.training.settings import (
    Decay,
    OptimizerSettings,
    PolicyTrainingSettings,
    Schedule,
    TrainingSettings,
    learning_rate,
)


def test_the_defaults_are_those_of_the_paper():
    settings = TrainingSettings()
    assert (settings.optimizer.learning_rate, settings.epochs, settings.batch_size) == (
        1e-4,
        20,
        2048,
    )
    assert settings.optimizer.schedule is Schedule.CONSTANT
    assert settings.optimizer.clip_norm is None
    assert settings.optimizer.warmup == 0
    assert settings.optimizer.decay is Decay.ALL
    assert PolicyTrainingSettings().epochs == 20


def test_a_constant_rate_without_warmup_is_always_the_same():
    assert {learning_rate(OptimizerSettings(), step, 7) for step in range(7)} == {1e-4}


def test_a_warmup_rises_in_a_straight_line_and_reaches_the_rate_at_its_last_step():
    settings = OptimizerSettings(learning_rate=1.0, warmup=0.4)
    assert [learning_rate(settings, step, 10) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_a_cosine_is_halfway_down_in_the_middle_and_leaves_the_final_part():
    settings = OptimizerSettings(learning_rate=1.0, schedule=Schedule.COSINE, final=0.2)
    assert learning_rate(settings, 0, 10) == 1.0
    assert learning_rate(settings, 5, 10) == pytest.approx(0.6)
    assert learning_rate(settings, 10, 10) == pytest.approx(0.2)


@pytest.mark.parametrize("schedule", list(Schedule))
@pytest.mark.parametrize("warmup", [0.0, 0.3, 1.0])
def test_no_schedule_exceeds_the_rate_or_stops_before_the_end(schedule, warmup):
    settings = OptimizerSettings(learning_rate=3.0, schedule=schedule, warmup=warmup)
    rates = [learning_rate(settings, step, 9) for step in range(9)]
    assert all(0 < rate <= 3 for rate in rates)


@pytest.mark.parametrize(
    ("settings", "wrong", "name"),
    [
        (OptimizerSettings, {"learning_rate": 0.0}, "learning_rate"),
        (OptimizerSettings, {"learning_rate": math.nan}, "learning_rate"),
        (OptimizerSettings, {"warmup": 1.5}, "warmup"),
        (OptimizerSettings, {"final": -0.1}, "final"),
        (OptimizerSettings, {"weight_decay": -1.0}, "weight_decay"),
        (OptimizerSettings, {"betas": (0.9,)}, "betas"),
        (OptimizerSettings, {"betas": (0.9, 1.0)}, "betas"),
        (OptimizerSettings, {"clip_norm": 0.0}, "clip_norm"),
        (TrainingSettings, {"epochs": 0}, "epochs"),
        (TrainingSettings, {"batch_size": -1}, "batch_size"),
        (TrainingSettings, {"micro_batch": 0}, "micro_batch"),
        (TrainingSettings, {"patience": 0}, "patience"),
        (TrainingSettings, {"checkpoint_seconds": -1.0}, "checkpoint_seconds"),
    ],
)
def test_a_setting_that_cannot_work_is_named(settings, wrong, name):
    with pytest.raises(SettingError, match=name):
        settings(**wrong)
