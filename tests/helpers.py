"""What tests share: where the embedded models are, a text to ask about, and small random checkpoints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "assets" / "models" / "minilm" / "baseline"
TEXT = "Anna planted an apple tree behind the school. Ben watered it every day for 12 years, until it bore fruit."
QUESTION = "Who watered the tree?"
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
"""Windows of a browser, in pixels: a desk's and a phone's."""


def heavy() -> tuple[str, ...]:
    """Packages that take long to import: what exports models, what draws the page, and what the engines run on."""
    from qa_backends.engines import engine_class, engine_names

    of_engines = {each for name in engine_names() for each in engine_class(name).packages}
    return ("gradio", "optimum", *sorted(of_engines))


def random_bert(
    folder: Path, *, layers: int = 2, heads: int = 4, columns: int = 48, seed: int = 0, positions: int = 512
) -> Path:
    """A random BERT of 32 dimensions with the embedded tokenizer, saved as a checkpoint of float32 weights."""
    import torch
    from transformers import BertConfig

    from qa_backends.checkpoints.architectures import architecture_of
    from qa_backends.checkpoints.load import save_model

    torch.manual_seed(seed)
    vocabulary = json.loads((BASELINE / "config.json").read_text())["vocab_size"]
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=columns,
        max_position_embeddings=positions,
        initializer_range=0.5,
    )
    model = architecture_of(config).model(config.to_dict(), "sdpa")
    save_model(model, folder, tokenizer_from=BASELINE, dtype=torch.float32)
    return folder


def encoder_of(checkpoint: Path) -> Path:
    """The checkpoint without its output layer, in a folder beside it: what fine-tuning begins with."""
    from safetensors.torch import load_file, save_file

    folder = checkpoint.with_name(f"{checkpoint.name}-encoder")
    shutil.copytree(checkpoint, folder)
    weights = load_file(folder / "model.safetensors")
    encoder = {name: each for name, each in weights.items() if not name.startswith("qa_outputs.")}
    save_file(encoder, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


STAND_IN = """#!/bin/sh
printf '%s|' "$@" >> "$CALLS"; echo >> "$CALLS"
"""


def calls_of(lines: str, folder: Path) -> list[dict[str, str]]:
    """The options of each call of ``python -m qa_backends`` that a shell makes of these lines, none of which is run:
    ``python`` is a stand-in, written into ``folder``, that writes down what it is called with.
    """
    (folder / "python").write_text(STAND_IN)
    (folder / "python").chmod(0o755)
    there = {"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(folder / "calls")}
    subprocess.run(["sh", "-c", lines], env=there, check=True)
    called = [line.split("|")[:-1] for line in (folder / "calls").read_text().splitlines()]
    return [dict(zip(each[3::2], each[4::2], strict=True)) for each in called]


def soon(happened: Callable[[], bool], within_s: float = 20.0) -> bool:
    """Whether it has happened after at most so many seconds, of what another thread does."""
    until = time.monotonic() + within_s
    while not happened() and time.monotonic() < until:
        time.sleep(0.02)
    return happened()
