"""What commands print, where they print it, and the exit codes that follow from findings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import eaglelint
import eaglelint.cli.progress
from eaglelint.registry import all_rules

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = "examples/kimi-k2.5"
MINI = "tests/rules/projects/mini-sglang"
SHOW = ("engines", "show", f"sglang@{MINI}", "--num-layers", "61")


def validate(document: object, schema: str) -> None:
    """Raises where the document is not what schemas/NAME says."""
    contents = json.loads((REPOSITORY / "schemas" / schema).read_text("utf-8"))
    jsonschema.validators.validator_for(contents)(contents).validate(document)


@pytest.fixture
def guessing(tmp_path: Path) -> tuple[str, ...]:
    """A scan with one warning and nothing graver: a draft without ids on the small engine."""
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLMEagle3"]}')
    target = ("--num-layers", "61", "--target-class", "LlamaForCausalLM")
    return ("scan", "--draft", str(tmp_path), *target, "--serving", f"sglang@{MINI}")


# --- scan ----------------------------------------------------------------------------------------------------------


def test_json_stands_alone_on_standard_output(run: Callable[..., Any], tmp_path: Path) -> None:
    """The document is all there is on standard output; what was left open is a note on standard error."""
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft/config.json").write_text('{"architectures": ["LlamaForCausalLMEagle3"]}')
    outcome = run("scan", "--output-format", "json", cwd=tmp_path)
    document = json.loads(outcome.stdout)
    assert [finding["code"] for finding in document["findings"]] == ["CAP001"]
    assert document["tool"] == {"name": "eaglelint", "version": eaglelint.__version__}
    assert outcome.stderr.splitlines() == [
        "note: draft/config.json: no target's config was found beside it. Name it with --target."
    ]
    validate(document, "report.schema.json")


def test_concise_is_one_line_per_finding(run: Callable[..., Any], tmp_path: Path) -> None:
    """Each finding is ``path:line:column: severity[CODE] message``, and nothing else is printed."""
    (tmp_path / "config.json").write_text(
        '{"architectures": ["LlamaForCausalLMEagle3"],\n'
        ' "eagle_config": {"eagle_aux_hidden_state_layer_ids": [58, 30, 60]}}\n'
    )
    words = ("scan", "--draft", tmp_path, "--num-layers", 61, "--target-class", "LlamaForCausalLM")
    words = (*words, "--serving", f"sglang@{MINI}", "--trained-by", "boundary")
    document = json.loads(run(*words, "--output-format", "json").stdout)
    outcome = run(*words, "--output-format", "concise")
    lines = outcome.stdout.splitlines()
    assert len(lines) == len(document["findings"]) > 1
    for line, finding in zip(lines, document["findings"], strict=True):
        start = finding["location"]["start"]
        where = f"{finding['location']['path']}:{start['line']}:{start['column']}"
        assert line == f"{where}: {finding['severity']}[{finding['code']}] {finding['message']}"


@pytest.mark.parametrize(("level", "code"), [(None, 0), ("error", 0), ("warning", 1), ("note", 1)])
def test_fail_on(run: Callable[..., Any], guessing: tuple[str, ...], level: str | None, code: int) -> None:
    """A warning makes the exit code 1 from --fail-on warning on; errors alone do if nothing is said."""
    outcome = run(*guessing, *(("--fail-on", level) if level else ()), "--output-format", "json")
    assert [finding["severity"] for finding in json.loads(outcome.stdout)["findings"]] == ["warning"]
    assert outcome.code == code


@pytest.mark.parametrize("level", ["error", "warning", "note"])
def test_an_error_fails_on_every_level(run: Callable[..., Any], level: str) -> None:
    """No --fail-on lets an error pass."""
    assert run("scan", EXAMPLE, "--fail-on", level).code == 1


def test_a_flag_is_stronger_than_the_settings(
    run: Callable[..., Any], guessing: tuple[str, ...], tmp_path: Path
) -> None:
    """``fail-on`` of eaglelint.toml holds until --fail-on says otherwise."""
    (tmp_path / "eaglelint.toml").write_text('fail-on = "warning"\n')
    words = [word.replace(MINI, str(REPOSITORY / MINI)) for word in guessing]
    assert run(*words, cwd=tmp_path).code == 1
    assert run(*words, "--fail-on", "error", cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        ((), ["CAP002"]),
        (("--select", "CAP002"), ["CAP002"]),
        (("--select", "boundary-mismatch"), ["CAP002"]),
        (("--select", "CAP"), ["CAP002"]),
        (("--select", "CFG"), []),
        (("--select", "CFG", "--select", "CAP002"), ["CAP002"]),
        (("--ignore", "CAP002"), []),
        (("--ignore", "CFG"), ["CAP002"]),
        (("--select", "CAP", "--ignore", "boundary-mismatch"), []),
    ],
)
def test_select_and_ignore(run: Callable[..., Any], words: tuple[str, ...], codes: list[str]) -> None:
    """Rules are chosen by code, name or family, each flag may be repeated, and --ignore is the stronger."""
    outcome = run("scan", EXAMPLE, "--output-format", "json", *words)
    assert [finding["code"] for finding in json.loads(outcome.stdout)["findings"]] == codes
    assert outcome.code == bool(codes)


@pytest.mark.parametrize("words", [("scan", EXAMPLE), ("wiring", EXAMPLE), SHOW])
def test_no_progress_in_a_pipe(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Standard error stays empty where it is no terminal, however long a scan takes."""
    monkeypatch.setattr(eaglelint.cli.progress, "_DELAY", 0)
    outcome = run(*words)
    assert outcome.stdout != ""
    assert outcome.stderr == ""
    assert "\x1b" not in outcome.stdout


def test_nothing_to_check(run: Callable[..., Any], tmp_path: Path) -> None:
    """An empty directory is exit code 0, and standard error says that nothing was looked at."""
    outcome = run("scan", tmp_path)
    assert outcome.code == 0
    assert outcome.stderr.startswith("Nothing to check")


# --- the other commands --------------------------------------------------------------------------------------------


def test_version(run: Callable[..., Any]) -> None:
    """The version is one line, ``eaglelint X``, from the flag, its short form and the module."""
    line = f"eaglelint {eaglelint.__version__}\n"
    assert re.fullmatch(r"eaglelint \d+(\.\w+)+\n", line)
    assert [run(flag).stdout for flag in ("--version", "-V")] == [line, line]
    done = subprocess.run(
        [sys.executable, "-m", "eaglelint", "--version"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == (line, "")


def test_rules(run: Callable[..., Any]) -> None:
    """Every rule is one line that begins with its code and names it."""
    outcome = run("rules")
    rows = [(line.split()[:3]) for line in outcome.stdout.splitlines()]
    assert rows == [[rule.code, rule.name, rule.severity] for rule in all_rules()]
    assert {"CAP001", "CAP002", "CAP003", "CAP004", "CFG001"} <= {row[0] for row in rows}


def test_rules_as_json(run: Callable[..., Any]) -> None:
    """The same list as a document."""
    document = json.loads(run("rules", "--format", "json").stdout)
    assert document["schema_version"] == 1
    assert document["rules"] == [
        {"code": rule.code, "name": rule.name, "severity": rule.severity, "summary": rule.summary}
        for rule in all_rules()
    ]


@pytest.mark.parametrize("word", ["CAP002", "cap002", "boundary-mismatch"])
def test_explain(run: Callable[..., Any], word: str) -> None:
    """A rule's page is found by its code, in any case, and by its name; in a pipe it is plain Markdown."""
    outcome = run("explain", word)
    page = (REPOSITORY / "rules/capture/boundary_mismatch.md").read_text("utf-8")
    assert (outcome.code, outcome.stdout.strip()) == (0, page.strip())
    assert page.startswith("# boundary-mismatch (CAP002)")


def test_wiring_as_json(run: Callable[..., Any]) -> None:
    """Both ends of the example, as schemas/wiring.schema.json describes them; a mismatch is not its business."""
    outcome = run("wiring", EXAMPLE, "--format", "json")
    document = json.loads(outcome.stdout)
    validate(document, "wiring.schema.json")
    assert [(wiring["party"], wiring["slots"]) for wiring in document["wirings"]] == [
        ("training", ["h[3]", "h[31]", "h[59]"]),
        ("serving", ["h[0]", "h[3]", "h[31]"]),
    ]
    assert outcome.code == 0


@pytest.mark.parametrize(
    ("convention", "slots"), [("layer-output", ["h[3]", "h[31]", "h[59]"]), ("boundary", ["h[2]", "h[30]", "h[58]"])]
)
def test_declared_training(run: Callable[..., Any], tmp_path: Path, convention: str, slots: list[str]) -> None:
    """--trained-by layer-output adds one to each id of the config; boundary takes it as it stands."""
    (tmp_path / "config.json").write_text(
        '{"architectures": ["LlamaForCausalLMEagle3"], "eagle_aux_hidden_state_layer_ids": [2, 30, 58]}'
    )
    outcome = run(*("wiring", "--draft", tmp_path, "--num-layers", 61, "--trained-by", convention, "--format", "json"))
    document = json.loads(outcome.stdout)
    validate(document, "wiring.schema.json")
    assert [(wiring["party"], wiring["slots"]) for wiring in document["wirings"]] == [("training", slots)]


def test_an_engine_with_given_ids(run: Callable[..., Any]) -> None:
    """The small engine adds one to each id: 2, 30 and 58 are h[3], h[31] and h[59], and it is proven."""
    outcome = run(*SHOW, "--layer-ids", "2,30,58", "--format", "json")
    document = json.loads(outcome.stdout)
    validate(document, "wiring.schema.json")
    (wiring,) = document["wirings"]
    assert (wiring["target_class"], wiring["status"]) == ("LlamaForCausalLM", "exact")
    assert wiring["slots"] == ["h[3]", "h[31]", "h[59]"]
    assert wiring["layer_ids"] == [2, 30, 58]


@pytest.mark.parametrize("words", [(), ("--layer-ids", "default"), ("--target-class", "LlamaForCausalLM")])
def test_an_engine_with_its_own_ids(run: Callable[..., Any], words: tuple[str, ...]) -> None:
    """Without ids the engine's own list is shown, one line for each class."""
    outcome = run(*SHOW, *words)
    assert [line.split(maxsplit=2) for line in outcome.stdout.splitlines()] == [
        ["LlamaForCausalLM", "exact", "h[2] ⊕ h[30] ⊕ h[58]"]
    ]


def test_engines(run: Callable[..., Any]) -> None:
    """Each known engine has a line that says how it is named, besides those of its profiles and of what was read."""
    printed = run("engines", "list").stdout.splitlines()
    lines = [line for line in printed if "==" not in line and not line.startswith(" ")]
    assert [line.split(":")[0] for line in lines] == ["lmdeploy", "sglang", "tensorrt-llm", "transformers", "vllm"]
    assert all(f"{line.split(':')[0]}@PATH" in line for line in lines)


def test_several_formats_in_one_run(run: Callable[..., Any], tmp_path: Path) -> None:
    """One scan, three documents: two files and standard output, which holds its own alone."""
    sarif, junit = tmp_path / "a b.sarif", tmp_path / "junit.xml"
    words = ("--output-format", f"sarif:{sarif}", "--output-format", "concise", "--output-format", f"junit:{junit}")
    outcome = run("scan", "examples/kimi-k2.5", *words)
    assert (outcome.code, outcome.stdout.count("\n")) == (1, 1)
    assert json.loads(sarif.read_text("utf-8"))["runs"][0]["results"][0]["ruleId"] == "CAP002"
    assert 'failures="1"' in junit.read_text("utf-8")


def test_output_file(run: Callable[..., Any], tmp_path: Path) -> None:
    """The document goes to the file and nothing to standard output."""
    outcome = run("scan", "examples/kimi-k2.5", "--output-format", "json", "--output-file", tmp_path / "o.json")
    assert (outcome.code, outcome.stdout) == (1, "")
    assert [f["code"] for f in json.loads((tmp_path / "o.json").read_text("utf-8"))["findings"]] == ["CAP002"]
