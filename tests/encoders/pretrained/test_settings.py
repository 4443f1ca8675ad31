"""The names of pretrained encoders are read strictly, and what is wrong is said."""

import dataclasses
import subprocess
import sys

import pytest

from adaptiveembed.encoders.pretrained.kinds import LOADERS, load_pretrained, loader_of
from adaptiveembed.encoders.pretrained.settings import (
    READERS,
    EncoderDevice,
    EncoderDtype,
    PretrainedKind,
    PretrainedSettings,
    is_pretrained_name,
    parse_name,
)
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError, SettingError
from adaptiveembed.structure.direction import Modality


def test_a_name_is_a_kind_and_a_source():
    expected = (PretrainedKind.CLIP, PretrainedSettings("openai/clip-vit-base-patch32"))
    assert parse_name("clip:openai/clip-vit-base-patch32") == expected


def test_every_key_may_be_written():
    written = (
        "qwen3-vl:./folder,revision=v1,local_files_only=true,dtype=bfloat16,device=cpu,"
        "attention=eager,token_budget=512,trust_remote_code=true"
    )
    settings = PretrainedSettings(
        "./folder",
        revision="v1",
        local_files_only=True,
        dtype=EncoderDtype.BFLOAT16,
        device=EncoderDevice.CPU,
        attention="eager",
        token_budget=512,
        trust_remote_code=True,
    )
    assert parse_name(written) == (PretrainedKind.QWEN3_VL, settings)


def test_every_field_but_the_source_is_a_key():
    assert ["source", *READERS] == [field.name for field in dataclasses.fields(PretrainedSettings)]


def test_code_beside_the_weights_does_not_run_unless_it_is_said():
    assert not parse_name("clip:some/model")[1].trust_remote_code


def test_a_windows_path_is_a_source():
    assert parse_name(r"clip:C:\models\clip")[1].source == r"C:\models\clip"


@pytest.mark.parametrize("name", ["", "clip", "clip:", "clip:,dtype=auto", "other:x", ":x"])
def test_what_is_no_name_is_refused_with_all_kinds(name):
    with pytest.raises(
        EncoderError, match=r"write KIND:SOURCE.*clip, siglip, clap, qwen3-vl, wave"
    ):
        parse_name(name)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("dtype=half", "dtype is 'half'; give one of auto, float32, float16, bfloat16"),
        ("dtype=", "dtype is ''; give one of"),
        ("device=tpu", "device is 'tpu'; give one of auto, cpu, cuda"),
        ("token_budget=0", "token_budget is '0'; give a whole number, at least 1"),
        ("token_budget=-3", "token_budget is '-3'"),
        ("token_budget=²", "token_budget is '²'"),
        ("token_budget=" + "9" * 5000, "give a whole number"),
        ("local_files_only=yes", "local_files_only is 'yes'; give true or false"),
        ("trust_remote_code=True", "trust_remote_code is 'True'; give true or false"),
        ("revision=", "revision is empty; give a value, or leave revision out"),
        ("dtpye=float32", "'dtpye=float32' in 'clip:x,dtpye=float32' sets nothing; .*one of rev"),
        ("source=y", "'source=y'.* sets nothing"),
        ("float32", "'float32'.* sets nothing; write key=value"),
        ("", "'' in 'clip:x,' sets nothing"),
        ("dtype=auto,dtype=float32", "dtype stands twice"),
    ],
)
def test_a_wrong_option_is_refused_with_its_key_and_what_is_allowed(option, said):
    with pytest.raises(SettingError, match=said):
        parse_name(f"clip:x,{option}")


@pytest.mark.parametrize(("changes", "said"), [({"token_budget": 0}, "0"), ({"source": ""}, "em")])
def test_settings_that_cannot_work_are_refused(changes, said):
    with pytest.raises(SettingError, match=said):
        PretrainedSettings(**{"source": "x"} | changes)


def test_a_kind_goes_before_a_module_of_its_name():
    assert is_pretrained_name("wave:open")  # wave is a module of Python
    assert not is_pretrained_name("my_encoders:Mine")
    assert not is_pretrained_name("clip")


def test_a_misspelt_kind_is_refused_with_all_kinds():
    with pytest.raises(EncoderError, match=r"clipp is no kind of pretrained encoder \(clip, sigl"):
        load_encoder("clipp:openai/clip-vit-base-patch32", Modality.TEXT)


@pytest.mark.parametrize("kind", LOADERS)
def test_every_kind_of_the_table_has_something_that_loads_it(kind):
    assert callable(loader_of(kind))


def test_a_kind_that_is_missing_is_refused_with_those_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr("adaptiveembed.encoders.pretrained.kinds.LOADERS", {"clip": ("a", "b")})
    with pytest.raises(EncoderError, match="ast is not written yet; give one of clip"):
        load_pretrained(PretrainedKind.AST, PretrainedSettings(str(tmp_path)))


def test_naming_an_encoder_imports_no_transformers():
    program = (
        "import sys\n"
        "import adaptiveembed.encoders.user\n"
        "import adaptiveembed.encoders.pretrained.checkpoint\n"
        "assert 'transformers' not in sys.modules\n"
        "assert 'sentence_transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
