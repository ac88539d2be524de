"""What a checkpoint's files are called."""

from __future__ import annotations

WEIGHTS = "model.safetensors"
VOCABULARIES = ("vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "spm.model")
"""What tokenizers were saved as before ``tokenizer.json``."""
TOKENIZER_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""What else decides how such a tokenizer splits."""
NAMING_FILES = (
    "vocab_file", "merges_file", "tokenizer_file", "gguf_file", "init_inputs", "fast_tokenizer_files",
    "sp_model_kwargs",
)  # fmt: skip
"""Settings by which transformers opens files wherever they are (``PreTrainedTokenizerBase._from_pretrained``)."""
NAMED_IN = ("tokenizer_config.json", "special_tokens_map.json")
"""Where it takes them from."""
CHECKPOINT_FILES = (WEIGHTS, "config.json", "tokenizer.json", *VOCABULARIES)
"""All that decides what a checkpoint computes, once it has its ``tokenizer.json``."""
