"""A teacher's logits, computed once and kept: distillation over many passes then runs the student alone.

Of each window and each end of the span, the file keeps the highest logits and how much probability the other tokens
have together: 68 bytes a window, 8.5 MB for the training questions of SQuAD 2.0.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from qa_backends.checkpoints.tensors import save_tensors
from qa_backends.errors import InputError
from qa_backends.training.data import collate, epoch_order, hash_of
from qa_backends.training.distil import LOWEST_LOGIT, TEMPERATURE
from qa_backends.training.loop import SAVE_EVERY_S, StepReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import torch

    from qa_backends.reader.tokens import SubwordTokenizer
    from qa_backends.training.data import Batch, Example
    from qa_backends.training.loop import OnStep
    from qa_backends.training.model import Logits

    Kept = dict[str, torch.Tensor]

HIGHEST = 8
"""How many logits of a window are kept for the start, and as many for the end."""
ENDS = ("start", "end")


class CachedLogits:
    """Start and end logits ``[n, seq_len]`` of a batch of the windows that the file was made of; of those that are not
    taught, some other window's, which nobody learns.

    The ``HIGHEST`` are the teacher's in half precision. The other tokens share evenly what probability was left, at
    the temperature of distillation.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def __call__(self, batch: Batch) -> Logits:
        start, end = (self._spread(each, batch) for each in ENDS)
        return start, end

    def _spread(self, end: str, batch: Batch) -> torch.Tensor:
        numbers = batch.numbers * batch.taught.cpu()
        places, logits, rest = (
            self._kept[f"{end}.{part}"][numbers].to(batch.start.device) for part in ("places", "logits", "rest")
        )
        seq_len = batch.inputs["input_ids"].shape[1]
        width = max(seq_len, int(places.max()) + 1)  # the least of a window of few tokens stand on padding
        spread = rest.float()[:, None].repeat(1, width).scatter(1, places.long(), logits.float())
        return spread[:, :seq_len]


def cached(
    file: Path,
    teacher: Callable[[Batch], Logits],
    data: Sequence[Example],
    tokenizer: SubwordTokenizer,
    *,
    of: str,
    max_tokens: int,
    device: str,
    on_step: OnStep,
) -> CachedLogits:
    """The logits in the file, which are computed first where it is not there, or where that was stopped.

    ``of`` tells teachers apart: a file hash, and what runs those weights.

    Raises:
        InputError: the file holds the logits of another teacher or of other windows.
    """
    import torch

    facts = {"teacher": of, "windows": hash_of(data), "batch_tokens": str(max_tokens)}
    kept, done = _read(file, facts) if file.is_file() else (_empty(len(data)), 0)
    batches = epoch_order([each.length for each in data], max_tokens=max_tokens, seed=0)
    saved = started = time.monotonic()
    windows = 0
    for number, indices in enumerate(batches[done:], start=done + 1):
        batch = collate([data[index] for index in indices], tokenizer).to(device)
        with torch.no_grad():
            _keep(kept, teacher(batch), batch)
        windows += len(batch)
        now = time.monotonic()
        try:
            on_step(StepReport(number, len(batches), None, windows / (now - started), "the teacher's logits"))
        except KeyboardInterrupt:
            save_tensors(kept, file, facts | {"done": str(number)})
            raise
        if now - saved > SAVE_EVERY_S or number == len(batches):
            save_tensors(kept, file, facts | {"done": str(number)})
            saved = now
    return CachedLogits(kept)


def _empty(windows: int) -> Kept:
    import torch

    kept = {}
    for end in ENDS:
        kept[f"{end}.places"] = torch.zeros(windows, HIGHEST, dtype=torch.int16)
        kept[f"{end}.logits"] = torch.zeros(windows, HIGHEST, dtype=torch.float16)
        kept[f"{end}.rest"] = torch.zeros(windows, dtype=torch.float16)
    return kept


def _keep(kept: Kept, logits: Logits, batch: Batch) -> None:
    """Enters a batch's logits ``[n, seq_len]``."""
    real = batch.inputs["attention_mask"] == 1
    for end, each in zip(ENDS, logits, strict=True):
        alone = each.float().masked_fill(~real, LOWEST_LOGIT)
        highest = alone.topk(HIGHEST, dim=1)
        others = alone.scatter(1, highest.indices, -math.inf)
        left = TEMPERATURE * (others / TEMPERATURE).logsumexp(dim=1)
        count = (real.sum(dim=1) - HIGHEST).clamp(min=1)
        rest = (left - TEMPERATURE * count.log()).clamp(min=LOWEST_LOGIT)
        kept[f"{end}.places"][batch.numbers] = highest.indices.short().cpu()
        kept[f"{end}.logits"][batch.numbers] = highest.values.half().cpu()
        kept[f"{end}.rest"][batch.numbers] = rest.half().cpu()


def _read(file: Path, facts: dict[str, str]) -> tuple[Kept, int]:
    """What the file holds, and of how many batches. Raises InputError where it holds no logits, or was made with other
    facts."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as found:
            metadata = found.metadata() or {}
            if {key: metadata.get(key) for key in facts} != facts:
                raise InputError(
                    f"{file} holds the logits of another teacher, of other questions, of another --batch-tokens or "
                    "--precision. Name another file."
                )
            return {name: found.get_tensor(name) for name in found.keys()}, int(metadata["done"])  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{file} holds no logits ({error}). Name another file.") from error
