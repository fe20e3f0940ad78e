"""The state of one abstract run: heap, decisions at unknown conditions, budget, and the trail left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from eaglelint.deployment import Deployment
from eaglelint.source.assumptions import SWITCHED, Assumption, assumptions_of, telling
from eaglelint.source.basis import Basis, Fact, Known
from eaglelint.source.heap import CacheList, Heap, Mark, Redo
from eaglelint.source.keeping import keep
from eaglelint.source.outcomes import (
    UNCLEAR,
    Decision,
    Outcome,
    Raised,
    changes,
    condition,
    deciding,
    deciding_site,
    merge,
    next_path,
    same_net,
)
from eaglelint.source.same import Meeting
from eaglelint.source.slices import Site, Slice
from eaglelint.source.tree import SourceModule, SourceTree
from eaglelint.source.values import (
    Branch,
    Input,
    Instance,
    Opaque,
    Tensor,
    Unknown,
)

__all__ = [
    "UNCLEAR",
    "Budget",
    "BudgetExceeded",
    "Decision",
    "Event",
    "LayerLoop",
    "LayerPass",
    "Machine",
    "NeedsDecision",
    "Outcome",
    "Raised",
    "TooLong",
    "changes",
    "same_net",
]

_T = TypeVar("_T")


class BudgetExceeded(Exception):
    """The interpretation would take longer than it may; the answer is unknown."""

    def __init__(self, what: str, site: Site | None) -> None:
        super().__init__(what)
        self.what = what
        self.site = site


class TooLong(Exception):
    """One value takes longer to compute than it is worth; it is taken as unknown."""


class NeedsDecision(Exception):
    """While both sides of a condition are tried out, one of them meets a condition that really forks."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one run: steps in all, for one attribute, one condition and one call; nesting; outcomes of one call.

    ``schedule_steps``: for a function that is handed the layers but no collector, until it runs one (in SGLang it takes
    400 at most, or thousands for nothing). A call may take the fewer steps the deeper it is nested: the innermost one
    is given up first.
    """

    steps: int = 100_000
    attribute_steps: int = 12_000
    test_steps: int = 1_500
    call_steps: int = 24_000
    schedule_steps: int = 1_000
    depth: int = 60
    outcomes: int = 64


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth showing as evidence: ``kind`` is ``set`` (a list of ints was stored), ``capture``, ``cat``
    or ``share`` (a watched object became an attribute)."""

    kind: str
    name: str
    value: Any
    site: Site
    via: Site | None = None  # the call of the decoder layer in which it happened, else of the helper in another file


@dataclass(frozen=True, slots=True)
class LayerPass:
    """What a decoder layer was given and what it returned, as tensors."""

    entry: tuple[Tensor, ...]
    output: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerLoop:
    """A function that calls decoder layers: its code, how deep its call is nested, which variables were None then."""

    slice: Slice
    depth: int
    absent: frozenset[str]


@dataclass(slots=True)
class _Scope:
    """One path. Its facts and values are never changed in place: an inner path begins with those of the outer one."""

    facts: dict[Fact, int]
    values: dict[tuple[str, str], tuple[Any, ...]]
    coming: dict[Fact, int] = field(default_factory=dict)  # choices that are taken where they are met first
    taken: list[Decision] = field(default_factory=list)
    again: list[int] = field(default_factory=list)  # in a script: what is chosen first, second, ...
    trying: int = 0


@dataclass(slots=True)
class _Limit:
    """Where a bounded part of a run is given up."""

    steps: int
    call: bool
    until_layer: bool
    least: int = 0  # of the steps of this one and all around it


class Machine:
    """Runs interpreted code; every mutation, decision and piece of evidence of a run goes through it.

    Args:
        tree: Where the code comes from.
        deployment: What is taken for granted about the server.
        assumptions: Names that stand for a fact about it (assumptions.py), if not those of the deployment.
        intercepts: Calls that are answered here instead of being followed, by qualified name.
        budget: Bounds of the run.
    """

    def __init__(
        self,
        tree: SourceTree,
        *,
        deployment: Deployment | None = None,
        assumptions: tuple[Assumption, ...] | None = None,
        intercepts: dict[str, Callable[..., Any]] | None = None,
        stubs: Mapping[tuple[str, str], Any] | None = None,
        budget: Budget | None = None,
        num_layers: int | None = None,
    ) -> None:
        self.tree = tree
        self.heap = Heap()
        self.deployment = deployment or Deployment()
        self.stage = 0
        self.assumptions = assumptions_of(self.deployment) if assumptions is None else assumptions
        self.used_assumptions: set[str] = set()
        self._tell = telling(self.assumptions)
        self.intercepts = intercepts or {}
        self.stubs = stubs or {}
        self.used_stubs: set[str] = set()
        self.budget = budget or Budget()
        self.num_layers = num_layers
        self.steps = 0
        self.soft_limit = self.budget.steps
        self._limits: list[_Limit] = []
        self.depth = 0
        self.catching = 0
        self.layer = -1
        self.in_layer = False
        self.layer_depth = 0  # how deep the calls were nested where the running layer began
        self.statement: Any = None  # the expression that stands as a statement, its value unused
        self.initialising = 0  # how many attributes are being computed
        self.layer_site: Site | None = None
        self.calls: list[Site] = []  # the calls that are running, the outermost first
        self.rounds: list[bool] = []  # the loops that are running: whether a round stands for all rounds of its loop
        # The trail does not tell outcomes apart: two paths that wire the same agree.
        self.events: list[Event] = CacheList()
        self.faults: list[tuple[str, Site, int]] = CacheList()
        self.passes: dict[int, LayerPass] = self.heap.cache()
        self.leading: tuple[int, ...] = (7,)  # a tensor's axes before its features: tokens, neither none nor one
        self.after_forward: dict[int, tuple[Any, ...]] = self.heap.cache()  # the hooks of a module, by its identity
        self.read: dict[int, Tensor] = self.heap.cache()  # what each layer computes from: what its first norm was given
        self.order: list[tuple[int, int]] = CacheList()  # the layers that ran: how many there are, and which it was
        self.elsewhere: list[int] = CacheList()  # from which layer on they were run in a way that is not followed
        self.final: list[tuple[int, Tensor]] = CacheList()
        # Attributes that were read and that nothing sets; and whether nothing else may, to which the object is handed.
        self.missing: list[tuple[str, Site, bool]] = CacheList()
        self.provisos: dict[str, None] = {}  # what every answer of the run holds for, "when ..."; nothing takes it back
        self.handed: dict[int, Any] = self.heap.cache()  # storages that were handed to a layer or to an add-norm
        self.in_place: dict[str, None] = self.heap.cache()  # classes of norms that ran and may add in place
        self.overwritten: dict[int, Tensor] = self.heap.cache()  # what tensors that were changed in place hold now
        # The calls of what a layer that is summarised is handed (collectors.py).
        self.collected: list[Any] | None = None
        self.watched: tuple[Any, ...] = ()  # objects of which every place is recorded that makes them an attribute
        self.module_hooks: list[Any] = []  # functions that torch calls with each module that becomes a child
        # The lists of layers that were stored, by class and attribute: whether anyone has read them since, on any path.
        self.lists: dict[tuple[str, str], bool] = {}
        self.memo: dict[Any, Any] = {}
        # A user's script, not an engine: a loop over something unknown is gone through once, and an unknown condition
        # on a loop's own index ends the run. ``outside`` and ``outside_call`` say what is read from, and what is
        # called of, something outside the sources; None where they do not know either.
        self.script = False
        self.compared: set[tuple[int, int]] | None = (
            None  # pairs of numbers that were compared, where that is asked for
        )
        self.config_defaults = True  # what a target's config does not say has the defaults of its class
        self.constructing: Callable[[Any, tuple[Any, ...], dict[str, Any]], None] | None = None
        self.tested: Callable[[Any, Any], None] | None = None  # called with each condition that is read, and its frame
        self.keyed: Callable[[Any, Any, Site], None] | None = None  # called with what is put into a dict, and its key
        self.outside: Callable[[Any, str], Any] | None = None
        self.outside_call: Callable[[Any, str, tuple[Any, ...], dict[str, Any], Site | None], Any] | None = None
        self.module_variable: Callable[[Any, str], Any] | None = None  # how a module's variable is computed
        self.patches: dict[tuple[str, str], Any] = {}  # what was set on classes and on things outside the sources
        self.unasked: frozenset[str] = frozenset()  # attributes on which nothing depends that the run is made for
        self.followed: set[tuple[SourceModule, int]] = set()  # the functions that were called, by their lines
        self.loops: dict[str, LayerLoop] = {}  # the functions that call decoder layers, by qualified name
        # What is done to a function's arguments as it begins, by its qualified name.
        self.entering: dict[str, Callable[[dict[str, Any]], None]] = {}
        self.globals: dict[tuple[str, str], Any] = {}
        for held in (self.globals, self.patches):
            self.heap.world.hold(held)
        self._stages: dict[int, tuple[dict[Any, Any], dict[tuple[str, str], Any]]] = {}
        self._branches: dict[Any, Any] = self.heap.cache()
        self._scope = _Scope({}, {})
        self._basis = Basis({}, {})
        self._request = 0  # which request is being answered: what belongs to it alone serves no other one
        self._given: set[tuple[int, Any]] = set()  # the attributes that are not the same for each request

    # --- budget ---

    def step(self, site: Site | None = None) -> None:
        self.steps = steps = self.steps + 1
        if steps > self.soft_limit:
            if steps > self.budget.steps:
                raise BudgetExceeded(f"more than {self.budget.steps:,} steps", site)
            raise TooLong

    def within(self, steps: int, run: Callable[[], Any], *, call: bool = False) -> Any:
        """Run with at most that many steps.

        With ``call`` the steps for attributes that are computed meanwhile do not count; and where that is outside the
        layers, the bound falls when one runs.

        Raises:
            TooLong: They did not suffice; all changes are undone.
        """
        most = self.steps + steps
        self.soft_limit = min(self.soft_limit, most)
        self._limits.append(_Limit(most, call, call and not self.in_layer, self.soft_limit))
        mark = self.heap.mark()
        try:
            return run()
        except TooLong:
            self.heap.rollback(mark)
            raise
        finally:
            self._limits.pop()
            self.soft_limit = self._limits[-1].least if self._limits else self.budget.steps

    def too_deep(self) -> None:
        """Give up the innermost part that may be given up, where there is one."""
        if self._limits:
            raise TooLong

    def _tighten(self) -> None:
        self.soft_limit = self.budget.steps
        for limit in self._limits:
            limit.least = self.soft_limit = min(self.soft_limit, limit.steps)

    def enter_layers(self) -> None:
        """A decoder layer is about to run: the calls that it runs in are worth all the work that they take."""
        for limit in self._limits:
            if limit.until_layer:
                limit.steps = self.budget.steps
        self._tighten()

    def excuse(self, steps: int) -> None:
        """Do not count these steps against the calls that are running."""
        if not steps:
            return
        for limit in self._limits:
            if limit.call:
                limit.steps += steps
        self._tighten()

    def call_steps(self) -> int:
        """How many steps a call at this depth may take."""
        depth = self.depth - self.layer_depth if self.in_layer else self.depth
        most = self.budget.call_steps / 4 / 2**depth if self.in_layer else self.budget.call_steps * 0.7**depth
        return max(int(most), self.budget.test_steps)

    def assumed(self, name: str) -> Assumption | None:
        """The assumption that gives the attribute or function of that name its value, if one does."""
        found = self._tell(name)
        if found is not None and found.name in SWITCHED:
            self._basis.own = True
        return found

    def deploy(self, deployment: Deployment) -> None:
        """From the next request on, take this for granted about the server: it differs in switches alone."""
        if deployment == self.deployment:
            return
        self.used_assumptions -= {assumption.text for assumption in self.assumptions if assumption.name in SWITCHED}
        self.deployment = deployment
        self.assumptions = assumptions_of(deployment, self.stage)
        self._tell = telling(self.assumptions)

    def begin(self) -> None:
        """Before a run: the budget is whole, and no layer is running."""
        self.steps = 0
        self.layer, self.in_layer, self.layer_site = -1, False, None
        self._request += 1
        self._given = set()

    def enter_stage(self, stage: int) -> None:
        """Go on as another rank of the pipeline: what was computed as one rank does not hold as another."""
        if stage == self.stage:
            return
        self._stages[self.stage] = (self.memo, self.globals)
        self.memo, self.globals = self._stages.get(stage, ({}, {}))
        self.heap.world.hold(self.globals)
        self.stage = stage
        self.assumptions = assumptions_of(self.deployment, stage)
        self._tell = telling(self.assumptions)
        self.layer = -1

    # --- trail ---

    def record(self, kind: str, name: str, value: Any, site: Site) -> None:
        self._basis.own = True
        self.heap.touch(self.events)
        via = self.layer_site if self.in_layer else next((s for s in reversed(self.calls) if s.path != site.path), None)
        self.events.append(Event(kind, name, value, site, via))

    def miss(self, attribute: str, site: Site, *, outright: bool) -> None:
        """Note that an attribute is read that no base sets; ``outright``: nor what they hand the object to."""
        self._basis.own = True
        self.heap.touch(self.missing)
        self.missing.append((attribute, site, outright))

    def provide(self, proviso: str) -> None:
        """Note that all answers hold only so: ``when ...``."""
        self.provisos[proviso] = None

    def hand(self, tensors: Iterable[Tensor]) -> None:
        """Note what a layer or an add-norm is handed: what either does in place, it does to an uncopied capture."""
        for tensor in tensors:
            self.heap.set(self.handed, id(tensor.storage), tensor.storage)

    def may_be_overwritten(self, tensor: Tensor) -> bool:
        """Whether a captured tensor shares its memory with one that a norm may have added to since."""
        return bool(self.in_place) and id(tensor.storage) in self.handed

    def fault(self, message: str, site: Site) -> None:
        self._basis.own = True
        self.heap.touch(self.faults)
        self.faults.append((message, site, self.layer))

    def overwrite(self, tensor: Tensor, new: Tensor) -> Tensor:
        """Change a tensor in place: all its aliases hold the new value."""
        changed = Tensor(new.terms, new.site, tensor.storage)
        self.heap.set(self.overwritten, id(tensor.storage), changed)
        return changed

    def current(self, value: Any) -> Any:
        """A tensor as it is now, whatever was done to it in place since; everything else as it is."""
        if self.overwritten and type(value) is Tensor:
            changed = self.overwritten.get(id(value.storage))
            return value if changed is None else changed.at(value.site)
        return value

    def branch(self, what: str) -> Tensor:
        """A new term of the stream: what the module of that name computed in the current layer."""
        key = (self.layer, what)
        serial = self._branches.get(key, 0)
        self.heap.set(self._branches, key, serial + 1)
        return Tensor.of(Branch(self.layer, serial, what))

    def opaque(self, why: str, site: Site | None) -> Tensor:
        """A state that is not known, and that is no other state: handed on and captured, it is still the same."""
        key = (self.layer, site.node if site is not None else None, why)
        serial = self._branches.get(key, 0)
        self.heap.set(self._branches, key, serial + 1)
        return Tensor.of(Opaque(why, site, self.layer, serial))

    def serials(self, layer: int) -> dict[Any, int]:
        """How many states of each kind a layer has made."""
        return {key[1:]: count for key, count in self._branches.items() if key[0] == layer}

    def count(self, layer: int, serials: dict[Any, int]) -> None:
        """Number the states that a layer goes on to make from here on."""
        for key, count in serials.items():
            self.heap.set(self._branches, (layer, *key), count)

    def placeholder(self, index: int) -> Tensor:
        return Tensor.of(Input(f"argument {index}"))

    def new_instance(self, instance: Instance) -> Instance:
        self.heap.born(instance.attrs, of_object=True)
        if instance.payload is not None:
            self.heap.born(instance.payload)
        return instance

    def keep(self, values: Iterable[Any], mark: Mark, origin: Any) -> None:
        """Prepare values, made since ``mark``, for being remembered: see keeping.py."""
        keep(self.heap, values, mark, origin)

    # --- memory ---

    def recall(self, key: Any) -> Any:
        """What was remembered under a key and holds on this path; None where nothing does."""
        for known in self.memo.get(key, ()):
            if known.request in (0, self._request) and self._holds(known):
                self._basis.take_up(known.basis)
                return known.value
        return None

    def outcomes_of(
        self, key: Any, explored: Callable[[], list[Outcome]], origin: Any, holder: Any = None
    ) -> list[Outcome]:
        """The outcomes of a computation, remembered or new; what a single one changed is done, or done again.

        ``origin`` names what it makes, for ``keep``; ``holder`` is an object that the key names by its identity.
        """
        known = self._recalled(key)
        if known is not None:
            return known
        mark = self.heap.mark()
        outcomes, basis = self.on_basis(explored)
        self._remember_outcomes(key, outcomes, basis, mark, origin, holder)
        return outcomes

    def _recalled(self, key: Any) -> list[Outcome] | None:
        for known in self.memo.get(key, ()):
            if known.request in (0, self._request) and self._holds(known) and known.applies():
                self._basis.take_up(known.basis)
                outcomes: list[Outcome] = known.value
                if len(outcomes) == 1:
                    self.heap.replay(outcomes[0].redo)
                return outcomes
        return None

    def _holds(self, known: Known) -> bool:
        return known.basis.holds(self._scope.facts, self._scope.coming)

    def _remember_outcomes(
        self, key: Any, outcomes: list[Outcome], basis: Basis, mark: Mark, origin: Any, holder: Any
    ) -> None:
        """Remember what a computation since ``mark`` came to, where it changed nothing but items of older dicts."""
        redos = [outcome.redo for outcome in outcomes]
        before: Redo | None
        if len(outcomes) == 1:
            changed = self.heap.items_changed(mark)
            if changed is None:
                return
            before, after = changed
            redos.append(after)
        else:
            before = self.heap.items_to_change(redos, mark)
            if before is None:
                return
        made = [outcome.value for outcome in outcomes] + [new for redo in redos for _, _, new in redo]
        self.keep(made, mark, origin)
        if len(outcomes) == 1:
            outcomes = [replace(outcomes[0], redo=redos[-1])]
        known = Known(outcomes, basis, self._request if basis.own else 0, before, holder)
        self._add(key, known)

    def remember_besides(self, key: Any, others: Mapping[Any, Any]) -> None:
        """Remember plain values that came up in what was just remembered, where that took one path and left nothing."""
        for known in self.memo.get(key, ())[-1:]:
            if len(known.value) == 1 and not (known.value[0].decisions or known.value[0].redo or known.before):
                for other, value in others.items():
                    self._add(other, replace(known, value=[Outcome(value, None, [], {}, ())]))

    def on_basis(self, run: Callable[[], _T]) -> tuple[_T, Basis]:
        """Run, and note what the result rests on: the choices that are asked for, whether or not they are taken."""
        outer, self._basis = self._basis, Basis(self._scope.facts, self._scope.coming)
        try:
            return run(), self._basis
        finally:
            outer.take_up(self._basis)
            self._basis = outer

    def remember(self, key: Any, value: Any, basis: Basis, holder: Any = None) -> None:
        """Remember what was computed on a basis, for all paths on which that holds; ``holder`` lives as long."""
        self._add(key, Known(value, basis, self._request if basis.own else 0, holder=holder))

    def _add(self, key: Any, known: Known) -> None:
        others = (other for other in self.memo.get(key, ()) if other.request in (0, self._request))
        self.memo[key] = (*others, known)

    def give(self, mark: Mark) -> None:
        """What was changed since ``mark`` is the request's own: what is computed from it serves no other one."""
        self._given |= self.heap.places_changed(mark)

    def read_attribute(self, attrs: dict[str, Any], name: str) -> Any:
        """What an object holds under a name."""
        if self._given and (id(attrs), name) in self._given:
            self._basis.own = True
        return attrs[name]

    def without_fork(self, run: Callable[[], _T]) -> _T | None:
        """Run for good, where no choice is to be taken on the way; None where one is, or where the code raises."""
        mark = self.heap.mark()
        self._scope.trying += 1
        try:
            return run()
        except (NeedsDecision, Raised, TooLong):
            self.heap.rollback(mark)
            return None
        finally:
            self._scope.trying -= 1

    # --- decisions ---

    def decide(
        self, key: tuple[str, str], texts: tuple[str, ...], site: Site | None, values: tuple[Any, ...] = ()
    ) -> int:
        """Which of the alternatives this path takes; the others are taken by later paths of the same scope.

        ``values`` is what a script's condition reads: it is decided once for all rounds of a loop only where that
        stays the same.
        """
        scope = self._scope
        known = self._fact(key, texts)
        if known is not None:
            if self.script and not _unchanged(scope.values.get(key, values), values):
                code = site.code if site is not None else key[1]
                raise BudgetExceeded(f"whether {code} holds is not known", site)
            if (key, texts) not in scope.facts:
                scope.values = {**scope.values, key: values}
                scope.facts = {**scope.facts, (key, texts): known}
            return known
        if scope.trying:
            raise NeedsDecision
        scope.values = {**scope.values, key: values}
        choice = scope.again.pop(0) if scope.again else 0
        scope.taken.append(Decision(key, texts, choice, site))
        scope.facts = {**scope.facts, (key, texts): choice}
        return choice

    def settle(self, key: tuple[str, str], texts: tuple[str, ...], choice: int, values: tuple[Any, ...] = ()) -> None:
        """Take an alternative for this path for good, because there is no other one, where none is taken yet."""
        scope = self._scope
        if self._fact(key, texts) is None:
            scope.facts = {**scope.facts, (key, texts): choice}
            scope.values = {**scope.values, key: values}

    def is_decided(self, key: tuple[str, str], texts: tuple[str, ...]) -> bool:
        """Whether this path has taken that choice."""
        return self._fact(key, texts) is not None

    def decided(self, key: tuple[str, str], texts: tuple[str, ...]) -> int | None:
        """Which choice this path has taken there, if it has."""
        return self._fact(key, texts)

    def _fact(self, key: tuple[str, str], texts: tuple[str, ...]) -> int | None:
        fact, scope = (key, texts), self._scope
        known = scope.facts.get(fact)
        if known is None:
            known = scope.coming.get(fact)
        self._basis.ask(fact, known)
        return known

    @property
    def trying(self) -> int:
        """How many trials are running, one inside the other."""
        return self._scope.trying

    def try_out(self, run: Callable[[], Any]) -> tuple[Any, Redo, dict[tuple[Any, Any], Any]] | None:
        """Run, note the result and what changed, and undo it; None where the run meets a real fork or raises."""
        mark = self.heap.mark()
        facts = self._scope.facts
        self._scope.trying += 1
        failed = False
        result: Any = None
        try:
            result = run()
        except (NeedsDecision, Raised):
            failed = True
        finally:
            self._scope.trying -= 1
            self._scope.facts = facts
            redo = self.heap.rollback(mark)
        return None if failed else (result, redo, self.heap.net(redo, mark))

    def explore(self, run: Callable[[], Any], site: Site | None) -> list[Outcome]:
        """Every path through ``run``, each from the same state; outcomes that agree are merged.

        With a single path its changes stay; with several all are undone, and ``take`` does those of one again.
        """
        outer = self._scope
        outcomes: list[Outcome] = []
        begun: list[Decision] | None = []
        place = (self.layer, self.in_layer, self.layer_site)
        while begun is not None:
            self.layer, self.in_layer, self.layer_site = place
            mark = self.heap.mark()
            scope = self._scope = self._path(begun, outer)
            raised = None
            value = None
            try:
                value = run()
            except Raised as error:
                raised = error
            finally:
                self._scope = outer
            if not scope.taken:
                return [Outcome(value, raised, [], {}, ())]
            redo = self.heap.rollback(mark)
            read = tuple(value for decision in scope.taken for value in scope.values.get(decision.key, ()))
            found = Outcome(value, raised, redo, self.heap.net(redo, mark), tuple(scope.taken), read)
            meeting = self.meeting(site, scope.taken)
            if not any(merge(self.heap, found, other, meeting) for other in outcomes):
                outcomes.append(found)
            if len(outcomes) > self.budget.outcomes:
                raise BudgetExceeded(f"more than {self.budget.outcomes} different outcomes of one call", site)
            begun = next_path(scope.taken)
        returned = [outcome for outcome in outcomes if outcome.raised is None]
        if returned and not self.catching:
            outcomes = returned  # a path that raises does not serve: it is not an alternative wiring
        if len(outcomes) == 1:
            self.heap.replay(outcomes[0].redo)
        return outcomes

    def _path(self, begun: list[Decision], outer: _Scope) -> _Scope:
        """A path that takes these choices: the calls on the way to a condition know what is chosen there, and need not
        fork for it.

        In a script a condition may hold in one round of a loop and not in another, so there each is taken when met.
        """
        if self.script:
            return _Scope(outer.facts, outer.values, again=[decision.choice for decision in begun])
        coming = {(decision.key, decision.texts): decision.choice for decision in begun}
        return _Scope(outer.facts, outer.values, {**outer.coming, **coming} if coming else outer.coming, begun)

    def meeting(self, site: Site | None, decisions: Iterable[Decision] = ()) -> Meeting | None:
        """How the tensors of two paths are joined here; None outside the layers, where they are kept apart."""
        if not self.in_layer:
            return None
        place = "" if site is None else str(id(site.node))
        return Meeting(self.layer, ", ".join([place, *(decision.text for decision in decisions)]))

    def take(self, outcomes: list[Outcome], key: tuple[str, str], site: Site | None) -> Outcome:
        """The outcome that this path goes on with: the only one, or one of several by decision."""
        chosen = outcomes[0]
        if len(outcomes) > 1:
            values = tuple(value for outcome in outcomes for value in outcome.values)
            where = deciding_site(chosen, site)
            telling = deciding(outcomes)
            if telling is not None:
                # The condition itself, so that it is the same one wherever else it decides.
                choice = self.decide(telling[0].key, telling[0].texts, where, values)
                chosen = next(o for o, d in zip(outcomes, telling, strict=True) if d.choice == choice)
            else:
                texts = tuple(condition(outcome, outcomes) for outcome in outcomes)
                chosen = outcomes[self.decide(key, texts, where, values)]
            self.heap.replay(chosen.redo)
        if chosen.raised is not None:
            raise chosen.raised
        return chosen


def _unchanged(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    """Whether two readings of the same names agree in all that a condition on a layer's index could depend on."""
    return len(before) == len(now) and all(_agrees(a, b) for a, b in zip(before, now, strict=True))


def _agrees(before: Any, now: Any) -> bool:
    if isinstance(now, Unknown) or isinstance(before, Unknown):
        return before is now
    return not isinstance(now, bool | int | float | str | None) or bool(before == now)
