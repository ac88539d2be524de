"""Triton's Python backend for the model beside this file: named arrays in, start and end logits out.

The server hands over whatever its dynamic batching has gathered; windows of one length share a call.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as triton
from answer import OUTPUTS, SESSIONS, warn_of_overflow


class TritonPythonModel:
    """What the backend looks for, by this name."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the model, once an instance."""
        folder = Path(args["model_repository"]) / args["model_version"]
        settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        warn_of_overflow(settings)
        self._run = SESSIONS[settings["engine"]](folder / "model.onnx", settings)
        self._inputs = [each["name"] for each in json.loads(args["model_config"])["input"]]

    def execute(self, requests: list[Any]) -> list[Any]:
        """A response to each request, in order: its logits, or its error."""
        feeds = [self._feeds(request) for request in requests]
        of_length = defaultdict(list)
        for number, each in enumerate(feeds):
            of_length[each[self._inputs[0]].shape[1]].append(number)
        responses: dict[int, Any] = {}
        for numbers in of_length.values():
            responses.update(zip(numbers, self._together([feeds[number] for number in numbers]), strict=True))
        return [responses[number] for number in range(len(requests))]

    def _feeds(self, request: Any) -> dict[str, Any]:
        return {name: triton.get_input_tensor_by_name(request, name).as_numpy() for name in self._inputs}

    def _together(self, feeds: list[dict[str, Any]]) -> list[Any]:
        """Responses to requests of one length; where they fail together, each fails or not by itself."""
        try:
            found = self._run({name: np.concatenate([each[name] for each in feeds]) for name in self._inputs})
        except Exception as error:  # whatever it is, whoever asked must hear of it
            if len(feeds) > 1:
                return [response for each in feeds for response in self._together([each])]
            return [triton.InferenceResponse(error=triton.TritonError(f"The model failed: {error}"))]
        ends = np.cumsum([len(each[self._inputs[0]]) for each in feeds])[:-1]
        parts = zip(*(np.split(np.asarray(logits, dtype=np.float32), ends) for logits in found), strict=True)
        return [
            triton.InferenceResponse([triton.Tensor(*each) for each in zip(OUTPUTS, own, strict=True)]) for own in parts
        ]
