"""Checkpoints: folders with weights, config and tokenizer; loaded, fetched from the Hub, packed, described."""
