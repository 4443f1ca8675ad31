"""The paper's tables from original files to figures beside the printed ones, by one command."""

import json

import pytest

from adaptiveembed.pipeline.paper_tables import read_table
from tests.cli.originals import write_originals
from tests.encoders.pretrained.checkpoints import MAKERS, quiet
from tests.encoders.pretrained.qwen_checkpoints import (
    save_adapter,
    save_colqwen2,
    save_qwen2_vl,
    save_qwen3_vl,
)

TINY = (
    "splits.validation_share=0.2",
    "representation.embedder.dim=16",
    "representation.embedder.width=16",
    "representation.embedder.layers=1",
    "representation.embedder.heads=2",
    "representation.embedder.feed_forward=16",
    "representation.training.epochs=1",
    "representation.training.batch_size=8",
    "allocation.policy.width=16",
    "allocation.policy.heads=2",
    "allocation.feedback.depth=5",
    "allocation.training.epochs=1",
    "allocation.training.batch_size=16",
)
SET = [part for one in TINY for part in ("--set", one)]


def save_wave(folder):
    from tests.encoders.pretrained.wave_checkpoint import make_wave

    make_wave(folder)


def save_vlm2vec(folder):
    save_adapter(folder, save_qwen2_vl(folder.parent / "qwen2-vl"))


CHECKPOINTS = {
    "clip": MAKERS["clip"],
    "siglip": MAKERS["siglip"],
    "clap": MAKERS["clap"],
    "vlm2vec": save_vlm2vec,
    "qwen-2b": save_qwen3_vl,
    "qwen-8b": save_qwen3_vl,
    "colqwen": save_colqwen2,
    "wave": save_wave,
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny checkpoint of the kind of each encoder of the tables."""
    root = tmp_path_factory.mktemp("checkpoints")
    made = {}

    def folder_of(name):
        if name not in made:
            made[name] = root / name
            made[name].mkdir()
            with quiet():
                CHECKPOINTS[name](made[name])
        return made[name]

    return folder_of


def with_tiny(table, tiny):
    """The arguments that put a tiny checkpoint in place of every encoder of a table."""
    kinds = {name: encoder.partition(":")[0] for name, encoder in table.encoders.items()}
    named = [f"{name}={kind}:{tiny(name)}" for name, kind in kinds.items()]
    return [part for one in named for part in ("--encoder", one)]


@pytest.mark.parametrize("name", ["image-text", "video-text", "audio-text"])
def test_a_table_comes_from_original_files_by_two_commands(call, tiny, tmp_path, name):
    table = read_table(name)
    write_originals(tmp_path / "originals", table.medium)
    for column in table.columns:
        place = tmp_path / "originals" / column
        done = call(
            "data", "build", column, "--annotations", place / "annotations",
            "--media", place / "media", "--output", tmp_path / "manifests" / f"{column}.jsonl",
        )  # fmt: skip
        assert done.status == 0, done.error
    command = [
        "table", name, "--manifests", tmp_path / "manifests", "--output", tmp_path / "table",
        *with_tiny(table, tiny), *SET,
    ]  # fmt: skip
    done = call(*command)
    assert done.status == 0, done.error
    found = json.loads((tmp_path / "table" / "table.json").read_text())
    assert found["problems"] == {}
    reached = {(one["method"], one["column"]): one for one in found["reached"]}
    expected = {(row.method, column) for row in table.rows for column in table.columns}
    assert set(reached) == expected
    for one in reached.values():
        assert 0 < one["from_text"] <= 1
        assert 0 < one["to_text"] <= 1
    first = next(iter(table.columns))
    assert reached["MetaEmbed (4/8)", first]["tokens"] == 6
    assert 1 <= reached["AdaptiveEmbed", first]["tokens"] <= 8
    for column in table.columns:
        ours, oracle = reached["AdaptiveEmbed", column], reached["Oracle AdaptiveEmbed", column]
        assert sum(oracle[way] for way in WAYS) >= sum(ours[way] for way in WAYS)
    lines = (tmp_path / "table" / "table.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    assert [line.split("|")[1].strip() for line in rows[::2]] == [one.method for one in table.rows]
    for row, line in zip(table.rows, rows[1::2], strict=True):
        assert all(f" {value:.2f} " in line for value in row.paper)
    again = call(*command)
    assert again.status == 0
    assert "Stage I" not in again.err
    assert "encoding" not in again.err


WAYS = "from_text", "to_text"
