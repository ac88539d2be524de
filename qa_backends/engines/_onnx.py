"""What the engines that read ONNX graphs share: the names of the file and of its outputs."""

from __future__ import annotations

FILE = "model.onnx"
OUTPUTS = ("start_logits", "end_logits")
