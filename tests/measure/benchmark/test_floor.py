"""Operations counted by hand, and a rate that the machine really reaches."""

from __future__ import annotations

from helpers import BASELINE

from qa_backends.artefacts.checkpoint import empty_model, read_config
from qa_backends.measure.floor import matmul_rate, operations

# 8 wide, 2 heads of 4, 16 FFN columns, one layer.
TINY = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def test_operations_are_those_counted_by_hand() -> None:
    # A token, multiplications: query, key, value, output 4 * 8 * 8; scores and values 2 * seq_len * 8; FFN 2 * 8 * 16;
    # output layer 2 * 8. Each counts twice, for it is also added.
    assert operations(TINY, [(1, 10)]) == 2 * 10 * (256 + 160 + 256 + 16)
    assert operations(TINY, [(3, 10), (1, 20)]) == 3 * operations(TINY, [(1, 10)]) + operations(TINY, [(1, 20)])


def test_removed_heads_and_columns_are_not_counted() -> None:
    pruned = TINY | {"pruned_heads": {"0": [1]}, "intermediate_sizes": [5]}
    assert operations(pruned, [(1, 10)]) == 2 * 10 * (128 + 80 + 80 + 16)


def test_the_count_agrees_with_pytorchs_own_counter() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import BertConfig

    config = read_config(BASELINE)
    model = empty_model(BertConfig.from_dict(config, attn_implementation="eager")).eval()
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        model(input_ids=torch.ones((2, 64), dtype=torch.long))
    assert operations(config, [(2, 64)]) == counter.get_total_flops()


def test_the_rate_is_a_rate() -> None:
    assert 1e8 < (matmul_rate("cpu", "FP32") or 0) < 1e15
    assert matmul_rate("cpu", "made of cheese") is None
