"""Profiles as data: what is written is read again, what cannot be one is refused, and rules mean what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eaglelint.artifacts.draft import DraftConfig
from eaglelint.draft_class import recalled_class
from eaglelint.engines.formula import IdsCondition, depth_formula
from eaglelint.engines.profile import (
    CaptureRule,
    Case,
    KeyNode,
    Leaf,
    Mapping,
    Outcome,
    Profile,
    Resolver,
    Stop,
    TargetClass,
)
from eaglelint.engines.profile_drafts import DraftFacts, Line
from eaglelint.engines.profile_file import profile_text, read_profile, write_profile
from eaglelint.engines.recall import recall, takes_ids_at
from eaglelint.exceptions import UnreadableInput

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas/profile.schema.json").read_text("utf-8"))
NESTED = ("eagle_config", "eagle_aux_hidden_state_layer_ids")

RULE = CaptureRule(
    default=("2", "N//2", "N-3"),
    no_default=None,
    cases=(Case(1, IdsCondition("first == 1")), Case(0)),
    order="layers",
    repeats="dropped",
    outcomes={
        "below": Outcome("lost"),
        "embedding": Outcome("unknown", (1,), "residual is None", ("residual is None", 1)),
        "inner": Outcome("stream", (1,)),
        "last": Outcome("norm", (2,)),
        "above": Outcome("stops", stop=Stop("IndexError", "list index out of range", 0, certain=True, setting=True)),
    },
    set_by=(0,),
    set_name="layers_to_capture",
    set_shift=0,
    joined=(3,),
)
SITES = ("srt/models/a.py:10", "srt/models/a.py:20", "srt/models/a.py:30", "srt/layers/l.py:40")
PROFILE = Profile(
    "sglang",
    "1.2.3",
    mappings=(Mapping("exact", RULE, assumptions=("one device",)), Mapping("unknown", reason="too deep")),
    classes={
        "A": TargetClass("A", {"eagle3": (0, SITES), "dflash": (1, ())}),
    },
    resolvers={"eagle3": Resolver(5, ((("num_aux",), ("absent", "number")),))},
    nodes=(
        Leaf("default"),
        Leaf("ids", NESTED),
        Leaf("none"),
        KeyNode(NESTED, {"ids": 1, "absent": 0}),
        KeyNode(("eagle_config", "use_aux_hidden_state"), {"false": 2}, 3),
        KeyNode(("eagle_config",), {"section": 4, "absent": 0}),
    ),
    aliases={"AA": "A"},
    without_capture=("B",),
    drafts={
        "EagleA": DraftFacts(
            ("hidden state", Line("srt/models/a_eagle.py:7", "torch.cat([hidden, embeds])")),
            (("NoNorm", Line("srt/models/a_eagle.py:3", "return x")),),
        ),
        "AEagle": DraftFacts(),
    },
    registered=("A", "AA", "B"),
    prefixes=("Eagle",),
)


def draft(*architectures: str) -> DraftConfig:
    return DraftConfig.parse("config.json", json.dumps({"architectures": architectures}).encode())


def slots(ids: tuple[int, ...] | str, num_layers: int = 12) -> str:
    wiring = recall(PROFILE, "A", "eagle3", num_layers, layer_ids=ids)  # type: ignore[arg-type]
    return f"{wiring} {wiring.status}"


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        ((3, 6, 9), "h[3] ⊕ h[6] ⊕ h[9] exact"),
        ((9, 6, 3, 6), "h[3] ⊕ h[6] ⊕ h[9] exact"),
        ((1, 6, 9), "h[2] ⊕ h[7] ⊕ h[10] exact"),
        ((3, 6, 12), "h[3] ⊕ h[6] ⊕ norm(h[12]) exact"),
        ((1, 6, 11), "h[2] ⊕ h[7] ⊕ norm(h[12]) exact"),
        ((-1, 6, 9), "h[6] ⊕ h[9] exact"),
        ((0, 6, 9), "? ⊕ h[6] ⊕ h[9] unknown"),
        ((3, 6, 13), "? unknown"),
        ((), "? unknown"),
        ("default", "h[2] ⊕ h[6] ⊕ h[9] exact"),
    ],
)
def test_what_ids_mean(ids: tuple[int, ...] | str, shown: str) -> None:
    """Case, shift, order, repeats and the place of each boundary decide; what is not sure is unknown."""
    assert slots(ids) == shown


def test_faults_and_lines() -> None:
    """Lines are shown with the release, faults with their boundary, and a setter's exception as it would stop."""
    wiring = recall(PROFILE, "A", "eagle3", 12, layer_ids=(0, 6, 9))
    assert [(fault.path, fault.line, fault.boundary) for fault in wiring.faults] == [
        ("sglang 1.2.3: srt/models/a.py", 20, 0)
    ]
    assert str(wiring.evidence[0]) == "sglang 1.2.3: srt/models/a.py:10"
    assert wiring.evidence[0].note == "layers_to_capture = [0, 6, 9]"
    stopped = recall(PROFILE, "A", "eagle3", 12, layer_ids=(3, 6, 13))
    assert stopped.reason is not None
    assert "it would stop with IndexError at sglang 1.2.3: srt/models/a.py:10" in stopped.reason


@pytest.mark.parametrize(
    ("draft", "ids", "source"),
    [
        ({"eagle_config": {NESTED[1]: [1, 6, 9]}}, (1, 6, 9), NESTED),
        ({NESTED[1]: [1, 6, 9]}, "default", None),
        ({}, "default", None),
        ({"eagle_config": {"use_aux_hidden_state": False, NESTED[1]: [1, 6, 9]}}, "default", None),
        ({"eagle_config": [1]}, "default", None),
        ({"num_aux": 4}, "default", None),
    ],
)
def test_where_ids_are_taken_from(draft: dict[str, Any], ids: Any, source: Any) -> None:
    """The questions are walked with the config's values."""
    wiring = recall(PROFILE, "A", "eagle3", 12, draft_data=draft)
    assert (wiring.layer_ids, wiring.ids_from) == (ids, source)


def test_a_config_that_was_not_foreseen_is_unknown() -> None:
    """An answer that the profile has no node for, or that it was not seen to be without effect, is no guess."""
    for key, value in (("eagle_config", [1]), ("num_aux", "four")):
        wiring = recall(PROFILE, "A", "eagle3", 12, draft_data={key: value})
        assert (wiring.status, wiring.slots) == ("unknown", ())
        assert f"what the engine makes of {key}" in (wiring.reason or "")


@pytest.mark.parametrize(
    ("architectures", "names", "registered"),
    [
        (("AEagle",), ("AEagle", "EagleAEagle"), True),
        (("B",), ("B", "EagleB"), True),
        (("C",), ("C", "EagleC"), False),
        (("C", "B"), ("C", "B", "EagleC", "EagleB"), True),
    ],
)
def test_the_classes_of_drafts(architectures: tuple[str, ...], names: tuple[str, ...], registered: bool) -> None:
    """A draft's class is looked for under its own name and with the engine's prefixes."""
    found = recalled_class(PROFILE, draft(*architectures))
    assert found is not None
    assert (found.names, found.registered, found.known) == (names, registered, ("EagleA", "AEagle"))
    assert (found.join, found.norm_stubs) == (None, ())


def test_what_a_class_of_drafts_does() -> None:
    """Its lines are shown with the release."""
    found = recalled_class(PROFILE, draft("EagleA"))
    assert found is not None
    assert found.join is not None
    assert found.join.order == ("hidden state", "embedding")
    assert (str(found.join.place), found.join.place.code) == (
        "sglang 1.2.3: srt/models/a_eagle.py:7",
        "torch.cat([hidden, embeds])",
    )
    (stub,) = found.norm_stubs
    assert (stub.cls, str(stub.gives), stub.drafts) == ("NoNorm", "sglang 1.2.3: srt/models/a_eagle.py:3", ("EagleA",))


def test_a_profile_without_classes_of_drafts_says_nothing_of_them() -> None:
    """One that was learned before registries were does not mean that an engine registers nothing."""
    assert recalled_class(replace(PROFILE, drafts={}, registered=(), prefixes=()), draft("C")) is None


def test_places() -> None:
    """A place counts where ids that stand only there are taken."""
    assert takes_ids_at(PROFILE, "eagle3", {NESTED[1]: [3, 4, 5]}, NESTED)
    assert not takes_ids_at(PROFILE, "eagle3", {"eagle_config": {NESTED[1]: [3, 4, 5]}}, NESTED[1:])


def test_written_and_read(tmp_path: Path) -> None:
    """The file is as the schema says, and holds the same profile."""
    write_profile(PROFILE, tmp_path / "p.json")
    text = (tmp_path / "p.json").read_text("utf-8")
    assert text == profile_text(PROFILE)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert read_profile(tmp_path / "p.json", "p.json") == PROFILE
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "its schema_version is None"),
        ('{"schema_version": 2}', "its schema_version is 2"),
        ('{"schema_version": 1}', "Field required"),
        (profile_text(PROFILE).replace('"eagle3":[0,', '"eagle3":[7,'), "A refers to mapping 7"),
        (profile_text(PROFILE).replace('"joined":[3]', '"joined":[9]'), "its mapping refers to more"),
        (profile_text(PROFILE).replace('"first == 1"', '"first is 1"'), "is no condition"),
        (profile_text(PROFILE).replace('"N//2"', '"N/2"'), "mapping 0: 'N/2' is no formula"),
        (profile_text(PROFILE).replace('"above":', '"over":'), "over"),
        (profile_text(PROFILE).replace('"root":5', '"root":9'), "refers to node 9"),
        (profile_text(PROFILE).replace('"otherwise":3', '"otherwise":4'), "does not stand before it"),
    ],
)
def test_what_is_no_profile(tmp_path: Path, text: str, said: str) -> None:
    """A sentence with the file and what is wrong."""
    (tmp_path / "p.json").write_text(text, "utf-8")
    with pytest.raises(UnreadableInput, match=said):
        read_profile(tmp_path / "p.json", "p.json")


@pytest.mark.parametrize(
    ("text", "value"), [("2", 2), ("-1", -1), ("N", 61), ("N-3", 58), ("N//2", 30), ("2*N//3+1", 41), ("N//2-1", 29)]
)
def test_formulas(text: str, value: int) -> None:
    """Integers and // as in Python."""
    assert depth_formula(text)(61) == value


@pytest.mark.parametrize("text", ["", "M", "N/2", "N//0", "N//2*3"])
def test_what_is_no_formula(text: str) -> None:
    """Nothing else is one."""
    with pytest.raises(ValueError, match="no formula"):
        depth_formula(text)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("first == 2", True),
        ("last == 2", False),
        ("max == N", True),
        ("min < 0", False),
        ("count >= 3", True),
        ("any == N//2", True),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    """Of ids [2, 30, 61] and N = 61."""
    assert IdsCondition(text).holds([2, 30, 61], 61) is holds
