"""Code that is hard to follow: the answer may stay open, but what is called exact is what the model captures.

A wrong answer that looks exact is the worst that eaglelint can give. Each model here is also run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.mini import BEFORE, Model, derive
from tests.engines.reference import captured
from tests.engines.test_idioms import STATE, captures, loop

IN_PLACE_LAYER = """
hidden_states += self.self_attn(self.input_layernorm(hidden_states))
hidden_states.add_(self.mlp(self.post_attention_layernorm(hidden_states)))
return hidden_states
"""
ONE_STATE = """
hidden_states = self.embed_tokens(input_ids)
aux = []
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append({})
    hidden_states = layer(hidden_states)
return self.norm(hidden_states), aux
"""


NORMS_THAT_ADD = """
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
hidden_states, residual = self.post_attention_layernorm(self.self_attn(hidden_states), residual)
return self.mlp(hidden_states), residual
"""


def after(code: str) -> Model:
    """The usual capture, then some code."""
    return Model(loop=captures(f"aux.append({STATE})").replace("hidden_states, _ =", code + "\nhidden_states, _ =", 1))


def by_dict(code: str) -> Model:
    return Model(
        loop=loop(f"""
states = {{}}
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        states[i] = {STATE}
    hidden_states, residual = layer(hidden_states, residual)
{code}
aux = list(states.values())
""")
    )


def over(layers: str) -> Model:
    """The usual capture in a loop over these pairs of an index and a layer."""
    return Model(
        loop=loop(f"""
for i, layer in {layers}:
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")
    )


def told_to_capture(flag: str, told: str) -> Model:
    """Layers that are handed the list of states and capture where a flag is set, on them or on a part of them."""
    return Model(
        top="""
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.capture = False
""",
        layer_init="self.part = Part()\nself.capture = False",
        layer_args="hidden_states, residual, aux",
        layer=f"if {flag}:\n    aux.append({STATE})\n{NORMS_THAT_ADD}",
        loop=loop("""
for i, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual, aux)
"""),
        setter=f"""
for i, layer in enumerate(self.model.layers):
    {told}.capture = i in ([2, 6, 9] if layer_ids is None else [j + 1 for j in layer_ids])
""",
    )


# --- what is followed to the end: exact, and right -----------------------------------------------------------------


def with_part(init: str, shift: str = "shift") -> Model:
    """A model whose loop looks at a part that ``__init__`` has changed since it was made."""
    return Model(
        top="""
class Inner:
    def __init__(self):
        self.shift = 0

class Part:
    def __init__(self):
        self.shift = 0
        self.inner = Inner()

    def move(self):
        self.shift = 1

def shifted(part):
    part.shift = 1
""",
        init=init,
        loop=captures(f"aux.append({STATE})").replace("i in self", f"i - self.part.{shift} in self"),
    )


def marked(init: str) -> Model:
    """A model that captures after some layers, and before the others."""
    return Model(
        top="def mark(layers):\n    for layer in layers[6:]:\n        layer.late = True",
        layer_init="self.late = False",
        init=init,
        loop=loop(f"""
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture and not layer.late:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
    if i in self.layers_to_capture and layer.late:
        aux.append({STATE})
"""),
    )


FOLLOWED = {
    "added to in place after the capture": Model(
        loop="""
hidden_states = self.embed_tokens(input_ids)
residual = None
aux = []
for i, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual)
    if i + 1 in self.layers_to_capture:
        aux.append(hidden_states)
        hidden_states += residual
        residual = None
if residual is None:
    return self.norm(hidden_states), aux
return self.norm(hidden_states, residual)[0], aux
"""
    ),
    "layers that add in place to what was captured": Model(
        layer=IN_PLACE_LAYER, layer_args="hidden_states", loop=ONE_STATE.format("hidden_states")
    ),
    "layers that add in place, captured by clone": Model(
        layer=IN_PLACE_LAYER, layer_args="hidden_states", loop=ONE_STATE.format("hidden_states.clone()")
    ),
    "layers that add in place to a view": Model(
        layer=IN_PLACE_LAYER, layer_args="hidden_states", loop=ONE_STATE.format("hidden_states.view(-1)")
    ),
    "continue": Model(
        loop=loop(f"""
for i, layer in enumerate(self.layers):
    if i not in self.layers_to_capture:
        hidden_states, residual = layer(hidden_states, residual)
        continue
    aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "while": Model(
        loop=loop(f"""
pending = list(self.layers)
while pending:
    layer = pending.pop(0)
    if layer.layer_id in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "a loop over a list that the body empties": Model(
        loop=loop(f"""
wanted = sorted(self.layers_to_capture)
for i, layer in enumerate(self.layers):
    if wanted and i == wanted[0]:
        aux.append({STATE})
        del wanted[0]
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "one iterator over two loops": Model(
        loop=loop(f"""
layers = iter(enumerate(self.layers))
for i, layer in layers:
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
    if i == 4:
        break
for i, layer in layers:
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "next of an iterator": Model(
        loop=loop(f"""
ids = iter(self.layers_to_capture)
wanted = next(ids, None)
for i, layer in enumerate(self.layers):
    if i == wanted:
        aux.append({STATE})
        wanted = next(ids, None)
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "a counter that a closure changes": Model(
        loop=loop("""
count = 0

def capture(state, rest):
    nonlocal count
    if count in self.layers_to_capture:
        aux.append(state if rest is None else state + rest)
    count += 1

for layer in self.layers:
    capture(hidden_states, residual)
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "a global counter": Model(
        top="""
COUNT = 0

def bump():
    global COUNT
    COUNT += 1
""",
        loop=loop(f"""
global COUNT
COUNT = 0
for layer in self.layers:
    if COUNT in self.layers_to_capture:
        aux.append({STATE})
    bump()
    hidden_states, residual = layer(hidden_states, residual)
"""),
    ),
    "a layer that is told the next one's number": Model(
        layer_args="hidden_states, residual, next_layer=None",
        layer="""
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
hidden_states = self.self_attn(hidden_states)
if next_layer is None:
    hidden_states = self.mlp(hidden_states)
hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
return self.mlp(hidden_states), residual
""",
        loop=loop(f"""
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual, i + 1 if i < 11 else None)
"""),
    ),
    "layers whose parts are told to capture": told_to_capture("self.part.capture", "layer.part"),
    "layers that are told to capture": told_to_capture("self.capture", "layer"),
    "layers that capture by the number that they are handed": Model(
        layer_args="hidden_states, residual, number, captured",
        layer="""
if number in captured["ids"]:
    captured["states"].append(hidden_states if residual is None else hidden_states + residual)
if residual is None:
    residual = hidden_states
    hidden_states = self.input_layernorm(hidden_states)
else:
    hidden_states, residual = self.input_layernorm(hidden_states, residual)
hidden_states, residual = self.post_attention_layernorm(self.self_attn(hidden_states), residual)
return self.mlp(hidden_states), residual
""",
        loop=loop("""
captured = {"ids": self.layers_to_capture, "states": aux}
for i, layer in enumerate(self.layers):
    hidden_states, residual = layer(hidden_states, residual, i, captured)
"""),
    ),
    "a list of a class of its own, which is no tensor": Model(
        top="""
import torch

class States(list):
    def capture(self, state):
        self.append(state)

def pack(states):
    return [states] if isinstance(states, torch.Tensor) else list(states)
""",
        loop=loop(f"""
states = States()
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        states.capture({STATE})
    hidden_states, residual = layer(hidden_states, residual)
aux = pack(states)
"""),
    ),
    "defaults bind early": Model(
        loop=loop("""
hooks = [
    lambda s, r, i=i: aux.append(s if r is None else s + r) if i in self.layers_to_capture else None
    for i in range(len(self.layers))
]
for i, layer in enumerate(self.layers):
    hooks[i](hidden_states, residual)
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "closures bind late": Model(
        setter="self.model.layers_to_capture = [11]",
        loop=loop("""
hooks = [
    lambda s, r: aux.append(s if r is None else s + r) if i in self.layers_to_capture else None
    for i in range(len(self.layers))
]
for j, layer in enumerate(self.layers):
    if j < 2:
        hooks[j](hidden_states, residual)
    hidden_states, residual = layer(hidden_states, residual)
"""),
    ),
    "del of an item": after("del aux[0]"),
    "del of a slice": after("del aux[1:]"),
    "a slice assigned": after("aux[:1] = []"),
    "pop": after("aux.pop()"),
    "reverse": after("aux.reverse()"),
    "reversed": after("aux = list(reversed(aux))"),
    "a copy that loses its last": after("import copy\nother = copy.copy(aux)\nother.pop()"),
    "an alias that loses its last": after("other = aux\nother.pop()"),
    "insert": Model(loop=captures(f"aux.insert(0, {STATE})")),
    "a list rebound": Model(
        loop=loop(f"""
kept = aux
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux = aux + [{STATE}]
    hidden_states, residual = layer(hidden_states, residual)
aux = kept + aux
""")
    ),
    "two lists": Model(
        loop=loop(f"""
odd, even = [], []
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        (odd if i % 2 else even).append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
aux = odd + even
""")
    ),
    "places in a list": Model(
        loop=loop(f"""
aux = [None] * len(self.layers_to_capture)
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux[-1 - self.layers_to_capture.index(i)] = {STATE}
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "del of a key": by_dict("del states[min(states)]"),
    "popitem": by_dict("states.popitem()"),
    "a dict updated by pairs": by_dict("states.update([(20, hidden_states)])"),
    "try around the capture": Model(
        loop=loop("""
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        try:
            aux.append(hidden_states + residual)
        except TypeError:
            aux.append(hidden_states)
    hidden_states, residual = layer(hidden_states, residual)
""")
    ),
    "a decorator that keeps the first": Model(
        top="""
def first_only(function):
    def wrapped(self, states):
        return function(self, states)[:1]
    return wrapped
""",
        methods="""
@first_only
def chosen(self, states):
    return states
""",
        loop=captures(f"aux.append({STATE})").replace(
            "return hidden_states, aux", "return hidden_states, self.chosen(aux)"
        ),
    ),
    "a function of a condition": Model(
        top="""
if 1 + 1 == 2:
    def shifted(i):
        return i
else:
    def shifted(i):
        return i + 1
""",
        loop=BEFORE.replace("if i in", "if shifted(i) in"),
    ),
    "a function in place of a failed import": Model(
        top="""
try:
    from sglang.srt.models.helper import shifted
except ImportError:
    def shifted(i):
        return i + 1
""",
        extra={"srt/models/helper.py": "def shifted(i):\n    return i\n"},
        loop=BEFORE.replace("if i in", "if shifted(i) in"),
    ),
    "a constant that a condition leaves": Model(
        top="OFFSET = 0\nif len('ab') == 3:\n    OFFSET = 1\n", loop=BEFORE.replace("if i in", "if i + OFFSET in")
    ),
    "a constant that is changed": Model(
        top="IDS = [1, 2]\nIDS.append(5)\n", loop=BEFORE.replace("self.layers_to_capture", "IDS")
    ),
    "a class variable that reads another": Model(
        top="SHIFT = 5",
        methods="SHIFT = 1\nOFFSET = SHIFT + 1",
        loop=BEFORE.replace("if i in", "if i + self.OFFSET in"),
    ),
    "an object shared by two attributes": Model(
        top="""
class Settings:
    def __init__(self):
        self.ids = [1]

class User:
    def __init__(self, settings):
        self.settings = settings
""",
        init="self.settings = Settings()\nself.user = User(self.settings)",
        setter="self.model.settings.ids = [i + 1 for i in layer_ids or [1, 5]]",
        loop=BEFORE.replace("self.layers_to_capture", "self.user.settings.ids"),
    ),
    "a class variable set anew": Model(
        methods="IDS = [1]",
        setter="type(self.model).IDS = [5]",
        loop=BEFORE.replace("self.layers_to_capture", "self.IDS"),
    ),
    "a method that the setter replaces": Model(
        methods="def wants(self, i):\n    return i == 1",
        setter="self.model.wants = lambda i: i == 4",
        loop=BEFORE.replace("i in self.layers_to_capture", "self.wants(i)"),
    ),
    "layers wrapped by the setter": Model(
        top="""
class WrapDecoderLayer(nn.Module):
    def __init__(self, inner):
        self.inner = inner

    def forward(self, hidden_states, residual):
        return self.inner.forward(hidden_states, residual)
""",
        setter="""
self.model.layers_to_capture = [2, 5]
self.model.layers = nn.ModuleList([WrapDecoderLayer(layer) for layer in self.model.layers])
""",
    ),
    "layers in a dict of modules, in order": Model(
        init="""
count = config.num_hidden_layers
self.layers = nn.ModuleDict({str(i): LlamaDecoderLayer(config, i) for i in range(count)})
""",
        loop=captures(f"aux.append({STATE})").replace(
            "in enumerate(self.layers)", "in enumerate(self.layers.values())"
        ),
    ),
    "layers in a dict of modules, by name": Model(
        init="""
count = config.num_hidden_layers
self.layers = nn.ModuleDict({str(i): LlamaDecoderLayer(config, i) for i in range(count)})
""",
        loop=loop(f"""
for i in range(len(self.layers)):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = self.layers[str(i)](hidden_states, residual)
"""),
    ),
    "layers that differ by their index": Model(
        layer="""
if residual is not None:
    hidden_states = hidden_states + residual
residual = hidden_states
hidden_states = self.mlp(self.input_layernorm(hidden_states))
if self.layer_id == 4:
    return hidden_states + residual, None
return hidden_states, residual
"""
    ),
    "one layer of another class": Model(
        top="""
class OddDecoderLayer(nn.Module):
    def __init__(self):
        self.mlp = nn.Linear(1, 1)

    def forward(self, hidden_states, residual):
        return self.mlp(hidden_states), hidden_states + residual
""",
        init="self.layers[3] = OddDecoderLayer()",
    ),
    "a forward pass by recursion": Model(
        methods=f"""
def run(self, i, hidden_states, residual, aux):
    if i == len(self.layers):
        return hidden_states, residual
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = self.layers[i](hidden_states, residual)
    return self.run(i + 1, hidden_states, residual, aux)
""",
        loop=loop("hidden_states, residual = self.run(0, hidden_states, residual, aux)\n"),
    ),
    "states kept on the model": Model(
        init="self.collected = []",
        methods="""
def note(self, i):
    if i in self.layers_to_capture:
        self.collected.append(self.hidden)
""",
        loop=loop(f"""
for i, layer in enumerate(self.layers):
    self.hidden = {STATE}
    self.note(i)
    hidden_states, residual = layer(hidden_states, residual)
aux = self.collected
"""),
    ),
    "an embedding that is scaled in place": Model(
        loop=BEFORE.replace("residual = None", "hidden_states *= 2.0\nresidual = None")
    ),
    "rotary embeddings beside the stream": Model(
        init="self.rotary = nn.Linear(1, 1)",
        layer_args="hidden_states, residual, rotary",
        loop=loop(f"""
rotary = self.rotary(input_ids)
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual, rotary)
"""),
    ),
    "__init__ changes a part that it has made": with_part("self.part = Part()\nself.part.shift = 1"),
    "__init__ changes a part before it keeps it": with_part("part = Part()\npart.shift = 1\nself.part = part"),
    "__init__ hands a part to a function": with_part("self.part = Part()\nshifted(self.part)"),
    "__init__ calls a method of a part": with_part("self.part = Part()\nself.part.move()"),
    "__init__ changes the part of a part": with_part("self.part = Part()\nself.part.inner.shift = 1", "inner.shift"),
    "__init__ changes a part under another name": with_part("self.part = Part()\npart = self.part\npart.shift = 1"),
    "__init__ changes the layers": marked("for layer in self.layers:\n    layer.late = layer.layer_id > 4"),
    "__init__ changes the layers by number": marked("for i, layer in enumerate(self.layers):\n    layer.late = i > 4"),
    "__init__ changes one layer": marked("self.layers[6].late = True"),
    "__init__ hands the layers to a function": marked("mark(self.layers)"),
    "a layer that hands on the next one's normed input": Model(
        layer_args="hidden_states, normed",
        layer="""
normed = self.input_layernorm(hidden_states) if normed is None else normed
hidden_states = hidden_states + self.self_attn(normed)
hidden_states = hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))
return hidden_states, self.input_layernorm(hidden_states)
""",
        loop="""
hidden_states = self.embed_tokens(input_ids)
normed = None
aux = []
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append(hidden_states)
    hidden_states, normed = layer(hidden_states, normed)
return normed, aux
""",
    ),
    "what a layer hands on normed is captured": Model(
        layer_args="hidden_states, normed",
        layer="""
hidden_states = hidden_states + self.self_attn(normed)
hidden_states = hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))
return hidden_states, self.input_layernorm(hidden_states)
""",
        loop="""
hidden_states = self.embed_tokens(input_ids)
normed = self.norm(hidden_states)
aux = []
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append(normed)
    hidden_states, normed = layer(hidden_states, normed)
return normed, aux
""",
    ),
    "a class with its own way to set attributes": Model(
        methods="""
def __setattr__(self, name, value):
    object.__setattr__(self, name, [i + 1 for i in value] if name == "layers_to_capture" else value)
"""
    ),
    "a class that keeps some attributes from being set": Model(
        methods="""
def __setattr__(self, name, value):
    if name == "unwanted":
        return
    super().__setattr__(name, value)
""",
        loop="self.unwanted = 1\nself.captures = True\n"
        + loop(f"""
for i, layer in enumerate(self.layers):
    if self.captures and i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
"""),
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_it_is_followed(tmp_path: Path, name: str) -> None:
    """Exactly, as Python runs it."""
    for ids in (None, [0, 3, 10]):
        wiring = derive(tmp_path, FOLLOWED[name], "default" if ids is None else tuple(ids))
        assert (wiring.status, [str(slot) for slot in wiring.slots]) == ("exact", captured(tmp_path, ids)), (
            wiring.reason
        )


# --- what is not: open, with a reason ------------------------------------------------------------------------------

OPEN = {
    "a layer is skipped": (
        over("[pair for pair in enumerate(self.layers) if pair[0] != 4]"),
        "layer 5 runs where layer 4 would",
    ),
    "a layer runs twice": (
        Model(
            loop=loop(f"""
for i, layer in enumerate(self.layers):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
    if i == 3:
        hidden_states, residual = layer(hidden_states, residual)
""")
        ),
        "layer 3 runs where layer 4 would",
    ),
    "the layers run backwards": (over("enumerate(reversed(self.layers))"), "layer 11 runs where layer 0 would"),
    "the loop starts late": (over("enumerate(self.layers[2:])"), "layer 2 runs where layer 0 would"),
    "a second list of modules": (
        Model(
            init="self.adapters = nn.ModuleList([nn.Linear(1, 1) for _ in range(config.num_hidden_layers)])",
            loop=BEFORE.replace(
                "hidden_states, _ =", "hidden_states = self.adapters[0](hidden_states)\nhidden_states, _ ="
            ),
        ),
        "layers do not run in order",
    ),
    "a generator of layers": (
        Model(
            methods="def rest(self):\n    for i in range(4, len(self.layers)):\n        yield i, self.layers[i]",
            loop=loop(f"""
for i, layer in enumerate(self.layers[:4]):
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
for i, layer in self.rest():
    if i in self.layers_to_capture:
        aux.append({STATE})
    hidden_states, residual = layer(hidden_states, residual)
"""),
        ),
        "only 4 of 12 layers",
    ),
    "the list is shuffled by something else": (after("import random\nrandom.Random(1).shuffle(aux)"), "shuffle"),
    "ids from a loop over something unknown": (
        Model(
            top="import os",
            setter="self.model.layers_to_capture = [2]\nfor key in os.environ:\n    self.model.layers_to_capture.append(len(key))",
        ),
        "",
    ),
    "ids chosen by a match": (
        Model(
            setter="""
self.model.layers_to_capture = [2]
match layer_ids:
    case None:
        self.model.layers_to_capture = [2, 6]
    case [first, *rest]:
        self.model.layers_to_capture = [first]
"""
        ),
        "",
    ),
    "arguments that are not known": (
        Model(
            top="import os",
            methods="def capture(self, aux, state, keep=True):\n    if keep:\n        aux.append(state)",
            loop=captures(
                f"self.capture(aux, {STATE}, **{{key: len(key) < 0 for key in list(os.environ) and ['keep']}})"
            ),
        ),
        "",
    ),
    "a generator of ids, which the first layer uses up": (
        Model(setter="self.model.layers_to_capture = (i + 1 for i in layer_ids or [1, 5])"),
        "no captured state was found",
    ),
    "a scaled branch": (Model(loop=captures("aux.append(hidden_states * 0.5)")), "does not join the stream"),
    "a difference": (Model(loop=captures("aux.append(hidden_states - residual)")), "does not join the stream"),
    "a scaled state": (Model(loop=captures(f"aux.append(({STATE}) * 0.5)")), "does not join the stream"),
    "a state inside a layer": (
        Model(
            layer_args="hidden_states, captured=None",
            layer="""
hidden_states = hidden_states + self.self_attn(self.input_layernorm(hidden_states))
if captured is not None:
    captured.append(hidden_states)
return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))
""",
            loop="""
hidden_states = self.embed_tokens(input_ids)
aux = []
for i, layer in enumerate(self.layers):
    hidden_states = layer(hidden_states, captured=aux if i in self.layers_to_capture else None)
return self.norm(hidden_states), aux
""",
        ),
        "a state inside layer 2, between two of its branches",
    ),
    "the residual alone": (Model(loop=captures("aux.append(residual)")), "one branch short of h[2]"),
    "a function that is not among the sources": (
        Model(top="from somewhere import fuse", loop=captures(f"aux.append(fuse({STATE}))")),
        "the call of somewhere.fuse could not be followed (sglang/srt/models/llama.py:",
    ),
    "the ids themselves": (
        Model(top="from somewhere import choose", setter="self.model.layers_to_capture = choose()"),
        "",
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_it_is_left_open(tmp_path: Path, name: str) -> None:
    """Never exact; the reason says what could not be followed, with the line."""
    model, reason = OPEN[name]
    wiring = derive(tmp_path, model)
    assert wiring.status != "exact", wiring
    assert reason in (wiring.reason or ""), wiring.reason
    assert wiring.status == "conditional" or wiring.reason
