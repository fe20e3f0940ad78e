"""What released training stacks train on, derived from the packages; and the two pages that are made of it are fresh."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.artifacts.target import TargetConfig
from eaglelint.serving import open_serving
from eaglelint.trainers.base import Run
from eaglelint.trainers.stack import Engines, StackTraining
from eaglelint.trainers.trained import trained_by
from eaglelint.trainers.weights import rules_of
from tests.real import packages
from tools.trainer_tables import (
    EXPLICIT,
    PAGES,
    RELEASES,
    ROOT,
    TARGET,
    Sources,
    foreign_names,
    starting_draft,
    train,
)

pytestmark = pytest.mark.real

SPECFORGE = ("specforge", packages.SPECFORGE_0_2_0)
SPECULATORS_9 = ("speculators", packages.SPECULATORS_0_9_0)
SPECULATORS_5 = ("speculators", packages.SPECULATORS_0_5_0)
SPECULATORS_4 = ("speculators", packages.SPECULATORS_0_4_0)
SPECULATORS_3 = ("speculators", packages.SPECULATORS_0_3_0)
MODELOPT = ("modelopt", packages.MODELOPT_0_47_0)
MODELOPT_TREE = ("modelopt", packages.MODELOPT)
TORCHSPEC = ("torchspec", packages.TORCHSPEC)
EAGLE = ("eagle", packages.EAGLE)
DFLASH = ("dflash", packages.DFLASH)
ANGELSLIM = ("angelslim", packages.ANGELSLIM_0_5_0)


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources()


def derived(
    sources: Sources, pin: tuple[str, object], kind: str, way: str, ids: tuple[int, ...] | None
) -> StackTraining:
    handle = sources.stack(*pin)  # type: ignore[arg-type]
    if handle is None:
        pytest.skip(f"{pin[1]} cannot be had here")
    return train(handle, sources.capturing(), kind, way, ids)


# Read by a person in the named releases, for a Llama of 32 layers: the default list, and the ids 11, 3, 7.
CLAIMS = [
    (SPECFORGE, "eagle3", "dump", "h[2] ⊕ h[16] ⊕ h[29]", "h[4] ⊕ h[8] ⊕ h[12]", "norm(h[32])"),
    (SPECFORGE, "dflash", "dump", "h[17]", "h[4] ⊕ h[8] ⊕ h[12]", None),
    # vLLM counts boundaries, and captures in ascending order; the trainer norms the label.
    (SPECULATORS_9, "eagle3", "dump", "h[2] ⊕ h[16] ⊕ h[29]", "h[3] ⊕ h[7] ⊕ h[11]", "norm(h[32])"),
    (SPECULATORS_9, "dflash", "dump", "h[2] ⊕ h[16] ⊕ h[29]", "h[3] ⊕ h[7] ⊕ h[11]", "norm(h[32])"),
    # The first release whose states come from a server; DFlash is trained on tokens alone.
    (SPECULATORS_5, "eagle3", "dump", "h[2] ⊕ h[16] ⊕ h[29]", "h[3] ⊕ h[7] ⊕ h[11]", "norm(h[32])"),
    (SPECULATORS_5, "dflash", "dump", "h[2] ⊕ h[16] ⊕ h[29]", "h[3] ⊕ h[7] ⊕ h[11]", "None"),
    # Before 2026-04 ids counted layer outputs, and the last of them was the label.
    (SPECULATORS_4, "eagle3", "dump", "h[3] ⊕ h[17] ⊕ h[30]", "h[4] ⊕ h[8]", None),
    (SPECULATORS_3, "eagle3", "dump", "h[3] ⊕ h[17] ⊕ h[30]", "h[4] ⊕ h[8]", None),
    (MODELOPT, "eagle3", "online", "h[2] ⊕ h[16] ⊕ h[29]", "h[4] ⊕ h[8] ⊕ h[12]", "norm(h[32])"),
    # It picks from a tuple, in the order of the list.
    (MODELOPT, "dflash", "online", "h[2] ⊕ h[9] ⊕ h[16] ⊕ h[23] ⊕ h[30]", "h[12] ⊕ h[4] ⊕ h[8]", None),
    # Its dump scripts, which the wheel leaves out: the ids of the command line are sorted.
    (MODELOPT_TREE, "eagle3", "dump", "h[2] ⊕ h[16] ⊕ h[29]", "h[4] ⊕ h[8] ⊕ h[12]", "norm(h[32])"),
    (MODELOPT_TREE, "dflash", "dump", "h[2] ⊕ h[9] ⊕ h[16] ⊕ h[23] ⊕ h[30]", "h[4] ⊕ h[8] ⊕ h[12]", "norm(h[32])"),
    # The one for vLLM hands it ids of layer outputs, where vLLM counts boundaries: each state is one layer early. Its
    # last state is not normed, and the dump does not say so.
    (MODELOPT_TREE, "dflash", "vllm", "h[1] ⊕ h[8] ⊕ h[15] ⊕ h[22] ⊕ h[29]", "h[3] ⊕ h[7] ⊕ h[11]", "h[32]"),
    (TORCHSPEC, "eagle3", "hf", "h[2] ⊕ h[16] ⊕ h[29]", "h[12] ⊕ h[4] ⊕ h[8]", "norm(h[32])"),
    # The id that it adds for the label counts layer outputs, where vLLM counts boundaries: one layer early.
    (TORCHSPEC, "eagle3", "vllm", "h[2] ⊕ h[16] ⊕ h[29]", "h[4] ⊕ h[8] ⊕ h[12]", "norm(h[31])"),
    (EAGLE, "eagle3", "online", "h[2] ⊕ h[16] ⊕ h[29]", "h[2] ⊕ h[16] ⊕ h[29]", "norm(h[32])"),
    (DFLASH, "dflash", "reference", "h[2] ⊕ h[9] ⊕ h[16] ⊕ h[23] ⊕ h[30]", "h[12] ⊕ h[4] ⊕ h[8]", None),
    (ANGELSLIM, "eagle3", "online", "h[2] ⊕ h[16] ⊕ h[29]", "h[12] ⊕ h[4] ⊕ h[8]", "norm(h[32])"),
]


@pytest.mark.parametrize(("pin", "kind", "way", "default", "explicit", "label"), CLAIMS)
def test_what_is_fed_to_fc(
    sources: Sources, pin: tuple[str, object], kind: str, way: str, default: str, explicit: str, label: str | None
) -> None:
    """By the stack's own list and by three ids, and the state that is the label."""
    plain = derived(sources, pin, kind, way, None)
    named = derived(sources, pin, kind, way, EXPLICIT)
    assert (str(plain.wiring), str(named.wiring)) == (default, explicit)
    assert label is None or str(plain.wiring.label) == label


def test_speculators_0_3_0_does_not_norm_the_label(sources: Sources) -> None:
    """And 0.4.0 does (vllm-project/speculators#313)."""
    before, after = (derived(sources, pin, "eagle3", "dump", None).wiring for pin in (SPECULATORS_3, SPECULATORS_4))
    assert (str(before.label), str(after.label)) == ("h[32]", "norm(h[32])")


def test_a_script_of_modelopt_refuses_its_own_default(sources: Sources) -> None:
    """``--aux-layers`` is "eagle" where nothing is said, which the script for vLLM does not know."""
    found = derived(sources, MODELOPT_TREE, "eagle3", "vllm", None).wiring
    assert (found.status, found.slots) == ("unknown", ())
    assert found.reason is not None and found.reason.startswith("main would stop with ValueError")


@pytest.mark.parametrize(
    ("script", "states"),
    [("hf", "h[2] ⊕ h[9] ⊕ h[16] ⊕ h[23] ⊕ h[30]"), ("vllm", "h[1] ⊕ h[8] ⊕ h[15] ⊕ h[22] ⊕ h[29]")],
)
def test_the_script_that_is_passed_says_how_it_was_dumped(
    sources: Sources, script: str, states: str, tmp_path: Path
) -> None:
    """A copy of one of the stack's own scripts, beside ``--trained-by``: the one of several that was used."""
    handle = sources.stack(*MODELOPT_TREE)
    if handle is None:
        pytest.skip("ModelOpt's checkout cannot be had here")
    name = f"compute_hidden_states_{script}.py"
    copy = tmp_path / name
    top = handle.source.package.parent / "examples/speculative_decoding/collect_hidden_states"
    copy.write_bytes((top / name).read_bytes())
    data = {"architectures": ["DFlashDraftModel"], "dflash_config": {"target_layer_ids": [1, 8, 15, 22, 29]}}
    draft = DraftConfig.parse("config.json", json.dumps(data).encode())
    target = TargetConfig.synthetic(32, ("LlamaForCausalLM",))
    ends = sources.capturing().ends
    spec = f"modelopt@{handle.source.package}"
    found = trained_by(spec, draft, target, [copy], ends, kind="dflash", named=False, display={})
    assert (str(found.wiring), found.own) == (states, (copy,))


@pytest.mark.parametrize(
    ("pin", "kind", "way", "shifts"),
    [
        (SPECFORGE, "eagle3", "dump", {"input_ids": 1, "target": 1, "loss_mask": 0, "hidden_state": 0}),
        (
            SPECULATORS_9,
            "eagle3",
            "dump",
            {
                "input_ids": 1,
                "hidden_states": 0,
                "verifier_last_hidden_states": 1,
                "loss_mask": 1,
                "position_ids": 1,
            },
        ),
        (
            SPECULATORS_9,
            "dflash",
            "dump",
            {
                "input_ids": 0,
                "hidden_states": 0,
                "verifier_last_hidden_states": 0,
                "loss_mask": 0,
                "position_ids": 0,
            },
        ),
        (MODELOPT, "eagle3", "online", {"input_embeds": 1, "aux_hiddens": 0, "logits": 0}),
        (TORCHSPEC, "eagle3", "hf", {"input_ids": 1, "target": 1, "loss_mask": 0, "hidden_states": 0}),
        (EAGLE, "eagle3", "online", {"target": 1, "loss_mask": 0, "input_ids": 1}),
        (ANGELSLIM, "eagle3", "online", {"hidden_states": 0, "target_logits": 1, "input_ids": 1, "loss_mask": 0}),
    ],
)
def test_by_how_many_tokens_each_tensor_moves(
    sources: Sources, pin: tuple[str, object], kind: str, way: str, shifts: dict[str, int]
) -> None:
    """To the left, before it is trained on."""
    fed = derived(sources, pin, kind, way, None).fed
    assert fed is not None and dict(fed.shifts) == shifts


def test_only_some_exporters_write_the_ids_of_the_run(sources: Sources) -> None:
    """SpecForge copies the draft config; speculators and ModelOpt write what they trained on."""
    specforge = derived(sources, SPECFORGE, "eagle3", "dump", EXPLICIT).export
    speculators = derived(sources, SPECULATORS_9, "eagle3", "dump", EXPLICIT).export
    modelopt = derived(sources, MODELOPT, "eagle3", "online", EXPLICIT).export
    assert specforge is not None and "ids of the run's own config are not written" in specforge.rule
    assert speculators is not None and speculators.config["eagle_aux_hidden_state_layer_ids"] == list(EXPLICIT)
    assert modelopt is not None
    assert modelopt.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == list(EXPLICIT)


@pytest.mark.parametrize(
    ("pin", "command", "read"),
    [
        (SPECULATORS_9, "python train.py --speculator-type eagle3 --target-layer-ids 3 7 11 --norm-output", True),
        (SPECFORGE, "specforge train training.strategy=eagle3 model.aux_hidden_state_layer_ids=[3,7,11]", False),
    ],
)
def test_what_the_run_set_and_the_config_does_not_say(
    sources: Sources, pin: tuple[str, object], command: str, read: bool, tmp_path: Path
) -> None:
    """And whether the stack's exporter writes such a setting: then the config is of another run."""
    handle = sources.stack(*pin)  # type: ignore[arg-type]
    assert handle is not None
    script = tmp_path / "train.sh"
    script.write_text(command + "\n")
    data = {"architectures": ["LlamaForCausalLMEagle3"], "eagle_aux_hidden_state_layer_ids": [2, 16, 29]}
    draft = DraftConfig.parse("config.json", json.dumps(data).encode())
    target = TargetConfig.synthetic(32, ("LlamaForCausalLM",))
    found = trained_by(
        f"{pin[0]}@{handle.source.package}", draft, target, [script], (), kind="eagle3", named=False, display={}
    )
    lost = {item.key: (item.trained, item.exported, item.read) for item in found.dropped}
    assert lost["eagle_aux_hidden_state_layer_ids"] == ([3, 7, 11], [2, 16, 29], read)
    assert ("norm_output" in lost) == ("--norm-output" in command)


def test_an_engine_that_captures_fewer_states_than_it_is_asked_for(sources: Sources) -> None:
    """vLLM 0.13.0 does not reach N, where the label is: which of the others would be taken for it is not said."""
    handle = sources.stack(*SPECULATORS_9)
    assert handle is not None
    package = packages.package_directory(packages.VLLM_0_13_0)
    engines = Engines((open_serving(f"vllm@{package}", root=ROOT),), ("LlamaForCausalLM",), {}, True)
    found = handle.derive(Run("eagle3", 32, (3, 7, 11), {}, {}, "dump"), engines).wiring
    assert (found.status, found.slots, found.label) == ("unknown", (), None)
    assert found.reason == "vllm 0.13.0 captures 3 states for the 4 ids [3, 7, 11, 32]"


# Read by a person in the named releases: the exporter's option, and what it renames and leaves out, with the line.
WEIGHTS: list[tuple[tuple[str, object], str, str, dict[str, tuple[tuple[str, ...], int]]]] = [
    (
        SPECFORGE,
        "eagle3",
        "--to sglang",
        {"draft_model.embed_tokens.weight": ((), 318), "draft_model.*": (("*",), 315)},
    ),
    (SPECULATORS_9, "eagle3", "convert", {"midlayer.*": (("layers.0.*",), 208)}),
    (SPECULATORS_9, "eagle3", "in training", {"verifier_lm_head.weight": ((), 39)}),
    (SPECULATORS_5, "eagle3", "convert", {"midlayer.*": (("layers.0.*",), 193)}),
    # Its class has layers.0: what a checkpoint of SafeAILab's calls midlayer is left out without a word.
    (SPECULATORS_4, "eagle3", "convert", {"midlayer.*": ((), 183)}),
    (SPECULATORS_3, "eagle3", "convert", {"midlayer.*": ((), 183)}),
    (
        SPECULATORS_9,
        "dflash",
        "convert",
        {
            "*.qkv_proj.*": (("*.q_proj.*", "*.k_proj.*", "*.v_proj.*"), 187),
            "*.g_proj.*": ((), 207),
            "aux_hidden_norms.*": ((), 207),
            "t2d": ((), 220),
            "d2t": ((), 220),
        },
    ),
    (MODELOPT, "eagle3", "", {"eagle_module.*": (("*",), 173)}),
    (MODELOPT, "dflash", "", {"dflash_module.*": (("*",), 348), "dflash_module.*.rotary_emb.*": ((), 346)}),
    (
        TORCHSPEC,
        "eagle3",
        "--vllm",
        {
            "draft_model.*": (("*",), 237),
            "draft_model.midlayer.*": (("layers.0.*",), 142),
            "draft_model.t2d": ((), 235),
            "draft_model.d2t": ((), 235),
        },
    ),
    (EAGLE, "eagle3", "", {"embed_tokens.weight": ((), 349)}),
    (ANGELSLIM, "eagle3", "with DeepSpeed ZeRO-3", {"embed_tokens.weight": ((), 355)}),
]


@pytest.mark.parametrize(("pin", "kind", "option", "rules"), WEIGHTS)
def test_what_an_exporter_renames_and_leaves_out(
    sources: Sources,
    pin: tuple[str, object],
    kind: str,
    option: str,
    rules: dict[str, tuple[tuple[str, ...], int]],
) -> None:
    """By running it on the names of the draft's class; a converter, on those that SafeAILab's trainer saves."""
    handle = sources.stack(*pin)  # type: ignore[arg-type]
    if handle is None:
        pytest.skip(f"{pin[1]} cannot be had here")
    names = foreign_names(sources) if kind == "eagle3" else ()
    if kind == "eagle3" and option == "convert" and not names:
        pytest.skip(f"{packages.EAGLE} cannot be had here")
    maps, _ = handle.weights(Run(kind, 32, None, starting_draft(kind, None, pin[0]), TARGET, names=names))
    found = next(weights for weights in maps if weights.option == option)
    assert {before: (after, line) for before, after, _, line in rules_of(found)} == rules


@pytest.mark.parametrize(
    ("pin", "trained"),
    [
        (SPECFORGE, {"draft_model.embed_tokens.weight": False}),
        (EAGLE, {"embed_tokens.weight": False}),
        # Nothing in the package freezes it.
        (ANGELSLIM, {"embed_tokens.weight": True}),
    ],
)
def test_whether_what_is_left_out_was_trained(
    sources: Sources, pin: tuple[str, object], trained: dict[str, bool]
) -> None:
    """As the code that builds the draft, and that which starts the training, freezes it."""
    handle = sources.stack(*pin)  # type: ignore[arg-type]
    if handle is None:
        pytest.skip(f"{pin[1]} cannot be had here")
    maps, _ = handle.weights(Run("eagle3", 32, None, starting_draft("eagle3", None, pin[0]), TARGET))
    assert {saved.name: saved.trained for saved in maps[0].left_out} == trained


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_are_fresh(sources: Sources, page: str) -> None:
    """What stands in docs/ is what is derived now: else run python tools/trainer_tables.py."""
    releases = tuple(release for release in RELEASES if sources.stack(*release) is not None)
    if page == "docs/trainers.md" and EAGLE not in releases:
        pytest.skip(f"{packages.EAGLE} cannot be had here, and converters are shown by what it saves")
    text, derived_now = (Path(ROOT) / page).read_text("utf-8"), PAGES[page](sources, releases)
    if releases == RELEASES:
        assert text == derived_now
    else:  # a repository that cannot be reached has no say in what the others show
        assert set(derived_now.splitlines()) <= set(text.splitlines())
