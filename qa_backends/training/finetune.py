"""Fine-tune an encoder to find answer spans (Devlin et al. 2019, section 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qa_backends.checkpoints.load import save_model
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.training.data import examples, steps_of, stream
from qa_backends.training.loop import begin, train
from qa_backends.training.model import compiled, learned, runner, span_loss, trainable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import torch

    from qa_backends.squad import Question
    from qa_backends.training.data import Batch
    from qa_backends.training.loop import OnStep
    from qa_backends.training.settings import RunSettings


def finetune(questions: Sequence[Question], *, start_from: Path, run: RunSettings, on_step: OnStep) -> Path:
    """Trains on the questions and writes the checkpoint to ``model`` in the run's folder, which is returned.

    Raises:
        InputError: the folder holds a run with other settings.
        ArtefactError: ``start_from`` is no checkpoint that can be read.
    """
    import torch

    begin(run)
    model = trainable(start_from, run.device)
    tokenizer = SubwordTokenizer(start_from)
    data = examples(questions, tokenizer)
    recipe = run.recipe(steps_of(data, passes=run.passes, max_tokens=run.max_tokens, seed=run.seed))
    logits_of = runner(compiled(model), run.device)

    def loss_of(batch: Batch, _step: int) -> torch.Tensor:
        batch = batch.to(run.device)
        return span_loss(logits_of(batch), batch)

    train(
        learned(model),
        loss_of,
        lambda skip: stream(data, tokenizer, max_tokens=run.max_tokens, seed=run.seed, steps=recipe.steps, skip=skip),
        recipe,
        run.folder,
        on_step,
    )
    save_model(model, run.folder / "model", tokenizer_from=start_from, dtype=torch.float16)
    return run.folder / "model"
