"""What exporters make of the names of a state dict, in the ways in which they are written."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from eaglelint.exported import Saved, WeightMap
from eaglelint.source.calls import call_value, construct
from eaglelint.source.tree import SourceTree
from eaglelint.trainers.base import step
from eaglelint.trainers.bench import Bench, NotFollowed
from eaglelint.trainers.parameters import Named, build
from eaglelint.trainers.spoken import spoken_names
from eaglelint.trainers.weights import conversion, rules_of

NAMES = ("midlayer.fc.weight", "midlayer.norm.weight", "embed_tokens.weight", "t2d", "rotary_emb.inv_freq")


def bench_of(directory: Path, source: str) -> Bench:
    (directory / "export.py").write_text(dedent(source), "utf-8")
    return Bench(SourceTree((directory,), relative_to=directory), directory, 4)


def exported(directory: Path, source: str, names: tuple[str, ...] = NAMES) -> WeightMap:
    """What ``save(state)`` makes of these names."""
    bench = bench_of(directory, source)
    save = bench.function("export.py", "save")
    named = [Named(name, None) for name in names]
    return conversion(
        bench, step(save, "saves"), named, lambda state: call_value(bench.machine, save, (state,), {}, None)
    )


def written(weights: WeightMap) -> dict[str, tuple[str, ...]]:
    return {saved.name: saved.written for saved in weights.names if saved.renamed}


# How the name of a tensor is changed or left out in public code, and what becomes of NAMES.
IDIOMS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "a comprehension with a filter (AngelSlim)": (
        """
        def save(state):
            return {k: v for k, v in state.items() if "embed" not in k}
        """,
        {"embed_tokens.weight": ()},
    ),
    "a table of prefixes (TorchSpec)": (
        """
        MAP = [("midlayer.", "layers.0.")]

        def save(state):
            out = {}
            for k, v in state.items():
                new = k
                for old, by in MAP:
                    if k.startswith(old):
                        new = by + k[len(old):]
                        break
                out[new] = v
            return out
        """,
        {"midlayer.fc.weight": ("layers.0.fc.weight",), "midlayer.norm.weight": ("layers.0.norm.weight",)},
    ),
    "continue, and a tensor that is cloned (ModelOpt)": (
        """
        def save(state):
            out = {}
            for key, value in state.items():
                if "rotary_emb" in key:
                    continue
                out[key.replace("midlayer.", "")] = value.clone().to("cpu")
            return out
        """,
        {
            "midlayer.fc.weight": ("fc.weight",),
            "midlayer.norm.weight": ("norm.weight",),
            "rotary_emb.inv_freq": (),
        },
    ),
    "re.sub and a compiled pattern": (
        """
        import re

        BUFFERS = re.compile(r"(t2d|d2t|.*inv_freq)$")

        def save(state):
            return {re.sub(r"^midlayer\\.", "layers.0.", k): v for k, v in state.items() if not BUFFERS.match(k)}
        """,
        {
            "midlayer.fc.weight": ("layers.0.fc.weight",),
            "midlayer.norm.weight": ("layers.0.norm.weight",),
            "t2d": (),
            "rotary_emb.inv_freq": (),
        },
    ),
    "pop": (
        """
        def save(state):
            out = dict(state)
            out["model.embed_tokens.weight"] = out.pop("embed_tokens.weight")
            for name in [k for k in out if k.startswith("rotary")]:
                del out[name]
            return out
        """,
        {"embed_tokens.weight": ("model.embed_tokens.weight",), "rotary_emb.inv_freq": ()},
    ),
    "a fused tensor that is split (speculators)": (
        """
        def save(state):
            out = {}
            for key, tensor in state.items():
                if key == "midlayer.fc.weight":
                    first, second = tensor.split([4, 2], dim=0)
                    out["a.weight"], out["b.weight"] = first, second
                else:
                    out[key] = tensor
            return out
        """,
        {"midlayer.fc.weight": ("a.weight", "b.weight")},
    ),
}


@pytest.mark.parametrize(("source", "changed"), IDIOMS.values(), ids=IDIOMS)
def test_what_becomes_of_each_name(tmp_path: Path, source: str, changed: dict[str, tuple[str, ...]]) -> None:
    """Names that are not listed stay as they are."""
    assert written(exported(tmp_path, source)) == changed


def test_the_line_that_leaves_out_or_renames(tmp_path: Path) -> None:
    """The last condition that was read about a name that is missing; where a renamed one is put."""
    found = exported(
        tmp_path,
        """
        def save(state):
            out = {}
            for key, value in state.items():
                if "rotary" in key:
                    continue
                short = key.split("midlayer.")[-1]
                if short.startswith("t2"):
                    continue
                out[short] = value
            if "lm_head.weight" not in out:
                out["lm_head.weight"] = None
            return out
        """,
    )
    places = {saved.name: (saved.path, saved.line) for saved in found.names if saved.renamed}
    assert places == {
        "midlayer.fc.weight": ("export.py", 10),
        "midlayer.norm.weight": ("export.py", 10),
        "t2d": ("export.py", 8),
        "rotary_emb.inv_freq": ("export.py", 5),
    }
    assert found.added == ("lm_head.weight",)


def test_what_holds_on_one_path_only_says_so(tmp_path: Path) -> None:
    """A flag that the code does not tell decides: the name is left out under that condition, the others always kept."""
    found = exported(
        tmp_path,
        """
        import settings

        def save(state):
            if settings.read().keep_vocabulary:
                return dict(state)
            return {key: value for key, value in state.items() if key != "t2d"}
        """,
    )
    assert [(saved.name, saved.written, saved.condition) for saved in found.names if saved.renamed] == [
        ("t2d", (), "when not settings.read().keep_vocabulary")
    ]


def test_names_that_are_made_at_run_time_are_not_told(tmp_path: Path) -> None:
    """Neither kept nor left out: the answer is that it is not known."""
    with pytest.raises(NotFollowed, match="what is saved is not known"):
        exported(
            tmp_path,
            """
            import json

            def save(state):
                names = json.load(open("names.json"))
                return {names[k]: v for k, v in state.items()}
            """,
        )


def test_renamings_in_short(tmp_path: Path) -> None:
    """What differs at the front is one rule for all below it; a module that is left out whole is one as well."""
    names = ("midlayer.a.weight", "midlayer.b.c.weight", "old.x.weight", "old.y.weight", "fc.weight")
    found = exported(
        tmp_path,
        """
        def save(state):
            kept = {k: v for k, v in state.items() if not k.startswith("old.")}
            return {k.replace("midlayer.", "layers.0."): v for k, v in kept.items()}
        """,
        names,
    )
    assert [(before, after) for before, after, *_ in rules_of(found)] == [
        ("midlayer.*", ("layers.0.*",)),
        ("old.*", ()),
    ]
    source = found.before("layers.0.a.weight")
    assert source is not None and (source[0], source[1].line) == ("midlayer.a.weight", 4)
    assert found.before("fc.weight") is None


def test_a_name_before_and_after() -> None:
    """A star stands for the same text on both sides; what the trainer keeps before a name does not matter."""
    names = (
        Saved("draft_model.midlayer.*", ("layers.0.*",), "export.py", 1),
        Saved("model.fc.weight", ("fc.weight",), "", 1),
    )
    weights = WeightMap("export.py", 1, names)
    assert [found and found[0] for found in map(weights.before, ("layers.0.norm.weight", "fc.weight", "d2t"))] == [
        "draft_model.midlayer.norm.weight",
        "model.fc.weight",
        None,
    ]
    assert [found and found[0] for found in map(weights.after, ("fc.weight", "draft_model.midlayer.a", "d2t"))] == [
        None,
        "layers.0.a",
        None,
    ]


MODULE = """
    import torch
    from torch import nn
    from elsewhere import DecoderLayer, RMSNorm

    class Gate(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(size))
            self.act = nn.SiLU()

    class Draft(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.size = config.size
            self.embed_tokens = nn.Embedding(8, 4)
            self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(2)])
            self.fc = nn.Linear(12, 4, bias=config.bias)
            self.gate = Gate(4)
            self.norm = RMSNorm(4)
            self.register_buffer("d2t", torch.zeros(8))
            self.register_buffer("inv_freq", torch.zeros(8), persistent=False)
            self._heads()
            self.embed_tokens.weight.requires_grad = False
            for parameter in self.gate.parameters():
                parameter.requires_grad = False

        def _heads(self):
            self.lm_head = nn.Linear(4, 8, bias=False)
            self.lm_head.weight.requires_grad_(False)

        def unfreeze(self):
            self.embed_tokens.weight.requires_grad = True
"""


def test_the_tensors_of_a_module(tmp_path: Path) -> None:
    """By the names of its state dict, and whether they are trained; a module from elsewhere is one name with a star."""
    bench = bench_of(tmp_path, MODULE)

    def run() -> Any:
        config = bench.section("config", {"size": 4, "bias": True})
        model = construct(bench.machine, bench.cls("export.py", "Draft"), (config,), {})
        return [(named.name, named.trained) for named in build(bench.machine, model, "draft.")]

    assert sorted(bench.run(run, "build")) == [
        ("draft.d2t", False),
        ("draft.embed_tokens.weight", False),
        ("draft.fc.bias", True),
        ("draft.fc.weight", True),
        ("draft.gate.scale", False),
        ("draft.layers.0.*", True),
        ("draft.layers.1.*", True),
        ("draft.lm_head.weight", False),
        ("draft.norm.weight", True),
    ]


def test_the_names_that_a_converter_speaks_of(tmp_path: Path) -> None:
    """What is held against a key; a name that is looked up in the checkpoint stands for itself."""
    bench = bench_of(
        tmp_path,
        """
        class Converter:
            def convert(self, weights):
                pruned = "t2d" in weights
                for key, value in weights.items():
                    short = key.removeprefix("model.")
                    if key.startswith("midlayer.") or ".g_proj." in key or key == "fc.weight":
                        continue
                    if "rotary_emb" in short or key in ("d2t", "ids"):
                        continue
                return any("qkv_proj" in k for k in weights)
        """,
    )
    assert spoken_names(bench.cls("export.py", "Converter")) == (
        "t2d",
        "midlayer.*",
        "*.g_proj.*",
        "fc.weight",
        "*.rotary_emb.*",
        "d2t",
        "ids",
        "*.qkv_proj.*",
    )
