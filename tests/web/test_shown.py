"""Of many backends the charts begin with those one compares; the rest is chosen, and nothing is ever left blank."""

from __future__ import annotations

from web.rows import row

from qa_backends.web.benchmark import shown

FEW = ("baseline", "pruned", "pruned-ort")
MANY = (
    "baseline", "pruned", "pruned-ort", "pruned-ort-fused", "pruned-ort-fp16", "pruned-ov", "pruned-ov-int8",
    "pruned-ts", "hf-pipeline",
)  # fmt: skip
MS = {"pruned-ov-int8": 3.0, "pruned-ov": 5.0, "pruned-ort-fused": 6.0, "pruned-ort": 7.0}
RECORDS = [row(name, tokens, MS.get(name, 20.0) * tokens / 128) for name in MANY for tokens in (32, 128)]


def test_few_are_all_shown() -> None:
    assert shown.at_first([row(name, 128, 9.0) for name in FEW], 128) == list(FEW)


def test_of_many_those_that_all_is_compared_with_and_the_fastest_are_shown_in_the_order_of_steps() -> None:
    assert shown.at_first(RECORDS, 128) == [
        "baseline", "pruned-ort-fused", "pruned-ort-fp16", "pruned-ov", "pruned-ov-int8", "hf-pipeline",
    ]  # fmt: skip


def test_everything_measured_can_be_chosen_by_its_title() -> None:
    assert [name for _, name in shown.choices(RECORDS)] == list(MANY)
    assert ("transformers pipeline", "hf-pipeline") in shown.choices(RECORDS)


def test_a_line_says_what_the_charts_show() -> None:
    assert shown.said(RECORDS, ["pruned", "baseline"], 128) == (
        "The charts show 2 of 9 backends, those of one length at 128 tokens"
    )
    assert "all backends" in shown.said(RECORDS, MANY, 32)
    assert "all backends" in shown.said(RECORDS, [], 32)


def test_charts_hold_what_is_chosen_and_everything_where_that_is_not_there() -> None:
    assert {each.name for each in shown.only(RECORDS, ["pruned", "pruned-ov"])} == {"pruned", "pruned-ov"}
    assert shown.only(RECORDS, []) == shown.only(RECORDS, ["of another file"]) == RECORDS
