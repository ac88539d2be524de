"""A small random checkpoint of every kind of model that can be read, with a real tokenizer learnt from a few texts.

WordPiece (BERT and its kin), byte-level BPE (RoBERTa), and Unigram as SentencePiece has it (XLM-RoBERTa, ALBERT,
DeBERTa).
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from helpers import QUESTION, ROOT, TEXT
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from qa_backends.catalog import Family
    from qa_backends.contract import Answer
    from qa_backends.runtime import Runtime

VOCABULARY = 4000
TOKENS = 320
"""What all of them read at once."""
LAYERS, HEADS, COLUMNS, HIDDEN = 2, 4, 48, 32
COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": COLUMNS,
    "initializer_range": 0.2,
}
FROM_TWO = {"max_position_embeddings": TOKENS + 2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
"""Positions are counted from behind the padding token, so two fewer are read."""
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": COMMON | {"max_position_embeddings": TOKENS},
    "roberta": COMMON | FROM_TWO | {"type_vocab_size": 1},
    "xlm-roberta": COMMON | FROM_TWO | {"type_vocab_size": 1},
    "distilbert": {
        "vocab_size": VOCABULARY, "dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": COLUMNS,
        "max_position_embeddings": TOKENS, "initializer_range": 0.2,
    },
    "electra": COMMON | {"max_position_embeddings": TOKENS, "embedding_size": 16},
    "mpnet": COMMON | FROM_TWO | {"initializer_range": 0.1},  # its relative positions magnify what BF16 rounds
    "albert": COMMON | {"max_position_embeddings": TOKENS, "embedding_size": 16, "pad_token_id": 0},
    "deberta-v2": COMMON
    | {
        "max_position_embeddings": TOKENS, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
        "pad_token_id": 0, "position_buckets": 32, "norm_rel_ebd": "layer_norm", "share_att_key": True,
        "position_biased_input": False, "type_vocab_size": 0, "max_relative_positions": -1,
    },
}  # fmt: skip
"""By kind; the published models of each differ in sizes only."""
WORDPIECE, BYTES, UNIGRAM = "WordPiece", "byte-level BPE", "Unigram"
SPLITTING = {
    "bert": WORDPIECE, "distilbert": WORDPIECE, "electra": WORDPIECE, "mpnet": WORDPIECE, "roberta": BYTES,
    "xlm-roberta": UNIGRAM, "albert": UNIGRAM, "deberta-v2": UNIGRAM,
}  # fmt: skip
BERTS = ("[CLS]", "[SEP]", "[PAD]", "[UNK]")
ROBERTAS = ("<s>", "</s>", "<pad>", "<unk>")
SPECIAL = {
    "bert": BERTS, "distilbert": BERTS, "electra": BERTS, "deberta-v2": BERTS,
    "mpnet": ("<s>", "</s>", "<pad>", "[UNK]"), "roberta": ROBERTAS, "xlm-roberta": ROBERTAS,
    "albert": ("[CLS]", "[SEP]", "<pad>", "<unk>"),
}  # fmt: skip
"""Of each kind: what a window begins with, what ends a part, what pads, what stands for the unknown."""
TWICE = ("roberta", "xlm-roberta", "mpnet")
"""Between question and text they write the end of a part twice."""
SEGMENTED = ("bert", "distilbert", "electra", "albert", "deberta-v2")


def checkpoint_of(kind: str, folder: Path, *, seed: int = 0, **changes: object) -> Path:
    """A random checkpoint of the kind, always the same for a seed, in the folder; ``changes`` are of its config."""
    import torch

    from qa_backends.checkpoints.architectures import architecture
    from qa_backends.checkpoints.load import save_model

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer_of(kind), encoding="utf-8")
    torch.manual_seed(seed)
    model = architecture(kind).model({"model_type": kind, **CONFIGS[kind], **changes}, "sdpa")
    save_model(model, folder, tokenizer_from=folder, dtype=torch.float32)
    return folder


def family_of(kind: str, folder: Path, **changes: object) -> Family:
    """A family of that one checkpoint, ready for every backend that suits it."""
    from qa_backends import catalog
    from qa_backends.checkpoints.manifest import manifest_of
    from qa_backends.checkpoints.random import RANDOM

    checkpoint = checkpoint_of(kind, folder, **changes)
    manifest_of(checkpoint, step=RANDOM, parent=None, settings={}).write(checkpoint)
    return catalog.family_of(checkpoint, kind, kind)


def answer(runtime: Runtime, family: Family, name: str | None = None, question: str = QUESTION) -> Answer:
    """What the family's backend of that name, or the usual one, answers to the question about the shared text."""
    from qa_backends import catalog
    from qa_backends.contract import Query
    from qa_backends.progress import UNWATCHED

    backend = catalog.resolve(name, family.name)[1]
    runtime.make_ready(family, backend, "cpu", UNWATCHED)
    with runtime.turn("cpu") as turn:
        return turn.answer(family, backend, turn.prepare(family, Query(question, TEXT))).answer


def same_weights(one: Answer, other: Answer) -> bool:
    """Whether two backends of one checkpoint may give these: by the scores, which no two random ones share."""
    return abs(one.score - other.score) < 0.05 and abs(one.null_score - other.null_score) < 0.05


@cache
def tokenizer_of(kind: str) -> str:
    """``tokenizer.json`` of a tokenizer as the kind's published models have it, with a vocabulary of its own."""
    cls, sep, pad, unknown = SPECIAL[kind]
    # The ids that configs name: RoBERTa and its kin pad with token 1, the others with token 0.
    first = [cls, pad, sep, unknown] if kind in TWICE else [pad, cls, sep, unknown]
    tokenizer = {WORDPIECE: _wordpiece, BYTES: _bytes, UNIGRAM: _unigram}[SPLITTING[kind]](first, unknown)
    between = f"{sep} {sep}" if kind in TWICE else sep
    second = 1 if kind in SEGMENTED else 0
    ids = [(token, tokenizer.token_to_id(token)) for token in (cls, sep)]
    if SPLITTING[kind] == BYTES:
        tokenizer.post_processor = processors.RobertaProcessing(sep=ids[1], cls=ids[0], add_prefix_space=False)
    else:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}", pair=f"{cls} $A {between} $B:{second} {sep}:{second}", special_tokens=ids
        )
    return str(tokenizer.to_str())


def _wordpiece(special: list[str], unknown: str) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    learnt = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts(), learnt)
    return tokenizer


def _bytes(special: list[str], _unknown: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learnt = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts(), learnt)
    return tokenizer


def _unigram(special: list[str], unknown: str) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    learnt = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=special, unk_token=unknown, show_progress=False
    )
    tokenizer.train_from_iterator(texts(), learnt)
    return tokenizer


def texts() -> Iterator[str]:
    """What vocabularies are learnt from: the project's own questions and their texts."""
    for text in json.loads((ROOT / "assets" / "questions.json").read_text(encoding="utf-8"))["data"]:
        for paragraph in text["paragraphs"]:
            yield paragraph["context"]
            yield from (each["question"] for each in paragraph["qas"])
