"""Adapters: small tensors that were trained beside a model, and are merged into it here."""

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, cast

from torch import Tensor, nn

from adaptiveembed.encoders.pretrained.checkpoint import imported, load_part, location, shown
from adaptiveembed.encoders.pretrained.settings import PretrainedSettings
from adaptiveembed.errors import EncoderError

WEIGHTS = "adapter_model.safetensors"
"""The only file from which an adapter is read; others can hold programs."""

OF_THE_MODEL = "base_model.model."
"""What stands before the name of every tensor that an adapter changes."""

ADAPTER_MARK = "lora_"
"""What the names of all tensors of an adapter have, and no other."""


def base_of(settings: PretrainedSettings) -> PretrainedSettings | None:
    """The model that the adapter belongs to, run in the same way; None if there is no adapter."""
    found = imported("transformers.utils").find_adapter_config_file(
        location(settings),
        revision=settings.revision,
        local_files_only=settings.local_files_only,
    )
    if found is None:
        return None
    config = _config(settings)
    return replace(settings, source=config.base_model_name_or_path, revision=config.revision)


def adapted(
    model: nn.Module, settings: PretrainedSettings, current_name: Callable[[str], str]
) -> nn.Module:
    """The model with the adapter merged into its weights, by LoRA or DoRA.

    ``current_name`` says what a tensor of the model is called now that had this name when the
    adapter was saved. A tensor of the adapter that is missing, left over or of another shape is an
    error that names it.
    """
    peft = imported("peft")
    with warnings.catch_warnings():
        # peft asks the model for something by the name that it had
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        together = peft.PeftModel(model, _config(settings))
    tensors = {
        OF_THE_MODEL + current_name(name.removeprefix(OF_THE_MODEL)): tensor
        for name, tensor in _tensors(settings).items()
    }
    try:
        found = peft.set_peft_model_state_dict(together, tensors)
    except RuntimeError as error:
        # which names every tensor whose shape differs
        raise EncoderError(f"the adapter {settings.source} does not fit: {error}") from error
    missing = [name for name in found.missing_keys if ADAPTER_MARK in name]
    _require_none(settings, missing, "lacks")
    _require_none(settings, found.unexpected_keys, "has, and its model does not,")
    merged = cast("nn.Module", together.merge_and_unload())
    return merged.eval().requires_grad_(requires_grad=False)


def _config(settings: PretrainedSettings) -> Any:  # noqa: ANN401 - a configuration of peft
    return load_part(imported("peft").PeftConfig, settings)


def _tensors(settings: PretrainedSettings) -> Mapping[str, Tensor]:
    try:
        path = imported("transformers.utils").cached_file(
            location(settings),
            WEIGHTS,
            revision=settings.revision,
            local_files_only=settings.local_files_only,
        )
        tensors: Mapping[str, Tensor] = imported("safetensors.torch").load_file(path)
    except Exception as error:
        raise EncoderError(
            f"the adapter {settings.source} has no {WEIGHTS} that can be read "
            f"({type(error).__name__}: {error}); get it again, or convert it"
        ) from error
    return tensors


def _require_none(settings: PretrainedSettings, names: Collection[str], what: str) -> None:
    if names:
        raise EncoderError(
            f"the adapter {settings.source} {what} {shown(names)}; get it again, or "
            f"name the model that it belongs to in its adapter_config.json"
        )
