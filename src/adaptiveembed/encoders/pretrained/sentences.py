"""Any sentence-transformers model: its embedding of a text, and the states of the text's tokens."""

import json
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from adaptiveembed.data.media import Text
from adaptiveembed.encoders.pretrained.checkpoint import (
    checkpoint_file,
    checkpoint_fingerprint,
    device_of,
    dtype_of,
    imported,
    load_strict,
    location,
    quiet,
)
from adaptiveembed.encoders.pretrained.encoder import Branch, Prepared, PretrainedEncoder, encoded
from adaptiveembed.encoders.pretrained.settings import PretrainedKind, PretrainedSettings
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia

VERSION = 1
"""Raised whenever anything here changes a feature."""

KIND = PretrainedKind.SENTENCE_TRANSFORMERS

EMBEDDING = "sentence_embedding"

HEADS = ("cls.", "classifier.", "decoder.", "lm_head.")
"""Tensors that a checkpoint may have beyond the encoder of texts."""

POOLER = ("pooler.",)
"""A layer that transformers adds, that many checkpoints lack, and that nothing here reads."""


def load_sentences(settings: PretrainedSettings) -> PretrainedEncoder:
    """The model as its authors put it together, asked for everything it computes of a text.

    Its default prompt, if it has one, stands before every text. States go through the dense layers
    that the embedding goes through. A model without tokens has one state, the embedding itself.
    """
    model = _model(settings)
    _require_whole(model, settings)

    def prepare(item: Text) -> Prepared:
        return Prepared(int(model.preprocess([item.text])["input_ids"].numel()), item.text)

    def forward(texts: Sequence[str]) -> EncodedMedia:
        items = model.encode(
            list(texts),
            output_value=None,
            batch_size=len(texts),
            convert_to_numpy=False,
            show_progress_bar=False,
        )
        embeddings = torch.stack([item[EMBEDDING] for item in items])
        if "token_embeddings" not in items[0]:
            return encoded(embeddings, embeddings[:, None], torch.ones(len(items), 1))
        states = torch.stack([item["token_embeddings"] for item in items])
        mask = torch.stack([item["attention_mask"] for item in items])
        return encoded(embeddings, _through_layers(model, states), mask)

    facts = {
        "class": " + ".join(type(module).__name__ for module in model),
        "pooling": _pooling(model),
        "text limit": f"{model.max_seq_length or 'no number of'} tokens",
    }
    fingerprint = checkpoint_fingerprint(settings, {"kind": KIND, "version": VERSION})
    branches = {Modality.TEXT: Branch(prepare, forward)}
    return PretrainedEncoder(
        KIND, settings, fingerprint, model.get_embedding_dimension(), branches, facts
    )


def _model(settings: PretrainedSettings) -> Any:  # noqa: ANN401
    library = imported("sentence_transformers")
    attention = {} if settings.attention is None else {"attn_implementation": settings.attention}
    try:
        with quiet():
            model = library.SentenceTransformer(
                location(settings),
                device=str(device_of(settings)),
                revision=settings.revision,
                local_files_only=settings.local_files_only,
                trust_remote_code=settings.trust_remote_code,
                # what is of another shape is refused below, with its name
                model_kwargs={"dtype": dtype_of(settings), "ignore_mismatched_sizes": True}
                | attention,
            )
    except Exception as error:
        raise EncoderError(
            f"{settings.source} cannot be loaded by sentence-transformers "
            f"({type(error).__name__}: {error}); correct the source, or get it again"
        ) from error
    for module in model:
        if hasattr(module, "unpad_inputs"):
            module.unpad_inputs = False  # states are wanted item by item
    return model.to(dtype_of(settings)).eval().requires_grad_(requires_grad=False)


def _require_whole(model: Any, settings: PretrainedSettings) -> None:  # noqa: ANN401
    """Refuse a model some of whose tensors are not from its checkpoint.

    sentence-transformers does not hand on what transformers says of that, so we load once more.
    """
    transformer = model.transformers_model
    if transformer is not None:
        load_strict(
            type(transformer),
            settings,
            ignored=HEADS,
            unused=POOLER,
            subfolder=_subfolder(settings),
        )


def _subfolder(settings: PretrainedSettings) -> str:
    """Where in the checkpoint the model of transformers lies."""
    path = checkpoint_file(settings, "modules.json")
    modules = [] if path is None else json.loads(path.read_text(encoding="utf-8"))
    paths = [one["path"] for one in modules if one["type"].endswith(".Transformer")]
    return cast("str", paths[0]) if paths else ""


def _through_layers(model: Any, states: Tensor) -> Tensor:  # noqa: ANN401
    """The states behind the dense layers of the embedding; they are not made unit vectors."""
    for module in model:
        reads = getattr(module, "module_input_name", None)
        if reads == EMBEDDING and any(True for _ in module.parameters()):
            states = module({EMBEDDING: states})[EMBEDDING]
    return states


def _pooling(model: Any) -> str:  # noqa: ANN401
    modes = [module.pooling_mode for module in model if hasattr(module, "pooling_mode")]
    return ", ".join(map(str, modes)) or "as the model does"
