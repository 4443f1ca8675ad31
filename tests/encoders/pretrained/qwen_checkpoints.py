"""Tiny checkpoints of the Qwen-VL family, with weights by chance, made from the real classes."""

import hashlib
import json
import shutil
import warnings

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

LEARNT_FROM = (
    "Represent the user's input. A cat sits on the red sofa, and two boats are near the shore.",
    "Query: describe the image. system user assistant seconds",
)

CHAT_TEMPLATE = (
    "{% for turn in messages %}<|im_start|>{{ turn.role }}\n"
    "{% for part in turn.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part.type == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""What a published checkpoint of Qwen3-VL makes of a conversation, as far as it is needed."""


def tokenizer(*, ending=None, padding_side="right"):
    """A byte-level tokenizer with the markers of the family; ``ending`` follows every text."""
    from transformers import Qwen2TokenizerFast

    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learnt.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learnt.train_from_iterator(LEARNT_FROM, trainer)
    if ending:
        learnt.post_processor = processors.TemplateProcessing(
            single=f"$A {ending}", special_tokens=[(ending, learnt.token_to_id(ending))]
        )
    return Qwen2TokenizerFast(
        tokenizer_object=learnt,
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[2],
        additional_special_tokens=list(SPECIAL[1:]),
        chat_template=CHAT_TEMPLATE,
        padding_side=padding_side,
    )


def save_qwen3_vl(folder, **tokens):
    """A checkpoint like Qwen3-VL-Embedding."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    words = tokenizer(**tokens)
    config = Qwen3VLConfig(
        text_config=_text_config(words)
        | {"head_dim": 8, "rope_parameters": _rope(mrope_interleaved=True)},
        vision_config={
            "depth": 2,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_heads": 2,
            "out_hidden_size": 32,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
        },
        tie_word_embeddings=True,
        **_marker_ids(words),
    )
    _save(folder, Qwen3VLForConditionalGeneration, config, words)
    _image_processor(patch_size=16, image_mean=[0.5] * 3, image_std=[0.5] * 3).save_pretrained(
        folder
    )
    return folder


def qwen2_vl_config(words):
    from transformers import Qwen2VLConfig

    return Qwen2VLConfig(
        text_config=_text_config(words) | {"rope_parameters": _rope()},
        vision_config={
            "depth": 2,
            "embed_dim": 16,
            "hidden_size": 32,
            "mlp_ratio": 2,
            "num_heads": 2,
        },
        tie_word_embeddings=True,
        **_marker_ids(words),
    )


def save_qwen2_vl(folder, **tokens):
    """A checkpoint like Qwen2-VL-2B-Instruct."""
    from transformers import Qwen2VLForConditionalGeneration

    words = tokenizer(**tokens)
    _save(folder, Qwen2VLForConditionalGeneration, qwen2_vl_config(words), words)
    _image_processor(patch_size=14).save_pretrained(folder)
    return folder


def save_colqwen2(folder, **tokens):
    """A checkpoint like colqwen2-v1.0-hf."""
    from transformers import ColQwen2Config, ColQwen2ForRetrieval, ColQwen2Processor

    words = tokenizer(**tokens)
    config = ColQwen2Config(vlm_config=qwen2_vl_config(words).to_dict(), embedding_dim=16)
    _save(folder, ColQwen2ForRetrieval, config, words)
    pictures = _image_processor(
        patch_size=14, size={"shortest_edge": 56 * 56, "longest_edge": 112 * 112}
    )
    ColQwen2Processor(image_processor=pictures, tokenizer=words).save_pretrained(folder)
    return folder


def change_tensors(folder, target, change):
    """A copy of the checkpoint whose tensors, by name, went through ``change``."""
    shutil.copytree(folder, target)
    path = next(target.glob("*.safetensors"))
    save_file(change(load_file(path)), path, metadata={"format": "pt"})
    return target


def change_json(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def _text_config(words):
    return {
        "vocab_size": len(words),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "pad_token_id": words.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": words.eos_token_id,
        "tie_word_embeddings": True,
    }


def _rope(**more):
    # the sections add up to half of what a head has
    return {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]} | more


def _marker_ids(words):
    ids = words.convert_tokens_to_ids
    return {
        "image_token_id": ids("<|image_pad|>"),
        "video_token_id": ids("<|video_pad|>"),
        "vision_start_token_id": ids("<|vision_start|>"),
        "vision_end_token_id": ids("<|vision_end|>"),
    }


def _image_processor(**settings):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import (
        Qwen2VLImageProcessorPil,
    )

    return Qwen2VLImageProcessorPil(**settings)


def _save(folder, model_class, config, words):
    from transformers.utils import logging

    torch.manual_seed(0)
    model = model_class(config).eval()
    fill_by_chance(model)
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    words.save_pretrained(folder)


@torch.no_grad()
def fill_by_chance(model):
    """Weights that are the same everywhere, and larger than usual, so that every layer matters."""
    for name, weights in sorted(model.named_parameters()):
        centre, spread = (weights, 0.1) if weights.dim() == 1 else (0, 0.15)
        weights.copy_(centre + spread * torch.from_numpy(_drawn(name, weights.shape)))


def digest(folder):
    """What a checkpoint says: its tokenizer, and its tensors by name."""
    found = hashlib.blake2b((folder / "tokenizer.json").read_bytes(), digest_size=16)
    for path in sorted(folder.glob("*.safetensors")):
        for name, tensor in sorted(load_file(path).items()):
            found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


def save_adapter(folder, base, *, dora=True):
    """An adapter like VLM2Vec-V2.0, for the checkpoint in ``base``."""
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen2VLForConditionalGeneration

    model = Qwen2VLForConditionalGeneration.from_pretrained(base)
    names = ["q_proj", "k_proj", "v_proj", "o_proj", "down_proj"]
    config = LoraConfig(r=4, lora_alpha=8, target_modules=names, use_dora=dora)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        adapter = get_peft_model(model, config)
    with torch.no_grad():
        for name, weights in adapter.named_parameters():
            if "lora_" in name:
                weights.add_(0.2 * torch.from_numpy(_drawn(name, weights.shape)))
    adapter.save_pretrained(folder)
    change_json(folder / "adapter_config.json", base_model_name_or_path=str(base))
    return folder


def _drawn(name, shape):
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(shape)
