"""The flow: pipelines are read, both ends derived, the rules asked. A report shows what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglelint.artifacts.draft import DraftConfig, read_draft
from eaglelint.artifacts.draft_kinds import IDS_KEYS
from eaglelint.artifacts.target import TargetConfig, read_target
from eaglelint.beside import with_files
from eaglelint.deployment import Deployment, parse_assumptions
from eaglelint.exceptions import EaglelintError, UnreadableInput, WrongUsage
from eaglelint.finding import Finding
from eaglelint.project.discovery import display_path
from eaglelint.project.pipelines import PipelineInput
from eaglelint.rule import Facts, Rule, Served
from eaglelint.sharing import sharing_sources
from eaglelint.suppress import Suppressed
from eaglelint.traceable import with_trace, with_tree_trace
from eaglelint.wiring import Condition, Slot, Wiring

# What reads dumps and interprets source is imported where it starts: a scan of files alone does without.
if TYPE_CHECKING:
    from eaglelint.artifacts.dump import Dump
    from eaglelint.derive import ServingRequest
    from eaglelint.draft_class import DraftClass
    from eaglelint.draft_modules import DraftModules
    from eaglelint.exported import Dropped
    from eaglelint.practice import Practice
    from eaglelint.serving import ServingEnd
    from eaglelint.survey.facts import EngineFacts, Join, Run

__all__ = [
    "End",
    "Options",
    "Origin",
    "ScanResult",
    "check_engine_file",
    "gather",
    "judge",
    "scan_pipelines",
    "survey_engine",
]

Progress = Callable[[str], None]

# The kinds of draft that are fed captured states of the target.
CAPTURING_KINDS = ("eagle3", "peagle", "dflash", "domino", "dspark")
_DECLARED = {"layer-output": 1, "boundary": 0}


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
class End:
    """One engine's wiring, and what it takes to derive another, or to run its code."""

    source: ServingEnd
    request: ServingRequest
    wiring: Wiring
    run: Run | None  # where source was interpreted


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
                ends.append(_serve(open_serving(spec, root=Path.cwd()), kind, draft, target, options, deployment))
            except UnreadableInput as error:
                if not pipeline.usual_serving:
                    raise
                notes += (str(error),)
    missing = tuple(
        f"{display_path(path)} does not exist. Check --training." for path in pipeline.training if not path.exists()
    )
    dump = _dump(pipeline.dump)
    trained = _training(pipeline, draft, target, dump, ends, kind, progress)
    training, problems = trained.wiring, missing + trained.problems + (dump.problems if dump is not None else ())
    notes += trained.notes + (dump.notes if dump is not None else ())
    for end in ends:
        problems += end.source.problems
    servings = tuple(judge(end.source, end.request, end.wiring, draft, training) for end in ends)
    engines = tuple(facts for end in ends if (facts := _engine(end)) is not None)
    found = Facts(
        draft,
        target,
        training,
        servings,
        engines,
        dropped=trained.dropped,
        practice=trained.practice,
        dump=dump,
    )
    found, broken, more = with_files(
        found, pipeline.draft, pipeline.target, pipeline.launch, fine_tuned_from=pipeline.fine_tuned_from
    )
    if pipeline.training:
        found = _with_positions(found, pipeline)
    classes = _draft_classes(pipeline, kind, found)
    joined = any(cls.join is not None for cls in classes) and bool(pipeline.training)
    found = replace(
        found,
        draft_classes=classes,
        trained_join=_trained_join(pipeline) if joined else None,
        built=_built(pipeline, found, kind),
    )
    progress("asking the rules")
    return found, problems + broken, notes + more, tuple(ends)


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
    """What each engine whose source is at hand makes of the draft's class."""
    if not pipeline.serving or facts.draft is None:
        return ()
    from eaglelint.draft_class import draft_class
    from eaglelint.serving import EngineHandle, open_serving

    ends = (open_serving(spec, root=Path.cwd()) for spec in pipeline.serving)
    rotary = facts.trained_rotary is not None
    classes = (
        draft_class(end, facts.draft, facts.target, facts.checkpoint, kind=kind, rotary=rotary)
        for end in ends
        if isinstance(end, EngineHandle)
    )
    return tuple(found for found in classes if found is not None)


def _built(pipeline: PipelineInput, facts: Facts, kind: str) -> tuple[DraftModules, ...]:
    """What the draft's class in each engine whose source is at hand builds, beside a checkpoint that is all there."""
    draft, target, checkpoint = facts.draft, facts.target, facts.checkpoint
    if draft is None or target is None or checkpoint is None or not checkpoint.complete or not pipeline.serving:
        return ()
    from eaglelint.draft_modules import draft_modules, modules_of
    from eaglelint.serving import EngineHandle, open_serving

    ends = (open_serving(spec, root=Path.cwd()) for spec in pipeline.serving)
    names = modules_of(checkpoint)
    found = (draft_modules(end, draft, target, kind, names) for end in ends if isinstance(end, EngineHandle))
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


# --- the training end ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Trained:
    """What is known of the training end."""

    wiring: Wiring | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    practice: Practice | None = None


def _training(
    pipeline: PipelineInput,
    draft: DraftConfig,
    target: TargetConfig | None,
    dump: Dump | None,
    ends: Sequence[End],
    kind: str,
    progress: Progress,
) -> _Trained:
    if pipeline.trained_by in _DECLARED:
        from eaglelint.provenance import contradicted_convention

        note = contradicted_convention(draft, pipeline.trained_by, None if target is None else target.num_layers)
        declared = _declared(pipeline.trained_by, draft, target, [end.wiring for end in ends])
        return _Trained(declared, notes=(note,) if note else ())
    if pipeline.trained_by is not None:
        progress(f"deriving what {pipeline.trained_by} trains")
        return _by_stack(pipeline, draft, target, ends, kind)
    code, notes, problems = _without_configs(pipeline.training)
    if not code:
        from eaglelint.provenance import inferred_training

        inferred = inferred_training(draft, None if target is None else target.num_layers)
        return _Trained(inferred, problems, notes)
    if target is None:
        return _Trained(None, problems, notes)
    from eaglelint.trainers import derive_training

    progress("deriving what the draft was trained on")
    sample = None if dump is None else dump.states(target)
    result = derive_training(code, num_layers=target.num_layers, relative_to=Path.cwd(), sample=sample)
    return _Trained(result.wiring, problems + result.problems, notes, practice=result.practice)


def _without_configs(training: tuple[Path, ...]) -> tuple[tuple[Path, ...], tuple[str, ...], tuple[str, ...]]:
    """The training code, and of each run's config among it a sentence: whose it is, or that it cannot be read."""
    named = [path for path in training if path.is_file() and path.suffix.lower() != ".py"]
    if not named:
        return training, (), ()
    from eaglelint.trainers.recipe import is_recipe
    from eaglelint.trainers.trained import stack_of

    notes: list[str] = []
    problems: list[str] = []
    configs = [path for path in named if is_recipe(path)]
    for path in configs:
        name = display_path(path)
        try:
            stack = stack_of(path, name)
        except ValueError as error:
            problems.append(str(error))
            continue
        notes.append(
            f"{name} is the config of a run of {stack}: it says something with that stack's source alone. Pass "
            f"--trained-by {stack}@PATH."
            if stack is not None
            else f"{name} is no Python, and no training stack's config by its keys: not read. Name the stack with "
            "--trained-by."
        )
    return tuple(path for path in training if path not in configs), tuple(notes), tuple(problems)


def _by_stack(
    pipeline: PipelineInput, draft: DraftConfig, target: TargetConfig | None, ends: Sequence[End], kind: str
) -> _Trained:
    """What a public training stack trains, by its own source and the run's config."""
    from eaglelint.serving import open_serving
    from eaglelint.trainers.trained import trained_by

    assert pipeline.trained_by is not None
    captured_by = [open_serving(spec, root=Path.cwd()) for spec in pipeline.captured_by]
    found = trained_by(
        pipeline.trained_by,
        draft,
        target,
        pipeline.training,
        captured_by or [end.source for end in ends],
        kind=kind,
        named=bool(captured_by),
        display={path: display_path(path) for path in pipeline.training},
    )
    by_stack = _Trained(found.wiring, found.problems, found.notes, found.dropped)
    code = tuple(path for path in pipeline.training if path.suffix.lower() == ".py" and path.is_file())
    return by_stack if not code or target is None else _with_own_code(by_stack, code, target)


def _with_own_code(by_stack: _Trained, code: tuple[Path, ...], target: TargetConfig) -> _Trained:
    """A stack's run with scripts of the user's own: what they capture and feed counts, where it can be told."""
    from eaglelint.trainers import derive_training

    own = derive_training(code, num_layers=target.num_layers, relative_to=Path.cwd())
    names = " and ".join(display_path(path) for path in code)
    wiring = by_stack.wiring
    if own.wiring is not None and own.wiring.slots and all(slot.known for slot in own.wiring.slots):
        wiring, note = own.wiring, f"{names}: what it captures counts, and not what the stack does by itself."
    else:
        why = own.wiring.reason if own.wiring is not None and own.wiring.reason else "it captures nothing"
        note = f"{names} does not tell what was trained on ({why}): the stack's own way is taken."
        if wiring is not None:
            status = "conditional" if wiring.status == "exact" else wiring.status
            condition = Condition(f"if {names}, which could not be followed, captures as the stack itself does")
            wiring = replace(wiring, status=status, conditions=(*wiring.conditions, condition))
    problems = by_stack.problems + own.problems
    return _Trained(wiring, problems, (*by_stack.notes, note), by_stack.dropped, own.practice)


def _training_code(pipeline: PipelineInput) -> tuple[Path, ...]:
    from eaglelint.trainers.recipe import is_recipe

    return tuple(path for path in pipeline.training if not is_recipe(path))


def _trained_join(pipeline: PipelineInput) -> Join | None:
    from eaglelint.trainers.joined import trained_join

    return trained_join(_training_code(pipeline), Path.cwd())


def _with_positions(facts: Facts, pipeline: PipelineInput) -> Facts:
    from eaglelint.trainers.positions import trained_rotary, uncounted_positions

    code = _training_code(pipeline)
    return replace(
        facts,
        trained_rotary=trained_rotary(code, Path.cwd()),
        uncounted_positions=uncounted_positions(code, Path.cwd()),
    )


def _declared(
    trained_by: str, draft: DraftConfig, target: TargetConfig | None, served: Sequence[Wiring]
) -> Wiring | None:
    """The wiring that the config's ids mean under a convention that the user declares.

    Of several lists it is the one that an engine reads: others are there for another consumer's convention.
    """
    if not draft.layer_ids:
        return None
    read = {wiring.ids_from for wiring in served}
    chosen = next((found for found in draft.layer_ids if found.key_path in read), draft.layer_ids[0])
    return Wiring(
        party="training",
        name=f"declared: {trained_by} ids",
        slots=tuple(Slot("stream", value + _DECLARED[trained_by]) for value in chosen.values),
        status="exact",
        draft_kind=draft.kind,
        layer_ids=chosen.values,
        num_layers=target.num_layers if target is not None else None,
        ids_from=chosen.key_path,
        declared=True,
    )


# --- the serving end -----------------------------------------------------------------------------------------------


def _serve(
    source: ServingEnd,
    kind: str,
    draft: DraftConfig,
    target: TargetConfig,
    options: Options,
    deployment: Deployment,
) -> End:
    from eaglelint.derive import ServingRequest
    from eaglelint.serving import EngineHandle

    binding = _class_of(source, target, options)
    request = ServingRequest(binding, target.num_layers, target.data, kind, draft.data, deployment=deployment)
    run = source.run(request) if isinstance(source, EngineHandle) else None
    wiring = source.wiring(request) if run is None else run.wiring
    if isinstance(source, EngineHandle):
        wiring = replace(wiring, fc=source.projection(request, wiring))
    if wiring.layer_ids == "default":
        wiring = replace(wiring, ignored=tuple(found.key_path for found in draft.layer_ids))
    return End(source, request, wiring, run)


def _engine(end: End) -> EngineFacts | None:
    """What the engine's source says; of its target classes only the one in use, as it was run for the draft."""
    if end.run is None:
        return None
    from eaglelint.derive import definition
    from eaglelint.serving import EngineHandle
    from eaglelint.survey.classes import class_facts
    from eaglelint.survey.work import engine_facts

    assert isinstance(end.source, EngineHandle)
    source, engine = end.source.source, end.source.engine
    served = replace(class_facts(source, engine, definition(end.request)), served=replace(end.run, wiring=end.wiring))
    return engine_facts(end.source, (served,))


def judge(
    source: ServingEnd, request: ServingRequest, wiring: Wiring, draft: DraftConfig, training: Wiring | None
) -> Served:
    """What is to be known about one end besides its wiring: where it looks for ids, and those that mend it."""
    asked = draft.layer_ids or (training is not None and training.slots and training.slots != wiring.slots)
    looks_in = _places(source, request, draft) if wiring.layer_ids == "default" and asked else ()
    mended = _mended(source, request, wiring, training, looks_in)
    option = mended_option(source, request, wiring, training)
    return Served(wiring, looks_in, mended, _uncaptured(source, request, wiring), source.refusal(request), option)


def _class_of(source: ServingEnd, target: TargetConfig, options: Options) -> Any:
    names = (options.target_class,) if options.target_class else (*target.architectures, *target.text_architectures)
    for name in names:
        binding = source.target_class(name)
        if binding is not None:
            return binding
    if not names:
        raise WrongUsage(
            f"{target.path}: the target's config names no architecture. "
            "Say which class serves it with --target-class CLASS."
        )
    raise UnreadableInput(
        f"{source.label} {source.where} has no class {' or '.join(dict.fromkeys(names))}, "
        f"which {target.path} names. "
        "Check that this is the engine and release that serves the target, or name another class with --target-class."
    )


def _places(source: ServingEnd, request: ServingRequest, draft: DraftConfig) -> tuple[tuple[str, ...], ...]:
    """The key paths at which this engine finds ids, tried one by one with its own resolver."""
    parents: tuple[tuple[str, ...], ...] = ((), ("eagle_config",), ("dflash_config",))
    candidates = [(*parent, key) for parent in parents for key in IDS_KEYS]
    taken = {found.key_path for found in draft.layer_ids}
    return tuple(path for path in candidates if path not in taken and source.reads_ids_at(request, path))


def _mended(
    source: ServingEnd,
    request: ServingRequest,
    wiring: Wiring,
    training: Wiring | None,
    looks_in: tuple[tuple[str, ...], ...],
) -> tuple[int, ...] | None:
    """Ids with which this engine serves what was trained: proposed under both conventions, kept if derived so."""
    if training is None or wiring.slots == training.slots or not training.slots:
        return None
    boundaries = [slot.boundary for slot in training.slots if slot.form == "stream" and slot.boundary is not None]
    place = wiring.ids_from or (looks_in[0] if looks_in else None)
    if len(boundaries) != len(training.slots) or place is None or request.draft_data is None:
        return None
    for shift in (1, 0):
        ids = tuple(boundary - shift for boundary in boundaries)
        if ids == wiring.layer_ids:
            continue
        attempt = source.wiring(replace(request, draft_data=with_ids(request.draft_data, place, list(ids))))
        if attempt.slots == training.slots and attempt.status == wiring.status in ("exact", "conditional"):
            return ids
        if attempt.slots == training.slots and attempt.status == "exact":
            return ids
    return None


def mended_option(
    source: ServingEnd, request: ServingRequest, wiring: Wiring, training: Wiring | None
) -> tuple[str, tuple[int, ...]] | None:
    """The option of an engine that was read by hand, and the ids that make it serve what was trained."""
    from eaglelint.serving import ProfileHandle

    if training is None or not isinstance(source, ProfileHandle) or not source.profile.by_hand:
        return None
    mapping = next((mapping for mapping in source.profile.mappings if mapping.rule is not None), None)
    boundaries = [slot.boundary for slot in training.slots if slot.form == "stream" and slot.boundary is not None]
    if mapping is None or mapping.rule is None or not boundaries or wiring.slots == training.slots:
        return None
    for shift in (0, 1) if len(boundaries) == len(training.slots) else ():
        ids = tuple(boundary - shift for boundary in boundaries)
        if source.wiring(replace(request, draft_data=None, layer_ids=ids)).slots == training.slots:
            return mapping.rule.set_name, ids
    return None


def _uncaptured(source: ServingEnd, request: ServingRequest, wiring: Wiring) -> tuple[int, ...]:
    """Positions of ids that make no difference to what is served."""
    ids = wiring.layer_ids
    if not isinstance(ids, tuple) or not wiring.slots or len(wiring.slots) >= len(ids) or wiring.ids_from is None:
        return ()
    if request.draft_data is None or len(set(ids)) < len(ids):
        return ()
    lost = []
    for position in range(len(ids)):
        rest = [value for index, value in enumerate(ids) if index != position]
        without = source.wiring(replace(request, draft_data=with_ids(request.draft_data, wiring.ids_from, rest)))
        if without.slots == wiring.slots:
            lost.append(position)
    return tuple(lost)


def with_ids(data: dict[str, Any], place: tuple[str, ...], ids: list[int]) -> dict[str, Any]:
    """A config with these ids at that key path; the original is not changed."""
    key, *rest = place
    if not rest:
        return {**data, key: ids}
    section = data.get(key)
    return {**data, key: with_ids(section if isinstance(section, dict) else {}, tuple(rest), ids)}


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
