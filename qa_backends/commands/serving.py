"""``serve``, ``load``, ``export`` and ``triton serve``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from qa_backends import catalog
from qa_backends.commands.terminal import (
    BackendName,
    Device,
    FamilyName,
    Json,
    check_writable,
    console,
    names,
    numbers,
    pick_device,
    say,
    show,
    table_of,
    watched,
)
from qa_backends.errors import BackendUnavailable, InputError, QAError
from qa_backends.limits import devices
from qa_backends.measure.benchmark.plan import within
from qa_backends.measure.results.shipped import preselection
from qa_backends.serving.batching import MOST_WAIT_MS, BatchSize
from qa_backends.serving.service import MOST_SECONDS, Bounds

NEEDED = ("prometheus_client", "swagger_ui_bundle")
SIZE, BOUNDS = BatchSize(), Bounds()
"""Unless a person chooses otherwise."""
app = typer.Typer()


@app.command()
def serve(
    backends: Annotated[
        str, typer.Option("--backends", help="Names with commas between; by default those that the page ticks.")
    ] = "",
    family: FamilyName = None,
    device: Device = None,
    host: Annotated[str, typer.Option("--host", help="0.0.0.0 to be reached from other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 7860,
    page: Annotated[bool, typer.Option("--page/--no-page", help="The page too, or the interface alone.")] = True,
    api_key: Annotated[
        str | None,
        typer.Option("--api-key", envvar="QA_API_KEY", help="What clients of the interface must send; not the page's."),
    ] = None,
    max_batch: Annotated[int, typer.Option("--max-batch", min=1, help="Questions read together.")] = SIZE.items,
    max_wait_ms: Annotated[
        float,
        typer.Option("--max-wait-ms", min=0, max=MOST_WAIT_MS, help="How long a question waits for others to join it."),
    ] = 1000 * SIZE.wait_s,
    max_queue: Annotated[
        int, typer.Option("--max-queue", min=1, help="Questions that may wait; then 503.")
    ] = BOUNDS.accepted,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.1,
            max=MOST_SECONDS,
            help="Seconds until a request gets 504, and until a body that has not come whole gets 408.",
        ),
    ] = BOUNDS.seconds,
    keep_texts: Annotated[
        int, typer.Option("--keep-texts", min=0, help="Characters of texts that stay tokenised, for more questions.")
    ] = BOUNDS.kept_chars,
) -> None:
    """Serve the page and the HTTP interface: POST /v1/answer, GET /v1/backends, /health, /ready, /metrics, /docs."""
    _need(NEEDED, "serve", "pip install '.[serve]'")
    from qa_backends.serving.server import serve as run

    (of, chosen), where = catalog.several(names(backends), family), pick_device(device)
    if backends and not chosen:
        raise InputError("--backends names none.")
    run(
        of, chosen or [catalog.backend(name) for name in preselection(of, where)], where,
        size=BatchSize(items=max_batch, wait_s=max_wait_ms / 1000), bounds=Bounds(max_queue, timeout, keep_texts),
        host=host, port=port, key=api_key or None, page=page,
    )  # fmt: skip


@app.command()
def load(
    backend: Annotated[
        str | None, typer.Option("--backend", help="A name from `list`, or family/name; INT8 on OpenVINO by default.")
    ] = None,
    lengths: Annotated[str, typer.Option("--lengths", help="Tokens of questions asked one by one.")] = "32,64,128,256",
    tokens: Annotated[int, typer.Option("--tokens", help="Length of the questions that many clients ask.")] = 128,
    clients: Annotated[str, typer.Option("--clients", help="How many ask at once, commas between.")] = "1,8,32,128",
    runs: Annotated[int, typer.Option("--runs", min=2, help="Questions one by one, of each length.")] = 50,
    seconds: Annotated[
        int, typer.Option("--seconds", min=1, help="Length of the load, with each number of clients.")
    ] = 10,
    triton_environment: Annotated[
        Path | None,
        typer.Option("--triton-environment", help="Where nvidia-pytriton is; else one on the path."),
    ] = None,
    save: Annotated[Path | None, typer.Option("--save", help="Write the results file here.")] = None,
    family: FamilyName = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """What asking a server costs beside the direct call, and what it carries: REST, Triton and Ray, by Locust."""
    _need(("locust", *NEEDED), "load", "pip install '.[load]'")
    from qa_backends.measure.results.files import as_dict, write_results
    from qa_backends.runtime import Runtime
    from qa_backends.serving.load.measure import MOST_CLIENTS, measure
    from qa_backends.serving.load.servers import Target

    check_writable(save)
    of, chosen = catalog.resolve(backend, family, otherwise=catalog.FASTEST)
    of.check_answers()
    many = numbers("--clients", clients)
    within("The number of clients", many, 1, MOST_CLIENTS, "clients")
    where = pick_device(device or next((each for each in devices() if each in chosen.runs_on), None))
    target = Target(Runtime(progress=watched), of, chosen, where, triton_environment)
    found = measure(
        target, lengths=numbers("--lengths", lengths), tokens=tokens, clients=many, runs=runs,
        seconds=seconds, progress=watched,
    )  # fmt: skip
    for each in found.left_out:
        say(f"left out: {each}")
    if not (found.load or found.own):
        raise QAError("Nothing was measured; nothing is saved.")
    if save:
        write_results(save, found)
    if as_json:
        return show(as_dict(found))
    table = table_of("way", "clients", "questions/s", "p50, ms", "p90, ms", "p99, ms", "failed")
    for row in found.load:
        figures = (f"{each:.0f}" for each in (row.per_second, row.p50_ms, row.p90_ms, row.p99_ms))
        table.add_row(row.way, str(row.clients), *figures, str(row.failures))
    console.print(table)
    return None


def _need(packages: Iterable[str], command: str, install: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise BackendUnavailable(f"`{command}` needs the package '{package}'.", f"Install it: {install}")


class Form(StrEnum):
    """What is written."""

    FOLDER = "folder"
    TRITON = "triton"


@app.command()
def export(
    to: Annotated[Path, typer.Option("--to", help="A folder that is not there yet.")],
    backend: BackendName = None,
    family: FamilyName = None,
    device: Device = None,
    form: Annotated[
        Form, typer.Option("--as", help="A folder that answers by itself, or a model repository for Triton.")
    ] = Form.FOLDER,
    as_json: Json = False,
) -> None:
    """Write a folder that answers without this project: model, tokenizer, settings and a runner of 170 lines."""
    from qa_backends.runtime import Runtime
    from qa_backends.serving.export import RUNNER
    from qa_backends.serving.export import export as write
    from qa_backends.serving.triton.repository import export_repository

    of, chosen = catalog.resolve(backend, family)
    writing = write if form is Form.FOLDER else export_repository
    settings = writing(Runtime(progress=watched), of, chosen, pick_device(device), to, watched)
    if as_json:
        return show(settings)
    if form is Form.TRITON:
        say(f"{to} holds {settings['backend']} as Triton serves it; its README.md says how.")
        return None
    say(f"{to} answers as {settings['backend']} does. There:")
    console.print(f"pip install -r requirements.txt\npython {RUNNER} --question … --context …")
    return None


triton = typer.Typer(help="NVIDIA's Triton Inference Server, with what `export --as triton` wrote.")
app.add_typer(triton, name="triton")
Port = Annotated[int, typer.Option(min=1, max=65535)]


@triton.command("serve")
def serve_triton(
    repository: Annotated[Path, typer.Argument(help="The folder that `export --as triton` wrote.")],
    environment: Annotated[
        Path | None, typer.Option("--environment", help="Where nvidia-pytriton is, if no server is on the path.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="0.0.0.0 to be reached from other machines.")] = "127.0.0.1",
    http_port: Port = 8000,
    grpc_port: Port = 8001,
    metrics_port: Port = 8002,
) -> None:
    """Run a Triton server where one is installed, until it is told to stop."""
    from qa_backends.serving.triton.server import Addresses
    from qa_backends.serving.triton.server import serve as run

    run(repository, environment, Addresses(host, http_port, grpc_port, metrics_port))
