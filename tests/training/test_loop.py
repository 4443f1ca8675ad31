"""The loop validates, keeps the best, tells how it goes, and stops when numbers go wrong."""

import math
from types import SimpleNamespace

import pytest
import torch

from adaptiveembed.errors import SettingError, TrainingError
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.training import loop, reporting
from adaptiveembed.training.checkpoints import checkpoints_in, read_checkpoint
from adaptiveembed.training.optimizer import adamw
from adaptiveembed.training.order import order
from adaptiveembed.training.scalars import read_scalars
from adaptiveembed.training.settings import (
    Autocast,
    Decay,
    DeviceChoice,
    OptimizerSettings,
    Schedule,
)
from tests.training.toys import (
    DIM,
    LAYOUT,
    VECTORS,
    ToyEmbedder,
    ToyPolicy,
    contrast,
    same_bits,
    toy_examples,
    train_one,
    train_two,
)


def scripted(*figures):
    """A validation that gives these figures in turn, and the weights that it saw."""
    left, seen = list(figures), []

    def validate(model):
        assert not model.training
        seen.append({name: each.clone() for name, each in model.state_dict().items()})
        return {"mAP": left.pop(0), "position cosine": 0.5}

    return validate, seen


def test_the_best_weights_by_validation_are_there_at_the_end(tmp_path):
    validate, seen = scripted(0.1, 0.7, 0.3)
    model, summary = train_one(tmp_path, validate=validate)
    assert same_bits(model, seen[1])
    assert (summary.best_step, summary.best["mAP"], summary.steps) == (6, 0.7, 9)
    assert not summary.stopped_early


def test_without_validation_the_last_weights_are_there(tmp_path):
    model, summary = train_one(tmp_path)
    fewer, _ = train_one(tmp_path / "fewer", changes={"epochs": 2})
    assert summary.best_step is None
    assert not same_bits(model, fewer)


def test_training_stops_when_patience_is_at_its_end(tmp_path):
    validate, seen = scripted(0.5, 0.5, 0.4)
    model, summary = train_one(tmp_path, validate=validate, changes={"patience": 2, "epochs": 50})
    assert same_bits(model, seen[0])
    assert (summary.steps, summary.stopped_early, summary.best_step) == (9, True, 3)


def test_a_state_is_stored_when_the_last_one_is_old(tmp_path, monkeypatch):
    clock, stored = [0.0], []

    def ten_seconds_later(done, total, facts=None):
        clock[0] += 10

    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(
        loop, "write_checkpoint", lambda checkpoint, _: stored.append(checkpoint.standing.step)
    )
    train_one(tmp_path, changes={"checkpoint_seconds": 25.0}, progress=ten_seconds_later)
    assert stored == [3, 6, 9]


def test_another_figure_may_decide(tmp_path):
    def validate(model):
        return {"mAP": 0.0, "headroom": 1}

    _, summary = train_one(tmp_path, validate=validate, changes={"figure": "headroom"})
    assert summary.best_step == 3


def test_validation_may_be_rarer_than_epochs_but_is_never_missing_at_the_end(tmp_path):
    validate, seen = scripted(0.1, 0.2, 0.3)
    train_one(tmp_path, validate=validate, changes={"epochs": 5, "validate_epochs": 2})
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"recall": 0.5}, "gave the figures recall and not mAP; set figure"),
        ({}, "gave the figures none and not mAP"),
        ({"mAP": float("nan")}, "mAP of the validation after step 3 is nan"),
    ],
)
def test_a_validation_that_decides_nothing_is_an_error(tmp_path, figures, message):
    with pytest.raises(TrainingError, match=message):
        train_one(tmp_path, validate=lambda model: figures)


def test_progress_tells_loss_rate_speed_and_time_left_and_all_figures(tmp_path):
    told = []
    validate, _ = scripted(0.1, 0.2, 0.3)
    train_one(
        tmp_path, validate=validate, progress=lambda done, total, facts: told.append((done, facts))
    )
    steps = [(done, facts) for done, facts in told if "loss" in facts]
    assert [done for done, _ in steps] == list(range(1, 10))
    for _, facts in steps:
        assert facts.keys() == {
            "loss",
            "learning_rate",
            "gradient_norm",
            "epoch",
            "items_per_second",
            "seconds_left",
        }
    assert [facts for _, facts in told if "mAP" in facts][2] == {"mAP": 0.3, "position cosine": 0.5}
    assert steps[-1][1]["seconds_left"] == 0


def test_steps_are_logged_at_their_interval_with_validations_beside_them(tmp_path):
    validate, _ = scripted(0.1, 0.2, 0.3)
    train_one(tmp_path, validate=validate, changes={"log_steps": 6})
    lines = read_scalars(tmp_path)
    assert [line["step"] for line in lines] == [3, 6, 9]
    assert "loss" not in lines[0]
    assert lines[1]["loss"] > 0
    assert lines[1]["validation/mAP"] == 0.2


def test_the_logged_rate_is_the_one_of_the_schedule(tmp_path):
    rates = OptimizerSettings(learning_rate=0.9, schedule=Schedule.LINEAR)
    train_one(tmp_path, changes={"optimizer": rates})
    found = [line["learning_rate"] for line in read_scalars(tmp_path)]
    assert found == pytest.approx([0.9 - step / 10 for step in range(9)])


@pytest.mark.parametrize(
    ("settings", "rates", "longest"),
    [
        (OptimizerSettings(learning_rate=0.02, weight_decay=0.1), [0.02] * 9, math.inf),
        (
            OptimizerSettings(
                learning_rate=0.02,
                schedule=Schedule.COSINE,
                warmup=1 / 3,
                final=0.1,
                betas=(0.8, 0.95),
                epsilon=1e-3,
                clip_norm=0.01,
            ),
            [0.02 / 3, 0.04 / 3]
            + [
                0.002 + 0.009 * (1 + math.cos(math.pi * step / 6)) for step in (0, 0, 1, 2, 3, 4, 5)
            ],
            0.01,
        ),
    ],
    ids=["as in the paper", "with everything"],
)
def test_training_follows_plain_adamw(tmp_path, settings, rates, longest):
    """Written as one would without this library."""
    model, _ = train_two(tmp_path, ToyPolicy(), changes={"optimizer": settings})
    plain, examples = ToyPolicy(), toy_examples()
    optimizer = torch.optim.AdamW(
        plain.parameters(),
        betas=settings.betas,
        eps=settings.epsilon,
        weight_decay=settings.weight_decay,
    )
    batches = [items for epoch in range(3) for items in order(24, 0, epoch).split(8)]
    for items, rate in zip(batches, rates, strict=True):
        optimizer.zero_grad()
        logits = plain(examples.inputs[items])
        (-(logits.softmax(-1) * examples.utilities[items]).sum(-1).mean()).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), longest)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
    for found, wanted in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7)


def test_clipping_bounds_the_step_and_not_the_logged_norm(tmp_path):
    """With momentum forgotten at once, AdamW's first step does not see the scale; SGD would."""
    clipped = OptimizerSettings(learning_rate=0.02, clip_norm=1e-9, epsilon=1.0)
    model, _ = train_one(tmp_path, ToyEmbedder(), changes={"optimizer": clipped, "epochs": 1})
    assert read_scalars(tmp_path)[0]["gradient_norm"] > 0.1
    start = ToyEmbedder()
    decayed = [each * (1 - 0.02 * 0.01) ** 3 for each in start.parameters()]
    for found, wanted in zip(model.parameters(), decayed, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-8)


def test_decay_may_spare_biases():
    model = ToyPolicy()
    spared = adamw(model, OptimizerSettings(decay=Decay.MATRICES)).param_groups
    assert [(group["weight_decay"], len(group["params"])) for group in spared] == [
        (0.01, 1),
        (0.0, 1),
    ]
    assert len(adamw(model, OptimizerSettings()).param_groups) == 1


def test_weights_that_do_not_learn_stay_as_they_are(tmp_path):
    model = ToyEmbedder()
    frozen = model.inner["text"].requires_grad_(requires_grad=False)
    before = frozen.weight.clone()
    train_one(tmp_path, model)
    assert torch.equal(frozen.weight, before)


def test_a_model_that_cannot_learn_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="no weight of the model of Stage I learns"):
        train_one(tmp_path, ToyEmbedder().requires_grad_(requires_grad=False))


def test_training_gives_back_the_mode_and_the_generator(tmp_path):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    model = ToyEmbedder()
    torch.manual_seed(1)
    train_one(tmp_path, model.eval())
    assert not model.training
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_decides_the_result(tmp_path):
    models = [
        train_one(tmp_path / f"{n}", changes={"seed": seed})[0] for n, seed in enumerate([0, 0, 1])
    ]
    assert same_bits(models[0], models[1])
    assert not same_bits(models[0], models[2])


def test_bfloat16_changes_little_and_stays_out_of_the_loss(tmp_path):
    seen = []

    def objective(source, target, same_item):
        seen.append((source.dtype, target.dtype, torch.is_autocast_enabled("cpu")))
        return contrast(source, target, same_item)

    train_one(tmp_path, objective=objective, changes={"bf16": Autocast.ON, "epochs": 1})
    assert set(seen) == {(torch.float32, torch.float32, False)}
    low, high = (
        train_one(tmp_path / bf16, changes={"bf16": bf16})[1]
        for bf16 in (Autocast.ON, Autocast.OFF)
    )
    assert low.loss == pytest.approx(high.loss, rel=0.05)
    assert low.loss != high.loss


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SettingError, match="device is cuda and torch finds no CUDA device"):
        train_one(tmp_path, changes={"device": DeviceChoice.CUDA})


# What went wrong, and why


def test_a_learning_rate_too_high_is_named_as_the_cause(tmp_path):
    wild = OptimizerSettings(learning_rate=1e37)
    with pytest.raises(TrainingError) as error:
        train_one(tmp_path, changes={"optimizer": wild, "checkpoint_steps": 1})
    message = str(error.value)
    assert message.startswith("Stage I stopped at step 2 of 9: the weight ")
    assert "holds NaN or infinity, so earlier steps were too large; lower learning_rate" in message
    (good,) = checkpoints_in(tmp_path / "checkpoints")
    assert message.endswith(f"(the last good state is {good})")
    weights = read_checkpoint(good).model.values()
    assert all(bool(weight.isfinite().all()) for weight in weights)


def judged(vectors):
    """A validation that makes candidate sets of these vectors, as the real ones do."""

    def validate(model):
        CandidateSets(vectors, LAYOUT)
        return {"mAP": 0.0}

    return validate


@pytest.mark.parametrize("wrong", [torch.nan, 0.0])
def test_weights_too_large_for_the_validation_are_named_with_the_step(tmp_path, wrong):
    wild = OptimizerSettings(learning_rate=1e30)
    one_step = {"optimizer": wild, "epochs": 1, "batch_size": 24}
    vectors = torch.full((2, VECTORS, DIM), wrong)
    with pytest.raises(TrainingError) as error:
        train_one(tmp_path, validate=judged(vectors), changes=one_step)
    message = str(error.value)
    assert message.partition(": the validation failed, because the weight ")[0].endswith(
        "stopped at step 1 of 1"
    )
    assert "reaches 1e+30, so earlier steps were too large; lower learning_rate, or" in message
    assert "position" in str(error.value.__cause__)


def test_a_validation_that_fails_under_good_weights_says_what_it_found(tmp_path):
    vectors = torch.full((2, VECTORS, DIM), torch.nan)
    told = r"at step 3 of 9: the validation failed, because the vector at item 0, position 0 holds"
    with pytest.raises(TrainingError, match=told):
        train_one(tmp_path, validate=judged(vectors))


def test_steps_too_large_are_named_before_the_temperature(tmp_path):
    wild = OptimizerSettings(learning_rate=1e20)
    told = r"the loss is nan; the weight layer\.\w+ reaches 1e\+38, so earlier steps were too large"
    with pytest.raises(TrainingError, match=told):
        train_two(tmp_path, changes={"optimizer": wild})


def test_a_temperature_too_small_is_named_as_the_cause(tmp_path):
    with pytest.raises(TrainingError, match=r"step 1 of 9: the loss is nan; .*temperature"):
        train_one(tmp_path, objective=lambda *sets: contrast(*sets, temperature=1e-40))
    assert not (tmp_path / "checkpoints").exists()


def test_the_last_good_state_is_kept_when_numbers_go_wrong(tmp_path):
    calls = []

    def objective(source, target, same_item):
        calls.append(0)
        return contrast(source, target, same_item) * (torch.inf if len(calls) == 6 else 1)

    changes = {"checkpoint_steps": 1}
    with pytest.raises(TrainingError, match=r"step 6 of 9: the loss is inf"):
        train_one(tmp_path, objective=objective, changes=changes)
    model, _ = train_one(tmp_path, changes=changes)
    undisturbed, _ = train_one(tmp_path / "undisturbed", changes=changes)
    assert same_bits(model, undisturbed)


def test_a_gradient_that_is_not_finite_is_told_from_a_loss_that_is_not(tmp_path):
    def objective(source, target, same_item):
        return contrast(source, target, same_item) + (source - source).abs().sum().sqrt()

    with pytest.raises(TrainingError, match=r"the loss is 2.\d+ and the norm of its gradient nan"):
        train_one(tmp_path, objective=objective)


class LowPrecisionHater(ToyEmbedder):
    def forward(self, modality, encoded, dropout_keys=None):
        vectors = super().forward(modality, encoded, dropout_keys)
        return vectors * (torch.nan if torch.is_autocast_enabled("cpu") else 1.0)


def test_autocast_is_named_as_the_cause_if_the_step_is_finite_without_it(tmp_path):
    with pytest.raises(TrainingError, match="finite without autocast to bfloat16; set bf16 to off"):
        train_one(tmp_path, LowPrecisionHater(), changes={"bf16": Autocast.ON})


def test_utilities_that_are_not_finite_are_refused_before_training(tmp_path):
    examples = toy_examples()
    examples.utilities[17, 1, 0] = torch.nan
    with pytest.raises(TrainingError, match="Stage II cannot begin: the utilities of sample 17"):
        train_two(tmp_path, examples=examples)
