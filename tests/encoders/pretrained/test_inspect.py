"""``inspect encoder`` says what an encoder is, by its name or by the folder of its checkpoint."""

import json

import pytest

from adaptiveembed.cli import main
from adaptiveembed.encoders.pretrained.guessing import kind_of_folder
from adaptiveembed.encoders.user import named_encoder
from adaptiveembed.errors import EncoderError
from tests.encoders.pretrained.checkpoints import MAKERS, kind_of


@pytest.fixture
def inspect(capsys):
    """What the command prints, line by line, or its error."""

    def called(*arguments):
        status = main(["inspect", *map(str, arguments)])
        out, err = capsys.readouterr()
        return out.splitlines() if status == 0 else err

    return called


def test_everything_that_was_found_is_said(inspect, checkpoint):
    name = f"clip:{checkpoint('clip')}"
    assert inspect("encoder", name) == [
        f"encoder: {name}",
        "  class: CLIPModel",
        "  pooling: end token of a text, class token of an image, projected",
        "  text limit: 77 tokens",
        "  image limit: 32 × 32 pixels",
        "  modalities: image, text",
        "  width: 16",
        f"  fingerprint {named_encoder(name).fingerprint}",
    ]


@pytest.mark.parametrize("name", MAKERS)
def test_the_kind_of_a_checkpoint_is_guessed_from_its_folder(name, inspect, checkpoint):
    folder = checkpoint(name)
    assert kind_of_folder(folder) == kind_of(name)
    lines = inspect("encoder", folder)
    assert lines[0] == f"encoder: {kind_of(name)}:{folder}"
    assert {line.split(":")[0] for line in lines} >= {"  class", "  pooling", "  width"}
    assert any("limit: " in line for line in lines)


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("clap", "audio limit: 1 s at 48000 Hz, of a longer sound its middle"),
        ("clap-fused", "of a longer sound the whole and the middle place of each third"),
        ("whisper", "audio limit: the first 2 s at 16000 Hz"),
        ("ast", "audio limit: the first 96 frames of 10 ms at 16000 Hz"),
        ("siglip", "text limit: 64 tokens, and every text is filled up to them"),
        ("sentence-transformers", "text limit: 32 tokens"),
    ],
)
def test_how_much_of_an_item_is_read_is_said(name, limit, inspect, checkpoint):
    assert any(line.endswith(limit) for line in inspect("encoder", checkpoint(name)))


def test_the_built_in_encoder_and_anyones_own_are_said(inspect):
    built_in = inspect("encoder", "training-free")
    assert built_in[:3] == ["encoder: training-free text", "  modalities: text", "  width: 512"]
    own = inspect("encoder", "tests.encoders.own_encoders:LetterCounter")
    assert own == [
        "encoder: letter counter",
        "  modalities: text",
        "  width: 27",
        "  fingerprint letters-1",
    ]


def test_what_cannot_be_inspected_is_refused_with_what_to_do(inspect, checkpoint, tmp_path):
    wrong = f"clip:{checkpoint('siglip')}"
    assert "choose the kind of this checkpoint" in inspect("encoder", wrong)
    assert f"write KIND:{tmp_path} with one of clip," in inspect("encoder", tmp_path)
    assert "write encoder before the name of an encoder" in inspect(tmp_path, "clip:x")
    assert "encoder lacks the name of one; write it behind" in inspect("encoder")


def test_a_folder_called_encoder_is_still_a_folder(inspect, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "encoder").mkdir()
    assert "encoder is no manifest, recipe, dataset, run or model" in inspect("encoder")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"config.json": {"model_type": "qwen3_vl"}, "modules.json": []}, "qwen3-vl"),
        ({"config.json": {"model_type": "bert"}, "modules.json": []}, "sentence-transformers"),
        ({"adapter_config.json": {}}, "vlm2vec"),
    ],
)
def test_a_known_model_goes_before_the_library_that_runs_it(said, kind, tmp_path):
    for name, content in said.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert kind_of_folder(tmp_path) == kind


@pytest.mark.parametrize("said", ["{", "[]", '{"model_type": "bert"}'])
def test_a_folder_that_says_nothing_useful_is_refused(said, tmp_path):
    (tmp_path / "config.json").write_text(said)
    with pytest.raises(EncoderError, match=r"config.json cannot be read|which kind of encoder"):
        kind_of_folder(tmp_path)
