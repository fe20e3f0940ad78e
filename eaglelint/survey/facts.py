"""The facts about an engine's source that rules may look at: frozen, picklable, with the place of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eaglelint.finding import Span
from eaglelint.wiring import LayerIds, Slot, Wiring

__all__ = [
    "ClassFacts",
    "Counting",
    "DroppedKey",
    "EngineFacts",
    "GraphsBeforeIds",
    "Inherited",
    "InjectedLate",
    "Join",
    "JoinedWhileNone",
    "KeyRead",
    "LostEmbeddings",
    "NormStub",
    "Place",
    "Reader",
    "Refusal",
    "RefusedGraphs",
    "Rotary",
    "Run",
    "SharedByWeight",
    "StartUp",
    "Stored",
    "UnlikeStates",
    "UnreducedCapture",
    "Unused",
    "Wrapper",
]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A piece of code: where it stands and how it reads, on one line."""

    span: Span
    code: str

    def __str__(self) -> str:
        return f"{self.span.path}:{self.span.start.line}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A list or set of layer numbers that a setter stored; ``ordered`` is false for a set."""

    name: str
    values: tuple[int, ...]
    ordered: bool
    place: Place


@dataclass(frozen=True, slots=True)
class InjectedLate:
    """States that are captured without features that are added to them before anything is computed from them.

    Attributes:
        boundaries: Which: h[k] for each k, in order.
        name: The argument of the loop over the layers that the features stem from.
        capture: The line that captures them.
        taken: Where the first of the features is taken from the argument.
        counted: How many features the argument was taken to hold, where the code asks it.
    """

    boundaries: tuple[int, ...]
    name: str
    capture: Place
    taken: Place
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What a target class makes of one list of ids, or of none.

    Attributes:
        ids: The list that its setter was given, ``"default"`` for none, ``None`` where a draft's config decided.
        wiring: What reached the draft.
        stored: What the setter stored, in order; the last one counts.
        captures: The line that captured each slot; the call in the model's own file where a helper does it.
        handed_over: Functions that run layers without being handed the captures: the name, the first of the layers,
            the call.
        stopped: Where the code would raise, if it would, and with what.
        refused: Whether the code says so itself, by ``raise`` or ``assert``.
        cut_short: Whether the interpretation ended before it saw anything: the budget did not suffice.
        complete: Whether each decoder layer was seen to run once, in order.
        missing: Attributes that are read and that nothing sets.
        uncopied: Slots that share their memory with what a norm may have added to since.
        injected_late: States that are captured before features from outside are added to them. For the default list,
            all states but the last are looked at.
    """

    ids: LayerIds
    wiring: Wiring
    stored: tuple[Stored, ...] = ()
    captures: tuple[Place, ...] = ()
    handed_over: tuple[tuple[str, int, Place], ...] = ()
    stopped: Place | None = None
    refused: bool = False
    error: str | None = None
    cut_short: bool = False
    complete: bool = False
    missing: tuple[tuple[str, Place], ...] = ()
    uncopied: tuple[int, ...] = ()
    injected_late: tuple[InjectedLate, ...] = ()

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.wiring.slots


@dataclass(frozen=True, slots=True)
class Counting:
    """What a setter stored for one list of ids, without the model being run; None where it stored no list."""

    ids: tuple[int, ...]
    stored: Stored | None

    @property
    def offset(self) -> int | None:
        """What was added to each id, whatever became of their order; None where it is not the same for all."""
        if self.stored is None or len(self.stored.values) != len(self.ids):
            return None
        offsets = {new - old for new, old in zip(sorted(self.stored.values), sorted(self.ids), strict=True)}
        return offsets.pop() if len(offsets) == 1 else None


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """One target class of an engine.

    Attributes:
        name: The class.
        place: Its definition.
        setter: The method that takes the ids, where it has one.
        default: The run without ids.
        last: The run that asks for a state in the middle and for h[N], in the way in which the class counts ids.
        middle: The run that asks for the one in the middle alone, where the other one failed.
        counting: What the setter stores for a few lists of ids.
        unread: Lists that the setter stored and that nobody read in any run, by class and attribute.
        overlapped: The run without ids on a batch in two halves that overlap, where the class has such a path.
        staged: The run without ids on two pipeline stages.
        served: The run for the draft of a pipeline; then the others are not made.
    """

    name: str
    place: Place
    setter: Place | None = None
    default: Run | None = None
    last: Run | None = None
    middle: Run | None = None
    counting: tuple[Counting, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    overlapped: Run | None = None
    staged: Run | None = None
    served: Run | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs under the usual assumptions."""
        return tuple(run for run in (self.served, self.default, self.last, self.middle) if run is not None)


@dataclass(frozen=True, slots=True)
class GraphsBeforeIds:
    """A start-up that records graphs of the model's forward pass and hands it the ids only afterwards.

    Attributes:
        start: The call in the start-up that leads to the recording.
        ids: The call that hands over the ids.
        with_defaults: The call without ids that decides what is recorded, where there is one.
        record: Where a graph is recorded.
    """

    start: Place
    ids: Place
    with_defaults: Place | None
    record: Place


@dataclass(frozen=True, slots=True)
class RefusedGraphs:
    """Graphs that are recorded for prefills of the target, and a gate that lets no such prefill run on them.

    Attributes:
        runner: The class that holds the graphs.
        recorded: Where it sets the mode for which they are recorded, where that is found.
        made: The call that makes it.
        option: The back end for prefills with which that is so; None where the server names none.
        lets_in: The modes that its gate lets in.
        gate: Its gate.
        worker: Who runs a prefill of the target.
        asks_for: The mode in which it does.
        asked: The call.
    """

    runner: str
    recorded: Place | None
    made: Place
    option: str | None
    lets_in: tuple[str, ...]
    gate: Place
    worker: str
    asks_for: str
    asked: Place


@dataclass(frozen=True, slots=True)
class JoinedWhileNone:
    """A join of captured states that a path reaches while they are None.

    Attributes:
        place: The call that joins them.
        name: The variable.
        function: The function that the call is in.
        conditions: The conditions of the path, as written.
    """

    place: Place
    name: str
    function: str
    conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartUp:
    """What is wrong with the order of a start-up: see EngineFacts."""

    graphs_before_ids: tuple[GraphsBeforeIds, ...] = ()
    calls_without_ids: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyRead:
    """A key path at which ids are looked for in a draft's config, ``("eagle_config", "layer_ids")``."""

    path: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that looks for ids in a draft's config.

    Attributes:
        name: The function, with its class where it is a method.
        swallowed: Broad ``except`` clauses that go on where a read failed: the clause, and the read.
        decides: Whether its ids are those that are captured.
    """

    name: str
    place: Place
    reads: tuple[KeyRead, ...]
    swallowed: tuple[tuple[Place, Place], ...] = ()
    decides: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """Where a draft's class joins the token's embedding and the hidden state, and which comes first."""

    order: tuple[str, str]
    place: Place


@dataclass(frozen=True, slots=True)
class Rotary:
    """Which two numbers of a head are turned together: one of each half, or two neighbours; and where that is said."""

    layout: Literal["half-split", "interleaved"]
    place: Place


@dataclass(frozen=True, slots=True)
class Unused:
    """A module that a draft's class does without, though the draft's checkpoint has one of its own.

    Attributes:
        module: ``lm_head``, ``embed_tokens`` or ``d2t``.
        how: It is replaced by the target's, left out by the loader and kept unfilled, or loaded and then dropped.
        place: The line that does so.
    """

    module: str
    how: Literal["replaced", "left out", "dropped"]
    place: Place


@dataclass(frozen=True, slots=True)
class Inherited:
    """A projection of the draft that is built with the target's quantisation: its path, and the line that builds it."""

    path: str
    place: Place


@dataclass(frozen=True, slots=True)
class DroppedKey:
    """A key that a draft's class reads, and that the adapter of a foreign config does not hand on.

    Attributes:
        adapter: The kind of draft that it is for, as the config names it.
        default: What the class takes instead, as written.
        handed_on: The adapter of another kind that leads to the same class and hands the key on; with its place.
    """

    adapter: str
    key: str
    default: str
    place: Place
    read: Place
    handed_on: str | None = None
    handed_on_at: Place | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a server would stop with at its start, whatever else it is given, and the line that says so."""

    message: str
    place: Place


@dataclass(frozen=True, slots=True)
class UnreducedCapture:
    """A captured sum with a state whose all-reduce over the ranks a layer may have put off; ``mark`` says so."""

    cls: str
    capture: Place
    mark: Place


@dataclass(frozen=True, slots=True)
class NormStub:
    """A class in the place of a draft's final norm that gives the last branch without the residual.

    ``drafts`` are the classes of drafts in its file.
    """

    cls: str
    gives: Place
    drafts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnlikeStates:
    """A class of drafts that hands itself a state of another form than the one that its target hands it.

    Attributes:
        returned: Where the draft returns the state of its next step.
        norms: How many norms its head puts on that state; fewer than none where the state has them and the head's
            input has not. ``normed`` is the last of them.
        target: A class of the targets that it drafts for, with how many norms the head of these puts on the state that
            they hand to the draft's first step.
    """

    cls: str
    returned: Place
    norms: int
    normed: Place | None
    target: str
    target_norms: int
    target_normed: Place | None
    target_defined: Place


@dataclass(frozen=True, slots=True)
class LostEmbeddings:
    """A worker that runs the draft on a prompt without the embeddings that the target made of its images.

    Attributes:
        call: The worker's own call that leads to the draft; ``forward`` is the one that runs it.
        name: The attribute in which a draft's class looks for them.
        readers: The classes of drafts that do, ``read`` the first place.
        handing: Another worker, which hands them on, with its call; None where none does.
    """

    worker: str
    call: Place
    forward: Place
    name: str
    readers: tuple[str, ...]
    read: Place
    handing: str | None = None
    handed: Place | None = None


@dataclass(frozen=True, slots=True)
class SharedByWeight:
    """A comparison of weights on each rank that decides whether the draft borrows ``module`` from the target."""

    module: str
    comparison: Place
    replaced: Place


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A target class without a setter around a model that has one: ``inner`` is where it makes that model."""

    name: str
    place: Place
    inner_name: str
    inner: Place
    setter: Place


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One engine's source.

    Attributes:
        label: The engine and its release.
        setter: The method's name by which a target class takes ids.
        classes: Its target classes that have one.
        wrappers: Those that have none, though what they wrap does.
        readers: The functions that look for ids in a draft's config.
        calls_without_ids: Calls of the setter without ids in a start-up that never calls it with any.
        dropped_keys: What the adapters of foreign configs do not hand on.
        shared_by_weight: Where each rank decides for itself whether the draft borrows a module of the target's.
        unreduced: Captures of what may be one rank's share of a state.
        refused_graphs: Graphs that are recorded for prefills of the target and that no such prefill runs on.
        lost_embeddings: Workers that run drafts on prompts without the embeddings of images.
        norm_stubs: What stands in for the final norm of drafts and drops the residual.
        unlike_states: Drafts that hand themselves a state with more or fewer norms than their target does.
    """

    name: str
    label: str
    version: str | None = None
    classes: tuple[ClassFacts, ...] = ()
    setter: str = ""
    wrappers: tuple[Wrapper, ...] = ()
    readers: tuple[Reader, ...] = ()
    graphs_before_ids: tuple[GraphsBeforeIds, ...] = ()
    calls_without_ids: tuple[Place, ...] = ()
    dropped_keys: tuple[DroppedKey, ...] = ()
    shared_by_weight: tuple[SharedByWeight, ...] = ()
    unreduced: tuple[UnreducedCapture, ...] = ()
    joined_while_none: tuple[JoinedWhileNone, ...] = ()
    refused_graphs: tuple[RefusedGraphs, ...] = ()
    lost_embeddings: tuple[LostEmbeddings, ...] = ()
    norm_stubs: tuple[NormStub, ...] = ()
    unlike_states: tuple[UnlikeStates, ...] = ()
