"""What stands in a layer of which pruning left no head, or no FFN column: the bias of the output, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn


def bias_alone(bias: torch.Tensor) -> nn.Module:
    """An output layer that nothing reaches: its bias, ``[hidden]``, goes to every token as it did before."""
    from torch import nn

    class BiasAlone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(bias)
            self.in_features, self.out_features = 0, len(bias)

        def forward(self, _nothing: torch.Tensor) -> torch.Tensor:
            return self.bias

    return BiasAlone()


def no_heads(head_size: int) -> nn.Module:
    """Attention that attends to nothing: values ``[n, seq_len, 0]``, and no weights."""
    from torch import nn

    class NoHeads(nn.Module):
        num_attention_heads, attention_head_size = 0, head_size

        def forward(self, hidden: torch.Tensor, *_: object, **__: object) -> tuple[torch.Tensor, None]:
            return hidden[..., :0], None

    return NoHeads()


def no_columns() -> nn.Module:
    """The first matrix of an FFN without columns: ``[n, seq_len, 0]``."""
    from torch import nn

    class NoColumns(nn.Module):
        out_features = 0

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return hidden[..., :0]

    return NoColumns()
