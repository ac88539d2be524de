"""Checkpoints from the Hugging Face Hub: downloaded on first use, made into ordinary checkpoints of ours."""

from __future__ import annotations

import shutil
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from qa_backends.artefacts.cache import ensure
from qa_backends.artefacts.checkpoint import TOKENIZER_FILES, load_model, save_model
from qa_backends.artefacts.manifest import Manifest, file_hash, parameter_counts, tool_versions
from qa_backends.errors import BackendUnavailable, DriftError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch
    from transformers import BertForQuestionAnswering

    Say = Callable[[str], None]

PACKING_LIMIT = 1e-5
"""Packing removes zeros; it may change logits by no more than the order of additions does."""
FILES = ["config.json", "model.safetensors", *TOKENIZER_FILES]
TELL_EVERY_S = 1.0
REMEDY = "Connect to the internet and ask again, or choose the family 'minilm', which ships with the app."


def fetch(repository: str, revision: str | None, say: Say) -> Path:
    """A local folder with the repository's config, tokenizer and safetensors weights; ``say`` is told how far it is.

    Many older repositories hold pickled weights only, with a safetensors copy waiting in a pull request of the Hub's
    conversion service. Without a pinned ``revision``, such a copy is looked for; pickled weights are never read.

    Raises:
        BackendUnavailable: the Hub cannot be reached, or holds no safetensors weights.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    say(f"looking for {repository} …")
    try:
        with _telling(repository, say):
            folder = Path(snapshot_download(repository, revision=revision, allow_patterns=FILES))
            if (folder / "model.safetensors").is_file():
                return folder
            for ref in HfApi().list_repo_refs(repository, include_pull_requests=True).pull_requests or []:
                converted = Path(snapshot_download(repository, revision=ref.ref, allow_patterns=FILES))
                if (converted / "model.safetensors").is_file():
                    return converted
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        raise BackendUnavailable(f"The Hugging Face Hub could not be reached for {repository}.", REMEDY) from error
    raise BackendUnavailable(f"{repository} holds no safetensors weights, and pickled ones are not read.", REMEDY)


@contextmanager
def _telling(repository: str, say: Say) -> Iterator[None]:
    """Says every second how much has come, read off the cache: the Hub's client tells it to a terminal only."""
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.file_download import repo_folder_name

    blobs = Path(HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model") / "blobs"
    before = _size(blobs)
    finished = threading.Event()

    def tell() -> None:
        while not finished.wait(TELL_EVERY_S):
            say(f"downloading {repository}: {(_size(blobs) - before) / 1e6:,.0f} MB so far …")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        finished.set()
        teller.join()


def _size(folder: Path) -> int:
    """Bytes of the files in the folder; one that is moved away meanwhile counts as nothing."""
    total = 0
    for file in folder.glob("*"):
        with suppress(OSError):
            total += file.stat().st_size
    return total


def checkpoint_from(downloaded: Path, name: str, say: Say, root: Path | None = None) -> Path:
    """The download as a packed checkpoint with ``tokenizer.json`` and manifest, kept in the build cache.

    Raises:
        DriftError: packing changed the logits.
        ArtefactError: the weights do not fit the config.
    """
    weights = downloaded / "model.safetensors"
    facts = {"step": "pack", "parent": file_hash(weights), "versions": tool_versions()}

    def make(folder: Path) -> None:
        import torch

        from qa_backends.artefacts.packing import pack

        say(f"packing {name} …")
        model = load_model(downloaded)
        before = _probe(model)
        difference = float((_probe(pack(model)) - before).abs().max() / max(1.0, float(before.abs().max())))
        if not difference <= PACKING_LIMIT:
            raise DriftError("pack", difference, PACKING_LIMIT)
        save_model(model, folder, tokenizer_from=downloaded, dtype=torch.float32)
        _write_tokenizer(downloaded, folder)
        checkpoint_manifest(
            model, folder, step="pack", parent=str(facts["parent"]), difference=difference, settings={"source": name}
        ).write(folder)

    return ensure("checkpoint", facts, make, root)


def checkpoint_manifest(
    model: BertForQuestionAnswering,
    folder: Path,
    *,
    step: str,
    parent: str | None,
    settings: dict[str, object],
    difference: float | None = None,
) -> Manifest:
    """The manifest of a checkpoint that was just saved to ``folder``."""
    total, encoder = parameter_counts({name: tuple(weight.shape) for name, weight in model.named_parameters()})
    files = ["model.safetensors", "config.json", "tokenizer.json"]
    return Manifest(
        step=step,
        parent=parent,
        precision="FP32",
        bytes=(folder / "model.safetensors").stat().st_size,
        parameters=total,
        encoder_parameters=encoder,
        files={file: file_hash(folder / file) for file in files},
        largest_logit_difference=difference,
        settings=settings,
        versions=tool_versions(),
    )


def _write_tokenizer(downloaded: Path, folder: Path) -> None:
    """``tokenizer.json``, made from ``vocab.txt`` where the repository predates it."""
    if (downloaded / "tokenizer.json").is_file():
        shutil.copyfile(downloaded / "tokenizer.json", folder / "tokenizer.json")
        return
    from transformers import BertTokenizerFast

    BertTokenizerFast.from_pretrained(downloaded).backend_tokenizer.save(str(folder / "tokenizer.json"))


def _probe(model: BertForQuestionAnswering) -> torch.Tensor:
    """Logits ``[2, n]`` on tokens spread over the vocabulary."""
    import torch

    count = min(64, model.config.max_position_embeddings)
    ids = torch.linspace(0, model.config.vocab_size - 1, count).long()[None]
    with torch.inference_mode():
        out = model(input_ids=ids)
    return torch.cat([out.start_logits, out.end_logits])
