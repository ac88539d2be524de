"""``train soup``: the mean of the weights of checkpoints that were trained from one another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qa_backends.checkpoints.sources import with_tokenizer
from qa_backends.commands.finishing import measure_held_out, show_made
from qa_backends.commands.runs import Data, HoldOut, HoldOutSeed
from qa_backends.commands.terminal import Device, Json, pick_device, watched
from qa_backends.squad import read_squad
from qa_backends.training.heldout import ARTICLES, split


def soup(
    checkpoints: Annotated[
        list[Path], typer.Argument(help="Folders of checkpoints that were trained from one another, the latest first.")
    ],
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Where the averaged checkpoint goes.")],
    hold_out: HoldOut = ARTICLES,
    hold_out_seed: HoldOutSeed = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Average the weights of checkpoints that were trained from one another, and ask the mean of held-out articles."""
    from qa_backends.limits import limit_threads
    from qa_backends.training.soup import soup as averaged

    parts, computing = split(read_squad(data), hold_out, hold_out_seed), pick_device(device)
    origins = [with_tokenizer(each, watched) for each in checkpoints]
    limit_threads()
    averaged(origins, out)
    measure_held_out(out, parts, computing, origins)
    show_made(out, as_json)
