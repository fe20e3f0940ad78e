"""Scripts as they are written for real: an own ``parse_args``, helpers beside them, refused input, skipped items."""

from __future__ import annotations

from textwrap import dedent

import pytest

from eaglelint.trainers import derive_training
from eaglelint.trainers.files import entries, find_files, source_tree
from eaglelint.trainers.runs import run_entry

# The order of things in NVIDIA Model-Optimizer, examples/speculative_decoding/collect_hidden_states.
SCRIPT = """
import argparse
import asyncio

import torch
from datasets import load_dataset
from transformers import AutoModel, AutoTokenizer

from helpers import add_layers_flag, layers_of, load_template


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--masked", action="store_true")
    add_layers_flag(parser)
    return parser.parse_args()


def main(args):
    if args.data.endswith(".jsonl"):
        data = load_dataset("json", data_files=args.data)
    elif args.data.is_dir():
        data = load_dataset("json", data_files=args.data + "/*")
    else:
        raise ValueError("no such data")
    if args.masked and not args.data:
        raise ValueError("nothing to mask")
    model = AutoModel.from_pretrained(args.model)
    layers = layers_of(args, model.config.num_hidden_layers)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    template = load_template(args.model)
    if template is not None:
        tokenizer.chat_template = template
    skipped = 0
    done = 0

    async def dump(name, ids):
        nonlocal done
        out = model(input_ids=ids, output_hidden_states=True)
        states = out.hidden_states
        torch.save(
            {
                "hidden_states": states[-1].cpu(),
                "aux_hidden_states": torch.cat([states[i + 1].cpu() for i in layers], dim=-1),
            },
            f"{name}.pt",
        )
        done += 1

    async def all_of_them():
        nonlocal skipped
        tasks = []
        for entry in data:
            turns = entry.get("messages") or entry["conversations"]
            if not turns or not isinstance(turns, list):
                skipped += 1
                continue
            ids = tokenizer.apply_chat_template(turns, return_tensors="pt")
            if ids.shape[1] > args.max_tokens:
                skipped += 1
                continue
            tasks.append(dump(entry["id"], ids))
        await asyncio.gather(*tasks)

    asyncio.run(all_of_them())
    if done == len(data):
        print("all done")


if __name__ == "__main__":
    main(parse_args())
"""
HELPERS = """
def add_layers_flag(parser):
    parser.add_argument("--layers", type=str, default="usual")


def layers_of(args, depth):
    wanted = args.layers.strip().lower()
    if wanted == "usual":
        from stack.defaults import usual

        return usual(depth)
    found = sorted({int(part) for part in wanted.split(",")})
    if not found:
        raise ValueError("no layers")
    return found


def load_template(path):
    if path is None:
        return None
    with open(path) as file:
        return file.read()
"""
DEFAULTS = """
def usual(depth):
    return sorted({1, max(0, depth // 2 - 1), max(0, depth - 4)})
"""


def write(top, files):
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), "utf-8")


CHECKOUT = {
    "pyproject.toml": "",
    "stack/__init__.py": "",
    "stack/defaults.py": DEFAULTS,
    "examples/__init__.py": "",
    "examples/dump.py": SCRIPT,
    "examples/helpers.py": HELPERS,
}


@pytest.mark.parametrize("code", ["examples/dump.py", "examples"])
def test_a_script_of_a_checkout(tmp_path, code):
    """It finds its helper beside it, in a package too, and the package of the checkout that it is part of."""
    write(tmp_path, CHECKOUT)
    wiring = derive_training((tmp_path / code,), num_layers=61, relative_to=tmp_path).wiring
    assert (str(wiring), str(wiring.label), wiring.status) == ("h[2] ⊕ h[30] ⊕ h[58]", "norm(h[61])", "exact")
    assert wiring.assumptions == ("the defaults of the command line",)


def test_what_it_imports_is_not_there(tmp_path):
    """Without the package nobody knows which layers the usual ones are."""
    write(tmp_path, {name: text for name, text in CHECKOUT.items() if not name.startswith("stack")})
    wiring = derive_training((tmp_path / "examples",), num_layers=61, relative_to=tmp_path).wiring
    assert (wiring.status, wiring.slots) == ("unknown", ())


def test_refused_input_and_skipped_items_are_no_paths(tmp_path):
    """Seven conditions of the script above, and one path through it."""
    write(tmp_path, CHECKOUT)
    files = find_files((tmp_path / "examples" / "dump.py",))
    tree = source_tree((tmp_path / "examples" / "dump.py",), files, tmp_path)
    (start,) = [entry for entry in entries(tree, files) if entry.function is None]
    assert len(run_entry(tree, start, 61).paths) == 1


LOOP = """
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained("m")


def dump(batches, wanted):
    for ids in batches:
        out = model(ids, output_hidden_states=True)
        BODY
        torch.save(torch.cat([out.hidden_states[i] for i in (3, 31, 59)], dim=-1), "x.pt")
"""


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("if ids.shape[0] < wanted:\n    continue", "exact"),
        ("if ids.shape[0] < wanted:\n    break", "exact"),
        # What an item that is left early has saved counts as much as what the others save.
        (
            "if ids.shape[0] < wanted:\n"
            "    torch.save(torch.cat([out.hidden_states[i] for i in (2, 30, 58)], dim=-1), 'x.pt')\n"
            "    continue",
            "conditional",
        ),
        # A refusal that is caught is a path like any other.
        (
            "layers = (3, 31, 59)\n"
            "try:\n"
            "    if ids.shape[0] < wanted:\n"
            "        raise ValueError\n"
            "except ValueError:\n"
            "    torch.save(torch.cat([out.hidden_states[i] for i in (2, 30, 58)], dim=-1), 'x.pt')\n"
            "    continue",
            "conditional",
        ),
    ],
)
def test_an_item_that_is_left_early(tmp_path, body, status):
    """It is no path of its own where nothing was kept of it."""
    code = dedent(LOOP).replace("BODY", body.replace("\n", "\n        "))
    write(tmp_path, {"dump.py": code})
    wiring = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring
    slots = {tuple(map(str, wiring.slots)), *(tuple(map(str, c.slots)) for c in wiring.conditions)}
    known = {("h[3]", "h[31]", "h[59]")} | ({("h[2]", "h[30]", "h[58]")} if status == "conditional" else set())
    assert (wiring.status, slots) == (status, known)


def test_a_known_loop_is_gone_through_round_by_round(tmp_path):
    """A layer that is left out of a loop over the layers is not taken for an item that is skipped."""
    code = """
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained("m")


    def dump(ids, sparse):
        out = model(ids, output_hidden_states=True)
        kept = []
        for i in (3, 31, 59):
            if i == 31 and sparse:
                continue
            kept.append(out.hidden_states[i])
        torch.save(torch.cat(kept, dim=-1), "x.pt")
    """
    write(tmp_path, {"dump.py": code})
    wiring = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring
    slots = {tuple(map(str, wiring.slots)), *(tuple(map(str, c.slots)) for c in wiring.conditions)}
    assert slots == {("h[3]", "h[31]", "h[59]"), ("h[3]", "h[59]")}


ENGINE = """
from vllm import LLM


def main(args):
    llm = LLM(model=args.model, speculative_config={"method": "extract_hidden_states", "num_speculative_tokens": 1})
    llm.generate(args.prompts)
"""


def test_an_engine_that_captures(tmp_path):
    """Which states it does is not followed in a script; beside other code that captures it is another possibility."""
    write(tmp_path, {"by_engine.py": ENGINE})
    alone = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring
    assert (alone.status, alone.slots) == ("unknown", ())
    assert alone.reason.startswith("by_engine.py:6 lets vLLM capture the states")
    write(tmp_path, CHECKOUT)
    both = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring
    assert (str(both), both.status) == ("h[2] ⊕ h[30] ⊕ h[58]", "conditional")
    assert [c.text for c in both.conditions] == ["if the states were not captured by vLLM, which by_engine.py:6 starts"]


def test_a_script_among_very_many_functions(tmp_path):
    """It is found, with the arguments of its own caller, wherever it stands among functions that touch layers."""
    others = "".join(f"\n\ndef tune_{n}(model):\n    return len(model.layers) + {n}\n" for n in range(600))
    write(tmp_path, {"library/a.py": others, **CHECKOUT})
    wiring = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring
    assert (str(wiring), str(wiring.label), wiring.status) == ("h[2] ⊕ h[30] ⊕ h[58]", "norm(h[61])", "exact")


def test_a_default_among_very_many_functions(tmp_path):
    """Where not all functions were looked at, one of the others may give other ids than the default."""
    others = "".join(f"\n\ndef tune_{n}(model):\n    return len(model.layers) + {n}\n" for n in range(200))
    code = """
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained("m")


    def dump(ids, layers=(3, 31, 59)):
        states = model(ids, output_hidden_states=True).hidden_states
        torch.save(torch.cat([states[i] for i in layers], dim=-1), "x.pt")
    """
    write(tmp_path, {"dump.py": code})
    assert derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring.status == "exact"
    write(tmp_path, {"library/a.py": others})
    wiring = derive_training((tmp_path,), num_layers=61, relative_to=tmp_path).wiring
    assert (str(wiring), wiring.status) == ("h[3] ⊕ h[31] ⊕ h[59]", "conditional")
