"""The download from the Hugging Face Hub, as a program of its own, so that it can be stopped in its middle.

``python -m qa_backends.checkpoints.download CACHE REPOSITORY [REVISION]`` prints a line of JSON: ``folder`` and
``revision`` (the commit), or ``problem``, which is ``UNREACHABLE`` or ``PICKLED``. What had come into the folder
``CACHE`` when it was stopped is kept, and gone on from.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

FILES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
         "vocab.txt"]  # fmt: skip
CONVERTER = "SFconvertbot"
"""The Hub's own account that offers safetensors copies; anybody else's pull request is not read."""
UNREACHABLE, PICKLED = "unreachable", "pickled"


def snapshot(cache: str, repository: str, revision: str | None) -> Path | None:
    """A local folder, named by its commit, with config, tokenizer and safetensors weights; ``None`` without weights.

    Many older repositories hold pickled weights only, with a safetensors copy waiting in a pull request of the Hub's
    conversion service. Without a pinned ``revision``, such a copy is looked for; pickled weights are never read.
    """
    from huggingface_hub import HfApi

    if folder := _with_weights(cache, repository, revision):
        return folder
    api = HfApi()
    if revision is not None:
        # Out of the Hub's reach, what came before a download was stopped looks like a repository without weights.
        api.model_info(repository, revision=revision)
        return None
    for request in api.get_repo_discussions(repository, author=CONVERTER, discussion_type="pull_request"):
        if request.author == CONVERTER and (folder := _with_weights(cache, repository, request.git_reference)):
            return folder
    return None


def _with_weights(cache: str, repository: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(repository, revision=revision, cache_dir=cache, allow_patterns=FILES))
    return folder if (folder / "model.safetensors").is_file() else None


def main() -> None:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

    cache, repository, *pinned = sys.argv[1:]
    try:
        folder = snapshot(cache, repository, pinned[0] if pinned else None)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        found = {"problem": UNREACHABLE, "why": f"{type(error).__name__}: {error}"}
    else:
        found = {"folder": str(folder), "revision": folder.name} if folder else {"problem": PICKLED}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
