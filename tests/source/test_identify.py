"""A captured state is told by what the layers were handed."""

from __future__ import annotations

from eaglelint.source.identify import Stream
from eaglelint.source.machine import LayerPass, Machine
from eaglelint.source.tree import SourceTree
from eaglelint.source.values import Branch, Input, Norm, Tensor


def test_norms_of_norms_are_looked_at_once() -> None:
    """Each state holds the norm of the one before and all that it holds: walked as a tree, they are 2 ** 60 terms."""
    machine, layers = Machine(SourceTree(())), 60
    states = [Tensor.of(Input("embedding"))]
    for layer in range(layers):
        before = states[-1]
        states.append(Tensor(before.terms | {Norm(before), Branch(layer, 0, "mlp")}))
        machine.passes[layer] = LayerPass((before,), (states[-1],))
        machine.order.append((layers, layer))
    machine.final.append((layers - 1, states[-1]))
    stream = Stream(machine, layers)
    assert [stream.slot(states[index])[0].boundary for index in (0, 31, 60)] == [0, 31, 60]
