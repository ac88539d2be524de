"""``cache``: what is kept on disk, and clearing it."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from qa_backends.commands.terminal import Json, console, show, table_of
from qa_backends.errors import QAError

app = typer.Typer(help="What is kept on disk: packed and built models, and the Hub's downloads.")
DAY_S = 86_400


@app.callback(invoke_without_command=True)
def cache(context: typer.Context, as_json: Json = False) -> None:
    """List what is kept, how much it takes, and when it was last used."""
    from qa_backends.checkpoints.disk import entries, most_bytes
    from qa_backends.paths import cache_root

    if context.invoked_subcommand:
        return None
    found, bound = entries(), most_bytes()
    if as_json:
        return show([asdict(each) | {"folder": str(each.folder)} for each in found])
    table = table_of("what", "of", "MB", "last used (UTC)")
    for each in found:
        used = datetime.fromtimestamp(each.used_at, UTC).strftime("%Y-%m-%d %H:%M")
        table.add_row(each.what, each.of or "-", f"{each.bytes / 1e6:,.1f}", used)
    console.print(table)
    taken = sum(each.bytes for each in found)
    console.print(f"{taken / 1e9:.2f} of {bound / 1e9:g} GB (QA_CACHE_GB); packed and built in {cache_root()}")
    return None


@app.command()
def clear(
    unused_days: Annotated[
        float, typer.Option("--unused-days", min=0, help="Only what was not used for so many days.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Delete what is kept; what is asked for again is fetched and built again."""
    from qa_backends.checkpoints import disk

    before = time.time() - unused_days * DAY_S
    chosen = [each for each in disk.entries() if each.used_at <= before]
    disk.clear(chosen)
    stayed = [each for each in chosen if each.folder.exists()]
    gone = [each for each in chosen if each not in stayed]
    if as_json:
        show([asdict(each) | {"folder": str(each.folder)} for each in gone])
    else:
        console.print(f"{len(gone)} deleted, {sum(each.bytes for each in gone) / 1e9:.2f} GB")
    if stayed:
        raise QAError(f"In use, or another user's, so still there: {', '.join(str(each.folder) for each in stayed)}.")
