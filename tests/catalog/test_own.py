"""A model of one's own becomes a family, or is refused with the reason; its identity is what it holds, not its name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from helpers import QUESTION, ROOT, TEXT, random_bert
from kinds import HEADS, answer, checkpoint_of, same_weights
from safetensors.torch import load_file, save_file

from qa_backends import catalog, pipeline
from qa_backends.catalog import own
from qa_backends.checkpoints.files import WEIGHTS
from qa_backends.checkpoints.sources import make_ready, with_tokenizer
from qa_backends.contract import Query
from qa_backends.engines.torch_compile import TorchCompile
from qa_backends.errors import ArtefactError, InputError, UnknownBackend
from qa_backends.measure.recommend import answers
from qa_backends.measure.recommend.recommend import recommend
from qa_backends.measure.recommend.wish import Wish
from qa_backends.progress import UNWATCHED
from qa_backends.reader.tokens import SubwordTokenizer
from qa_backends.runtime import Runtime
from qa_backends.web.ask import share

pytestmark = pytest.mark.usefixtures("own_forgotten")


def test_a_folder_becomes_a_family_that_every_backend_can_run(tmp_path: Path, runtime: Runtime) -> None:
    family = catalog.adopt(str(checkpoint_of("roberta", tmp_path / "My Model")), UNWATCHED)
    assert family in catalog.families()
    assert family.name.startswith("my-model-")
    assert (family.kind, family.settings.max_seq_len, bool(family.own), family.embedded) == ("roberta", 320, True, True)
    assert family.title == "My Model, Roberta, 2 layers"
    assert {each.engine for each in catalog.offered(family, "cpu")} >= {"pytorch", "onnxruntime", "openvino"}
    plain = answer(runtime, family, "baseline")
    assert plain.span is not None and TEXT[plain.span.start : plain.span.end] == plain.text != ""
    assert all(same_weights(answer(runtime, family, name), plain) for name in (None, "baseline-ov"))
    assert catalog.resolve(f"{family.name}/baseline")[0] == family


@pytest.mark.slow
def test_recommend_works_on_it(tmp_path: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TorchCompile, "devices", ("cuda",))  # which takes minutes, and is measured as any other is
    monkeypatch.setattr(answers, "CHECK_S", 0.5)  # answers of random weights are compared, and none is worth it
    family = catalog.adopt(str(checkpoint_of("distilbert", tmp_path / "mine")), UNWATCHED)
    found = recommend(runtime, Wish(family.name, lengths=(64,), seconds=10))
    raced = {each.name: each.ms for each in found.candidates}
    assert set(raced) == {each.name for each in catalog.offered(family, "cpu")}
    assert raced["baseline"] and found.advised in raced


def test_another_model_under_the_same_name_is_another_family_and_the_first_is_never_served(
    tmp_path: Path, runtime: Runtime
) -> None:
    folder = checkpoint_of("roberta", tmp_path / "mine", seed=1)
    first = catalog.adopt(str(folder), UNWATCHED)
    said = answer(runtime, first)
    checkpoint_of("roberta", folder, seed=2)
    second = catalog.adopt(str(folder), UNWATCHED)
    assert first.name != second.name
    assert [each.name for each in catalog.families() if each.own] == [second.name]
    assert answer(runtime, second) != said
    with pytest.raises(UnknownBackend):
        catalog.resolve(f"{first.name}/baseline")
    checkpoint_of("roberta", folder, seed=1)
    third = catalog.adopt(str(folder), UNWATCHED)
    assert third.name == first.name
    assert answer(runtime, third) == said


def test_a_folder_that_changed_before_it_was_packed_is_not_taken_for_what_was_chosen(
    tmp_path: Path, runtime: Runtime
) -> None:
    folder = checkpoint_of("roberta", tmp_path / "mine", seed=3)
    family = catalog.adopt(str(folder), UNWATCHED)
    checkpoint_of("roberta", folder, seed=4)
    with pytest.raises(ArtefactError, match="has changed since it was chosen"):
        answer(runtime, family)


def test_settings_that_decide_the_tokenizer_are_part_of_what_it_is(tmp_path: Path) -> None:
    folder = random_bert(tmp_path / "mine")
    (folder / "tokenizer.json").unlink()
    names = set()
    for lower_case in (True, False):
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower_case}), encoding="utf-8")
        names.add(catalog.adopt(str(folder), UNWATCHED).name)
    assert len(names) == 2


def test_a_tokenizer_that_predates_its_own_file_keeps_the_tokens_that_were_added(tmp_path: Path) -> None:
    folder = checkpoint_of("bert", tmp_path / "mine")
    words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.get)[:-1]), encoding="utf-8")
    plain = catalog.adopt(str(folder), UNWATCHED)
    (folder / "added_tokens.json").write_text('{"qqq": 3999}', encoding="utf-8")
    added = catalog.adopt(str(folder), UNWATCHED)
    assert added.name != plain.name
    packed = SubwordTokenizer(make_ready(added.source("baseline"), UNWATCHED))
    assert packed.encode("qqq").ids.tolist() == [3999]
    again = SubwordTokenizer(with_tokenizer(folder, UNWATCHED))
    assert again.encode("qqq").ids.tolist() == [3999]


def test_a_model_of_two_segments_with_a_tokenizer_of_one_runs_everywhere(tmp_path: Path, runtime: Runtime) -> None:
    folder = checkpoint_of("bert", tmp_path / "mine", seed=8)
    rules = (folder / "tokenizer.json").read_text(encoding="utf-8").replace('"type_id":1', '"type_id":0')
    (folder / "tokenizer.json").write_text(rules, encoding="utf-8")
    family = catalog.adopt(str(folder), UNWATCHED)
    assert runtime.reader(family).prepare(Query(QUESTION, TEXT)).windows.token_type_ids is None
    one, other = (answer(runtime, family, name) for name in ("baseline", "baseline-ort"))
    assert one.span == other.span and same_weights(one, other)


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_a_pruned_model_is_taken_whatever_its_layers_lost(kind: str, tmp_path: Path, runtime: Runtime) -> None:
    everything = list(range(HEADS))
    folder = checkpoint_of(
        kind, tmp_path / "pruned", seed=31, pruned_heads={0: [1], 1: everything}, intermediate_sizes=[0, 16]
    )
    family = catalog.adopt(str(folder), UNWATCHED, folders=True)
    one, other = (answer(runtime, family, name) for name in ("baseline", "baseline-ort"))
    assert one.span == other.span and same_weights(one, other)


@pytest.mark.parametrize(
    ("pruned", "said"), [({"0": [HEADS + 3]}, rf"there are no heads \[{HEADS + 3}\] to remove"), ({"9": [0]}, "")]
)
def test_heads_and_layers_that_there_are_not_cannot_be_gone(
    pruned: dict[str, list[int]], said: str, tmp_path: Path
) -> None:
    folder = checkpoint_of("bert", tmp_path / "pruned", pruned_heads={0: [1]})
    changed(folder, pruned_heads=pruned)
    with pytest.raises(InputError, match=rf"config.json does not describe a model .*{said}"):
        catalog.adopt(str(folder), UNWATCHED, folders=True)


@pytest.mark.slow
def test_two_families_are_asked_at_once_and_answer_as_they_do_alone(tmp_path: Path, runtime: Runtime) -> None:
    families = [
        catalog.adopt(str(checkpoint_of(kind, tmp_path / kind, seed=5)), UNWATCHED) for kind in ("roberta", "electra")
    ]
    alone = [answer(runtime, each) for each in families]
    together = Runtime()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: answer(together, families[number % 2]), range(16)))
    assert found == alone * 8


def without_weights(folder: Path) -> None:
    (folder / WEIGHTS).unlink()


def pickled(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")


def split(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "model-00001-of-00002.safetensors")
    (folder / f"{WEIGHTS}.index.json").write_text("{}", encoding="utf-8")


def without_head(folder: Path) -> None:
    weights = {name: each for name, each in load_file(folder / WEIGHTS).items() if not name.startswith("qa_outputs")}
    save_file(weights, folder / WEIGHTS)


def with_head_of_one_number(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS)
    save_file(weights | {"qa_outputs.weight": torch.tensor(1.0)}, folder / WEIGHTS)


def in_eight_bits(folder: Path) -> None:
    weights, name = load_file(folder / WEIGHTS), "bert.encoder.layer.0.output.dense.weight"
    scale = weights[name].abs().amax(1, keepdim=True)
    rounded = {name: (weights[name] / scale * 127).to(torch.int8), name.replace("weight", "SCB"): scale[:, 0]}
    save_file(weights | rounded, folder / WEIGHTS)


def in_four_bits(folder: Path) -> None:
    """Two numbers to a byte, in no shape of theirs."""
    weights, name = load_file(folder / WEIGHTS), "qa_outputs.weight"
    packed = torch.zeros(weights[name].numel() // 2, 1, dtype=torch.uint8)
    save_file(weights | {name: packed}, folder / WEIGHTS)


def said_to_be_quantised(folder: Path) -> None:
    changed(folder, quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True})


def damaged(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"\xff" * 64)


def changed(folder: Path, **entries: object) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | entries), encoding="utf-8")


def other_shape(folder: Path) -> None:
    changed(folder, vocab_size=900_000)


def many_layers(folder: Path) -> None:
    changed(folder, num_hidden_layers=1_000_000)


def many_groups(folder: Path) -> None:
    changed(folder, num_hidden_groups=1_000)


def many_labels(folder: Path) -> None:
    changed(folder, num_labels=1_000_000_000)


def no_config(folder: Path) -> None:
    changed(folder, num_attention_heads="many")


def huge(folder: Path) -> None:
    with (folder / "tokenizer.json").open("ab") as file:
        file.truncate(60_000_000)


def with_code(folder: Path) -> None:
    changed(folder, auto_map={"AutoModel": "modeling_mine.Mine"})


def japanese(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertJapaneseTokenizer"}', encoding="utf-8")


def without_vocabulary(folder: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink()


def with_broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}', encoding="utf-8")


def cased(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")


def spaced(folder: Path) -> None:
    checkpoint_of("roberta", folder)
    (folder / "tokenizer_config.json").write_text('{"add_prefix_space": true}', encoding="utf-8")


def unknown(folder: Path) -> None:
    changed(folder, model_type="big_bird")


@pytest.mark.parametrize(
    ("breaking", "said"),
    [
        (without_weights, "holds no model.safetensors. Name a folder"),
        (pickled, "pickled weights, which are never read.*save_pretrained"),
        (split, "split over several files.*max_shard_size"),
        (without_head, "was not taught to find answers.*train finetune"),
        (with_head_of_one_number, "was not taught to find answers.*train finetune"),
        (in_eight_bits, r"were quantised \(as 'bert.encoder.layer.0.output.dense.weight'\).*Choose the model"),
        (in_four_bits, r"were quantised \(as 'qa_outputs.weight'\)"),
        (said_to_be_quantised, "were quantised, which is not read. Choose the model"),
        (damaged, "cannot be read.*Save the model again"),
        (
            other_shape,
            "word_embeddings.weight' has the shape .30522, 32. and should have .900000, 32",
        ),
        (many_layers, "1000000 of 'num_hidden_layers'"),
        (many_groups, "1000 of 'num_hidden_groups'"),
        (many_labels, "1,000,000,000 of 'num_labels'"),
        (no_config, "does not describe a model"),
        (huge, "tokenizer.json has 60 MB"),
        (with_code, "code of its own.*Choose one without"),
        (japanese, "saved with a BertJapaneseTokenizer, .*Choose a model that has a tokenizer.json"),
        (without_vocabulary, "has no tokenizer.json, and no vocabulary that one could be made from"),
        (with_broken_tokenizer, r"^Its tokenizer.json cannot be read \([^/]+\)\. Save the tokenizer again\.$"),
        (cased, "says False of 'do_lower_case', and its tokenizer.json True.*Save the tokenizer again"),
        (spaced, "says True of 'add_prefix_space', and its tokenizer.json False"),
        (unknown, "'big_bird' cannot be read. Choose one of the kinds albert, bert, deberta-v2, distilbert"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_taken_says_why_and_what_to_do(tmp_path: Path, breaking: object, said: str) -> None:
    folder = random_bert(tmp_path / "mine")
    assert callable(breaking)
    breaking(folder)
    with pytest.raises((InputError, ArtefactError), match=said):
        catalog.adopt(str(folder), UNWATCHED)
    assert not [each for each in catalog.families() if each.own]


@pytest.mark.parametrize(
    ("file", "setting", "value"),
    [
        ("tokenizer_config.json", "vocab_file", "/dev/zero"),
        ("tokenizer_config.json", "merges_file", "/dev/zero"),
        ("tokenizer_config.json", "sp_model_kwargs", {"model_file": "/dev/zero"}),
        ("special_tokens_map.json", "vocab_file", "/dev/zero"),
        ("special_tokens_map.json", "tokenizer_file", "/dev/zero"),
        ("special_tokens_map.json", "sp_model_kwargs", {"model_file": "/dev/zero"}),
    ],
)
def test_a_vocabulary_that_transformers_would_open_elsewhere_is_refused(
    tmp_path: Path, file: str, setting: str, value: object
) -> None:
    folder = random_bert(tmp_path / "mine")
    (folder / "tokenizer.json").unlink()
    (folder / file).write_text(json.dumps({setting: value}), encoding="utf-8")
    with pytest.raises(ArtefactError, match=f"Its {file} names files elsewhere \\('{setting}'\\), which are not read"):
        catalog.adopt(str(folder), UNWATCHED)


def test_what_is_packed_names_no_files_that_transformers_would_open(tmp_path: Path) -> None:
    """With a tokenizer.json, that is what is read here; the pipeline beside it goes by the settings."""
    folder = random_bert(tmp_path / "mine")
    told = {"tokenizer_file": "/dev/zero", "vocab_file": "/dev/zero", "tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
    packed = make_ready(catalog.adopt(str(folder), UNWATCHED).source("baseline"), UNWATCHED)
    assert packed != folder
    assert json.loads((packed / "tokenizer_config.json").read_text()) == {"tokenizer_class": "BertTokenizer"}


def test_a_tokenizer_that_is_read_by_its_own_file_alone_is_taken(tmp_path: Path) -> None:
    folder = random_bert(tmp_path / "mine")
    told = {"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
    assert catalog.adopt(str(folder), UNWATCHED).own


@pytest.mark.parametrize("lower_case", [True, False])
def test_accents_that_go_where_capitals_do_contradict_nothing(tmp_path: Path, lower_case: bool) -> None:
    folder = random_bert(tmp_path / "mine")
    rules = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    rules["normalizer"] |= {"lowercase": lower_case, "strip_accents": None}
    (folder / "tokenizer.json").write_text(json.dumps(rules), encoding="utf-8")
    told = {"do_lower_case": lower_case, "strip_accents": lower_case}
    (folder / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
    assert catalog.adopt(str(folder), UNWATCHED).own


def test_what_else_lies_beside_a_model_is_nobodys_concern(tmp_path: Path) -> None:
    folder = random_bert(tmp_path / "mine")
    with (folder / "eval_nbest_predictions.json").open("wb") as file:
        file.truncate(60_000_000)
    (folder / "gone.json").symlink_to(folder / "nowhere")
    assert catalog.adopt(str(folder), UNWATCHED).own


def test_a_model_larger_than_the_budget_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QA_MEMORY_GB", "0.001")
    with pytest.raises(InputError, match=r"takes 0\.0 GB once it is loaded.*QA_MEMORY_GB"):
        catalog.adopt(str(random_bert(tmp_path / "mine")), UNWATCHED)


@pytest.mark.parametrize(
    "said",
    [
        {"_attn_implementation": "somebody/kernel", "attn_implementation": "somebody/kernel"},
        {"torchscript": True},
        {"return_dict": False},
    ],
)
def test_what_a_config_says_of_transformers_own_affairs_is_not_believed(
    tmp_path: Path, runtime: Runtime, said: dict[str, object]
) -> None:
    plain, folder = random_bert(tmp_path / "plain"), random_bert(tmp_path / "mine")
    changed(folder, **said)
    one, other = (answer(runtime, catalog.adopt(str(each), UNWATCHED), "baseline") for each in (plain, folder))
    assert one.span == other.span and same_weights(one, other)


@pytest.mark.parametrize(
    "wanted",
    ["", "mine", "/nowhere/at/all", "a b/c", "../etc", "owner/name/more", "~nobody-here/x", "a" * 5_000, "a\0b"],
)
def test_what_is_neither_a_folder_nor_a_repository_is_refused(wanted: str) -> None:
    with pytest.raises(InputError, match="neither a folder here nor a model of the Hugging Face Hub"):
        catalog.adopt(wanted, UNWATCHED)


def test_where_folders_are_not_taken_one_that_exists_is_not_even_told_apart(tmp_path: Path) -> None:
    folder = random_bert(tmp_path / "mine")
    with pytest.raises(InputError, match="is no model of the Hugging Face Hub"):
        catalog.adopt(str(folder), UNWATCHED, folders=False)


def test_only_so_many_are_kept_in_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "MOST", 2)
    made = [catalog.adopt(str(random_bert(tmp_path / name, seed=seed)), UNWATCHED) for seed, name in enumerate("abc")]
    assert [each.name for each in catalog.families() if each.own] == [each.name for each in made[1:]]


def test_the_model_that_the_app_was_started_with_stays_in_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "MOST", 2)
    monkeypatch.setenv("QA_MODEL", str(random_bert(tmp_path / "ours")))
    monkeypatch.delenv("QA_FAMILY", raising=False)
    catalog.adopt_chosen(UNWATCHED)
    try:
        for seed, name in enumerate("abc"):
            catalog.adopt(str(random_bert(tmp_path / name, seed=seed)), UNWATCHED)
        assert catalog.default_family().startswith("ours-")
        first = catalog.default_family()
        random_bert(tmp_path / "ours", seed=9)
        changed = catalog.adopt(str(tmp_path / "ours"), UNWATCHED)
        assert catalog.default_family() == changed.name != first, "what its folder holds now"
    finally:
        del os.environ["QA_FAMILY"]


def test_the_same_model_in_two_places_is_one_that_stays_while_one_of_them_holds_it(
    tmp_path: Path, runtime: Runtime
) -> None:
    one, two = (random_bert(tmp_path / place / "mine", seed=12) for place in ("one", "two"))
    family = catalog.adopt(str(one), UNWATCHED)
    shutil.rmtree(one)
    again = catalog.adopt(str(two), UNWATCHED)
    assert (again.name, again.own) == (family.name, str(two))
    assert [each for each in catalog.families() if each.own] == [again]
    assert answer(runtime, again, "baseline")
    catalog.adopt(str(random_bert(one, seed=3)), UNWATCHED)
    assert again in catalog.families()
    catalog.adopt(str(random_bert(two, seed=3)), UNWATCHED)
    assert again not in catalog.families()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qa_backends", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.programs
def test_the_command_line_takes_it_anywhere_in_the_line(tmp_path: Path) -> None:
    folder = str(checkpoint_of("electra", tmp_path / "mine"))
    asked = ("answer", "--question", QUESTION, "--context", TEXT, "--backend", "baseline", "--json")
    found = [run("--model", folder, *asked), run(*asked, f"--model={folder}")]
    assert [each.returncode for each in found] == [0, 0], found[0].stderr
    said = [json.loads(each.stdout)["backend"] for each in found]
    assert said[0] == said[1] and said[0].startswith("mine-")
    refused = run("list", "--model", str(tmp_path))
    assert refused.returncode == 1 and "config.json cannot be read" in refused.stderr


def test_what_the_page_gives_to_copy_names_the_model_and_not_this_processs_family(tmp_path: Path) -> None:
    folder = random_bert(tmp_path / "my model")
    family = catalog.adopt(str(folder), UNWATCHED)
    assert catalog.chosen_by(family.name) == ["--model", str(folder)]
    assert catalog.chosen_by("minilm") == ["--family", "minilm"]
    shell = share.as_shell(QUESTION, TEXT, family.name, ["baseline"], "cpu")
    assert f"--model '{folder}' --device cpu" in shell
    deployed = share.as_deployed(family.name, "baseline-ort", "cpu")
    assert f'pipeline("baseline-ort", model=\'{folder}\', device="cpu")' in deployed
    assert f"export --backend baseline-ort --model '{folder}'" in deployed


def test_a_program_takes_it_in_place_of_a_family(tmp_path: Path) -> None:
    answered = pipeline("baseline", model=str(random_bert(tmp_path / "mine")))(question=QUESTION, context=TEXT)
    assert TEXT[answered["start"] : answered["end"]] == answered["answer"] != ""
    with pytest.raises(InputError, match="both named"):
        pipeline("baseline", model=str(tmp_path / "mine"), family="minilm")
