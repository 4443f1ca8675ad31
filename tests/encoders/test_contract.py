"""Every encoder keeps the contract: the built-in one for each modality, and a user's own."""

import pytest

from adaptiveembed.data.media import Text
from adaptiveembed.encoders.training_free.encoder import TrainingFreeEncoder
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.structure.direction import Modality
from tests.contracts import encoder as contract
from tests.encoders.items import BATCHES
from tests.encoders.own_encoders import LetterCounter

OTHERS = {
    modality: BATCHES[other][0]
    for modality, other in zip(Modality, [*Modality][1:] + [*Modality][:1], strict=True)
}


@pytest.mark.parametrize("modality", Modality)
@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_training_free_encoder_keeps_the_contract(check, modality):
    check(TrainingFreeEncoder(modality, width=64), BATCHES[modality])


@pytest.mark.parametrize("check", contract.CHECKS)
def test_a_users_encoder_keeps_the_contract(check):
    check(LetterCounter(), [Text("one two three"), Text("four"), Text("")])


@pytest.mark.parametrize("modality", Modality)
def test_an_item_of_another_modality_is_refused(modality):
    encoder = TrainingFreeEncoder(modality)
    contract.check_refuses_other_modalities(encoder, BATCHES[modality], OTHERS[modality])


@pytest.mark.filterwarnings("ignore::adaptiveembed.encoders.fingerprints.DerivedFingerprintWarning")
def test_fingerprints_are_the_same_in_every_process():
    names = [f"training-free {modality}" for modality in Modality]
    own = "tests.encoders.own_encoders"
    names += [f"{own}:LetterCounter text", f"{own}:WithoutFingerprint text"]
    contract.check_fingerprints_are_the_same_elsewhere(
        {name: load_encoder(name.split()[0], Modality(name.split()[1])) for name in names}
    )


def test_whatever_changes_features_changes_the_fingerprint():
    encoders = [
        TrainingFreeEncoder(modality, width, seed)
        for modality in Modality
        for width in (64, 128)
        for seed in (0, 1)
    ]
    assert len({encoder.fingerprint for encoder in encoders}) == len(encoders)
    assert len({encoder.space for encoder in encoders}) == len(encoders)
