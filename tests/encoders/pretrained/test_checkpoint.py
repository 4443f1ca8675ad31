"""A checkpoint is loaded whole or not at all, and its fingerprint follows its content."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from adaptiveembed.encoders.pretrained import checkpoint as module
from adaptiveembed.encoders.pretrained.checkpoint import (
    checkpoint_fingerprint,
    dtype_of,
    imported,
    load_part,
    load_strict,
    pinned,
)
from adaptiveembed.encoders.pretrained.settings import (
    EncoderDevice,
    EncoderDtype,
    PretrainedSettings,
)
from adaptiveembed.encoders.user import load_encoder, named_encoder
from adaptiveembed.errors import EncoderError, SettingError
from adaptiveembed.structure.direction import Modality
from tests.encoders.pretrained.checkpoints import kind_of

WEIGHTS = "model.safetensors"

TENSORS = {
    "clip": [
        "text_projection.weight",
        "vision_model.encoder.layers.1.mlp.fc1.bias",
        "text_model.embeddings.position_embedding.weight",
    ],
    "siglip": ["vision_model.head.probe", "text_model.head.bias", "logit_bias"],
    "clap": [
        "audio_model.audio_encoder.batch_norm.running_mean",
        "text_model.pooler.dense.weight",
        "audio_projection.linear2.bias",
    ],
    "clap-fused": ["audio_model.audio_encoder.patch_embed.mel_conv2d.weight"],
    "whisper": ["encoder.conv1.weight", "decoder.layers.0.fc1.weight", "encoder.layer_norm.bias"],
    "ast": ["embeddings.cls_token", "layernorm.weight"],
    "wave": [
        "beats.encoder.layers.1.fc1.weight",
        "beats.encoder.pos_conv.0.weight_v",
        "beats_proj.2.bias",
        "classify_linear.0.weight",
        "audio_tower.ln_post.bias",
        "layers.1.mlp.up_proj.weight",
    ],
    "sentence-transformers": [
        "embeddings.word_embeddings.weight",
        "encoder.layer.1.output.dense.weight",
        "pooler.dense.bias",
    ],
    "sentence-transformers-dense": ["linear.weight", "embeddings.LayerNorm.bias"],
}
DAMAGES = [(name, tensor) for name, tensors in TENSORS.items() for tensor in tensors]


@pytest.fixture
def copied(checkpoint, tmp_path):
    """A copy of a tiny checkpoint that a test may damage."""

    def copy(name):
        return shutil.copytree(checkpoint(name), tmp_path / "copy")

    return copy


def change_weights(folder, tensor, change):
    """Let ``change`` change the weights of the one file that holds the tensor; give its name."""
    for path in folder.rglob(WEIGHTS):
        weights = load_file(path)
        for name in weights:
            if name.endswith(tensor):
                change(weights, name)
                save_file(weights, path, metadata={"format": "pt"})
                return
    raise LookupError(tensor)


def remove(weights, name):
    del weights[name]


def rename(weights, name):
    weights[f"{name}_old"] = weights.pop(name)


def resize(weights, name):
    weights[name] = torch.zeros([size + 1 for size in weights[name].shape])


# Whole or not at all.


@pytest.mark.parametrize("damage", [remove, rename, resize])
@pytest.mark.parametrize(("name", "tensor"), DAMAGES)
def test_a_damaged_tensor_is_refused_by_its_name(name, tensor, damage, copied):
    folder = copied(name)
    change_weights(folder, tensor, damage)
    modality = Modality.AUDIO if name in {"whisper", "ast"} else Modality.TEXT
    with pytest.raises(EncoderError) as caught:
        load_encoder(f"{kind_of(name)}:{folder}", modality)
    assert tensor in str(caught.value)
    assert str(folder) in str(caught.value)


def test_both_shapes_of_a_resized_tensor_are_said(copied):
    folder = copied("clip")
    change_weights(folder, "text_projection.weight", resize)
    with pytest.raises(EncoderError, match=r"text_projection.weight is \(17, 25\), .*\(16, 24\)"):
        load_encoder(f"clip:{folder}", Modality.TEXT)


def test_of_many_damaged_tensors_the_first_are_named_and_the_others_counted(copied):
    folder = copied("clip")
    (weights,) = folder.glob(WEIGHTS)
    tensors = load_file(weights)
    kept = {name: tensor for name, tensor in tensors.items() if "text_model" not in name}
    save_file(kept, weights, metadata={"format": "pt"})
    more = len(tensors) - len(kept) - module.SHOWN_TENSORS
    with pytest.raises(EncoderError, match=rf"missing: text_model\.[^;]* and {more} more;"):
        load_encoder(f"clip:{folder}", Modality.TEXT)


def test_a_checkpoint_of_another_kind_is_refused(checkpoint):
    with pytest.raises(EncoderError, match="choose the kind of this checkpoint"):
        load_encoder(f"clip:{checkpoint('siglip')}", Modality.TEXT)


def test_a_file_that_was_cut_off_is_refused(copied):
    folder = copied("clip")
    (weights,) = folder.glob(WEIGHTS)
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(EncoderError, match="cannot be loaded as CLIPModel"):
        load_encoder(f"clip:{folder}", Modality.TEXT)


def test_left_over_tensors_are_ignored_only_where_that_is_said(checkpoint):
    from transformers import ASTModel

    settings = PretrainedSettings(str(checkpoint("ast")))
    with pytest.raises(EncoderError, match=r"not part of the model: classifier\.dense\.bias, "):
        load_strict(ASTModel, settings)
    load_strict(ASTModel, settings, ignored=["classifier."])


IDS = torch.arange(10)[None]
PUBLISHED = {
    "clip": {"text_model.embeddings.position_ids": IDS},
    "siglip": {"vision_model.embeddings.position_ids": IDS},
    "whisper": {"proj_out.weight": torch.zeros(40, 24)},
    "ast": {"classifier.more": IDS},
    "wave": {"beats.predictor.more": IDS},
    "sentence-transformers": {"embeddings.position_ids": IDS, "cls.predictions.bias": 1 * IDS},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_published_files_have_beyond_the_model_is_let_pass(name, copied):
    folder = copied(name)
    (weights,) = folder.glob(WEIGHTS)
    tensors = load_file(weights)
    save_file(tensors | PUBLISHED[name], weights, metadata={"format": "pt"})
    named_encoder(f"{kind_of(name)}:{folder}")
    save_file(tensors | {"some.other": IDS}, weights, metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=r"not part of the model: some\.other;"):
        named_encoder(f"{kind_of(name)}:{folder}")


def test_the_names_of_a_speech_recogniser_are_those_of_its_parts(copied):
    folder = copied("whisper")
    (weights,) = folder.glob(WEIGHTS)
    tensors = {f"model.{name}": tensor for name, tensor in load_file(weights).items()}
    save_file(tensors, weights, metadata={"format": "pt"})
    named_encoder(f"whisper:{folder}")


def test_a_part_that_is_not_used_may_be_missing_whole_and_not_in_pieces(copied):
    from transformers import BertModel

    folder = copied("sentence-transformers")
    settings = PretrainedSettings(str(folder))
    change_weights(folder, "pooler.dense.bias", remove)
    with pytest.raises(EncoderError, match=r"missing: pooler\.dense\.bias;"):
        load_strict(BertModel, settings, unused=["pooler."])
    change_weights(folder, "pooler.dense.weight", remove)
    load_strict(BertModel, settings, unused=["pooler."])
    with pytest.raises(EncoderError, match=r"missing: pooler\.dense\.bias, pooler\.dense\.weight;"):
        load_strict(BertModel, settings)


def test_a_model_is_ready_to_encode_and_not_to_be_trained(checkpoint):
    from transformers import CLIPModel

    for dtype in (EncoderDtype.AUTO, EncoderDtype.BFLOAT16):
        settings = PretrainedSettings(
            str(checkpoint("clip")), dtype=dtype, device=EncoderDevice.CPU, attention="eager"
        )
        model = load_strict(CLIPModel, settings)
        assert not model.training
        assert not any(weight.requires_grad for weight in model.parameters())
        assert {weight.dtype for weight in model.parameters()} == {dtype_of(settings)}
        assert model.config._attn_implementation == "eager"


def test_loading_says_nothing_and_leaves_the_loudness_of_transformers_as_it_was(checkpoint, capfd):
    from transformers import ASTModel
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_strict(ASTModel, PretrainedSettings(str(checkpoint("ast"))), ignored=["classifier."])
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


# What cannot be had.


def test_a_missing_library_is_refused_with_how_to_install_it():
    with pytest.raises(EncoderError, match=r"no_such_library.*pip install adaptiveembed\[encoders"):
        imported("no_such_library")


def test_a_part_without_its_library_is_refused_with_how_to_install_it(tmp_path):
    class NeedsMore:
        @classmethod
        def from_pretrained(cls, *_, **__):
            raise ImportError("no sentencepiece here")

    with pytest.raises(EncoderError, match=r"no sentencepiece here.*pip install adaptiveembed\["):
        load_part(NeedsMore, PretrainedSettings(str(tmp_path)))


def test_a_folder_that_is_not_there_is_refused():
    with pytest.raises(EncoderError, match=r"there is no folder \./no/such; correct"):
        load_encoder("clip:./no/such", Modality.TEXT)


def test_a_source_that_the_hub_cannot_give_is_refused():
    with pytest.raises(EncoderError, match="no/such is neither a folder nor a checkpoint"):
        load_encoder("clip:no/such,local_files_only=true", Modality.TEXT)
    with pytest.raises(EncoderError, match="not a source is neither a folder nor found"):
        load_encoder("clip:not a source,local_files_only=true", Modality.TEXT)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_is_refused_where_there_is_none(checkpoint):
    with pytest.raises(SettingError, match="torch sees no CUDA device; give cpu or auto"):
        load_encoder(f"clip:{checkpoint('clip')},device=cuda", Modality.TEXT)


# Fingerprints.


def fingerprint(folder, what=(), **changes):
    return checkpoint_fingerprint(PretrainedSettings(str(folder), **changes), dict(what))


def test_a_fingerprint_follows_weights_settings_and_what_else_is_said(copied):
    folder = copied("clip")
    first = fingerprint(folder)
    assert fingerprint(folder) == first
    others = [
        fingerprint(folder, dtype=EncoderDtype.BFLOAT16),
        fingerprint(folder, attention="eager"),
        fingerprint(folder, trust_remote_code=True),
        fingerprint(folder, {"pooling": "mean"}),
    ]
    change_weights(folder, "logit_scale", lambda weights, name: weights[name].add_(1e-6))
    others.append(fingerprint(folder))
    (folder / "preprocessor_config.json").write_text("{}")
    others.append(fingerprint(folder))
    (folder / "config.json").rename(folder / "other.json")
    others.append(fingerprint(folder))
    assert len({first, *others}) == 1 + len(others)


def test_a_fingerprint_does_not_follow_what_changes_no_feature(copied, tmp_path):
    folder = copied("clip")
    first = fingerprint(folder)
    (folder / "README.md").write_text("about")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "notes.json").write_text("{}")
    moved = folder.rename(tmp_path / "elsewhere")
    assert fingerprint(moved, token_budget=7, dtype=EncoderDtype.FLOAT32, revision="x") == first


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A file that counts as large: a header, and numbers of which some blocks are looked at."""
    monkeypatch.setattr(module, "WHOLE_BYTES", 100)
    monkeypatch.setattr(module, "SAMPLES", 5)
    monkeypatch.setattr(module, "SAMPLE_BYTES", 10)
    save_file({"numbers": torch.zeros(1000)}, tmp_path / WEIGHTS)
    return tmp_path / WEIGHTS


@pytest.mark.parametrize(("share", "seen"), [(0.01, True), (0.5, True), (0.4, False), (1, True)])
def test_of_a_large_file_the_header_and_blocks_are_seen(large, share, seen):
    first = fingerprint(large.parent)
    content = bytearray(large.read_bytes())
    content[int(share * (len(content) - 1))] ^= 1
    large.write_bytes(content)
    assert (fingerprint(large.parent) != first) is seen


def test_a_folder_is_pinned_already():
    settings = PretrainedSettings(".")
    assert pinned(settings) is settings


def test_a_checkpoint_of_the_hub_is_known_by_its_commit(checkpoint, tmp_path):
    """Loaded from the cache of the hub, by a process that may not use the network."""
    commits = "1" * 40, "2" * 40
    home = tmp_path / "hub" / "models--me--tiny"
    for commit in commits:
        shutil.copytree(checkpoint("clip"), home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commits[0])
    (home / "refs" / "new").write_text(commits[1])
    program = (
        "import json, sys\n"
        "from adaptiveembed.encoders.user import load_encoder\n"
        "from adaptiveembed.structure.direction import Modality\n"
        "names = ['', ',revision=new', ',revision=' + '2' * 40]\n"
        "found = [load_encoder('clip:me/tiny' + name, Modality.TEXT) for name in names]\n"
        "json.dump([[each.settings.revision, each.fingerprint] for each in found], sys.stdout)\n"
    )
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "PYTHONPATH": paths},
        check=True,
        capture_output=True,
        text=True,
    )
    main, new, same = json.loads(done.stdout)
    assert [main[0], new[0]] == list(commits)
    assert new == same
    assert main[1] != new[1]
