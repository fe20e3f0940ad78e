"""Workers that run the draft on a prompt without the embeddings of its images: what counts as handing them on."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import dedent, indent

import pytest

from eaglelint.serving import open_source
from eaglelint.survey.embeddings import lost_embeddings
from eaglelint.survey.facts import LostEmbeddings

SOUND = Path(__file__).parent.parent / "rules/projects/sound-sglang/sglang"
DRAFT = """\
from sglang.srt.models.llama import LlamaForCausalLM


class LlamaForCausalLMEagle3(LlamaForCausalLM):
    def forward(self, input_ids, positions, forward_batch):
        embeds = forward_batch.{name}
        return self.model(embeds)


EntryClass = LlamaForCausalLMEagle3
"""
BATCH = """

class ForwardBatch:
    mm_input_embeds = None

    @classmethod
    def init_new(cls, batch, model_runner):
        return {made}
"""
WORKER = """\
from sglang.srt.model_executor.forward_batch_info import ForwardBatch


class {worker}:
    def forward_batch_generation(self, batch):
        if batch.forward_mode.is_extend():
            answer = self.target_worker.forward_batch_generation(batch).logits_output
            return self.draft(batch, answer)
        return self.verify(batch)

    def draft(self, batch, answer):
        forward_batch = ForwardBatch.init_new(batch, self.draft_runner)
{body}
        return self.draft_runner.forward(forward_batch)
"""
HANDS_ON = "forward_batch.mm_input_embeds = answer.mm_input_embeds"


def cases(root: Path, *bodies: str, name: str = "mm_input_embeds", made: str = "cls()") -> tuple[LostEmbeddings, ...]:
    """What is found in a small engine whose workers do that before they run the draft."""
    shutil.copytree(SOUND, root / "sglang")
    srt = root / "sglang" / "srt"
    with (srt / "model_executor/forward_batch_info.py").open("a", encoding="utf-8") as file:
        file.write(BATCH.format(made=made))
    (srt / "models/llama_eagle3.py").write_text(DRAFT.format(name=name), "utf-8")
    for worker, body in zip(("EAGLEWorker", "EAGLEWorkerV2"), bodies, strict=False):
        text = WORKER.format(worker=worker, body=indent(dedent(body), " " * 8))
        (srt / f"speculative/{worker.lower()}.py").write_text(text, "utf-8")
    handle = open_source(f"sglang@{root}", root=root, display_root=root)
    return lost_embeddings(handle.engine, handle.source)


def test_what_is_said_of_a_worker(tmp_path: Path) -> None:
    """Its own call that leads to the draft, the call of the draft, who reads them, and who hands them on."""
    (case,) = cases(tmp_path, HANDS_ON, "pass")
    assert (case.worker, str(case.call), case.call.code) == (
        "EAGLEWorkerV2",
        "sglang/srt/speculative/eagleworkerv2.py:8",
        "self.draft(batch, answer)",
    )
    assert case.forward.code == "self.draft_runner.forward(forward_batch)"
    assert (case.readers, str(case.read)) == (("LlamaForCausalLMEagle3",), "sglang/srt/models/llama_eagle3.py:6")
    assert case.handed is not None
    assert (case.handing, str(case.handed)) == ("EAGLEWorker", "sglang/srt/speculative/eagleworker.py:8")


def test_no_worker_hands_them_on(tmp_path: Path) -> None:
    """Both are named, and no other one that does."""
    found = cases(tmp_path, "pass", "forward_batch.input_embeds = answer.mm_input_embeds")
    assert [(case.worker, case.handing) for case in found] == [("EAGLEWorker", None), ("EAGLEWorkerV2", None)]


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (HANDS_ON, {}),
        (f"if answer.mm_input_embeds is not None:\n    {HANDS_ON}", {}),
        (f"if batch.contains_mm_inputs():\n    {HANDS_ON}", {}),
        ("forward_batch.mm_input_embeds = self.shifted(answer.mm_input_embeds)", {}),
        ("setattr(forward_batch, 'mm_input_embeds', answer.mm_input_embeds)", {}),
        ("self.prepare(forward_batch, answer.mm_input_embeds)", {}),
        ("pass", {"name": "input_ids"}),
        ("pass", {"made": "cls(mm_input_embeds=batch.mm_input_embeds)"}),
        ("return self.run(batch)", {}),
    ],
    ids=[
        "handed on",
        "where there are any",
        "on one path",
        "changed before",
        "by setattr",
        "by what is not followed",
        "no draft reads them",
        "the batch finds them by itself",
        "the draft is run in a way that is not followed",
    ],
)
def test_what_is_left_alone(tmp_path: Path, body: str, given: dict[str, str]) -> None:
    """Workers that hand them on, that need not, or of which it is not known."""
    assert cases(tmp_path, body, **given) == ()
