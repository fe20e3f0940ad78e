"""``eaglelint engines``: learning, listing and comparing, and scans that need no source tree."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from eaglelint.engines.profile_file import bundled_versions, write_profile
from eaglelint.learn.learn import learn_profile

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples/kimi-k2.5"
MINI = REPOSITORY / "tests/rules/projects/mini-sglang"
PIPELINE = ("--draft", EXAMPLE / "draft", "--target", EXAMPLE / "target", "--training", EXAMPLE / "training")


@pytest.fixture(scope="module")
def kimi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was learned from the example's engine."""
    path = tmp_path_factory.mktemp("learned") / "kimi.json"
    write_profile(learn_profile(EXAMPLE / "serving/sglang", "sglang", processes=1), path)
    return path


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was learned from the small engine of the rules' pages."""
    path = tmp_path_factory.mktemp("learned") / "mini.json"
    write_profile(learn_profile(MINI / "sglang", "sglang", processes=1), path)
    return path


def scan(run: Callable[..., Any], serving: object) -> Any:
    outcome = run("scan", *PIPELINE, "--serving", serving, "--output-format", "json")
    assert outcome.code in (0, 1), outcome.stderr
    return json.loads(outcome.stdout)


def verdict(document: Any) -> list[Any]:
    """Findings without the paths of the engine's lines."""
    return [
        (
            f["code"],
            f["severity"],
            f["confidence"],
            f["message"],
            f["location"]["start"],
            [e["text"] for e in f["edits"]],
        )
        for f in document["findings"]
    ]


def test_the_same_verdict_without_the_source(run: Callable[..., Any], kimi: Path) -> None:
    """The story of the first page is found from a profile as from the source, with lines of the engine as related places."""
    source = scan(run, f"sglang@{EXAMPLE / 'serving'}")
    profile = scan(run, f"sglang@{kimi}")
    assert verdict(profile) == verdict(source)
    assert [f["code"] for f in profile["findings"]] == ["CAP002"]
    related = [item["location"]["path"] for item in profile["findings"][0]["related"]]
    assert "sglang 0.5.9+kimi: srt/models/deepseek_v2.py" in related
    served = next(wiring for wiring in profile["wirings"] if wiring["party"] == "serving")
    assert (served["slots"], served["status"]) == (["h[0]", "h[3]", "h[31]"], "exact")


def test_a_profile_may_be_named_by_its_file_alone(run: Callable[..., Any], kimi: Path) -> None:
    """FILE.json says which engine it is of."""
    assert verdict(scan(run, kimi)) == verdict(scan(run, f"sglang@{kimi}"))


def test_a_profile_of_another_engine(run: Callable[..., Any], kimi: Path) -> None:
    """vllm@FILE is refused where the file is of SGLang."""
    outcome = run("scan", *PIPELINE, "--serving", f"vllm@{kimi}")
    assert outcome.code == 2
    assert "is a profile of sglang" in outcome.stderr


def test_learn(run: Callable[..., Any], tmp_path: Path) -> None:
    """The command writes the file, says what it holds on standard error, and nothing else."""
    outcome = run("engines", "learn", f"sglang@{MINI}", "-o", tmp_path / "mini.json", "-j", "1")
    assert (outcome.code, outcome.stdout) == (0, "")
    assert "sglang 0.5.9+mini, " in outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mini.json"]
    schema = json.loads((REPOSITORY / "schemas/profile.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads((tmp_path / "mini.json").read_text("utf-8")))


def test_learn_into_nowhere(run: Callable[..., Any], tmp_path: Path) -> None:
    """A place that cannot be written is a sentence."""
    outcome = run("engines", "learn", f"sglang@{MINI}", "-o", tmp_path / "none/mini.json", "-j", "1")
    assert outcome.code == 2
    assert "cannot be written" in outcome.stderr


def test_show(run: Callable[..., Any], mini: Path) -> None:
    """A profile is shown as the source is."""
    words = ("--num-layers", 61, "--layer-ids", "2,30,58", "--format", "json")
    documents = [
        json.loads(run("engines", "show", spec, *words).stdout) for spec in (f"sglang@{mini}", f"sglang@{MINI}")
    ]
    rows = [[(w["target_class"], w["slots"], w["status"]) for w in document["wirings"]] for document in documents]
    assert sorted(rows[0]) == sorted(rows[1])
    assert ("LlamaForCausalLM", ["h[3]", "h[31]", "h[59]"], "exact") in rows[0]


def test_diff(run: Callable[..., Any], mini: Path, tmp_path: Path) -> None:
    """A release whose setter adds nothing gives other states for the same ids; a profile and a tree can be compared."""
    shutil.copytree(MINI, tmp_path / "next")
    setter = tmp_path / "next/sglang/srt/models/capture.py"
    text = setter.read_text("utf-8")
    assert "layer_id + 1" in text
    setter.write_text(text.replace("layer_id + 1", "layer_id"), "utf-8")
    words = ("engines", "diff", mini, f"sglang@{tmp_path / 'next'}", "--layer-ids", "2,30,58")
    outcome = run(*words)
    assert outcome.code == 0
    assert "ids [2, 30, 58] meant h[3] ⊕ h[31] ⊕ h[59], now mean h[2] ⊕ h[30] ⊕ h[58]" in outcome.stdout
    document = json.loads(run(*words, "--format", "json").stdout)
    change = next(c for c in document["changes"] if c["target_class"] == "LlamaForCausalLM")
    assert (change["before"]["slots"], change["after"]["slots"]) == (
        ["h[3]", "h[31]", "h[59]"],
        ["h[2]", "h[30]", "h[58]"],
    )
    assert document["looks_in"]["before"] == document["looks_in"]["after"]
    picture = ET.fromstring(run(*words, "--format", "svg").stdout)
    texts = ["".join(element.itertext()) for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"ids [2, 30, 58]: LlamaForCausalLM", "h[3] ≠ h[2]", "h[31] ≠ h[30]", "h[59] ≠ h[58]"} <= {*texts}
    assert "<b>slot 0</b> before h[3], after h[2]" in run(*words, "--format", "html").stdout
    assert '["h[59]"]' in run(*words, "--format", "mermaid").stdout


def test_no_difference(run: Callable[..., Any], mini: Path) -> None:
    """An engine compared with itself has not changed."""
    outcome = run("engines", "diff", mini, mini)
    assert "no class for which these ids mean other hidden states" in outcome.stdout
    assert "new:" not in outcome.stdout


def test_list(run: Callable[..., Any]) -> None:
    """Every bundled profile is listed with what is known in it."""
    outcome = run("engines", "list")
    assert outcome.code == 0
    for engine in ("sglang", "vllm"):
        for version in bundled_versions(engine):
            assert f"{engine}=={version}: " in outcome.stdout
