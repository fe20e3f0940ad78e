"""Workers that run the draft on a prompt without the embeddings of its images, though drafts' classes read them.

Each worker's prefill is run; which classes read them is a syntactic fact of the files that define drafts.
"""

from __future__ import annotations

import libcst as cst

from eaglelint.deployment import Deployment
from eaglelint.engines.base import DraftRegistry, Engine, EngineSource
from eaglelint.engines.workers import DraftPrefill, HandsEmbeddings
from eaglelint.source.machine import Budget, BudgetExceeded, Machine, TooLong
from eaglelint.source.stubs import load_stubs
from eaglelint.source.walk import walk
from eaglelint.survey.facts import LostEmbeddings, Place
from eaglelint.survey.places import place_of, place_of_node
from eaglelint.survey.readers import functions_of

__all__ = ["lost_embeddings"]

_IMAGES = Deployment((("images", "on"),))
# The worker of 0.5.23 takes 29,000 steps at a depth of three calls; what matters of its attributes takes 3,400 at most.
_BUDGET = Budget(call_steps=200_000, attribute_steps=4_000)


def lost_embeddings(engine: Engine, source: EngineSource) -> tuple[LostEmbeddings, ...]:
    """Each worker that hands the draft none on any path, where an engine has drafts that read them."""
    if not isinstance(engine, HandsEmbeddings) or not isinstance(engine, DraftRegistry):
        return ()
    readers = _readers(engine, engine.embeddings, source)
    prefills: dict[str, list[DraftPrefill]] = {}
    for prefill in _prefills(engine, source) if readers else ():
        prefills.setdefault(prefill.worker, []).append(prefill)
    handed = next((one for found in prefills.values() for one in found if one.handed), None)
    return tuple(
        LostEmbeddings(
            worker=worker,
            call=place_of(found[0].call),
            forward=place_of(found[0].forward),
            name=engine.embeddings,
            readers=tuple(readers),
            read=next(iter(readers.values())),
            handing=None if handed is None else handed.worker,
            handed=None if handed is None else place_of(handed.call),
        )
        for worker, found in prefills.items()
        if not any(one.handed for one in found)
    )


def _prefills(engine: HandsEmbeddings, source: EngineSource) -> list[DraftPrefill]:
    machine = Machine(source.tree, deployment=_IMAGES, stubs=load_stubs(source.engine), budget=_BUDGET)
    try:
        return list(engine.draft_prefills(machine, source))
    except (BudgetExceeded, RecursionError, TooLong):
        return []


def _readers(engine: DraftRegistry, name: str, source: EngineSource) -> dict[str, Place]:
    """The classes of drafts in whose files a batch's attribute of that name is read, with the first such place."""
    found: dict[str, Place] = {}
    for draft, path in engine.draft_files(source).items():
        binding = engine.draft_binding(source, draft) if name.encode() in source.tree.read(path) else None
        if binding is None:
            continue
        for _, info in functions_of(binding.module):
            if name not in binding.module.text(info.line, info.end_line):
                continue
            piece = binding.module.slice(info.line, info.end_line)
            read = next((node for node in walk(piece.body[0]) if _reads(node, name)), None)
            if read is not None:
                found.setdefault(draft, place_of_node(piece, read))
    return found


def _reads(node: cst.CSTNode, name: str) -> bool:
    match node:
        case cst.Assign(value=cst.Attribute(value=cst.Name(value="forward_batch"), attr=cst.Name(value=attribute))):
            return attribute == name
    return False
