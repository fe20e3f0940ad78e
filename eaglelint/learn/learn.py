"""Learn a profile: every target class and kind of draft of one release, in several processes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from eaglelint.derive import Deriver
from eaglelint.engines.base import DraftRegistry
from eaglelint.engines.profile import Conditional, Mapping, Profile, Resolver, TargetClass
from eaglelint.exceptions import UnreadableInput
from eaglelint.learn.conditions import Comparisons, comparisons
from eaglelint.learn.drafts import with_drafts
from eaglelint.learn.observe import BASE, DEPTH, DEPTHS, Ids, Subject, questions, random_questions
from eaglelint.learn.resolvers import NodeTable, Reference, learn_resolver, resolves_alike
from eaglelint.learn.rules import Sites, fitted, learn_mapping
from eaglelint.learn.wheel import unpacked
from eaglelint.serving import EngineHandle, open_source
from eaglelint.source.tree import Binding
from eaglelint.wiring import Wiring

__all__ = ["learn_class", "learn_drafts", "learn_from", "learn_profile", "source_hash", "with_classes"]

Progress = Callable[[str], None]

KINDS: dict[str, tuple[str, ...]] = {"eagle3": ("peagle",), "dflash": ("domino",), "dspark": ()}
"""The kinds of draft that are learned, each with those that may be treated alike."""
_TESTS = 6
_LONGEST: tuple[tuple[int, Ids], ...] = ((DEPTHS[-1], None), (14, (2, 4, 7, 11)))
"""Of all questions, those that take longest: they are asked first."""


@dataclass(slots=True)
class _Learned:
    """What is known of one class: a mapping and its lines for each kind."""

    name: str
    mappings: dict[str, tuple[Mapping, tuple[str, ...]]] = field(default_factory=dict)


def learn_profile(
    package: Path, engine: str, progress: Progress = lambda _: None, *, processes: int = 2, only: tuple[str, ...] = ()
) -> Profile:
    """Learn an engine's release from its package; ``only`` names classes of targets and drafts, all if left out."""
    handle = _open(engine, str(package))
    names = sorted({_name(binding) for kind in KINDS for binding in handle.target_classes(kind)})
    names = [name for name in names if not only or name in only]
    learned = list(_classes(engine, package, names, progress, processes))
    table = _Table()
    classes = {
        found.name: TargetClass(
            found.name, {kind: (table.index(mapping), sites) for kind, (mapping, sites) in found.mappings.items()}
        )
        for found in learned
    }
    progress("its resolvers")
    resolvers, nodes = _resolvers(handle, learned)
    aliases, others = _architectures(handle, classes) if not only else ({}, ())
    profile = Profile(
        engine,
        handle.source.version,
        tuple(table.mappings),
        classes,
        resolvers,
        tuple(nodes.nodes),
        aliases,
        others,
        sources=source_hash(package),
    )
    progress("its classes of drafts")
    return with_drafts(profile, handle, processes=processes, only=only)


def learn_drafts(known: Profile, package: Path) -> Profile:
    """A profile of this release in which the classes of drafts alone were learned anew."""
    return with_drafts(known, _open(known.engine, str(package)))


def with_classes(known: Profile, learned: Profile) -> Profile:
    """A profile in which some classes and the resolvers, which all classes share, were learned anew.

    Mappings that nothing refers to any more are left out.
    """
    table = _Table()

    def moved(cls: TargetClass, profile: Profile) -> TargetClass:
        return replace(
            cls, mappings={k: (table.index(profile.mappings[i]), sites) for k, (i, sites) in cls.mappings.items()}
        )

    classes = {
        name: moved(learned.classes[name], learned) if name in learned.classes else moved(cls, known)
        for name, cls in known.classes.items()
    }
    return replace(
        known,
        classes=classes,
        mappings=tuple(table.mappings),
        resolvers=learned.resolvers,
        nodes=learned.nodes,
    )


def learn_from(spec: str, root: Path, progress: Progress = lambda _: None, *, processes: int = 2) -> Profile:
    """Learn from what a person names: ``sglang@PATH``, a wheel, or ``sglang`` for the installed package.

    Raises:
        WrongUsage: No engine is named.
        UnreadableInput: It is not there, or cannot be read.
    """
    name, _, path = spec.strip().rpartition("@")
    if not path.lower().endswith(".whl"):
        handle = open_source(spec, root=root)
        return learn_profile(handle.source.package, handle.engine.name, progress, processes=processes)
    if not (root / path).is_file():
        raise UnreadableInput(f"{path} is no file. Name a wheel, such as one that pip download --no-deps fetched.")
    engine = name or re.split(r"[-_]", Path(path).name)[0].lower()
    with unpacked(root / path, path) as directory:
        handle = open_source(f"{engine}@{directory}", root=directory, display_root=directory)
        return learn_profile(handle.source.package, handle.engine.name, progress, processes=processes)


@dataclass(slots=True)
class _Table:
    mappings: list[Mapping] = field(default_factory=list)

    def index(self, mapping: Mapping) -> int:
        if mapping not in self.mappings:
            self.mappings.append(mapping)
        return self.mappings.index(mapping)


def _classes(engine: str, package: Path, names: list[str], progress: Progress, processes: int) -> Iterator[_Learned]:
    if processes < 2 or len(names) < 4:
        for index, name in enumerate(names):
            progress(f"{name} ({index + 1} of {len(names)})")
            yield learn_class(engine, str(package), name)
        return
    with ProcessPoolExecutor(processes) as pool:
        running = [pool.submit(learn_class, engine, str(package), name) for name in names]
        for index, (name, future) in enumerate(zip(names, running, strict=True)):
            progress(f"{name} ({index + 1} of {len(names)})")
            yield future.result()


@cache
def _open(engine: str, package: str) -> EngineHandle:
    """The source, its paths shown relative to the package; once for each process."""
    return open_source(f"{engine}@{package}", root=Path(package), display_root=Path(package))


def _name(binding: Binding | str | None) -> str:
    return binding if isinstance(binding, str) else getattr(getattr(binding, "item", None), "name", "")


def learn_class(engine: str, package: str, name: str) -> _Learned:
    """One target class under every kind of draft."""
    handle = _open(engine, package)
    found = _Learned(name)
    derivers: dict[int, Deriver] = {}
    for kind, alike in KINDS.items():
        binding = next((b for b in handle.target_classes(kind) if _name(b) == name), None)
        if not isinstance(binding, Binding):
            continue
        stopped = next((entry for entry in found.mappings.values() if _gave_up(entry[0])), None)
        if stopped is not None:  # the forward pass is the same for all kinds
            found.mappings |= dict.fromkeys((kind, *alike), stopped)
            continue
        subject = Subject(handle, binding, kind, derivers=derivers)
        found.mappings[kind] = _known(subject) or _learn(subject)
        if _gave_up(found.mappings[kind][0]):
            found.mappings |= dict.fromkeys(alike, found.mappings[kind])
            continue
        for other in alike:
            if _same(subject, Subject(handle, binding, other, subject.config_defaults, derivers=subject.derivers)):
                found.mappings[other] = found.mappings[kind]
        if found.mappings[kind][0].rule is not None:
            _SEEN.append((subject, *found.mappings[kind]))
    for subject, _, _ in _SEEN:
        subject.derivers = {}  # answers are kept; what it took to find them is large
    return found


def _gave_up(answer: Mapping | Wiring) -> bool:
    """Whether the interpretation takes longer than it may."""
    return (answer.reason or "").startswith("the interpretation stopped")


_SEEN: list[tuple[Subject, Mapping, tuple[str, ...]]] = []
_TELLING: tuple[tuple[int, Ids], ...] = (
    (DEPTH, BASE),
    (DEPTH, (1, 3, 5)),
    (DEPTH, None),
    (DEPTH, (3, 5, DEPTH - 1)),
    (14, (2, 5, 14)),
)


def _known(subject: Subject) -> tuple[Mapping, tuple[str, ...]] | None:
    """The mapping of a class, or of a kind of draft, that runs through the same lines to the same answers."""
    for known, mapping, sites in _SEEN:
        if known.handle is subject.handle and not known.config_defaults and _same(known, subject):
            base = subject.ask(DEPTH, BASE).wiring
            return replace(mapping, assumptions=base.assumptions, summaries=base.summaries), sites
    return None


def _same(known: Subject, other: Subject) -> bool:
    """Whether a class serves a kind of draft as another does: the same answers from the same lines.

    Of one class a single question tells: the forward pass is the same, and its line shows which setter was called.
    """
    asked: tuple[tuple[int, Ids], ...] = _TELLING if known.ask(*_TELLING[0]).wiring.slots else _TELLING[:2]
    if known.binding.item is other.binding.item:
        asked = _TELLING[:1]
    other.config_defaults = known.config_defaults
    return all(_plain(other.ask(*question).wiring) == _plain(known.ask(*question).wiring) for question in asked)


def _plain(wiring: Wiring) -> Wiring:
    """A wiring without what names the class and the kind of draft."""
    reason = (wiring.reason or "").replace(wiring.target_class or "", "{class}")
    return replace(
        wiring,
        name="",
        target_class="",
        draft_kind="",
        assumptions=(),
        summaries=0,
        reason=reason,
        faults=wiring.faults,
    )


def _learn(subject: Subject) -> tuple[Mapping, tuple[str, ...]]:
    """A class's mapping for every config of its target, else one for the defaults of its config class."""
    mapping, sites = _explain(subject)
    if mapping.status != "unknown":
        return mapping, sites
    usual = Subject(subject.handle, subject.binding, subject.kind, config_defaults=True)
    base = usual.ask(DEPTH, BASE).wiring
    defaults = [text for text in base.assumptions if text.startswith("the defaults of ")]
    if base.status == "unknown" or not defaults:
        return mapping, sites
    narrower, lines = _explain(usual)
    if narrower.status == "unknown":
        return narrower, lines
    text = f"when the target's config differs from {' and '.join(defaults)}"
    subject.config_defaults, subject.answers, subject.derivers = True, usual.answers, usual.derivers
    return replace(narrower, status="conditional", conditions=(*narrower.conditions, Conditional(text))), lines


def _explain(subject: Subject) -> tuple[Mapping, tuple[str, ...]]:
    base = subject.ask(DEPTH, BASE)
    if not base.wiring.slots or not all(slot.known for slot in base.wiring.slots):
        seen = [base]
        if base.wiring.faults and (own := subject.ask(DEPTH, None)).wiring.slots:
            seen += [own, *(subject.ask(depth, None) for depth in DEPTHS)]
        return learn_mapping(seen, Comparisons(), subject.name)
    for question in _LONGEST:
        wiring = subject.ask(*question).wiring
        if _gave_up(wiring):  # no rule explains that, and each further question would take as long
            lines = Sites()
            reason = lines.generic(f"{wiring.reason}, for {question[0]} layers")
            return Mapping("unknown", None, reason), tuple(lines.found)
    numbers = comparisons(subject.handle, subject.request(DEPTH, BASE), subject.compared)
    seen = [subject.ask(*question) for question in questions(numbers)]
    mapping, sites = learn_mapping(seen, numbers, subject.name)
    if mapping.rule is None:
        return mapping, sites
    for question in random_questions(f"{subject.name} {subject.kind}", _TESTS):
        tested = subject.ask(*question)
        assert mapping.rule is not None
        rule = fitted(mapping.rule, base.wiring, tested)
        mapping = replace(mapping, rule=rule)
        if rule is None:
            ids = list(tested.ids or ())
            return Mapping(
                "unknown", None, f"what it makes of ids {ids} for {tested.num_layers} layers fits no rule"
            ), ()
    return mapping, sites


def _resolvers(handle: EngineHandle, learned: list[_Learned]) -> tuple[dict[str, Resolver], NodeTable]:
    """How each kind's ids are looked up, by a class whose setter shows plainly what it was given."""
    resolvers: dict[str, Resolver] = {}
    table = NodeTable()
    for kind, alike in KINDS.items():
        reference = _reference(handle, learned, kind)
        if reference is None:
            continue
        known = next((k for k in resolvers if resolves_alike(handle, reference, kind, resolvers[k], table)), None)
        resolvers[kind] = resolvers[known] if known else learn_resolver(handle, reference, kind, table)
        for other in alike:
            if resolves_alike(handle, reference, other, resolvers[kind], table):
                resolvers[other] = resolvers[kind]
            else:
                resolvers[other] = learn_resolver(handle, reference, other, table)
    return resolvers, table


def _reference(handle: EngineHandle, learned: list[_Learned], kind: str) -> Reference | None:
    for found in sorted(learned, key=lambda item: (item.name != "LlamaForCausalLM", item.name)):
        mapping, _ = found.mappings.get(kind, (None, ()))
        rule = mapping.rule if mapping is not None and mapping.status == "exact" else None
        if rule is not None and len(rule.cases) == 1 and rule.set_shift is not None:
            binding = next(b for b in handle.target_classes(kind) if _name(b) == found.name)
            assert isinstance(binding, Binding)
            return Reference(binding, rule.cases[0].shift + rule.set_shift)
    return None


def _architectures(handle: EngineHandle, classes: dict[str, TargetClass]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Architectures by the class that serves them, where its name is another; and those that capture nothing."""
    aliases, others = {}, []
    engine = handle.engine
    every, drafts = engine.registered(handle.source) if isinstance(engine, DraftRegistry) else (frozenset[str](), ())
    for name in sorted(every.difference(drafts)):
        served = _name(handle.target_class(name))
        if served in classes and served != name:
            aliases[name] = served
        elif served and served not in classes:
            others.append(name)
    return aliases, tuple(others)


def source_hash(package: Path) -> tuple[int, str]:
    """How many Python files a package has, and a hash over their names and contents."""
    digest = hashlib.sha256()
    files = sorted(path for path in package.rglob("*.py") if path.is_file())
    for path in files:
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return len(files), digest.hexdigest()
