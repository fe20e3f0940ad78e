"""The flow: pipelines are read, both ends derived, the rules asked. A report shows what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglelint.artifacts.draft import DraftConfig, read_draft
from eaglelint.artifacts.target import TargetConfig, read_target
from eaglelint.beside import with_files
from eaglelint.deployment import parse_assumptions
from eaglelint.exceptions import EaglelintError, UnreadableInput, WrongUsage
from eaglelint.finding import Finding
from eaglelint.project.discovery import display_path
from eaglelint.project.pipelines import PipelineInput
from eaglelint.rule import Facts, Rule, Served
from eaglelint.serving_end import End, engine_of, judge, serve
from eaglelint.sharing import sharing_sources
from eaglelint.suppress import Suppressed
from eaglelint.traceable import with_trace, with_tree_trace
from eaglelint.training_end import trained_join, training_end, with_positions
from eaglelint.wiring import Wiring

# What reads dumps and interprets source is imported where it starts: a scan of files alone does without.
if TYPE_CHECKING:
    from eaglelint.artifacts.dump import Dump
    from eaglelint.draft_class import DraftClass
    from eaglelint.draft_modules import DraftModules
    from eaglelint.survey.facts import EngineFacts

__all__ = [
    "Options",
    "Origin",
    "ScanResult",
    "check_engine_file",
    "gather",
    "scan_pipelines",
    "survey_engine",
]

Progress = Callable[[str], None]

# The kinds of draft that are fed captured states of the target.
CAPTURING_KINDS = ("eagle3", "peagle", "dflash", "domino", "dspark")


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for all pipelines of a scan."""

    num_layers: int | None = None
    target_class: str | None = None


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan found.

    Attributes:
        problems: Named files that could not be read or parsed; the rest was scanned.
        suppressed: Findings that comments or the settings silence.
        baselined: Findings that the baseline knows.
        facts: What the rules were asked about, for each pipeline.
        origins: Where each of the facts comes from, in their order.
        engines: The trees that were looked through without a draft, ``sglang@PATH``.
    """

    findings: tuple[Finding, ...] = ()
    wirings: tuple[Wiring, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    baselined: tuple[Finding, ...] = ()
    facts: tuple[Facts, ...] = ()
    origins: tuple[Origin, ...] = ()
    engines: tuple[str, ...] = ()

    def __add__(self, other: ScanResult) -> ScanResult:
        return ScanResult(
            self.findings + other.findings,
            self.wirings + other.wirings,
            self.notes + other.notes,
            self.problems + other.problems,
            self.suppressed + other.suppressed,
            self.baselined + other.baselined,
            self.facts + other.facts,
            self.origins + other.origins,
            self.engines + other.engines,
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """What a pipeline's facts were read from; ``ends`` are in the order of ``Facts.servings``."""

    pipeline: PipelineInput
    ends: tuple[End, ...] = ()


def scan_pipelines(
    pipelines: Sequence[PipelineInput], rules: Sequence[Rule], options: Options, progress: Progress = lambda _: None
) -> ScanResult:
    """Check each pipeline by every rule; one that cannot be read is a problem, and the others are still checked."""
    with sharing_sources():
        result = sum((_scan(pipeline, rules, options, progress) for pipeline in pipelines), ScanResult())
    return replace(result, findings=tuple(sorted(set(result.findings), key=_order)))


def _scan(pipeline: PipelineInput, rules: Sequence[Rule], options: Options, progress: Progress) -> ScanResult:
    progress(f"reading {pipeline.name}")
    try:
        facts, problems, notes, ends = gather(pipeline, options, progress)
    except EaglelintError as error:
        return ScanResult(notes=pipeline.notes, problems=(str(error),))
    served = [served.wiring for served in facts.servings]
    findings = tuple(with_trace(finding, served) for rule in rules for finding in rule.check(rule, facts))
    wirings = (*((facts.training,) if facts.training else ()), *served)
    return ScanResult(
        findings, wirings, pipeline.notes + notes, problems, facts=(facts,), origins=(Origin(pipeline, ends),)
    )


def gather(
    pipeline: PipelineInput, options: Options, progress: Progress = lambda _: None
) -> tuple[Facts, tuple[str, ...], tuple[str, ...], tuple[End, ...]]:
    """Read a pipeline's artifacts and derive the wirings at both ends.

    Returns:
        The facts; sentences on files that could not be read; notes; what the servings were derived from.

    Raises:
        UnreadableInput: The draft, the target or an engine cannot be read.
        WrongUsage: Something that is needed was not said.
    """
    draft = read_draft(pipeline.draft, display_path(pipeline.draft))
    target = _target(pipeline, options)
    kind = _kind(pipeline, draft)
    notes: tuple[str, ...] = ()
    if pipeline.guessed_target and target is not None and not pipeline.serving and _is_another(draft, target):
        notes = (
            f"{target.path} lies nearest to {draft.path} and has another width and vocabulary: it was not taken for "
            "its target. Name the target with --target.",
        )
        pipeline, target = replace(pipeline, target=None), None
    deployment = parse_assumptions(pipeline.assume)
    if pipeline.serving and target is None:
        raise WrongUsage(
            f"{draft.path}: no target config is known for this draft, and what it is served depends on the target's "
            "layers and class. Pass --target PATH (a config.json or its directory), or --num-layers N and "
            "--target-class CLASS."
        )
    ends: list[End] = []
    if pipeline.serving and kind not in CAPTURING_KINDS:
        notes += (_no_states(draft, kind),)
    elif pipeline.serving:
        from eaglelint.serving import open_serving

        for spec in pipeline.serving:
            assert target is not None
            progress(f"deriving what {spec} serves")
            try:
                ends.append(
                    serve(open_serving(spec, root=Path.cwd()), kind, draft, target, options.target_class, deployment)
                )
            except UnreadableInput as error:
                if not pipeline.usual_serving:
                    raise
                notes += (str(error),)
    missing = tuple(
        f"{display_path(path)} does not exist. Check --training." for path in pipeline.training if not path.exists()
    )
    dump = _dump(pipeline.dump)
    trained = training_end(pipeline, draft, target, dump, ends, kind, progress)
    training, problems = trained.wiring, missing + trained.problems + (dump.problems if dump is not None else ())
    notes += trained.notes + (dump.notes if dump is not None else ())
    for end in ends:
        problems += end.source.problems
    servings = tuple(judge(end.source, end.request, end.wiring, draft, training) for end in ends)
    engines = tuple(facts for end in ends if (facts := engine_of(end)) is not None)
    found = Facts(
        draft,
        target,
        training,
        servings,
        engines,
        _elsewhere(pipeline, options, draft, kind, target),
        _registered_elsewhere(pipeline, draft, kind),
        dropped=trained.dropped,
        weight_maps=trained.weights,
        practice=trained.practice,
        dump=dump,
    )
    found, broken, more = with_files(
        found, pipeline.draft, pipeline.target, pipeline.launch, fine_tuned_from=pipeline.fine_tuned_from
    )
    if pipeline.training:
        found = with_positions(found, pipeline)
    classes = _draft_classes(pipeline, kind, found)
    joined = any(cls.join is not None for cls in classes) and bool(pipeline.training)
    found = replace(
        found,
        draft_classes=classes,
        trained_join=trained_join(pipeline) if joined else None,
        built=_built(pipeline, found, kind),
    )
    progress("asking the rules")
    return found, problems + broken, notes + more, tuple(ends)


def _elsewhere(
    pipeline: PipelineInput, options: Options, draft: DraftConfig, kind: str, target: TargetConfig | None
) -> tuple[Served, ...]:
    """What the newest releases would serve, where no engine and no other kind of server was asked for."""
    if pipeline.serving or pipeline.assume or kind not in CAPTURING_KINDS or not draft.data:
        return ()
    from eaglelint.portability import served_elsewhere

    return served_elsewhere(draft, kind, target, options.target_class)


def _registered_elsewhere(pipeline: PipelineInput, draft: DraftConfig, kind: str) -> tuple[tuple[str, bool], ...]:
    """Which of the newest releases register the draft's class, where no engine was asked for."""
    if pipeline.serving or pipeline.assume or kind not in CAPTURING_KINDS or not draft.data:
        return ()
    from eaglelint.portability import registered_elsewhere

    return registered_elsewhere(draft)


def _dump(path: Path | None) -> Dump | None:
    if path is None:
        return None
    from eaglelint.artifacts.dump import read_dump

    return read_dump(path, display_path(path))


def _is_another(draft: DraftConfig, target: TargetConfig) -> bool:
    """Whether a draft was plainly made for another target than this one: neither width nor vocabulary is the same."""
    width, tokens = (
        draft.text_node("target_hidden_size") or draft.text_node("hidden_size"),
        draft.text_node("vocab_size"),
    )
    pairs = ((width, target.text_node("hidden_size")), (tokens, target.text_node("vocab_size")))
    return all(own is not None and other is not None and own.value != other.value for own, other in pairs)


def _draft_classes(pipeline: PipelineInput, kind: str, facts: Facts) -> tuple[DraftClass, ...]:
    """What each engine makes of the draft's class, as its source or its profile tells."""
    draft = facts.draft
    if not pipeline.serving or draft is None:
        return ()
    from eaglelint.draft_class import draft_class, recalled_class
    from eaglelint.serving import EngineHandle, ProfileHandle, open_serving

    rotary = facts.trained_rotary is not None
    classes: list[DraftClass | None] = []
    for end in (open_serving(spec, root=Path.cwd()) for spec in pipeline.serving):
        if isinstance(end, EngineHandle):
            classes.append(draft_class(end, draft, facts.target, facts.checkpoint, kind=kind, rotary=rotary))
        elif isinstance(end, ProfileHandle):
            classes.append(recalled_class(end.profile, draft))
    return tuple(found for found in classes if found is not None)


def _built(pipeline: PipelineInput, facts: Facts, kind: str) -> tuple[DraftModules, ...]:
    """What the draft's class in each engine builds, beside a checkpoint that is all there."""
    draft, target, checkpoint = facts.draft, facts.target, facts.checkpoint
    if draft is None or target is None or checkpoint is None or not checkpoint.complete or not pipeline.serving:
        return ()
    from eaglelint.draft_modules import draft_modules, modules_of
    from eaglelint.recalled_modules import recalled_modules
    from eaglelint.serving import EngineHandle, ProfileHandle, open_serving

    names = modules_of(checkpoint)
    found: list[DraftModules | None] = []
    for end in (open_serving(spec, root=Path.cwd()) for spec in pipeline.serving):
        if isinstance(end, EngineHandle):
            found.append(draft_modules(end, draft, target, kind, names))
        elif isinstance(end, ProfileHandle):
            found.append(recalled_modules(end.profile, draft, kind, names))
    return tuple(modules for modules in found if modules is not None)


def _kind(pipeline: PipelineInput, draft: DraftConfig) -> str:
    if pipeline.draft_kind is None:
        return draft.kind
    known = (*CAPTURING_KINDS, "eagle", "mtp")
    if pipeline.draft_kind not in known:
        raise WrongUsage(f"--draft-kind {pipeline.draft_kind}: known are {', '.join(known)}.")
    return pipeline.draft_kind


def _no_states(draft: DraftConfig, kind: str) -> str:
    if kind == "unknown":
        return f"{draft.path}: what kind of draft this is cannot be told from its config. Say it with --draft-kind."
    return f"{draft.path}: {kind} drafts are fed the target's last state and no captured ones: nothing to compare."


def _target(pipeline: PipelineInput, options: Options) -> TargetConfig | None:
    target = read_target(pipeline.target, display_path(pipeline.target)) if pipeline.target is not None else None
    if options.num_layers is not None:
        architectures = (options.target_class,) if options.target_class else (target.architectures if target else ())
        return TargetConfig.synthetic(options.num_layers, architectures)
    return target


# --- an engine's own tree ------------------------------------------------------------------------------------------


def survey_engine(
    spec: str, rules: Sequence[Rule], progress: Progress = lambda _: None, *, processes: int | None = None
) -> ScanResult:
    """Check every target class of an engine's own tree, each without ids and at its ends, for few layers."""
    from eaglelint.survey.engine import survey

    surveyed = survey(spec, processes=processes)
    progress("asking the rules")
    facts = surveyed.facts
    wirings = tuple(cls.default.wiring for cls in facts.classes if cls.default is not None)
    counted = ", ".join(
        f"{sum(w.status == status for w in wirings)} {status}" for status in ("exact", "conditional", "unknown")
    )
    classes = "1 target class" if len(wirings) == 1 else f"{len(wirings)} target classes"
    note = f"{facts.label}: {classes} with a capture, default wiring {counted}"
    return ScanResult(_about(facts, rules), wirings, (note,), surveyed.problems, engines=(spec,))


def check_engine_file(spec: str, path: Path, rules: Sequence[Rule]) -> ScanResult:
    """What ``survey_engine`` finds in one file of the tree, without running the target classes of others."""
    from eaglelint.survey.work import survey_file

    findings = _about(survey_file(spec, path), rules)
    shown = display_path(path)
    return ScanResult(tuple(finding for finding in findings if finding.span.path == shown))


def _about(facts: EngineFacts, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    nobody = Facts(None, None, None, (), engines=(facts,))
    found = {with_tree_trace(finding, facts) for rule in rules for finding in rule.check(rule, nobody)}
    return tuple(sorted(found, key=_order))


def _order(finding: Finding) -> tuple[Any, ...]:
    return (finding.span.path, finding.span.start, finding.code, finding.message)
