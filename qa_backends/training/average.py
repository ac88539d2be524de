"""An average of the weights over the steps, which answers better than the last of them (Polyak and Juditsky 1992)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class Average:
    """An exponential moving average of ``parameters``; ``weights`` holds it by their names.

    After a step it keeps ``decay`` of itself, at first less, so that it leaves the starting weights behind: the rule of
    TensorFlow's ExponentialMovingAverage, ``min(decay, (1 + steps) / (10 + steps))``.
    """

    def __init__(self, parameters: dict[str, torch.nn.Parameter], decay: float) -> None:
        self._parameters = parameters
        self._decay = decay
        self.weights = {name: each.detach().clone() for name, each in parameters.items()}

    def update(self, steps: int) -> None:
        """Takes in the parameters as they are after so many steps."""
        kept = min(self._decay, (1 + steps) / (10 + steps))
        for name, parameter in self._parameters.items():
            self.weights[name].lerp_(parameter.detach(), 1 - kept)

    def put_in_place(self) -> None:
        """Makes the parameters equal to the average."""
        for name, parameter in self._parameters.items():
            parameter.data.copy_(self.weights[name])
