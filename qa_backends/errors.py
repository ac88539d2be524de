"""Everything that can go wrong, each message written for the person who reads it: what happened and what to do.

QAError
├── InputError            the question, text or options cannot be used; the caller can mend it
│   └── UnknownBackend    no backend or family of that name
├── BackendUnavailable    a package, device or download is missing on this machine
├── ArtefactError         a checkpoint or built file is missing, broken or not what it says it is
│   ├── DriftError        a build step changed the logits by more than it may
│   └── AnswersError      a build step changed more answers than it may
└── BackendFailed         an engine failed while loading or answering
"""

from __future__ import annotations


class QAError(Exception):
    """Root of the tree. ``str(error)`` is a sentence that can be shown as it is."""


class InputError(QAError, ValueError):
    """The question, text or options cannot be used; a ``ValueError`` too, as a program expects of unusable values."""


class UnknownBackend(InputError):
    """No backend or family of that name."""


class BackendUnavailable(QAError):
    """Something the backend needs is not on this machine.

    ``reason`` says what is missing, ``remedy`` how to get it (a command or a step).
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason} {remedy}")
        self.reason = reason
        self.remedy = remedy


class ArtefactError(QAError):
    """A checkpoint or built file is missing, broken or not what it says it is."""


class DriftError(ArtefactError):
    """A build step's logits differ from its parent's by more than the step may change them."""

    def __init__(self, step: str, difference: float, limit: float) -> None:
        super().__init__(
            f"The step '{step}' changed the logits by {difference:.3g}, more than the {limit:.3g} it may. "
            "What it made is not used; build again, and if it fails again report the versions that "
            "`build --json` prints."
        )


class AnswersError(ArtefactError):
    """A build step's answers are too often not its parent's."""


class BackendFailed(QAError):
    """An engine failed while loading or answering: ``reason`` says how, what stands behind it what to do."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason} {remedy}".rstrip())
        self.reason = reason
