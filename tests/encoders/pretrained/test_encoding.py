"""A manifest is encoded by a published checkpoint, both sides into one space."""

import numpy as np
from PIL import Image as Pictures

from adaptiveembed.cli import main
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.data.media import Image, Text
from adaptiveembed.pipeline.dataset import open_dataset
from adaptiveembed.structure.direction import Modality
from tests.encoders.pretrained.items import PICTURES

TEXTS = ("two cats", "a boat near the shore", "a dog barks")


def test_both_sides_of_a_manifest_are_encoded_by_name(tmp_path, checkpoint, load, capsys):
    rows = ["id,text,media"]
    for place, (text, pixels) in enumerate(zip(TEXTS, PICTURES, strict=True)):
        Pictures.fromarray(pixels).save(tmp_path / f"{place}.png")
        rows.append(f"{place},{text},{place}.png")
    (tmp_path / "pairs.csv").write_text("\n".join(rows) + "\n")
    name, output = f"clip:{checkpoint('clip')}", tmp_path / "features"
    sides = [f"--encoder={side}={name},dtype=float32" for side in ("text", "image")]
    assert main(["encode", str(tmp_path / "pairs.csv"), "--output", str(output), *sides]) == 0
    assert "image: 3 encoded" in capsys.readouterr().out
    found = open_dataset(output).encoders
    assert found[Modality.TEXT].space == found[Modality.IMAGE].space
    media = {"text": [Text(text) for text in TEXTS], "image": [Image(one) for one in PICTURES]}
    for side, batch in media.items():
        store = FeatureStore.open(output / side)
        places = [list(store.ids).index(str(place)) for place in range(3)]
        stored = store.global_features().numpy()[places]
        expected = load("clip", Modality(side)).encode(batch).global_feature.numpy()
        np.testing.assert_allclose(stored, expected, atol=2e-3)  # the store holds half floats
