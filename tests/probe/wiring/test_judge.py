"""What running an engine's own code for a draft says of a scan's findings."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from typer.testing import CliRunner, Result

from eaglelint.cli.app import app
from eaglelint.exceptions import WrongUsage
from eaglelint.finding import Finding, Probe
from eaglelint.probe.flow import ProbeOptions, probe_scan
from eaglelint.probe.wiring.engine import compared
from eaglelint.probe.wiring.judge import ServedRun, wiring_verdict
from eaglelint.probe.wiring.launch import Answer
from eaglelint.probe.wiring.task import Observation, Seen
from eaglelint.registry import find_rule, rule_page
from eaglelint.rule import Facts, Served
from eaglelint.rule_page import parse_page
from eaglelint.session import Inputs, open_session
from eaglelint.wiring import Fault, Slot, Wiring
from tests.page_projects import write_project
from tests.probe.wiring.test_wiring import valid
from tests.rules.facts import eagle3, slots, target, trained

PROJECTS = Path(__file__).parents[2] / "rules" / "projects"
PATIENT = ("--probe-budget", "3600")  # on a busy machine too
on_linux = pytest.mark.skipif("sys.platform != 'linux'", reason="scanned code is contained on Linux alone")
_CAPTURED = "sglang 0.5.9+mini (LlamaForCausalLM), run with the ids 1, 7, 12 over 16 layers, captured "


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A draft with the ids 1, 7, 12, said to be boundaries, and a small engine that adds one to them."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(PROJECTS / "mini-sglang", tmp_path / "serving")
    common = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128, "model_type": "llama"}
    draft = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, **common}
    draft["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [1, 7, 12]}
    served = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 16, **common}
    for name, config in (("draft", draft), ("target", served)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def scan(*words: str) -> Result:
    inputs = ["--draft", "draft", "--target", "target", "--serving", "sglang@serving", "--trained-by", "boundary"]
    return CliRunner().invoke(app, ["scan", *inputs, "--probe", *PATIENT, *words])


def verdicts(result: Result) -> dict[str, Any]:
    return {finding["code"]: finding["probe"] for finding in json.loads(result.stdout)["findings"]}


@on_linux
def test_a_served_boundary_is_confirmed_by_the_engines_own_code(project: Path) -> None:
    """In the text, in JSON, and as a property of the SARIF result, with the ids, the depth and what was captured."""
    detail = f"{_CAPTURED}h[2] ⊕ h[8] ⊕ h[13]"
    assert f"  probe: confirmed, {detail}\n" in scan("--execute").stdout
    expected = {"verdict": "confirmed", "detail": detail}
    assert verdicts(scan("--execute", "--output-format", "json"))["CAP002"] == expected
    (run,) = json.loads(scan("--execute", "--output-format", "sarif").stdout)["runs"]
    (found,) = [found for found in run["results"] if found["ruleId"] == "CAP002"]
    assert found["properties"]["probe"] == expected


@on_linux
def test_the_run_in_the_probes_report(project: Path) -> None:
    """``probe --execute`` with a draft: an outcome as its schema has it, with the class as the wiring probe's has it."""
    inputs = ["--draft", "draft", "--target", "target", "--serving", "sglang@serving", "--trained-by", "boundary"]
    result = CliRunner().invoke(app, ["probe", *inputs, "--execute", "--format", "json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    valid(document, "probe")
    shape, run = document["outcomes"]
    assert (shape["probe"], shape["result"], run["probe"], run["result"]) == ("shape", "passed", "wiring", "failed")
    assert run["summary"] == f"{_CAPTURED}h[2] ⊕ h[8] ⊕ h[13], and the draft was trained on h[1] ⊕ h[7] ⊕ h[12]"
    engines = [{"engine": "sglang", "classes": [run["data"]]}]
    valid({"schema_version": 1, "probe": "wiring", "engines": engines}, "probe-wiring")


@on_linux
def test_a_branch_without_its_residual_is_confirmed(project: Path) -> None:
    """VAL001 stands on a line of code; the run shows the branch."""
    file = project / "serving/sglang/srt/models/capture.py"
    text = file.read_text("utf-8")
    file.write_text(text.replace("hidden_states if residual is None else hidden_states + residual", "hidden_states"))
    probe = verdicts(scan("--execute", "--output-format", "json"))["VAL001"]
    assert probe == {
        "verdict": "confirmed",
        "detail": f"{_CAPTURED}partial(h[2]) ⊕ partial(h[8]) ⊕ partial(h[13])",
    }


def test_without_leave_to_execute_it_says_how(project: Path) -> None:
    """Nothing scanned is run, and the finding says what would try it."""
    probe = verdicts(scan("--output-format", "json"))["CAP002"]
    assert probe == {
        "verdict": "inconclusive",
        "detail": "not tried: it is told by running sglang 0.5.9+mini's own code, which --execute does in a process "
        "without rights",
    }


def test_a_profile_has_no_code_to_run(project: Path) -> None:
    """The finding says what to name instead."""
    words = ["scan", "--draft", "draft", "--target", "target", "--serving", "sglang==0.5.9"]
    result = CliRunner().invoke(
        app, [*words, "--trained-by", "boundary", "--probe", *PATIENT, "--execute", "--output-format", "json"]
    )
    assert verdicts(result)["CAP002"]["detail"] == (
        "not tried: sglang 0.5.9's profile holds no code to run: name its source, --serving sglang@PATH"
    )


def test_execute_goes_with_probe(project: Path) -> None:
    result = CliRunner().invoke(app, ["scan", "draft", "--execute"])
    assert isinstance(result.exception, WrongUsage)
    assert "--execute goes with --probe" in str(result.exception)


def test_the_budget_is_shared(project: Path) -> None:
    """Shapes were tried within it; the engine's code is not begun any more."""
    inputs = Inputs(
        draft=project / "draft", target=project / "target", serving=["sglang@serving"], trained_by="boundary"
    )
    times = iter([0.0, 1.0, 5.0])
    result = open_session(inputs).scan()
    probed = probe_scan(result, ProbeOptions(budget=2.0, execute=True), clock=lambda: next(times))
    assert [(outcome.probe, outcome.result) for outcome in probed.outcomes] == [
        ("shape", "passed"), ("wiring", "inconclusive"),
    ]  # fmt: skip
    (probe,) = [finding.probe for finding in probed.findings if finding.code == "CAP002"]
    assert probe == Probe("inconclusive", "not tried: the budget of 2 s was used up")


# --- verdicts, for what a run may have seen -------------------------------------------------------------------------

_DERIVED = Wiring(
    "serving", "sglang 0.5.9 (DemoForCausalLM)", slots(4, 32, 60), "exact", "sglang", "0.5.9", "DemoForCausalLM",
    "eagle3", (3, 31, 59), 61, ids_from=("eagle_config", "eagle_aux_hidden_state_layer_ids"),
)  # fmt: skip
_FACTS = Facts(eagle3([3, 31, 59]), target(), trained(3, 31, 59), (Served(_DERIVED),))


def found(code: str) -> Finding:
    """The finding of a rule on these facts, or one of its code that names the engine."""
    rule = find_rule(code)
    again = next(iter(rule.check(rule, _FACTS)), None)
    span = again.span if again is not None else next(iter(rules_finding().values())).span
    return again or Finding(code, rule.name, "error", "likely", "", span, identity=("sglang 0.5.9", "DemoForCausalLM"))


def rules_finding() -> dict[str, Finding]:
    rule = find_rule("CAP002")
    return {finding.code: finding for finding in rule.check(rule, _FACTS)}


def seen(*boundaries: int, form: str = "stream", fused: tuple[Seen, ...] | None = None) -> Observation:
    return Observation(tuple(Seen(form, k, "") for k in boundaries), fused=fused)


_LATER = (Seen("stream", 5, ""), Seen("stream", 32, ""), Seen("stream", 60, ""))


@pytest.mark.parametrize(
    ("code", "observation", "verdict"),
    [
        ("CAP002", seen(4, 32, 60), "confirmed"),
        ("CAP002", seen(3, 31, 59), "refuted"),  # what it was trained on: the derivation was wrong
        ("CAP002", seen(5, 32, 60), "confirmed"),  # other states than derived, and not those of the training either
        ("CAP002", Observation((Seen("unknown", None, "a product"),)), "inconclusive"),
        ("CAP002", Observation(error="KeyError at demo.py:3: 0"), "inconclusive"),
        ("VAL001", seen(4, 32, 60, form="partial"), "confirmed"),
        ("VAL001", seen(4, 32, 60), "refuted"),
        ("VAL002", seen(4, 32, 60, fused=_LATER), "confirmed"),
        ("VAL002", seen(4, 32, 60), "refuted"),
        ("CAT001", seen(4, 32, 60), "confirmed"),
        ("CAT001", seen(4, 32), "inconclusive"),
    ],
)
def test_the_verdict(code: str, observation: Observation, verdict: str) -> None:
    """Each finding on what is served is held against what was seen to be served."""
    run = ServedRun(_FACTS.servings[0], compared(Answer(observation), _DERIVED))
    probe = wiring_verdict(found(code), _FACTS, [run])
    assert probe is not None
    assert probe.verdict == verdict


@pytest.mark.parametrize(("form", "verdict"), [("shard", "confirmed"), ("stream", "inconclusive")])
def test_a_rank_s_share_is_looked_for_on_two_ranks(form: str, verdict: str) -> None:
    """A share confirms VAL003; whole states do not refute it, as stand-ins put no all-reduce off."""
    ranks = compared(Answer(seen(4, 32, 60, form=form), ranks=2), _DERIVED)
    run = ServedRun(_FACTS.servings[0], compared(Answer(seen(4, 32, 60)), _DERIVED), ranks)
    probe = wiring_verdict(found("VAL003"), _FACTS, [run])
    assert probe is not None
    assert probe.verdict == verdict
    assert probe.detail.startswith("on 2 ranks, sglang 0.5.9 (DemoForCausalLM), run with the ids 3, 31, 59 over 61")


def test_a_stop_that_the_finding_names_is_confirmed() -> None:
    """The run ends in an exception at the very line of the fault that was derived."""
    fault = Fault("the right operand of a + b is None", "sglang/models/demo.py", 41, 0, 0)
    derived = replace(_DERIVED, slots=(Slot("unknown"), *slots(32, 60)), status="conditional", faults=(fault,))
    served = Served(derived)
    facts = replace(_FACTS, servings=(served,))
    rule = find_rule("CAP003")
    (finding,) = rule.check(rule, facts)
    answer = Answer(Observation(error="TypeError at sglang/models/demo.py:41: unsupported operand"))
    probe = wiring_verdict(finding, facts, [ServedRun(served, compared(answer, derived))])
    assert probe is not None
    assert probe.verdict == "confirmed"
    assert probe.detail.endswith("stops with TypeError at sglang/models/demo.py:41, as derived")


def test_findings_of_other_rules_and_engines_are_let_be() -> None:
    """Whose code was not run, or who speaks of no code."""
    run = ServedRun(_FACTS.servings[0], compared(Answer(seen(4, 32, 60)), _DERIVED))
    assert wiring_verdict(replace(found("CAP002"), code="VOC001"), _FACTS, [run]) is None
    assert wiring_verdict(replace(found("CAP002"), identity=("vllm 0.33.0",), message=""), _FACTS, [run]) is None


# --- an engine's own tree ---------------------------------------------------------------------------------------------


def tree(directory: Path, code: str) -> Path:
    """The example of a rule's page: the tree of an engine in which it speaks."""
    page = parse_page(rule_page(find_rule(code)))
    example = next(found for found in page.examples if found.expected and "--draft" not in found.command)
    write_project(example, directory)
    return directory / "serving"


@on_linux
@pytest.mark.parametrize(
    ("code", "verdict", "said"),
    [
        ("VAL001", "confirmed", "run with its default list over 12 layers, captured partial(h[2])"),
        # Two ranks start under torchrun, which costs seconds; no stand-in puts the sum off, so nothing shows.
        pytest.param("VAL003", "inconclusive", "on 2 ranks, sglang", marks=pytest.mark.real),
    ],
)
def test_a_finding_on_an_engines_tree_is_tried_with_the_class_that_it_names(
    code: str, verdict: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without a draft."""
    monkeypatch.chdir(tmp_path)
    words = ["--probe", "--execute", *PATIENT, "--output-format", "json"]
    found = verdicts(CliRunner().invoke(app, ["scan", str(tree(tmp_path, code)), *words]))[code]
    assert found["verdict"] == verdict
    assert said in found["detail"]


def test_an_engines_tree_is_not_run_without_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["scan", str(tree(tmp_path, "VAL001")), "--probe", "--output-format", "json"])
    found = verdicts(result)["VAL001"]
    assert found["verdict"] == "inconclusive"
    assert "which --execute does in a process without rights" in found["detail"]


@on_linux
def test_a_pipeline_of_the_settings_is_run(project: Path) -> None:
    """``probe --execute`` without any flag: the drafts that the settings name, with the engines that serve them."""
    pipeline = 'draft = "draft"\ntarget = "target"\nserving = ["sglang@serving"]\ntrained-by = "boundary"\n'
    (project / "eaglelint.toml").write_text(f"[[pipeline]]\n{pipeline}", encoding="utf-8")
    result = CliRunner().invoke(app, ["probe", "--execute", "--format", "json"])
    assert result.exit_code == 1
    assert [outcome["probe"] for outcome in json.loads(result.stdout)["outcomes"]] == ["shape", "wiring"]


def test_there_is_nothing_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a draft nor an engine: a sentence that says what to name."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["probe", "--execute"])
    assert isinstance(result.exception, WrongUsage)
    assert "or with --execute an engine's source with --serving sglang@PATH" in str(result.exception)
