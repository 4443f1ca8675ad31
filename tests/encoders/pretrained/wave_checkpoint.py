"""A tiny random checkpoint like WAVE-7B, its tensors named as in the published one."""

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HEARD = "<|AUDIO|>"
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|IMAGE|>",
    "<|VIDEO|>",
    HEARD,
    "<|audio_bos|>",
    "<|audio_eos|>",
)
LEARNT_FROM = "Please describe the audio. A dog barks near the shore while two cats sleep."
WIDTH, LAYERS = 32, 3
BEATS = {"patch": 16, "patch_width": 8, "width": 24, "inner": 40, "heads": 4, "layers": 3}
BUCKETS, KERNEL, GROUPS = 32, 16, 4


def make_wave(folder):
    from transformers import Qwen2_5OmniThinkerForConditionalGeneration, WhisperFeatureExtractor

    words = _tokenizer()
    torch.manual_seed(0)
    thinker = Qwen2_5OmniThinkerForConditionalGeneration(_config(words))
    names = {"model.language_model.": "model.", "model.audio_tower.": "audio_tower."}
    tensors = {}
    for name, tensor in thinker.state_dict().items():
        for new, old in (names | {"model.visual.": "visual."}).items():
            if name.startswith(new):
                name = old + name.removeprefix(new)  # noqa: PLW2901 - one of them fits
                break
        tensors[name] = _larger(name, tensor)
    thinker.config.save_pretrained(folder)
    save_file(tensors | wave_tensors(), folder / "model.safetensors", metadata={"format": "pt"})
    words.save_pretrained(folder)
    WhisperFeatureExtractor(feature_size=16, chunk_length=4).save_pretrained(folder)


def wave_tensors():
    """What WAVE adds to the thinker."""
    wide, inner, heads = BEATS["width"], BEATS["inner"], BEATS["heads"]
    shapes = {
        "beats.patch_embedding.weight": (8, 1, 16, 16),
        "beats.post_extract_proj": (wide, 8),
        "beats.encoder.pos_conv.0.weight_g": (1, 1, KERNEL),
        "beats.encoder.pos_conv.0.weight_v": (wide, wide // GROUPS, KERNEL),
        "beats.encoder.pos_conv.0.bias": (wide,),
        "beats.predictor": (7, wide),
        "beats_proj.0": (WIDTH, wide),
        "beats_proj.2": (WIDTH, WIDTH),
        "classify_linear.0": (WIDTH, WIDTH * LAYERS),
        "classify_linear.2": (WIDTH, WIDTH),
    }
    norms = {"beats.layer_norm": 8, "beats.encoder.layer_norm": wide, "beats_ln": wide}
    for layer in (f"beats.encoder.layers.{place}" for place in range(BEATS["layers"])):
        attention = f"{layer}.self_attn"
        shapes |= {f"{attention}.{one}_proj": (wide, wide) for one in ("q", "k", "v", "out")}
        shapes |= {
            f"{attention}.grep_linear": (8, wide // heads),
            f"{attention}.grep_a": (1, heads, 1, 1),
            f"{attention}.relative_attention_bias.weight": (BUCKETS, heads),
            f"{layer}.fc1": (inner, wide),
            f"{layer}.fc2": (wide, inner),
        }
        norms |= {f"{layer}.self_attn_layer_norm": wide, f"{layer}.final_layer_norm": wide}
    return _drawn(shapes, norms)


def _drawn(shapes, norms):
    generator = torch.Generator().manual_seed(1)
    drawn = {}
    for name, shape in shapes.items():
        if len(shape) == 2 and not name.endswith("weight"):
            drawn[f"{name}.weight"] = torch.randn(shape, generator=generator) * shape[1] ** -0.5
            drawn[f"{name}.bias"] = 0.1 * torch.randn(shape[0], generator=generator)
        else:
            drawn[name] = 0.5 * torch.randn(shape, generator=generator)
    for name, size in norms.items():
        drawn[f"{name}.weight"] = 1 + 0.1 * torch.randn(size, generator=generator)
        drawn[f"{name}.bias"] = 0.1 * torch.randn(size, generator=generator)
    first = "beats.encoder.layers.0.self_attn.relative_attention_bias.weight"
    for name in drawn:  # all layers share one table, and the published file repeats it
        if name.endswith("relative_attention_bias.weight"):
            drawn[name] = drawn[first].clone()
    return drawn


def _larger(name, tensor):
    """Weights larger than usual, so that whatever differs shows."""
    if tensor.dim() < 2 or not tensor.is_floating_point():
        return tensor.contiguous()
    scale = 0.3 if "embed" in name else tensor[0].numel() ** -0.5
    return scale * torch.randn(tensor.shape)


def _config(words):
    from transformers import Qwen2_5OmniThinkerConfig

    rope = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 1, 1]}
    token = words.convert_tokens_to_ids
    return Qwen2_5OmniThinkerConfig(
        audio_config={
            "num_mel_bins": 16,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "d_model": 16,
            "n_window": 50,
            "max_source_positions": 100,
            "output_dim": WIDTH,
        },
        vision_config={
            "depth": 1,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_heads": 2,
            "out_hidden_size": WIDTH,
            "fullatt_block_indexes": [0],
        },
        text_config={
            "vocab_size": len(words),
            "hidden_size": WIDTH,
            "intermediate_size": 48,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "rope_parameters": rope,
            "pad_token_id": words.pad_token_id,
            "tie_word_embeddings": False,
        },
        audio_token_index=token(HEARD),
        image_token_index=token("<|IMAGE|>"),
        video_token_index=token("<|VIDEO|>"),
        audio_start_token_id=token("<|audio_bos|>"),
        audio_end_token_id=token("<|audio_eos|>"),
        pad_token_id=words.pad_token_id,
    )


def _tokenizer():
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
    learnt.train_from_iterator([LEARNT_FROM], trainer)
    return Qwen2TokenizerFast(
        tokenizer_object=learnt,
        pad_token=SPECIAL[0],
        eos_token=SPECIAL[2],
        additional_special_tokens=list(SPECIAL[1:]),
    )
