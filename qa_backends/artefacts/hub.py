"""Checkpoints from the Hugging Face Hub: downloaded on first use, made into ordinary checkpoints of ours."""

from __future__ import annotations

import shutil
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from qa_backends.artefacts.cache import ensure
from qa_backends.artefacts.checkpoint import TOKENIZER_FILES, load_model, save_model
from qa_backends.artefacts.manifest import Manifest, content_hash, file_hash, parameter_counts, tool_versions
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
CONVERTER = "SFconvertbot"
"""The Hub's own account that offers safetensors copies; anybody else's pull request is not read."""
REMEDY = "Connect to the internet and ask again, or choose the family 'minilm', which ships with the app."

_fetched: dict[tuple[str, str | None], Path] = {}
"""What this process has fetched, by repository and revision: the Hub is asked once, not with every question."""


def fetch(repository: str, revision: str | None, say: Say, remedy: str = REMEDY) -> Path:
    """A local folder with the repository's config, tokenizer and safetensors weights; ``say`` is told how far it is.

    Many older repositories hold pickled weights only, with a safetensors copy waiting in a pull request of the Hub's
    conversion service. Without a pinned ``revision``, such a copy is looked for; pickled weights are never read.

    Raises:
        BackendUnavailable: the Hub cannot be reached, or holds no safetensors weights.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

    key = (repository, revision)
    if key in _fetched:
        return _fetched[key]
    say(f"looking for {repository} …")
    try:
        with _telling(repository, say):
            folder = Path(snapshot_download(repository, revision=revision, allow_patterns=FILES))
            if (folder / "model.safetensors").is_file():
                return _fetched.setdefault(key, folder)
            for request in HfApi().get_repo_discussions(repository, author=CONVERTER, discussion_type="pull_request"):
                converted = Path(snapshot_download(repository, revision=request.git_reference, allow_patterns=FILES))
                if (converted / "model.safetensors").is_file():
                    return _fetched.setdefault(key, converted)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        raise BackendUnavailable(f"The Hugging Face Hub could not be reached for {repository}.", remedy) from error
    raise BackendUnavailable(f"{repository} holds no safetensors weights, and pickled ones are not read.", remedy)


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
    """The download as a packed checkpoint, kept in the build cache; raises what ``pack_checkpoint`` does."""
    facts = {"step": "pack", "parent": content_hash(downloaded), "versions": tool_versions()}

    def make(folder: Path) -> None:
        say(f"packing {name} …")
        pack_checkpoint(downloaded, folder, name)

    return ensure("checkpoint", facts, make, root)


def pack_checkpoint(downloaded: Path, folder: Path, name: str) -> None:
    """Writes the checkpoint, packed, with ``tokenizer.json`` and manifest, to ``folder``.

    Raises:
        DriftError: packing changed the logits.
        ArtefactError: there is no checkpoint, or the weights do not fit the config.
    """
    import torch

    from qa_backends.artefacts.packing import pack

    model = load_model(downloaded)
    before = _probe(model)
    difference = float((_probe(pack(model)) - before).abs().max() / max(1.0, float(before.abs().max())))
    if not difference <= PACKING_LIMIT:
        raise DriftError("pack", difference, PACKING_LIMIT)
    save_model(model, folder, tokenizer_from=downloaded, dtype=torch.float32)
    _write_tokenizer(downloaded, folder)
    origin = file_hash(downloaded / "model.safetensors")
    checkpoint_manifest(
        model, folder, step="pack", parent=origin, difference=difference, settings={"source": name}
    ).write(folder)


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
        precision="FP16" if _stored_in(folder) == "F16" else "FP32",
        bytes=(folder / "model.safetensors").stat().st_size,
        parameters=total,
        encoder_parameters=encoder,
        files={file: file_hash(folder / file) for file in files},
        largest_logit_difference=difference,
        settings=settings,
        versions=tool_versions(),
    )


def _stored_in(folder: Path) -> str:
    """The type of the stored weights, as safetensors names it."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="np") as weights:
        return str(weights.get_slice("qa_outputs.weight").get_dtype())


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
