"""Tiny random checkpoints of the real classes, with tokenizers trained on the spot."""

import json
import warnings
from contextlib import contextmanager

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tests.encoders.pretrained.wave_checkpoint import make_wave

WORDS = (
    "a photo of two cats asleep on a red sofa and a lamp that is on",
    "the boat is near the shore where a dog runs and barks",
    "rain falls on a tin roof while someone plays the piano",
)


def make_clip(folder):
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    clip = CLIPTokenizer(**_clip_vocabulary())
    sizes = {"intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = sizes | {
        "vocab_size": len(clip),
        "hidden_size": 24,
        "max_position_embeddings": 77,
        # as published: none of them is that of the tokenizer, and the highest token is the end
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 1,
    }
    vision = sizes | {"hidden_size": 32, "image_size": 32, "patch_size": 8}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    pictures = CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    )
    _save(folder, _random(CLIPModel, config), clip, pictures)


def make_siglip(folder):
    from transformers import SiglipConfig, SiglipImageProcessorPil, SiglipModel, SiglipTokenizer

    tokenizer = SiglipTokenizer(str(_sentence_pieces(folder)))
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    text = sizes | {"vocab_size": len(tokenizer), "max_position_embeddings": 64}
    vision = sizes | {"image_size": 32, "patch_size": 8}
    config = SiglipConfig(
        text_config=text | {"projection_size": 32, "pad_token_id": 1}, vision_config=vision
    )
    pictures = SiglipImageProcessorPil(size={"height": 32, "width": 32})
    _save(folder, _random(SiglipModel, config), tokenizer, pictures)


def make_clap(folder, *, fused=False):
    from transformers import ClapConfig, ClapFeatureExtractor, ClapModel

    tokenizer = _roberta()
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 24,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 66,
        "pad_token_id": tokenizer.pad_token_id,
    }
    audio = {
        "num_mel_bins": 64,
        "spec_size": 128,
        "patch_size": 4,
        "patch_stride": [4, 4],
        "patch_embeds_hidden_size": 8,
        "hidden_size": 32,
        "depths": [1, 1, 1],
        "num_attention_heads": [2, 2, 2],
        "num_hidden_layers": 3,
        "window_size": 4,
        "enable_fusion": fused,
        "aff_block_r": 2,
        "fusion_num_hidden_layers": 2,
    }
    config = ClapConfig(text_config=text, audio_config=audio, projection_dim=16)
    extractor = ClapFeatureExtractor(
        max_length_s=1,
        hop_length=480,
        truncation="fusion" if fused else "rand_trunc",
    )
    _save(folder, _random(ClapModel, config), tokenizer, extractor)


def make_whisper(folder):
    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperModel

    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 48))
    }
    config = WhisperConfig(
        vocab_size=40,
        d_model=24,
        num_mel_bins=80,
        max_source_positions=100,
        max_target_positions=8,
        pad_token_id=1,
        bos_token_id=1,
        eos_token_id=1,
        decoder_start_token_id=2,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **sides,
    )
    _save(folder, _random(WhisperModel, config), WhisperFeatureExtractor(chunk_length=2))


def make_ast(folder):
    from transformers import ASTConfig, ASTFeatureExtractor, ASTForAudioClassification

    config = ASTConfig(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_length=96,
        num_mel_bins=128,
        num_labels=3,
    )
    # published checkpoints are classifiers
    model = _random(ASTForAudioClassification, config)
    _save(folder, model, ASTFeatureExtractor(max_length=96, num_mel_bins=128))


def make_sentences(folder, *, dense=False):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertConfig, BertModel

    tokenizer = word_pieces()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=64,
    )
    inner = folder.with_name(f"{folder.name}-inner")
    inner.mkdir()
    _save(inner, _random(BertModel, config), tokenizer)
    parts = [Transformer(str(inner), max_seq_length=32), Pooling(24, "mean")]
    if dense:
        torch.manual_seed(1)
        parts.append(Dense(24, 16))
    model = SentenceTransformer(modules=[*parts, Normalize()], device="cpu")
    model.save(str(folder), create_model_card=False)


def _random(model_class, config):
    """A model of random weights, larger than usual, so that whatever differs shows."""
    torch.manual_seed(0)
    model = model_class(config)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.dim() > 1:
                tensor.normal_(0, 0.3 if "embed" in name else tensor[0].numel() ** -0.5)
            else:
                tensor.add_(0.1 * torch.randn(tensor.shape))
        for name, tensor in model.named_buffers():
            if "running" in name:
                tensor.add_(torch.rand(tensor.shape))
    return model


def _save(folder, *parts):
    for part in parts:
        part.save_pretrained(folder)


def _byte_pairs(special, ending=None):
    """A vocabulary of bytes and pairs of them, and the pairs in the order of merging."""
    kinds = {} if ending is None else {"end_of_word_suffix": ending}
    tokenizer = Tokenizer(models.BPE(**kinds))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace() if ending else pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        **kinds,
    )
    tokenizer.train_from_iterator(WORDS * 4, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def _clip_vocabulary():
    """As published: every byte, also at the end of a word, then pairs, and the end is highest."""
    vocabulary, merges = _byte_pairs([], "</w>")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    every = [*alphabet, *(f"{one}</w>" for one in alphabet), *vocabulary]
    names = [*dict.fromkeys(every), "<|startoftext|>", "<|endoftext|>"]
    return {"vocab": {name: place for place, name in enumerate(names)}, "merges": merges}


def _roberta():
    from transformers import RobertaTokenizer

    vocabulary, merges = _byte_pairs(["<s>", "<pad>", "</s>", "<mask>", "<unk>"])
    return RobertaTokenizer(vocab=vocabulary, merges=merges)


def word_pieces():
    from transformers import BertTokenizer

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(WORDS * 4, trainer)
    return BertTokenizer(vocab=tokenizer.get_vocab())


def _sentence_pieces(folder):
    import sentencepiece

    prefix = folder.with_name(f"{folder.name}-pieces")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS * 4),
        model_prefix=str(prefix),
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return prefix.with_suffix(".model")


MAKERS = {
    "clip": make_clip,
    "siglip": make_siglip,
    "clap": make_clap,
    "clap-fused": lambda folder: make_clap(folder, fused=True),
    "wave": make_wave,
    "whisper": make_whisper,
    "ast": make_ast,
    "sentence-transformers": make_sentences,
    "sentence-transformers-dense": lambda folder: make_sentences(folder, dense=True),
}


def kind_of(name):
    """The kind of encoder that a checkpoint is made for."""
    return name.removesuffix("-fused").removesuffix("-dense")


@contextmanager
def quiet():
    """Without bars and advice while checkpoints are made."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "At least one mel filter has all zero values")
            yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
