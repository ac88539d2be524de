"""What is loaded, and who works now."""

from qa_backends.runtime.loading import Loaded, Runtime
from qa_backends.runtime.turns import Turn

__all__ = ["Loaded", "Runtime", "Turn"]
