"""The download from the Hugging Face Hub, as a program of its own, so that it can be stopped in its middle.

``python -m qa_backends.checkpoints.download REPOSITORY [REVISION]`` prints a line of JSON: ``folder`` and ``revision``
(the commit), or ``problem``, one of ``PROBLEMS``. What had come when it was stopped is kept, and gone on from.
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


def snapshot(repository: str, revision: str | None) -> Path | None:
    """A local folder, named by its commit, with config, tokenizer and safetensors weights; ``None`` without weights.

    Many older repositories hold pickled weights only, with a safetensors copy waiting in a pull request of the Hub's
    conversion service. Without a pinned ``revision``, such a copy is looked for; pickled weights are never read.
    """
    from huggingface_hub import HfApi, snapshot_download

    folder = Path(snapshot_download(repository, revision=revision, allow_patterns=FILES))
    if (folder / "model.safetensors").is_file():
        return folder
    if revision is None:
        for request in HfApi().get_repo_discussions(repository, author=CONVERTER, discussion_type="pull_request"):
            converted = Path(snapshot_download(repository, revision=request.git_reference, allow_patterns=FILES))
            if (converted / "model.safetensors").is_file():
                return converted
    return None


def main() -> None:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

    repository, revision = sys.argv[1], (sys.argv[2:] or [None])[0]
    try:
        folder = snapshot(repository, revision)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        found = {"problem": UNREACHABLE, "why": f"{type(error).__name__}: {error}"}
    else:
        found = {"folder": str(folder), "revision": folder.name} if folder else {"problem": PICKLED}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
