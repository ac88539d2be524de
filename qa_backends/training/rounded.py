"""A model that computes as INT8 does, and learns all the same (Jacob et al. 2018).

Every product of the encoder with weights rounds them and its input to 8 bits, as the step ``onnx-int8`` will: outlying
channels smoothed first, weights scaled by output channel, inputs by the range that calibration texts give them. The
step rounds queries and keys too; here they are left. Rounding has no gradient, so that of what comes out of it is
passed on (the straight-through estimator, Bengio et al. 2013).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from qa_backends.artefacts.quantise import seven_bits
from qa_backends.artefacts.smoothing import factors_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch
    from torch import nn
    from transformers import PreTrainedModel

    from qa_backends.contract import FloatArray

    Ends = tuple[FloatArray, FloatArray]

INPUT_STEPS = 255
"""Inputs, whose zero lies anywhere, become 0 to so many steps."""
WEIGHT_STEPS = 64 if seven_bits() else 127
"""Weights become so many steps, either way: as many as they have in INT8 on this machine."""
LEAST_STEP = 1e-8
SPAN_ENDS = 2
"""Outputs of the output layer, which is left as it is."""


def round_products(model: PreTrainedModel, texts: Iterable[dict[str, torch.Tensor]]) -> None:
    """Puts a ``rounded`` layer in the place of each of the encoder's, in place and with its very parameters.

    ``texts`` are inputs without padding, of which it is seen what channels of each product's input are outlying.
    """
    import torch

    products = {
        name: each
        for name, each in model.named_modules()
        if isinstance(each, torch.nn.Linear) and each.out_features > SPAN_ENDS
    }
    for names, (low, high) in _inputs_of(model, products, texts).items():
        weights = [products[name].weight.detach().cpu().numpy().T for name in names]
        factors = factors_of(np.maximum(-low, high), weights)
        ends = float((low / factors).min()), float((high / factors).max())
        for name in names:
            model.set_submodule(name, rounded(products[name], torch.from_numpy(factors).to(model.device), ends))


def _inputs_of(
    model: PreTrainedModel, products: dict[str, nn.Linear], texts: Iterable[dict[str, torch.Tensor]]
) -> dict[tuple[str, ...], Ends]:
    """Of the products that share an input, by their names, the lowest and the highest value of each of its channels
    over all texts, and over zero."""
    import torch

    seen: list[tuple[str, torch.Tensor]] = []
    hooks = [
        each.register_forward_pre_hook(partial(lambda name, _layer, given: seen.append((name, given[0])), name))
        for name, each in products.items()
    ]
    ends: dict[tuple[str, ...], Ends] = {}
    training = model.training
    model.train(mode=False)  # dropout would make what is left larger
    for text in texts:
        with torch.no_grad():
            model(**text)
        sharing: dict[int, list[str]] = {}
        inputs = {id(given): given for _, given in seen}
        for name, given in seen:
            sharing.setdefault(id(given), []).append(name)
        for place, names in sharing.items():
            found = inputs[place].flatten(0, -2).float().cpu().numpy()
            low, high = ends.get(tuple(names), (np.zeros(1), np.zeros(1)))
            ends[tuple(names)] = np.minimum(low, found.min(axis=0)), np.maximum(high, found.max(axis=0))
        seen.clear()
    model.train(training)
    for hook in hooks:
        hook.remove()
    return ends


def rounded(layer: nn.Linear, factors: torch.Tensor, ends: tuple[float, float]) -> nn.Linear:
    """The layer, computed of rounded weights and inputs.

    Each channel of the input is divided by one of the ``factors`` ``[in_features]`` before, and the weights are
    multiplied by it; what then lies beyond the ``ends`` becomes as large as they.
    """
    import torch
    from torch.nn.functional import linear

    step = max((ends[1] - ends[0]) / INPUT_STEPS, LEAST_STEP)
    below = round(-ends[0] / step)
    lowest, highest = -below * step, (INPUT_STEPS - below) * step

    class Rounded(torch.nn.Linear):
        def __init__(self) -> None:
            super().__init__(layer.in_features, layer.out_features, device="meta")
            self.weight, self.bias = layer.weight, layer.bias

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            near = _to_steps((given.float() / factors).clamp(lowest, highest), step)
            weight = self.weight * factors
            each = weight.detach().abs().amax(dim=1, keepdim=True) / WEIGHT_STEPS  # a step for each output channel
            return linear(near, _to_steps(weight, each.clamp(min=LEAST_STEP)), self.bias)

    return Rounded()


def _to_steps(values: torch.Tensor, step: torch.Tensor | float) -> torch.Tensor:
    """The nearest whole steps, with the gradient of what was given. torch's own operators for this compute the same,
    but end a compiled graph at every layer."""
    return values + ((values / step).round() * step - values).detach()
