"""Heads taken out of a layer; and what stands in one of which pruning left no head, or no FFN column: the bias of the
output, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import torch
    from torch import nn


def places_without(heads: int, head_size: int, removed: set[int], gone: frozenset[int]) -> torch.LongTensor:
    """Rows that are left of a layer's query, key and value when ``removed`` go, heads as they were first numbered; the
    layer has ``heads`` since the others, ``gone``, went.

    Made of a list: what a mask leaves has no length on the device ``meta``, where shapes are checked without weights.

    Raises:
        ValueError: one of them is not there.
    """
    import torch

    left = [number for number in range(heads + len(gone)) if number not in gone]
    if not removed <= set(left):
        raise ValueError(f"there are no heads {sorted(removed - set(left))} to remove")
    kept = [place for place, number in enumerate(left) if number not in removed]
    rows = torch.tensor([place * head_size + row for place in kept for row in range(head_size)], dtype=torch.long)
    return cast("torch.LongTensor", rows)


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
