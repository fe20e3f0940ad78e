"""What a dataset makes of a dump: the concatenation is what fc was trained on."""

from __future__ import annotations

import pytest

DUMP = """
import torch

LAYERS = (3, 31, 59)


def capture(self, input_ids, positions):
    hidden_states, residual = self.embed_tokens(input_ids), None
    states = []
    for i, layer in enumerate(self.layers):
        if i in LAYERS:
            states.append(hidden_states + residual)
        hidden_states, residual = layer(positions, hidden_states, residual)
    hidden_states, _ = self.norm(hidden_states, residual)
    states.append(hidden_states)
    return states


@torch.no_grad()
def main(model, loader, out):
    for index, batch in enumerate(loader):
        states = [state.cpu() for state in capture(model, batch["input_ids"], batch["positions"])]
        torch.save(SAVED, f"{out}/{index}.ckpt")


if __name__ == "__main__":
    main(load_model(), load_data(), "out")
"""
LISTED = '{"input_ids": batch["input_ids"], "hidden_states": states}'
NAMED = '{"aux_hidden_state": torch.cat(states[:-1], dim=-1), "hidden_state": states[-1]}'
DATASET = """
import torch
from torch.utils.data import Dataset


class Dumped(Dataset):
    def __init__(self, files, transform=None):
        self.files = files
        self.transform = transform

    def __getitem__(self, index):
        data = torch.load(self.files[index])
        BODY
"""


def dump(saved=LISTED):
    return DUMP.replace("SAVED", saved)


def dataset(body):
    return DATASET.replace("BODY", body.replace("\n", "\n        "))


def wired(result):
    wiring = result.wiring
    assert wiring is not None, "nothing was captured"
    label = f" | {wiring.label}" if wiring.label else ""
    return f"{wiring}{label}, {wiring.status}"


STORY = "h[3] ⊕ h[31] ⊕ h[59] | norm(h[61]), exact"


def test_all_states_but_the_last(derive):
    """The story: before layers 3, 31, 59, the normed state last, which is the label."""
    load = (
        'states = data["hidden_states"]\nreturn {"hidden_states": torch.cat(states[:-1], dim=-1), "target": states[-1]}'
    )
    result = derive(dump=dump(), dataset=dataset(load))
    assert wired(result) == STORY
    assert result.problems == ()
    notes = {row.note: str(row) for row in result.wiring.evidence}
    assert notes["captures before layer 3, 31, 59"] == "dump.py:12"
    assert notes["LAYERS = [3, 31, 59]"] == "dump.py:4"
    assert notes["concatenates torch.cat(states[:-1], dim=-1)"] == "dataset.py:14"
    assert notes["the label, norm(h[61]): states.append(hidden_states)"] == "dump.py:15"


def test_a_function_that_is_handed_the_example(derive):
    """speculators' standardize_data_v1: the loader calls it through a variable."""
    code = """
    import torch
    def standardize_data_v0(data):
        return {"hidden_states": data["hidden_state"][0], "verifier_last_hidden_states": data["target"][0]}
    def standardize_data_v1(data):
        return {
            "hidden_states": torch.cat(data["hidden_states"][:-1], dim=-1),
            "input_ids": data["input_ids"],
            "verifier_last_hidden_states": data["hidden_states"][-1],
        }
    class Dataset:
        def __init__(self, files, standardize_fn):
            self.files, self.standardize_fn = files, standardize_fn
        def __getitem__(self, index):
            return self.standardize_fn(torch.load(self.files[index]))
    """
    assert wired(derive(dump=dump(), data=code)) == STORY


def test_all_states_but_the_first(derive):
    """``states[1:]`` feeds the label to fc and leaves out h[3]: derived as it is, not as it was meant."""
    load = (
        'states = data["hidden_states"]\nreturn {"hidden_states": torch.cat(states[1:], dim=-1), "target": states[-1]}'
    )
    assert wired(derive(dump=dump(), dataset=dataset(load))) == "h[31] ⊕ h[59] ⊕ norm(h[61]) | norm(h[61]), exact"


def test_chosen_states_in_another_order(derive):
    """Picks by index keep their order."""
    load = 's = data["hidden_states"]\nreturn {"hidden_states": torch.cat([s[2], s[0]], -1), "target": s[-1]}'
    assert wired(derive(dump=dump(), dataset=dataset(load))) == "h[59] ⊕ h[3] | norm(h[61]), exact"


def test_names_are_swapped(derive):
    """SpecForge's loader: hidden_state is fed from aux_hidden_state, target from hidden_state."""
    load = (
        'new = {}\nnew["hidden_state"] = data["aux_hidden_state"].squeeze(0)[None, :]\n'
        'new["target"] = data["hidden_state"].squeeze(0)[None, :]\nif self.transform:\n    new = self.transform(new)\nreturn new'
    )
    assert wired(derive(dump=dump(NAMED), dataset=dataset(load))) == STORY


def test_without_a_dataset_a_concatenation_is_the_input(derive):
    """Saved side by side: the order is settled, and the other state is the label."""
    assert wired(derive(dump=dump(NAMED))) == STORY


def test_without_a_dataset_the_last_of_a_list_is_open(derive):
    """Whether the normed last state of the list is the label, no code says: not guessed."""
    wiring = derive(dump=dump()).wiring
    assert (wiring.status, str(wiring)) == ("conditional", "h[3] ⊕ h[31] ⊕ h[59]")
    assert [[str(slot) for slot in c.slots] for c in wiring.conditions] == [["h[3]", "h[31]", "h[59]", "norm(h[61])"]]
    assert "norm(h[61])" in wiring.reason


STACKS = {
    "stacked at 1, flattened": ("torch.stack(states, dim=1)", '{"x": h[:, :-1].flatten(1), "target": h[:, -1]}', STORY),
    "stacked before the features": (
        "torch.stack(states, dim=-2)",
        '{"x": h[..., :-1, :].flatten(-2), "target": h[..., -1, :]}',
        STORY,
    ),
    "stacked at 0, permuted": (
        "torch.stack(states)",
        '{"x": h[:-1].permute(1, 0, 2).reshape(h.shape[1], -1), "target": h[-1]}',
        STORY,
    ),
    "stacked at 0, taken apart": (
        "torch.stack(states)",
        '{"x": torch.cat(list(h[:-1]), dim=-1), "target": h[-1]}',
        STORY,
    ),
}


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_is_taken_apart(derive, name):
    """A layer axis is indexed, permuted and flattened."""
    saved, load, expected = STACKS[name]
    code = dataset(f'h = data["hidden_states"]\nreturn {load}')
    assert wired(derive(dump=dump(f'{{"hidden_states": {saved}}}'), dataset=code)) == expected


def test_a_scrambling_reshape_is_no_concatenation(derive):
    """Layers first, then reshaped to tokens first: that mixes tokens, it joins nothing."""
    code = dataset('h = data["hidden_states"]\nreturn {"x": h[:-1].reshape(h.shape[1], -1), "target": h[-1]}')
    wiring = derive(dump=dump('{"hidden_states": torch.stack(states)}'), dataset=code).wiring
    assert wiring.status != "exact"


def test_two_files_are_told_apart_by_name(derive):
    """Inputs and label in files of their own."""
    save = "states[:-1], f'{out}/{index}_aux.pt')\n        torch.save(states[-1]"
    code = DUMP.replace("SAVED", save).replace('f"{out}/{index}.ckpt"', 'f"{out}/{index}_last.pt"')
    load = """
        import torch
        def load(directory, i):
            last = torch.load(f"{directory}/{i}_last.pt")
            aux = torch.load(f"{directory}/{i}_aux.pt")
            return {"x": torch.cat(aux, dim=-1), "target": last}
    """
    assert wired(derive(dump=code, data=load)) == STORY


def test_a_dataset_that_cannot_be_followed_is_a_condition(derive):
    """The states go into something unknown on their way to fc."""
    code = dataset('return {"x": mix(data["aux_hidden_state"])}')
    wiring = derive(dump=dump(NAMED.replace("torch.cat(states[:-1], dim=-1)", "states[:-1]")), dataset=code).wiring
    assert wiring.status != "exact"


def test_two_datasets_that_disagree(derive):
    """Both lines are named; neither reading is taken for the truth."""
    load = 's = data["hidden_states"]\nreturn {"x": torch.cat(CUT, dim=-1)}'
    wiring = derive(
        dump=dump(), a=dataset(load.replace("CUT", "s[:-1]")), b=dataset(load.replace("CUT", "s[1:]"))
    ).wiring
    assert wiring.status == "conditional"
    assert "a.py:14" in wiring.reason
    assert "b.py:14" in wiring.reason


def test_a_flag_in_the_dataset_is_a_condition(derive):
    """An argument decides what is joined."""
    load = (
        's = data["hidden_states"]\nkept = s[:-1]\nif self.files.reverse_order:\n    kept = kept[::-1]\n'
        'return {"x": torch.cat(kept, dim=-1), "target": s[-1]}'
    )
    wiring = derive(dump=dump(), dataset=dataset(load)).wiring
    assert (wiring.status, str(wiring)) == ("conditional", "h[3] ⊕ h[31] ⊕ h[59]")
    assert [(c.text, str(c.slots[0])) for c in wiring.conditions] == [("when self.files.reverse_order", "h[59]")]


def test_a_collate_function_joins(derive):
    """The dataset hands out the dump; the collate function is given a list of examples."""
    code = dataset("return data") + (
        "\n\ndef collate(features):\n"
        '    rows = [torch.cat(f["hidden_states"][:-1], dim=-1) for f in features]\n'
        '    targets = [f["hidden_states"][-1] for f in features]\n'
        '    return {"x": torch.cat(rows, dim=0), "target": torch.cat(targets, dim=0)}\n'
    )
    assert wired(derive(dump=dump(), dataset=code)) == STORY


def test_a_generator_yields_examples(derive):
    """A capture that is consumed on the way, without files."""
    code = DUMP.replace('torch.save(SAVED, f"{out}/{index}.ckpt")', f"yield {NAMED}")
    assert wired(derive(online=code)) == STORY


def test_online_training_joins_in_the_step(derive):
    """No files at all: the training step captures, joins and feeds the draft."""
    step = """
def step(model, draft, batch):
    states = capture(model, batch["input_ids"], batch["positions"])
    loss = draft(torch.cat(states[:-1], dim=-1), target=states[-1])
    loss.backward()
"""
    code = DUMP[: DUMP.index("@torch.no_grad()")] + step
    assert derive(train=code).wiring.slots == derive(train=code, other="x = 1").wiring.slots
    assert str(derive(train=code).wiring) == "h[3] ⊕ h[31] ⊕ h[59]"


def test_tensors_are_read_one_by_one(derive):
    """A safetensors file, and names that sort."""
    code = DUMP.replace(
        "torch.save(SAVED", "save_file({'target': states[-1], **{f'layer_{i}': s for i, s in zip(LAYERS, states)}}"
    )
    code = code.replace("import torch\n", "import torch\nfrom safetensors.torch import save_file\n", 1)
    load = """
    import torch
    from safetensors import safe_open
    def load(path):
        with safe_open(path, framework="pt") as file:
            states = [file.get_tensor(f"layer_{i}") for i in (3, 31, 59)]
            return {"hidden_states": torch.cat(states, dim=-1), "target": file.get_tensor("target")}
    """
    assert wired(derive(dump=code, data=load)) == STORY


def test_states_by_name_have_no_order_of_their_own(derive):
    """One key for each layer: without a dataset the order is the order of saving, and the answer says so."""
    code = dump('{"target": states[-1], **{f"layer_{i}": s for i, s in zip(LAYERS, states)}}')
    wiring = derive(dump=code).wiring
    assert (wiring.status, str(wiring), str(wiring.label)) == ("conditional", "h[3] ⊕ h[31] ⊕ h[59]", "norm(h[61])")


UNTOLD = {
    "the inputs go through something unknown": '{"hidden_states": pack(states[:-1]), "target": states[-1]}',
    "only the label is saved": '{"target": states[-1]}',
    "the states are scaled": '{"hidden_states": [2 * s for s in states[:-1]], "target": states[-1]}',
    "the states are joined along the tokens": '{"hidden_states": torch.cat(states[:-1], dim=0), "target": states[-1]}',
    "how many states is not known": '{"hidden_states": states[: batch["count"]], "target": states[-1]}',
}


@pytest.mark.parametrize("name", UNTOLD)
def test_the_label_is_not_taken_for_the_input(derive, name):
    """Where what feeds fc is lost, the label that is left is no answer."""
    wiring = derive(dump=dump(UNTOLD[name])).wiring
    assert wiring.status == "unknown"
    assert wiring.reason
