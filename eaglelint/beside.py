"""What lies beside the two configs of a pipeline, and how it is started, read into the facts for the rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from eaglelint.artifacts.checkpoint import Checkpoint, read_checkpoint
from eaglelint.artifacts.document import config_path
from eaglelint.artifacts.embeddings import EMBEDDING, HEAD, read_beside
from eaglelint.artifacts.tokenizer import TokenizerPair, compare_tokenizers, read_tokenizer
from eaglelint.exceptions import UnreadableInput
from eaglelint.project.discovery import display_path
from eaglelint.rule import Facts

__all__ = ["with_files"]


def with_files(
    facts: Facts,
    draft: Path,
    target: Path | None,
    launch: Path | None = None,
    *,
    fine_tuned_from: Path | None = None,
) -> tuple[Facts, tuple[str, ...], tuple[str, ...]]:
    """Add what lies beside the configs, the command that starts the engine, and what the draft was trained from.

    Returns:
        The facts; sentences on files that are broken; notes on files that were left out.
    """
    of_draft = config_path(draft, display_path(draft))
    of_target = None if target is None else config_path(target, display_path(target))
    # A drafter inside of its target has no checkpoint of its own.
    embedded = facts.draft is not None and facts.draft.embedded
    checkpoint = None if embedded else read_checkpoint(*of_draft)
    target_checkpoint = None if of_target is None else read_checkpoint(*of_target)
    facts = replace(
        facts,
        checkpoint=checkpoint,
        target_checkpoint=target_checkpoint,
        embeddings=read_beside(checkpoint, target_checkpoint, EMBEDDING),
        heads=read_beside(checkpoint, target_checkpoint, HEAD),
        tokenizer=read_tokenizer(*of_draft),
        target_tokenizer=None if of_target is None else read_tokenizer(*of_target),
        tokenizers=None if of_target is None else _differ(of_draft, of_target),
    )
    parent, missing = (None, ()) if fine_tuned_from is None else _parent(fine_tuned_from)
    facts = replace(facts, parent=parent)
    read = tuple(found for found in (checkpoint, target_checkpoint, parent) if found is not None)
    problems = missing + tuple(sentence for found in read for sentence in found.problems)
    if launch is not None:
        from eaglelint.artifacts.launch import read_launch

        try:
            facts = replace(facts, launch=read_launch(launch, display_path(launch)))
        except UnreadableInput as error:
            problems += (str(error),)
    return facts, problems, tuple(sentence for found in read for sentence in found.notes)


def _parent(path: Path) -> tuple[Checkpoint | None, tuple[str, ...]]:
    """The checkpoint of the draft that this one was trained further from; a sentence where there is none."""
    config, shown = (path / "config.json", f"{display_path(path)}/config.json") if path.is_dir() else (path, str(path))
    found = read_checkpoint(config, shown)
    if found is None:
        return None, (f"{display_path(path)} holds no checkpoint. Check --fine-tuned-from.",)
    return found, ()


def _differ(draft: tuple[Path, str], target: tuple[Path, str]) -> TokenizerPair | None:
    return compare_tokenizers(draft[0], target[0], draft[1], target[1])
