"""``wiring --fix``: the one edit that makes a named engine serve a draft what it was trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eaglelint.exceptions import WrongUsage
from eaglelint.fix import Fixed, make_edits
from eaglelint.project.pipelines import PipelineInput
from eaglelint.registry import select_rules
from eaglelint.rule import Facts
from eaglelint.scan import Options, ScanResult, scan_pipelines
from eaglelint.wiring import compare

__all__ = ["Mended", "mend"]

_RULES = ("CAP001", "CAP002", "CFG001")  # no ids, others, ids in another place: each proposes the list that mends


@dataclass(frozen=True, slots=True)
class Mended:
    """The edit, a sentence on what it does or why there is none, and whether the draft is then served it."""

    fixed: Fixed
    sentence: str
    serves: bool


def mend(pipelines: tuple[PipelineInput, ...], options: Options, progress: Callable[[str], None]) -> Mended:
    """Make the edit in memory.

    Asked for by name, it needs no ``--unsafe-fixes``: that it serves just what was trained was derived.

    Raises:
        WrongUsage: Not one draft and one engine are named, or what was trained is not known or only likely.
    """
    if len(pipelines) != 1 or len(pipelines[0].serving) != 1 or pipelines[0].usual_serving:
        raise WrongUsage(
            "--fix writes the list that one engine needs: name one draft with --draft and one engine with --serving."
        )
    scanned: list[ScanResult] = []

    def scan() -> ScanResult:
        scanned.append(scan_pipelines(pipelines, select_rules(_RULES, ()), options, progress))
        return scanned[-1]

    scan()
    if not scanned[0].facts:
        return Mended(Fixed((), scanned[0]), "nothing was mended", False)
    facts = scanned[0].facts[0]
    _refuse(facts)
    served, training = facts.servings[0].wiring, facts.training
    assert training is not None and facts.draft is not None
    if not compare(training, served):
        return Mended(Fixed((), scanned[0]), f"{served.name} serves what was trained already", True)
    fixed = make_edits(scan, unsafe=True)
    if not fixed.changes:
        option = facts.servings[0].option
        told = "" if option is None else f"; give {option[0]} {list(option[1])}"
        return Mended(
            fixed, f"{served.name}: no list of ids in {facts.draft.path} makes it serve {training}{told}", False
        )
    sentence = f"{served.name} then serves {training}, as trained"
    if training.declared and not training.inferred:
        sentence += (
            f". {training.name.removeprefix('declared: ')} were those of the old list: leave --trained-by out now"
        )
    return Mended(fixed, sentence, True)


def _refuse(facts: Facts) -> None:
    training = facts.training
    if training is None or not training.slots or any(not slot.known for slot in training.slots):
        raise WrongUsage(
            "--fix needs to know what the draft was trained on: pass --trained-by, or the code with --training."
        )
    if training.inferred and training.status != "exact":
        raise WrongUsage(
            f"What the draft was trained on is only {training.name} ({training.conditions[0].text}). Say it with "
            "--trained-by, then --fix writes the list."
        )
    if not facts.servings:
        raise WrongUsage("--fix: this draft is served no captured states, so no list of ids mends it.")
