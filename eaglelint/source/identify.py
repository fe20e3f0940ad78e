"""Which boundary a tensor is: compared with what each decoder layer was handed."""

from __future__ import annotations

from eaglelint.source.machine import Machine
from eaglelint.source.values import Branch, Cat, Norm, Opaque, Tensor, Term
from eaglelint.wiring import Slot

__all__ = ["Stream"]

UNKNOWN = Slot("unknown")


class Stream:
    """h[0] .. h[N] as a run saw them pass from layer to layer.

    h[k] is the sum of the tensors that layer k was handed and that end up in the final norm; h[N] is what the final
    norm was given. A layer's further results (routing indices, say) travel along but are no part of the stream.
    ``complete`` says whether each layer was seen to run once, in order.
    """

    def __init__(self, machine: Machine, num_layers: int) -> None:
        self.num_layers = num_layers
        self._seen = _Seen()
        ran = [index for count, index in machine.order if count == num_layers]
        # Layers that have no source are counted, not seen.
        self.complete = ran == list(range(num_layers)) and "opaque layers" not in machine.memo
        self._out_of_order = _out_of_order(ran, num_layers, machine.elsewhere)
        self._whole: dict[frozenset[Term], int] = {}
        self._totals: dict[int, set[Term]] = {}
        self._parts: dict[frozenset[Term], int] = {}
        self._branches: dict[frozenset[Term], int] = {}
        last = machine.passes.get(num_layers - 1)
        finals = [tensor for layer, tensor in machine.final if layer == num_layers - 1]
        final = finals[0] if finals else None
        beside = self._beside(last.output if last else (), final)
        constant = self._constant(machine)
        for index in range(num_layers):
            if index in machine.passes:
                before = machine.passes.get(index - 1)
                ignored = {before.output[j].terms for j in beside if before and j < len(before.output)}
                entry = [t for t in machine.passes[index].entry if t.terms not in ignored]
                changing = [t for t in entry if t.terms not in constant]
                self._add(index, _without_norms(changing or entry, machine.passes[index].output))
        if final is not None and all(map(self._seen.certain, final.terms)):
            self._whole.setdefault(final.terms, num_layers)
        if last is not None:
            parts = [t for j, t in enumerate(last.output) if j not in beside]
            alike = len(_without_norms(list(last.entry), last.output)) < len(last.entry)
            self._add(num_layers, _without_norms(parts, ()) if alike else parts)

    @staticmethod
    def _constant(machine: Machine) -> set[frozenset[Term]]:
        """What every layer is handed unchanged beside the stream: rotary embeddings, say."""
        passes = list(machine.passes.values())
        if len(passes) < 2:
            return set()
        return set.intersection(*({tensor.terms for tensor in passed.entry} for passed in passes))

    @staticmethod
    def _beside(output: tuple[Tensor, ...], final: Tensor | None) -> set[int]:
        if final is None:
            return set()
        alone = [j for j, tensor in enumerate(output) if tensor.terms == final.terms]
        if alone:
            return set(range(len(output))) - {alone[0]}  # the layer has summed; what else it returns is an older state
        return {j for j, tensor in enumerate(output) if not tensor.terms <= final.terms}

    def _add(self, boundary: int, parts: list[Tensor]) -> None:
        total: set[Term] = set()
        for part in parts:
            if total & part.terms:
                return  # handed over twice: which of the two is the stream is not known
            total |= part.terms
        if not all(map(self._seen.certain, total)):
            return
        if total:
            self._whole.setdefault(frozenset(total), boundary)
            self._totals[boundary] = total
        if len(parts) > 1:
            for part in parts:
                recent = boundary > 0 and all(self._seen.layer(term) == boundary - 1 for term in part.terms)
                (self._branches if recent else self._parts).setdefault(part.terms, boundary)

    def slot(self, tensor: Tensor) -> tuple[Slot, str | None]:
        """The slot that a captured tensor fills, or the unknown slot with the reason."""
        if self._out_of_order:
            return UNKNOWN, self._out_of_order
        if tensor.terms in self._whole:
            return Slot("stream", self._whole[tensor.terms]), None
        if tensor.terms in self._branches:
            return Slot("partial", self._branches[tensor.terms]), None
        term = tensor.single()
        match term:
            case Norm():
                inner, reason = self.slot(term.of)
                return (Slot("norm", inner.boundary), None) if inner.form == "stream" else (UNKNOWN, reason)
            case Opaque():
                return UNKNOWN, term.why + (f" ({term.site})" if term.site is not None else "")
            case Cat():
                return UNKNOWN, "a concatenation inside a slot"
        opaque = next((term for term in tensor.terms if isinstance(term, Opaque)), None)
        if opaque is not None:
            return self.slot(Tensor.of(opaque))
        if tensor.terms in self._parts:
            return UNKNOWN, f"the residual alone, one branch short of h[{self._parts[tensor.terms]}]"
        layers = {self._seen.layer(term) for term in tensor.terms}
        last = max(layers, default=-1)
        if last < 0:
            return UNKNOWN, "a state that no layer was handed"
        if not tensor.terms <= self._totals.get(last + 1, set()):
            return UNKNOWN, f"a state of layer {last} that does not join the stream"
        if layers == {last}:
            return Slot("partial", last + 1), None
        return UNKNOWN, f"a state inside layer {last}, between two of its branches"


def _without_norms(parts: list[Tensor], output: tuple[Tensor, ...]) -> list[Tensor]:
    """The tensors but the norm of another of them, computed in advance, which a layer with this output does not add."""
    sums = {part.terms for part in parts}
    added = {term for tensor in output for term in tensor.terms}
    norms = [term for part in parts if isinstance(term := part.single(), Norm) and term.of.terms in sums]
    return [part for part in parts if part.single() not in norms or part.single() in added]


def _out_of_order(ran: list[int], num_layers: int, elsewhere: list[int]) -> str | None:
    """Why the states between the layers cannot be counted; None where each layer ran once, in order.

    Where the rest of the layers ran elsewhere, what passed between the first ones is known all the same.
    """
    if not ran or ran == list(range(num_layers)) or (len(ran) in elsewhere and ran == list(range(len(ran)))):
        return None
    for position, index in enumerate(ran):
        if index != position:
            return f"the layers do not run in order, once each: layer {index} runs where layer {position} would"
    return f"only {len(ran)} of {num_layers} layers were seen to run"


class _Seen:
    """What is asked of terms, once of each: the norm of a norm of sums holds the same terms over and over."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[Term, bool, int]] = {}  # with the term, so that no other gets its identity

    def certain(self, term: Term) -> bool:
        """Whether a term is one certain state, so that what equals it is the same state."""
        return self._tell(term)[1]

    def layer(self, term: Term) -> int:
        """The layer in which a term arose, -1 before the first."""
        return self._tell(term)[2]

    def _tell(self, term: Term) -> tuple[Term, bool, int]:
        told = self._told.get(id(term))
        if told is None:
            inner = [self._tell(each) for each in _inner(term)]
            certain = term.serial is not None if isinstance(term, Opaque) else all(each[1] for each in inner)
            layer = term.layer if isinstance(term, Branch) else max((each[2] for each in inner), default=-1)
            told = self._told[id(term)] = term, certain, layer
        return told


def _inner(term: Term) -> list[Term]:
    """The terms that a term is made of."""
    match term:
        case Norm():
            return list(term.of.terms)
        case Cat():
            return [inner for part in term.parts for inner in part.terms]
    return []
