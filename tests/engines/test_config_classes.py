"""What a target's config does not say: the defaults of its class, where the engine brings that class."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from tests.engines.mini import BEFORE, Model, derive, handle, write_engine

CONFIG = {
    "srt/configs/llama.py": """
        from transformers import PretrainedConfig


        class LlamaConfig(PretrainedConfig):
            def __init__(self, num_hidden_layers=99, capture_shift=1, **kwargs):
                self.num_hidden_layers = num_hidden_layers
                self.capture_shift = capture_shift
                super().__init__(**kwargs)

            @property
            def shifts(self):
                return [self.capture_shift for _ in range(self.num_hidden_layers)]
    """
}
TOP = "from sglang.srt.configs.llama import LlamaConfig\n"


def model(annotation: str) -> Model:
    setter = "self.model.layers_to_capture = [i + self.config.shifts[i] for i in layer_ids]"
    return Model(top=TOP, setter=setter, extra=CONFIG, init="self.extra = Extra(config)\n", bases="").__class__(
        top=TOP + f"\n\nclass Extra:\n    def __init__(self, config{annotation}):\n        self.config = config\n",
        setter=setter.replace("self.config", "self.model.extra.config"),
        extra=CONFIG,
        init="self.extra = Extra(config)",
        loop=BEFORE,
    )


def test_the_class_that_a_module_names_gives_defaults(tmp_path: Path) -> None:
    """The config says how many layers there are; the shift is the class's default, and the answer says so."""
    wiring = derive(tmp_path, model(": LlamaConfig"), (1, 5, 8))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")
    assert "the defaults of LlamaConfig" in wiring.assumptions


def test_without_a_class_what_the_config_lacks_is_not_known(tmp_path: Path) -> None:
    wiring = derive(tmp_path, model(""), (1, 5, 8))
    assert wiring.status == "unknown"


def test_of_two_classes_of_one_name_the_registered_one_is_the_target(tmp_path: Path) -> None:
    """A file that comes first, but whose EntryClass is another, is not taken."""
    other = "class LlamaForCausalLM:\n    pass\n\n\nclass Other:\n    pass\n\n\nEntryClass = Other\n"
    found = handle(write_engine(tmp_path, Model(extra={"srt/models/a_first.py": other})))
    binding = found.engine.target_class(found.source, "LlamaForCausalLM")
    assert binding is not None
    assert binding.module.name == "sglang.srt.models.llama"


def test_classes_are_listed_by_the_setter_of_the_draft_kind(tmp_path: Path) -> None:
    """A model that only knows EAGLE-3 is no target of a DFlash draft."""
    found = handle(write_engine(tmp_path, Model()))
    assert [b.item.name for b in found.engine.target_classes(found.source)] == ["LlamaForCausalLM"]  # type: ignore[union-attr]
    assert found.engine.target_classes(found.source, "dflash") == []
    both = Model(methods="", setter="def set_dflash_layers_to_capture(self, layer_ids):\n    pass\n")
    found = handle(write_engine(tmp_path / "dflash", both))
    assert [b.item.name for b in found.engine.target_classes(found.source, "dspark")] == ["LlamaForCausalLM"]  # type: ignore[union-attr]


PATTERN = {
    "srt/configs/llama.py": """
        from transformers import PretrainedConfig


        class LlamaConfig(PretrainedConfig):
            def __init__(self, num_hidden_layers=99, rope_scaling=None, **kwargs):
                self.num_hidden_layers = num_hidden_layers
                self.rope_scaling = rope_scaling
                super().__init__(**kwargs)

            @property
            def pattern(self):
                kinds = []
                for i in range(self.num_hidden_layers):
                    kinds.append("full" if (i + 1) % self.interval == 0 else "linear")
                return kinds
    """
}


def with_part(init: str, loop: str) -> Model:
    """A model with a part whose ``__init__`` names the config's class."""
    part = "class Part:\n    def __init__(self, config: LlamaConfig):\n" + indent(init.strip("\n"), "        ")
    return Model(top=f"{TOP}\n\n{part}\n", extra=PATTERN, init="self.part = Part(config)", loop=loop)


def test_a_property_that_each_layer_asks_for(tmp_path: Path) -> None:
    """The kinds of 64 layers depend on what the config does not say: asked for 64 times, they are computed once."""
    init = """
def kind(index):
    return config.pattern[index] if config.pattern[index] == "full" else config.pattern[0]
self.kinds = [kind(i) for i in range(config.num_hidden_layers)]
"""
    loop = BEFORE.replace("len(self.layers)", "len(self.part.kinds)")
    wiring = derive(tmp_path, with_part(init, loop), (1, 31, 60), num_layers=64)
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[32] ⊕ h[61]")


def test_a_key_that_is_used_though_its_default_is_none(tmp_path: Path) -> None:
    """The class leaves rope_scaling at None, the model searches it: a config that is served says what it is."""
    init = 'self.scaled = "factor" in config.rope_scaling and config.rope_scaling["factor"]'
    start = "residual = None\n"
    loop = BEFORE.replace(start, f"{start}if self.part.scaled:\n    input_ids = input_ids + 1\n", 1)
    wiring = derive(tmp_path, with_part(init, loop), (1, 5, 8))
    assert (wiring.status, str(wiring)) == ("exact", "h[2] ⊕ h[6] ⊕ h[9]")
    assert "the target's config.rope_scaling is given" in wiring.assumptions
