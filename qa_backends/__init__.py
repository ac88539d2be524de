"""Ask once, see every engine answer: extractive question answering on interchangeable backends.

from qa_backends import pipeline

qa = pipeline("pruned-ort-fp16")
qa(question="Who sang?", context="Ada sang.")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qa_backends.serving.pipeline import pipeline as pipeline

__version__ = "0.1.0"
__all__ = ["pipeline"]


def __getattr__(name: str) -> Any:
    """``pipeline`` is imported when it is asked for: every part of the package passes here first."""
    if name == "pipeline":
        from qa_backends.serving.pipeline import pipeline

        return pipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
