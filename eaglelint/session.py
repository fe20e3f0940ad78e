"""What flags and settings say together, and the scan of it: the same for every command and editor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eaglelint.baseline import Baseline, read_baseline
from eaglelint.cache.units import cache_directory, caching
from eaglelint.finding import Confidence, at_least
from eaglelint.project.discovery import Discovered, EngineRoot, discover
from eaglelint.project.pipelines import PipelineInput, assemble_pipelines
from eaglelint.project.settings import ProjectSettings, find_settings
from eaglelint.registry import select_rules
from eaglelint.rule import Rule
from eaglelint.scan import Options, ScanResult, check_engine_file, scan_pipelines, survey_engine
from eaglelint.suppress import silence, with_severities

__all__ = ["Inputs", "Session", "open_session"]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was named on the command line; what is left out is taken from the settings."""

    paths: Sequence[Path] = ()
    draft: Path | None = None
    target: Path | None = None
    training: Sequence[Path] = ()
    trained_by: str | None = None
    captured_by: Sequence[str] = ()
    serving: Sequence[str] = ()
    draft_kind: str | None = None
    launch: Path | None = None
    dump: Path | None = None
    fine_tuned_from: Path | None = None
    num_layers: int | None = None
    target_class: str | None = None
    assume: Sequence[str] = ()
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    min_confidence: Confidence | None = None
    baseline: Path | None = None
    force_exclude: bool = False
    cache: bool = True
    online: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """Pipelines and engines that are to be scanned, and what of the findings is reported.

    ``baseline`` names findings that are known and left out; ``cache`` is where results are kept. ``None``: there is
    none.
    """

    settings: ProjectSettings
    rules: tuple[Rule, ...]
    pipelines: tuple[PipelineInput, ...]
    discovered: Discovered | None
    options: Options
    min_confidence: Confidence
    baseline: Path | None
    cache: Path | None = None

    @property
    def root(self) -> Path:
        """The directory that the settings and the baseline speak of."""
        return self.settings.root or Path.cwd()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to scan."""
        return not self.pipelines and not (self.discovered and self.discovered.engine_roots)

    def scan(self, progress: Callable[[str], None] = lambda _: None) -> ScanResult:
        """Scan, and leave out what the settings, comments and the baseline silence.

        Raises:
            UnreadableInput: An input or the baseline cannot be read.
            WrongUsage: Something that is needed was not said.
        """
        known = read_baseline(self.baseline) if self.baseline is not None else Baseline({})
        result = ScanResult(notes=self.discovered.notes if self.discovered is not None else ())
        with caching(self.cache):
            if self.pipelines:
                result += scan_pipelines(self.pipelines, self.rules, self.options, progress)
            for root in self.discovered.engine_roots if self.discovered is not None and not self.pipelines else ():
                progress(f"surveying {root}")
                result += survey_engine(str(root), self.rules, progress)
        return self._reported(result, known)

    def scan_engine_file(self, root: EngineRoot, path: Path) -> ScanResult:
        """What ``scan`` in an engine's tree reports of one of its files."""
        known = read_baseline(self.baseline) if self.baseline is not None else Baseline({})
        with caching(self.cache):
            result = check_engine_file(str(root), path, self.rules)
        return self._reported(result, known)

    def _reported(self, result: ScanResult, known: Baseline) -> ScanResult:
        table = self.settings.settings
        findings = at_least(with_severities(result.findings, table.severity), self.min_confidence)
        kept, suppressed, notes = silence(findings, table.per_file_ignores, self.root, self._code(), self.rules)
        new, baselined = known.split(kept, self.root)
        return replace(result, findings=new, suppressed=suppressed, baselined=baselined, notes=(*result.notes, *notes))

    def _code(self) -> tuple[Path, ...]:
        """The training files that the scan reads."""
        named = tuple(path for pipeline in self.pipelines for path in pipeline.training)
        if not any(path.is_dir() for path in named):
            return tuple(path for path in named if path.is_file())
        from eaglelint.trainers.files import find_files

        return tuple(find_files(named))


def open_session(inputs: Inputs) -> Session:
    """Read the settings, choose the rules, and find what is to be scanned.

    Raises:
        UnreadableInput: A named path does not exist, or the settings cannot be read.
        WrongUsage: The settings or a flag say something that has no meaning.
    """
    named = list(inputs.paths)
    start = (named[0] if named[0].is_dir() else named[0].parent) if named else Path.cwd()
    settings = find_settings(start)
    table = settings.settings
    rules = select_rules(inputs.select or table.select, inputs.ignore or table.ignore)
    discovered = None
    if inputs.draft is None or named:
        discovered = discover(
            named or [settings.root or Path.cwd()],
            exclude=table.exclude,
            root=settings.root,
            force_exclude=inputs.force_exclude or table.force_exclude,
        )
    pipelines = assemble_pipelines(
        named,
        draft=inputs.draft,
        target=inputs.target,
        training=inputs.training,
        trained_by=inputs.trained_by,
        captured_by=inputs.captured_by,
        serving=inputs.serving,
        draft_kind=inputs.draft_kind,
        assume=inputs.assume,
        launch=inputs.launch,
        dump=inputs.dump,
        fine_tuned_from=inputs.fine_tuned_from,
        settings=settings,
        discovered=discovered,
        online=inputs.online,
    )
    baseline = inputs.baseline
    if baseline is None and table.baseline is not None:
        baseline = (settings.root or Path.cwd()) / table.baseline
    return Session(
        settings=settings,
        rules=rules,
        pipelines=pipelines,
        discovered=discovered,
        options=Options(inputs.num_layers, inputs.target_class),
        min_confidence=inputs.min_confidence or table.min_confidence,
        baseline=baseline,
        cache=cache_directory() if inputs.cache and table.cache else None,
    )
