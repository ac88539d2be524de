"""Answers questions about a text with the model in this folder, by numpy, tokenizers and one runtime.

    python answer.py --question "Who watered the tree?" --context "Anna planted an apple tree. Ben watered it."

or, from a program: ``Answering(Path("this folder")).answer(question, context)``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

OUTPUTS = ["start_logits", "end_logits"]
SPANS_PER_WINDOW = 20
PADDED_TO, SHORTEST, POSITIONS = 32, 64, 512
"""OpenVINO prepares for each length that it first sees, and of 32 tokens exactly computes other logits in INT8 beside
BF16: windows are padded, with tokens that no other attends to, to a multiple, and to so many at least and at most."""

CPUINFO = Path("/proc/cpuinfo")
EIGHT_BIT_SUMS = {"avx512_vnni", "avx_vnni", "amx_int8"}
"""x86 instructions, by Linux's names, without which sums of INT8 weights of 8 bits may overflow."""


def warn_of_overflow(settings: dict[str, Any]) -> None:
    """Says on stderr where answers may be wrong, since the weights have more bits than the processor can add up."""
    if settings.get("weight_bits") != 8 or not CPUINFO.is_file():
        return
    lines = CPUINFO.read_text(encoding="ascii", errors="replace").splitlines()
    flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    if "sse2" in flags and not flags & EIGHT_BIT_SUMS:
        told = "This model's INT8 weights have 8 bits, whose sums may overflow on this processor: answers may be wrong."
        print(f"{told} README.md says what it needs.", file=sys.stderr)


def onnxruntime_session(model: Path, settings: dict[str, Any]) -> Any:
    """A function from named arrays to start and end logits, on ONNX Runtime."""
    import onnxruntime

    if settings["device"] == "cuda":
        onnxruntime.preload_dlls()  # CUDA's libraries, where they were installed as packages
    options = onnxruntime.SessionOptions()
    if settings["device"] == "cpu":  # where that fused operator is slower than what it stands for
        options.add_session_config_entry("optimization.disable_specified_optimizers", "SkipLayerNormFusion")
    session = onnxruntime.InferenceSession(str(model), options, providers=settings["providers"])
    if session.get_providers()[0] != settings["providers"][0]:
        raise RuntimeError(f"ONNX Runtime has no {settings['providers'][0]} here; install onnxruntime-gpu for a GPU")
    names = {each.name for each in session.get_inputs()}
    return lambda feeds: session.run(OUTPUTS, {name: feeds[name] for name in names})


def openvino_session(model: Path, settings: dict[str, Any]) -> Any:
    """The same, on OpenVINO."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # else its makers hear of the import
    import openvino

    hints = {"INFERENCE_PRECISION_HINT": settings["precision_hint"], "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(str(model), "CPU", hints)
    names = {each.get_any_name() for each in compiled.inputs}

    def run(feeds: dict[str, Any]) -> list[Any]:
        length = feeds["input_ids"].shape[1]
        behind = (0, max(0, min(max(-length % PADDED_TO, SHORTEST - length), POSITIONS - length)))
        found = compiled({name: np.pad(feeds[name], ((0, 0), behind)) for name in names})
        return [found[name][:, :length] for name in OUTPUTS]

    return run


SESSIONS = {"onnxruntime": onnxruntime_session, "openvino": openvino_session}


def without_space(context: str, first: int, last: int) -> tuple[int, int]:
    """The span of characters without the white space that it begins or ends with, which some tokens hold."""
    while first < last and context[first].isspace():
        first += 1
    while first < last and context[last - 1].isspace():
        last -= 1
    return first, last


class Answering:
    """The model and its tokenizer, loaded once."""

    def __init__(self, folder: Path) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        warn_of_overflow(self.settings)
        self._run = SESSIONS[self.settings["engine"]](folder / "model.onnx", self.settings)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        pair = self._tokenizer.encode("a", "b")  # tells the special tokens before, between and behind
        first, second = ([at for at, part in enumerate(pair.sequence_ids) if part == each] for each in (0, 1))
        self._before, self._behind = pair.ids[: first[0]], pair.ids[second[-1] + 1 :]
        self._between = pair.ids[first[-1] + 1 : second[0]]
        self._segment = pair.type_ids[second[0]]

    def answer(self, question: str, context: str) -> dict[str, Any]:
        """``answer`` and ``span``, its characters, half-open, are ``None`` where the context holds no answer."""
        scores: dict[tuple[int, int], float] = {}
        null = math.inf
        for before, piece, offsets in self._windows(question, context):
            ids = np.array([[*before, *piece, *self._behind]], dtype=np.int64)
            segments = np.zeros_like(ids)
            segments[:, len(before) :] = self._segment
            feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": segments}
            start, end = (np.asarray(logits[0], dtype=np.float32) for logits in self._run(feeds))
            if not (np.isfinite(start).all() and np.isfinite(end).all()):
                raise RuntimeError("the model's logits are not finite: export it in another precision")
            null = min(null, float(start[0] + end[0]))
            inside = slice(len(before), len(before) + len(piece))
            for span, score in self._best(offsets, start[inside], end[inside]):
                if context[slice(*(span := without_space(context, *span)))]:
                    scores[span] = max(score, scores.get(span, score))
        if not scores:
            return {"answer": None, "span": None, "confidence": 1.0, "score": None, "null_score": null}
        (first, last), score = min(scores.items(), key=lambda each: (-each[1], each[0]))
        answered = null - score <= self.settings["null_threshold"]
        highest, temperature = max(score, null), self.settings["temperature"]
        rivals = math.fsum(math.exp((each - highest) / temperature) for each in (*scores.values(), null))
        confidence = math.exp(((score if answered else null) - highest) / temperature) / rivals
        while last < len(context) and unicodedata.category(context[last]) == "Mn":
            last += 1
        found = {"answer": context[first:last], "span": [first, last]} if answered else {"answer": None, "span": None}
        return {**found, "confidence": confidence, "score": score, "null_score": null}

    def _windows(self, question: str, context: str) -> Iterator[tuple[list[int], list[int], list[tuple[int, int]]]]:
        """Overlapping pieces of the context: what stands before each, its tokens, and the characters of these."""
        asked = self._tokenizer.encode(question, add_special_tokens=False).ids[: self.settings["max_question_tokens"]]
        text = self._tokenizer.encode(context, add_special_tokens=False)
        before = [*self._before, *asked, *self._between]
        capacity = self.settings["max_seq_len"] - len(before) - len(self._behind)
        stride = self.settings["stride"]
        for start in range(0, max(1, len(text) - stride), capacity - stride):
            piece = slice(start, start + capacity)
            yield before, text.ids[piece], text.offsets[piece]

    def _best(self, offsets: list[tuple[int, int]], start: Any, end: Any) -> list[tuple[tuple[int, int], float]]:
        """The best spans of a piece's tokens, by the characters they cover, with start logit + end logit."""
        length = np.arange(len(start)) - np.arange(len(start))[:, None]
        allowed = (length >= 0) & (length < self.settings["max_answer_tokens"])
        table = np.where(allowed, start[:, None] + end, -np.inf)
        top = np.argsort(-table, axis=None)[:SPANS_PER_WINDOW]
        places = [divmod(int(each), len(start)) for each in top]
        return [
            ((offsets[first][0], offsets[last][1]), float(table[first, last]))
            for first, last in places
            if math.isfinite(table[first, last])
        ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Answer a question about a text.")
    parser.add_argument("--question", required=True)
    parser.add_argument("--context", help="the text; standard input where it is left out")
    given = parser.parse_args()
    try:
        context = sys.stdin.buffer.read().decode("utf-8") if given.context is None else given.context
    except UnicodeDecodeError as error:
        parser.error(f"the text is not in UTF-8: {error}")
    if not context.strip() or not given.question.strip():
        parser.error("give a question and a text that are not empty")
    print(json.dumps(Answering(Path(__file__).parent).answer(given.question, context), ensure_ascii=False))


if __name__ == "__main__":
    main()
