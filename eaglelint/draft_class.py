"""Whether an engine registers the class that a draft's config names, from its source or from a profile of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglelint.artifacts.checkpoint import Checkpoint
from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.finding import Span
from eaglelint.survey.facts import Inherited, Join, NormStub, Place, Rotary, UnlikeStates, Unused

if TYPE_CHECKING:
    from eaglelint.engines.base import DraftRegistry
    from eaglelint.engines.profile import Profile
    from eaglelint.engines.profile_drafts import Line
    from eaglelint.serving import EngineHandle
    from eaglelint.survey.unused import Shapes

__all__ = ["DraftClass", "draft_class", "recalled_class"]

# What a draft may bring though the target has one too, and the map from its own tokens to the target's.
_OF_ITS_OWN = ("embed_tokens.weight", "lm_head.weight", "d2t")
_QUANTIZATION = "quantization_config"
_OF_ONE_STATE = ("eagle", "mtp", "unknown")  # kinds of drafts that may take the target's last state alone


@dataclass(frozen=True, slots=True)
class DraftClass:
    """What one engine makes of a draft's ``architectures``.

    Attributes:
        engine: The engine and its release, ``vllm 0.33.0``.
        names: The names under which it looks for the class, the config's own first.
        registered: Whether it finds one of them.
        known: The classes of drafts that it registers.
        join: In which order the class joins the token's embedding and the hidden state; None where that is not plain.
        unused: What a draft of this class brings in vain.
        norm_stubs: What stands in for its final norm and drops the residual.
        rotary: Which numbers of a head it turns together, where somebody asked.
        inherited: What it builds with the quantisation of a target that is quantised, where the draft is not.
        unlike_states: It hands itself a state with more or fewer norms than its target does.
    """

    engine: str
    names: tuple[str, ...]
    registered: bool
    known: tuple[str, ...]
    join: Join | None = None
    unused: tuple[Unused, ...] = ()
    norm_stubs: tuple[NormStub, ...] = ()
    rotary: Rotary | None = None
    inherited: tuple[Inherited, ...] = ()
    unlike_states: tuple[UnlikeStates, ...] = ()


def draft_class(
    handle: EngineHandle,
    draft: DraftConfig,
    target: TargetConfig | None = None,
    checkpoint: Checkpoint | None = None,
    *,
    kind: str | None = None,
    rotary: bool = False,
) -> DraftClass | None:
    """Look the draft's class up; ``None`` where the config names none, or the source registers no draft at all."""
    if not draft.names_a_class:
        return None
    from eaglelint.engines.base import DraftRegistry

    engine = handle.engine
    if not isinstance(engine, DraftRegistry):
        return None
    every, known = engine.registered(handle.source)
    if not known:
        return None
    names = engine.draft_names(draft.architectures)
    found = [name for name in names if name in every]
    join = handle.source.remember("draft's join", (vars(engine), found[:1]), lambda: _join(handle, engine, found))
    brings = checkpoint is not None and any(checkpoint.find(name) is not None for name in _OF_ITS_OWN)
    unused = _unused(handle, engine, draft, kind or draft.kind, target, found) if brings else ()
    stubs = handle.source.remember(
        "draft's norm", (vars(engine), found[:1]), lambda: _norm_stubs(handle, engine, found)
    )
    turned = _rotary(handle, draft, kind or draft.kind, target) if rotary and found and target is not None else None
    inherited = _inherited(handle, draft, kind or draft.kind, target) if found and target is not None else ()
    recycles = found and (kind or draft.kind) in _OF_ONE_STATE
    unlike = _unlike_states(handle, found, target) if recycles else ()
    return DraftClass(handle.source.label, names, bool(found), known, join, unused, stubs, turned, inherited, unlike)


def _unlike_states(handle: EngineHandle, names: list[str], target: TargetConfig | None) -> tuple[UnlikeStates, ...]:
    """Whether the class hands itself another state than its target does."""
    from eaglelint.recursion import deep_recursion
    from eaglelint.source.tree import Binding
    from eaglelint.survey.recycling import unlike_states_of

    engine, source = handle.engine, handle.source
    architectures = () if target is None else target.architectures
    named = (handle.target_class(name) for name in architectures)
    theirs = next((found for found in named if isinstance(found, Binding)), None)
    with deep_recursion():
        return source.remember(
            "draft's states",
            (vars(engine), names[0], architectures),
            lambda: unlike_states_of(engine, source, names[0], theirs),
        )


def recalled_class(profile: Profile, draft: DraftConfig) -> DraftClass | None:
    """What a profile tells of it; ``None`` also where the profile was made before registries were learned."""
    if not draft.names_a_class or not profile.drafts:
        return None
    from eaglelint.engines.recall import names_asked, registers

    names = names_asked(profile, draft.architectures)
    found = [name for name in names if registers(profile, name)]
    facts = profile.drafts.get(found[0]) if found else None
    if facts is None:
        return DraftClass(profile.label, names, bool(found), tuple(profile.drafts))
    join = None
    if facts.join is not None:
        first, line = facts.join
        order = ("embedding", "hidden state") if first == "embedding" else ("hidden state", "embedding")
        join = Join(order, _place(profile, line))
    stubs = tuple(NormStub(cls, _place(profile, line), (found[0],)) for cls, line in facts.norm_stubs)
    return DraftClass(profile.label, names, True, tuple(profile.drafts), join, norm_stubs=stubs)


def _place(profile: Profile, line: Line) -> Place:
    path, _, number = line.at.rpartition(":")
    return Place(Span.at(f"{profile.label}: {path}", int(number)), line.code)


def _inherited(handle: EngineHandle, draft: DraftConfig, kind: str, target: TargetConfig) -> tuple[Inherited, ...]:
    """What the class builds with its target's quantisation, where that is another than the draft's own."""
    if target.text_node(_QUANTIZATION) is None or draft.text_node(_QUANTIZATION) is not None:
        return ()
    from eaglelint.survey.inherited import inherited_quantization

    engine, source = handle.engine, handle.source
    return source.remember(
        "inherited quantisation",
        (vars(engine), kind, draft.data, target.data, target.num_layers),
        lambda: inherited_quantization(engine, source, kind, draft.data, target.data, target.num_layers),
    )


def _join(handle: EngineHandle, engine: DraftRegistry, names: list[str]) -> Join | None:
    from eaglelint.survey.join_order import join_of

    binding = engine.draft_binding(handle.source, names[0]) if names else None
    return None if binding is None else join_of([binding.module])


def _norm_stubs(handle: EngineHandle, engine: DraftRegistry, names: list[str]) -> tuple[NormStub, ...]:
    from eaglelint.survey.norm_stubs import stubs_in

    binding = engine.draft_binding(handle.source, names[0]) if names else None
    return () if binding is None else tuple(stubs_in(binding.module, (names[0],)))


def _unused(
    handle: EngineHandle,
    engine: DraftRegistry,
    draft: DraftConfig,
    kind: str,
    target: TargetConfig | None,
    names: list[str],
) -> tuple[Unused, ...]:
    """What the class of the draft's name, and that of the target's, make of the draft's own weights."""
    from eaglelint.engines.loading import DraftLoading
    from eaglelint.recursion import deep_recursion
    from eaglelint.source.index import ClassInfo
    from eaglelint.source.tree import Binding
    from eaglelint.source.values import ClassValue
    from eaglelint.survey.unused import unused_weights

    shapes = None if target is None else _shapes(draft, target)
    if not names or target is None or shapes is None or not isinstance(engine, DraftLoading):
        return ()
    own = engine.draft_binding(handle.source, names[0])
    theirs = next((found for name in target.architectures if (found := handle.target_class(name)) is not None), None)
    if not isinstance(own, Binding) or not isinstance(theirs, Binding):
        return ()
    if not isinstance(own.item, ClassInfo) or not isinstance(theirs.item, ClassInfo):
        return ()
    first, second = ClassValue(own.module, own.item), ClassValue(theirs.module, theirs.item)
    with deep_recursion():
        return handle.source.remember(
            "unused weights",
            (vars(engine), names[0], second.info.name, second.module.name, kind, draft.data, shapes),
            lambda: unused_weights(handle.source, engine, (first, second), kind, draft.data, shapes),
        )


def _rotary(handle: EngineHandle, draft: DraftConfig, kind: str, target: TargetConfig) -> Rotary | None:
    from eaglelint.recursion import deep_recursion
    from eaglelint.survey.rotary import rotary_of

    engine, source = handle.engine, handle.source
    with deep_recursion():
        return source.remember(
            "rotary",
            (vars(engine), kind, draft.data, target.data, target.num_layers),
            lambda: rotary_of(engine, source, kind, draft.data, target.data, target.num_layers),
        )


def _shapes(draft: DraftConfig, target: TargetConfig) -> Shapes | None:
    """The shapes of head and embedding on both sides, as the configs say; None where one does not."""
    keys = ("hidden_size", "vocab_size")
    nodes = [config.text_node(key) for config in (draft, target) for key in keys]
    numbers = [node.value for node in nodes if node is not None and type(node.value) is int]
    if len(numbers) < len(nodes):
        return None
    width, tokens, target_width, target_tokens = numbers
    small = draft.text_node("draft_vocab_size")
    rows = small.value if small is not None and type(small.value) is int else tokens
    return {
        "embed_tokens": ((tokens, width), (target_tokens, target_width)),
        "lm_head": ((rows, width), (target_tokens, target_width)),
    }
