"""AdaptiveEmbed to a folder and back, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from torch import Tensor

from adaptiveembed import __version__
from adaptiveembed.allocation.adaptive import AdaptiveAllocator
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import policy_inputs
from adaptiveembed.allocation.policy import LearnedPolicy, PolicySharing
from adaptiveembed.errors import AdaptiveEmbedError, ModelFormatError
from adaptiveembed.pipeline.allocating import batched_probabilities, empty_policy
from adaptiveembed.pipeline.card import model_card
from adaptiveembed.pipeline.folder import (
    BANK,
    CARD,
    CONFIG,
    load_strictly,
    read_config,
    read_tensors,
    write_config,
    write_folder,
    write_tensors,
)
from adaptiveembed.pipeline.inputs import EncoderFacts
from adaptiveembed.pipeline.model import AdaptiveEmbed, ModelFacts
from adaptiveembed.pipeline.recipe import Method, Recipe
from adaptiveembed.pipeline.settings import read_settings, to_table
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.metaembed import MetaEmbedder
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.encoded import EncodedMedia

EMBEDDER, SELF_TEST = "embedder", "selftest"
TESTED_ITEMS, TESTED_STATES = 4, 8
GIVEN = ("global_feature", "hidden_states", "mask")
"""What of encoded media the self-test stores."""

EMBEDDERS = {Method.ADAPTIVE: PairEmbedder, Method.METAEMBED: MetaEmbedder}


def save_model(model: AdaptiveEmbed, folder: Path) -> None:
    """Write the model, its card and its self-test; the folder appears whole or not at all."""

    def fill(partial: Path) -> None:
        parts: dict[str, Mapping[str, Tensor]] = {EMBEDDER: model.embedder.state_dict()}
        for direction, allocator in model.allocators.items():
            allocator.bank.save(partial / f"{BANK}{_name(direction)}")
            assert isinstance(allocator.policy, LearnedPolicy)
            parts[_policy_name(model.facts.recipe, direction)] = allocator.policy.state_dict()
        parts[SELF_TEST] = self_test_tensors(model)
        checksums = write_tensors(partial, parts)
        facts = {
            "library": __version__,
            **facts_table(model.facts),
            "widths": {str(each): width for each, width in model.embedder.widths.items()},
            "thresholds": {_name(each): one for each, one in model.thresholds.items()},
            "checksums": checksums,
        }
        write_config(partial, facts)
        (partial / CARD).write_text(model_card(model), encoding="utf-8")

    write_folder(folder, fill)


def load_model(source: str | Path) -> AdaptiveEmbed:
    """The model of a folder, or of the hub where there is no such folder."""
    folder = local_folder(source)
    config = read_config(folder)
    try:
        facts = read_facts(config)
        if facts.recipe.method is not Method.ADAPTIVE:
            raise ModelFormatError(
                f"{folder} holds a model of method {facts.recipe.method}; AdaptiveEmbed opens "
                f"those of method {Method.ADAPTIVE}"
            )
        embedder = read_embedder(folder, config, facts)
        return AdaptiveEmbed(embedder, _read_allocators(folder, config, facts), facts)
    except AdaptiveEmbedError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ModelFormatError(
            f"{folder} is damaged ({CONFIG}: {error!r}); bring the folder back from a copy"
        ) from error


def read_embedder(folder: Path, config: Mapping[str, Any], facts: ModelFacts) -> PairEmbedder:
    """The embedder of a model's folder, with exactly the tensors that were saved."""
    widths = {Modality(each): int(width) for each, width in config["widths"].items()}
    kind = EMBEDDERS[facts.recipe.method]
    embedder = kind.empty(facts.recipe.representation.embedder, widths)
    load_strictly(embedder, read_tensors(folder, EMBEDDER, config["checksums"][EMBEDDER]), EMBEDDER)
    return embedder.eval()


def local_folder(source: str | Path) -> Path:
    """The folder itself, or a copy of the repository of this name on the hub."""
    folder = Path(source)
    if folder.is_dir():
        return folder
    try:
        return Path(snapshot_download(str(source)))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise ModelFormatError(
            f"there is no folder {source}, and the hub gave none ({error}); correct the path or "
            f"the name"
        ) from error


def facts_table(facts: ModelFacts) -> dict[str, Any]:
    """The facts of a model as JSON has them."""
    return {
        "recipe": to_table(facts.recipe),
        "source": facts.direction.source,
        "target": facts.direction.target,
        "encoders": {each: asdict(one) for each, one in facts.encoders.items()},
        "figures": dict(facts.figures),
        "counts": dict(facts.counts),
    }


def read_facts(config: Mapping[str, Any]) -> ModelFacts:
    """The facts that ``facts_table`` wrote."""
    encoders = {
        Modality(each): EncoderFacts(
            one["name"], one["fingerprint"], one["space"], tuple(one["matryoshka_widths"])
        )
        for each, one in config["encoders"].items()
    }
    direction = Direction(Modality(config["source"]), Modality(config["target"]))
    recipe = read_settings(Recipe, config["recipe"])
    return ModelFacts(recipe, direction, encoders, config["figures"], config["counts"])


def self_test_tensors(model: AdaptiveEmbed) -> dict[str, Tensor]:
    """Made-up features of both modalities, and what the model makes of them."""
    tensors = {}
    for number, (modality, width) in enumerate(model.embedder.widths.items()):
        encoded = _made_up(width, number)
        given = {name: getattr(encoded, name) for name in GIVEN}
        for name, tensor in (given | _outcomes(model, modality, encoded)).items():
            tensors[f"{modality}.{name}"] = tensor
    return tensors


def _outcomes(model: AdaptiveEmbed, modality: Modality, encoded: EncodedMedia) -> dict[str, Tensor]:
    """The candidates of encoded media, and the odds of every action at every state."""
    candidates = model.embed(modality, encoded)
    (direction,) = (each for each in model.directions if each.source is modality)
    allocator = model.allocators[direction]
    assert isinstance(allocator.policy, LearnedPolicy)
    space = allocator.actions.space
    inputs = policy_inputs(candidates, allocator.bank, space, allocator.feedback)
    probabilities = batched_probabilities(allocator.policy, inputs)
    return {"candidates": candidates.vectors, "probabilities": probabilities}


def compare_with_stored(model: AdaptiveEmbed, source: str | Path, tolerance: float = 1e-4) -> None:
    """Refuse a model that no longer makes of the stored features what it made of them once."""
    folder = local_folder(source)
    stored = read_tensors(folder, SELF_TEST, read_config(folder)["checksums"][SELF_TEST])
    for modality in model.embedder.widths:
        encoded = EncodedMedia(*(stored[f"{modality}.{name}"] for name in GIVEN))
        for name, found in _outcomes(model, modality, encoded).items():
            off = float((found - stored[f"{modality}.{name}"]).abs().max())
            if not off <= tolerance:
                raise ModelFormatError(
                    f"{folder}: the {name} of {modality} come out {off:.2g} off those that were "
                    f"stored, more than {tolerance:g}; the weights were changed, or this "
                    f"installation computes otherwise: do not search older galleries with it"
                )


def _read_allocators(
    folder: Path, config: Mapping[str, Any], facts: ModelFacts
) -> dict[Direction, AdaptiveAllocator]:
    recipe, policies = facts.recipe, {}
    allocators = {}
    for direction in (facts.direction, facts.direction.reversed):
        name = _policy_name(recipe, direction)
        if name not in policies:
            policies[name] = empty_policy(recipe)
            load_strictly(
                policies[name], read_tensors(folder, name, config["checksums"][name]), name
            )
            policies[name].eval()
        bank = RetrievalBank.open(folder / f"{BANK}{_name(direction)}")
        threshold = float(config["thresholds"][_name(direction)])
        try:
            allocators[direction] = AdaptiveAllocator(
                policies[name], bank, threshold, recipe.allocation.feedback
            )
        except AdaptiveEmbedError as error:
            raise ModelFormatError(f"{folder} is damaged ({error}); bring it back") from error
    return allocators


def _policy_name(recipe: Recipe, direction: Direction) -> str:
    if recipe.allocation.policy.sharing is PolicySharing.SHARED:
        return "policy"
    return f"policy-{_name(direction)}"


def _name(direction: Direction) -> str:
    return f"{direction.source}-{direction.target}"


def _made_up(width: int, seed: int) -> EncodedMedia:
    generator = torch.Generator().manual_seed(seed)
    shape = (TESTED_ITEMS, TESTED_STATES, width)
    mask = torch.arange(TESTED_STATES) < torch.arange(1, TESTED_ITEMS + 1).unsqueeze(1)
    states = torch.randn(shape, generator=generator) * mask.unsqueeze(2)
    return EncodedMedia(torch.randn(TESTED_ITEMS, width, generator=generator), states, mask)
