"""Encoders are found by name, and what is wrong with one is said all at once."""

import numpy as np
import pytest
import torch

from adaptiveembed.encoders.fingerprints import DerivedFingerprintWarning, derived_fingerprint
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.encoders.training_free.encoder import TrainingFreeEncoder
from adaptiveembed.encoders.user import complete_encoder, load_encoder
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from tests.encoders.items import BATCHES
from tests.encoders.own_encoders import LetterCounter, WithoutFingerprint

OWN = "tests.encoders.own_encoders"
TEXT = Modality.TEXT

# Names.


@pytest.mark.parametrize("modality", Modality)
def test_the_built_in_encoder_has_a_name(modality):
    assert load_encoder("training-free", modality) == TrainingFreeEncoder(modality)


@pytest.mark.parametrize("name", ["LetterCounter", "factory", "ready", "Holder.encoder"])
def test_a_class_a_function_and_an_object_all_give_an_encoder(name):
    found = load_encoder(f"{OWN}:{name}", TEXT)
    assert isinstance(found, Encoder)
    assert found.name == "letter counter"


def test_a_module_is_found_where_the_process_runs(tmp_path, monkeypatch):
    source = f"from {OWN} import LetterCounter\nclass Mine(LetterCounter):\n    name = 'mine'\n"
    (tmp_path / "encoder_of_this_folder.py").write_text(source)
    monkeypatch.setattr("sys.path", __import__("sys").path.copy())
    monkeypatch.chdir(tmp_path)
    assert load_encoder("encoder_of_this_folder:Mine", TEXT).name == "mine"


@pytest.mark.parametrize("name", ["", "clip", "module:", ":Object", "training_free"])
def test_a_name_of_another_form_is_refused_with_the_form(name):
    with pytest.raises(EncoderError, match=r"'training-free', or module:object"):
        load_encoder(name, TEXT)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:Encoder", "ModuleNotFoundError: No module named 'no_such_module'"),
        (f"{OWN}:Missing", "no attribute 'Missing'.*own_encoders.py"),
        (f"{OWN}:Fails", "cannot be made: OSError: no weights here"),
        (f"{OWN}:NeedsArguments", "cannot be made: .*'folder'; it is called without arguments"),
    ],
)
def test_what_cannot_be_found_or_made_is_refused_with_the_cause(name, said):
    with pytest.raises(EncoderError, match=said):
        load_encoder(name, TEXT)


def test_an_encoder_of_another_modality_is_refused():
    with pytest.raises(EncoderError, match=r"encodes text, not audio; choose another"):
        load_encoder(f"{OWN}:LetterCounter", Modality.AUDIO)


# The contract's cheap part.


def test_everything_that_is_missing_or_wrong_is_named_at_once():
    with pytest.raises(EncoderError) as caught:
        load_encoder(f"{OWN}:Incomplete", TEXT)
    said = str(caught.value)
    for part in (
        "name is ''",
        "modalities is ('text', 'smell'), needed is some of text, image, video, audio",
        "width is True",
        "matryoshka_widths is (4, 2)",
        "encode is missing (a method",
    ):
        assert part in said
    assert "space" not in said
    assert "fingerprint" not in said


def test_what_is_no_encoder_at_all_is_refused():
    with pytest.raises(EncoderError, match=r"own_encoders:number is no encoder: name is missing"):
        load_encoder(f"{OWN}:number", TEXT)


@pytest.mark.parametrize("fingerprint", ["", 3])
def test_a_fingerprint_that_is_no_text_is_refused(fingerprint):
    encoder = LetterCounter()
    encoder.fingerprint = fingerprint
    with pytest.raises(EncoderError, match=f"fingerprint is {fingerprint!r}"):
        complete_encoder(encoder, "mine")


# Derived fingerprints.


def test_an_encoder_without_a_fingerprint_is_given_one_with_a_warning():
    with pytest.warns(DerivedFingerprintWarning, match="WithoutFingerprint has no fingerprint"):
        found = load_encoder(f"{OWN}:WithoutFingerprint", TEXT)
    assert isinstance(found, Encoder)
    assert found.fingerprint == derived_fingerprint(WithoutFingerprint())
    batch = BATCHES[TEXT]
    expected = WithoutFingerprint().encode(batch)
    assert torch.equal(found.encode(batch).hidden_states, expected.hidden_states)
    kept = (found.name, found.width, found.space, found.matryoshka_widths, found.modalities)
    assert kept == ("letter counter", 27, "letters", (), (TEXT,))


def test_equal_encoders_have_equal_derived_fingerprints():
    assert derived_fingerprint(WithoutFingerprint()) == derived_fingerprint(WithoutFingerprint())


def change_setting(encoder):
    encoder.scale = 2.0


def change_array(encoder):
    encoder.weights["table"][1] += 1e-9


def change_number_type(encoder):
    encoder.weights["table"] = encoder.weights["table"].astype(np.float32)


def change_shape(encoder):
    encoder.weights["table"] = encoder.weights["table"].reshape(3, 1)


def change_bfloat16(encoder):
    encoder.weights["bias"][0] = 0


def change_layer(encoder):
    with torch.no_grad():
        encoder.layer.bias[1] = 1e-6


def change_list_of_arrays(encoder):
    encoder.weights["more"] = [np.array([1, None], dtype=object)]


CHANGES = (
    change_setting,
    change_array,
    change_number_type,
    change_shape,
    change_bfloat16,
    change_layer,
    change_list_of_arrays,
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_derived_fingerprint_changes_with_every_setting_and_weight(change):
    encoder = WithoutFingerprint()
    change(encoder)
    assert derived_fingerprint(encoder) != derived_fingerprint(WithoutFingerprint())


def test_a_derived_fingerprint_does_not_depend_on_the_mode_of_a_layer():
    encoder = WithoutFingerprint()
    encoder.layer.eval()
    assert derived_fingerprint(encoder) == derived_fingerprint(WithoutFingerprint())


def test_a_derived_fingerprint_changes_with_the_source(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [str(tmp_path), *__import__("sys").path])
    found = []
    for number, factor in enumerate((1, 2)):
        module = tmp_path / f"own_source_{number}.py"
        module.write_text(f"class Mine:\n    def encode(self, batch):\n        return {factor}\n")
        loaded = __import__(module.stem)
        found.append(derived_fingerprint(loaded.Mine()))
    assert found[0] != found[1]


def test_an_encoder_without_source_needs_a_fingerprint():
    namespace = {"__name__": "nowhere"}
    exec("class Mine: pass", namespace)
    with pytest.raises(EncoderError, match=r"source of Mine cannot be read.*give the encoder a"):
        derived_fingerprint(namespace["Mine"]())
