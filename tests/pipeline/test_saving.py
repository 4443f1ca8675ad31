"""A saved model is the same in another process, and nothing changed in its folder goes unseen."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from adaptiveembed.errors import AdaptiveEmbedError, ModelFormatError
from adaptiveembed.pipeline import folder as folders
from adaptiveembed.pipeline.card import model_card
from adaptiveembed.pipeline.folder import checksum, read_config, write_config
from adaptiveembed.pipeline.model import AdaptiveEmbed
from tests.pipeline.fresh import answers

FILES = {"embedder", "policy", "selftest"}


@pytest.fixture
def saved(run, tmp_path):
    """A copy of the model's folder, to be spoiled."""
    return shutil.copytree(run / "model", tmp_path / "model")


def change_tensors(folder, part, change, *, honest=True):
    """Change the tensors of one part; the checksum is made anew where that is ``honest``."""
    path = folder / f"{part}.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    if honest:
        change_config(folder, lambda facts: facts["checksums"].update({part: checksum(path)}))


def change_config(folder, change):
    facts = read_config(folder)
    change(facts)
    write_config(folder, facts)


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_another_process_finds_the_same_ids_scores_and_selections_bit_for_bit(run, model, tmp_path):
    file = tmp_path / "answers.safetensors"
    subprocess.run(
        [sys.executable, "-m", "tests.pipeline.fresh", str(run / "model"), str(file)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
    )
    there, here = load_file(file), answers(model)
    assert there.keys() == here.keys()
    for name, tensor in here.items():
        assert torch.equal(there[name], tensor), name


def test_a_model_saved_again_is_the_same_byte_for_byte(run, model, tmp_path):
    model.save_pretrained(tmp_path / "again")
    assert files(tmp_path / "again") == files(run / "model")


def test_a_folder_holds_json_safetensors_and_a_card_and_nothing_else(run):
    found = files(run / "model")
    assert {name.rpartition(".")[2] for name in found} == {"json", "safetensors", "md"}
    assert {f"{name}.safetensors" for name in FILES} < set(found)


def first_key(tensors):
    return sorted(tensors)[0]


def without_the_first(tensors):
    del tensors[first_key(tensors)]


def renamed(tensors):
    tensors["another"] = tensors.pop(first_key(tensors))


def wrongly_shaped(tensors):
    name = first_key(tensors)
    tensors[name] = torch.zeros(*tensors[name].shape, 2)


def halved(tensors):
    name = next(name for name in sorted(tensors) if tensors[name].is_floating_point())
    tensors[name] = tensors[name].half()


def altered(tensors):
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            tensors[name] = tensor + 0.5


@pytest.mark.parametrize("part", ["embedder", "policy"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_the_first, "{name} is missing"),
        (renamed, "{name} is missing; another is not known"),
        (wrongly_shaped, r"{name} is \(.*\) float32 and must be"),
        (halved, r"float16 and must be \(.*\) float32"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name_even_with_a_right_checksum(
    saved, part, change, message
):
    name = first_key(load_file(saved / f"{part}.safetensors"))
    change_tensors(saved, part, change)
    expected = f"tensors of {part} do not fit the model: .*{message.format(name=name)}"
    with pytest.raises(ModelFormatError, match=expected):
        AdaptiveEmbed.from_pretrained(saved)


@pytest.mark.parametrize("part", sorted(FILES))
def test_a_flipped_byte_of_any_tensors_is_refused_by_the_name_of_the_file(saved, part):
    path = saved / f"{part}.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=rf"{part}\.safetensors is not the file that was"):
        AdaptiveEmbed.from_pretrained(saved, check=True)


@pytest.mark.parametrize("part", ["embedder", "policy"])
def test_the_self_test_notices_weights_that_were_altered_with_a_right_checksum(saved, part):
    change_tensors(saved, part, altered)
    model = AdaptiveEmbed.from_pretrained(saved)
    told = "candidates" if part == "embedder" else "probabilities"
    with pytest.raises(ModelFormatError, match=rf"the {told} of \w+ come out .* off"):
        model.self_test(saved)


def test_a_flipped_byte_of_a_bank_is_refused(saved):
    path = saved / "bank-text-image" / "bank.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=r"bank-text-image"):
        AdaptiveEmbed.from_pretrained(saved)


@pytest.mark.parametrize("name", ["embedder.safetensors", "policy.safetensors", "bank-image-text"])
def test_a_part_that_is_gone_is_named(saved, name):
    path = saved / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ModelFormatError, match=name.replace(".", r"\.")):
        AdaptiveEmbed.from_pretrained(saved)


def test_a_config_that_was_changed_by_hand_is_refused(saved):
    path = saved / "config.json"
    facts = json.loads(path.read_text())
    facts["thresholds"]["text-image"] = 0.123
    path.write_text(json.dumps(facts))
    with pytest.raises(ModelFormatError, match=r"config\.json was changed after it was written"):
        AdaptiveEmbed.from_pretrained(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda facts: facts.update(version=99), "is a model of version 99"),
        (lambda facts: facts.update(format="x"), "does not describe a model"),
        (lambda facts: facts.pop("widths"), "is damaged .*widths"),
        (lambda facts: facts.update(source="smell"), "is damaged .*smell"),
        (lambda facts: facts["thresholds"].update({"text-image": 3.0}), "threshold is 3.0"),
        (lambda facts: facts["recipe"].update(colour="red"), "no setting colour"),
        (
            lambda facts: facts["recipe"]["representation"]["embedder"].update(layout="2+2"),
            "do not fit the model|layout",
        ),
    ],
)
def test_a_config_of_something_else_is_refused(saved, change, message):
    change_config(saved, change)
    with pytest.raises(AdaptiveEmbedError, match=message):
        AdaptiveEmbed.from_pretrained(saved)


def test_a_config_that_is_no_json_is_refused(saved):
    (saved / "config.json").write_text("{")
    with pytest.raises(ModelFormatError, match=r"config\.json cannot be read"):
        AdaptiveEmbed.from_pretrained(saved)


def test_saving_replaces_an_older_model_whole(saved, model):
    (saved / "policy-of-old.safetensors").write_bytes(b"old")
    model.save_pretrained(saved)
    assert not (saved / "policy-of-old.safetensors").exists()
    assert AdaptiveEmbed.from_pretrained(saved, check=True).thresholds == model.thresholds
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_saving_never_writes_over_anything_else(saved, model, tmp_path):
    (saved / "notes.txt").write_text("kept")
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("kept")
    for folder in (saved, other):
        with pytest.raises(ModelFormatError, match=r"something other than a model \(notes\.txt\)"):
            model.save_pretrained(folder)
        assert (folder / "notes.txt").read_text() == "kept"
    with pytest.raises(ModelFormatError, match="is a file"):
        model.save_pretrained(other / "notes.txt")


def test_a_save_that_fails_leaves_the_older_model_and_nothing_else(saved, model, monkeypatch):
    before = files(saved)

    def fail(*_):
        raise OSError("disk is full")

    monkeypatch.setattr("adaptiveembed.pipeline.saving.write_config", fail)
    with pytest.raises(OSError, match="disk is full"):
        model.save_pretrained(saved)
    assert files(saved) == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_an_older_model_comes_back_where_the_new_one_cannot_be_put_in_place(
    saved, model, monkeypatch
):
    before, rename = files(saved), type(saved).rename

    def fail(path, target):
        if path.name == "new":
            raise OSError("not now")
        return rename(path, target)

    monkeypatch.setattr(type(saved), "rename", fail)
    with pytest.raises(OSError, match="not now"):
        folders.write_folder(saved, lambda partial: None)
    assert files(saved) == before


def test_the_card_has_the_figures_and_the_thresholds_of_the_model(run, model):
    card = (run / "model" / "README.md").read_text()
    assert card == model_card(model)
    assert "adaptive mAP" in card
    for name, value in model.facts.figures.items():
        assert f"| {name} | {value:.4f} |" in card
    for direction, threshold in model.thresholds.items():
        assert f"| threshold {direction} | {threshold:.4f} |" in card
    for name, count in model.facts.counts.items():
        assert f"* {count:,} pairs for {name}" in card
    for encoder in model.facts.encoders.values():
        assert encoder.fingerprint in card


def test_the_figures_are_those_that_both_stages_logged(run, model):
    """The best validation of each stage, found again in what it logged."""
    for stage, prefix in (("stage-one", ""), ("stage-two/both", "adaptive ")):
        logs = list((run / stage).rglob("*.jsonl"))
        assert logs, stage
        logged = [json.loads(line) for path in logs for line in path.read_text().splitlines()]
        values = [value for line in logged for value in _numbers(line)]
        assert any(value == model.facts.figures[f"{prefix}mAP"] for value in values)


def _numbers(line):
    for value in line.values():
        if isinstance(value, dict):
            yield from _numbers(value)
        elif isinstance(value, float):
            yield value
