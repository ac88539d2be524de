"""``recommend``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from qa_backends import catalog
from qa_backends.commands.terminal import (
    Device,
    FamilyName,
    Json,
    bar,
    console,
    interruptible,
    numbers,
    pick_device,
    show,
    table_of,
    watched,
)
from qa_backends.errors import QAError
from qa_backends.measure.quality.datasets import TITLES
from qa_backends.measure.recommend.search import Search, advice, frontier, timed
from qa_backends.measure.recommend.wish import Wish

DEFAULTS = Wish(family="")
app = typer.Typer()


@app.command()
def recommend(
    max_f1_loss: Annotated[
        float,
        typer.Option(
            "--max-f1-loss",
            help="Points of F1 that may be lost on SQuAD, and by what the app's own questions show for sure.",
        ),
    ] = DEFAULTS.max_f1_loss,
    lengths: Annotated[str, typer.Option("--lengths", help="Tokens, 32 to 512, with commas between.")] = ",".join(
        map(str, DEFAULTS.lengths)
    ),
    batch: Annotated[int, typer.Option("--batch", help="Questions at once, 1 to 64.")] = DEFAULTS.batch,
    memory: Annotated[float | None, typer.Option("--memory", help="Megabytes that it may take, loaded.")] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Length of the race; building and checking come before it.")
    ] = DEFAULTS.seconds,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Find the fastest backend on this machine: each is built, its answers are checked, then they race."""
    from dataclasses import asdict

    from qa_backends.measure.recommend.recommend import recommend as find
    from qa_backends.runtime import Runtime

    of = catalog.family(family or catalog.default_family())
    wish = Wish(of.name, pick_device(device), max_f1_loss, numbers("--lengths", lengths), batch, memory, seconds)
    with bar("steps", None) as advance, interruptible() as stopped:
        found = find(
            Runtime(progress=watched), wish, emit=lambda state: advance(state.done, state.status, state.of or None),
            stopped=stopped,
        )  # fmt: skip
    if as_json:
        show(asdict(found) | {"advice": advice(found), "frontier": frontier(found), "command": wish.command()})
    else:
        console.print(_table(found))
        if best := frontier(found):
            console.print(best)
        console.print(f"{timed(found)} Again: {wish.command()}")
    if not found.advised:
        raise QAError("Stopped before there was anything to advise." if stopped() else advice(found))
    if not as_json:
        console.print(advice(found))


def _table(found: Search) -> Table:
    times = [f"{tokens} tokens, ms" for tokens in found.wish.lengths]
    table = table_of("backend", *times, "vs pipeline", "F1, and less the baseline's", "memory, MB", "loading, s", "")
    for each in found.ranked:
        table.add_row(
            each.name,
            *[f"{'' if each.turns else '~'}{each.ms[tokens]:.2f}" if each.ms else "-" for tokens in found.wish.lengths],
            str(each.speed_up or "-"),
            "\n".join(
                f"{title} {f1.interval.around(f1.value, f1.difference)}"
                for data, title in TITLES.items()
                if (f1 := each.f1_on(data))
            )
            or "-",
            "-" if each.memory_bytes is None else f"{each.memory_bytes / 1e6:.0f}",
            "-" if each.load_ms is None else f"{each.load_ms / 1000:.1f}",
            found.standing(each),
        )
    return table
