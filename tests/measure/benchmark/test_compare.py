"""Two benchmarks side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from measure.invented import RAN, benchmark, benchmark_record

from qa_backends.measure.benchmark.compare import changes


def test_two_benchmarks_are_compared_where_they_share_a_point() -> None:
    then = benchmark(benchmark_record(10.0, shapes="s"), benchmark_record(7.0, tokens=32))
    now = benchmark(benchmark_record(5.0, shapes="t"), benchmark_record(3.0, batch=8))
    (change,) = changes(then, now)
    assert (change.then.p50_ms, change.now.p50_ms, change.same_shapes) == (10.0, 5.0, False)
    assert change.speed_up is not None and change.speed_up.value == pytest.approx(2.0)
    assert 1.8 < change.speed_up.low <= 2.0 <= change.speed_up.high < 2.2


def test_what_the_app_batched_otherwise_is_the_same_point_and_what_the_plan_did_is_not() -> None:
    asked, planned = {"tokens": None, "order": "as asked"}, {"tokens": None, "order": "sorted"}
    then = benchmark(benchmark_record(10.0, batch=7, **asked), benchmark_record(9.0, batch=4, **planned))
    now = benchmark(benchmark_record(5.0, batch=16, **asked), benchmark_record(8.0, batch=8, **planned))
    (change,) = changes(then, now)
    assert (change.then.p50_ms, change.now.p50_ms) == (10.0, 5.0)


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        (("s", "abc", "1"), ("s", "def", "2"), True),
        (("s", "abc", "1"), ("t", "def", "2"), False),
        ((None, "abc", "1"), ("s", "abc", "2"), True),
        ((None, "abc", "1"), ("s", "def", "1"), True),
        ((None, None, "1"), (None, None, "1"), True),
        ((None, "abc", "1"), (None, "def", "2"), None),
        ((None, None, ""), (None, None, ""), None),
        ((None, None, ""), ("s", "abc", "1"), None),
    ],
)
def test_shapes_that_are_not_known_are_not_the_same_shapes(
    then: tuple[str | None, str | None, str], now: tuple[str | None, str | None, str], same: bool | None
) -> None:
    """By the hash of the shapes; where it is missing, the same weights or the same file have the same shapes."""
    records = [
        benchmark_record(1.0, shapes=shapes, checkpoint=checkpoint, ran=replace(RAN, file_hash=file))
        for shapes, checkpoint, file in (then, now)
    ]
    (change,) = changes(*map(benchmark, records))
    assert change.same_shapes is same


def test_a_backend_nobody_knows_is_compared_like_any_other() -> None:
    unknown = benchmark(benchmark_record(1.0, backend="atlantis/trident"))
    (change,) = changes(unknown, unknown)
    assert change.speed_up is not None and change.speed_up.tie
