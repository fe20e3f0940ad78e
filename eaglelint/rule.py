"""What a rule is: metadata and a pure function from the facts of one pipeline to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eaglelint.finding import Confidence, Edit, Finding, Related, Severity, Span

# Facts name what they hold. Whoever makes it imports it, so that a scan waits for no reader that it does not need.
if TYPE_CHECKING:
    from eaglelint.artifacts.checkpoint import Checkpoint
    from eaglelint.artifacts.draft import DraftConfig
    from eaglelint.artifacts.dump import Dump
    from eaglelint.artifacts.embeddings import EmbeddingRows
    from eaglelint.artifacts.launch import Launch
    from eaglelint.artifacts.target import TargetConfig
    from eaglelint.artifacts.tokenizer import Tokenizer, TokenizerPair
    from eaglelint.draft_class import DraftClass
    from eaglelint.draft_modules import DraftModules
    from eaglelint.exported import Dropped, WeightMap
    from eaglelint.practice import Practice
    from eaglelint.survey.facts import EngineFacts, Join, Place, Refusal, Rotary
    from eaglelint.wiring import Wiring

__all__ = ["Check", "Facts", "Rule", "Served"]


@dataclass(frozen=True, slots=True)
class Served:
    """One engine's end of a pipeline.

    Attributes:
        wiring: What the engine feeds the draft. ``wiring.layer_ids`` are the ids that it took, ``"default"`` where it
            fell back to its own list; ``wiring.ids_from`` is the key path that it took them from.
        looks_in: The key paths at which this engine finds ids, the preferred one first, derived from its resolver.
        mended_ids: Ids with which this engine, verified by another derivation, serves just what was trained;
            None where the training is not known or no such ids were found.
        uncaptured: Positions in ``wiring.layer_ids`` whose state never reaches the draft.
        option: Where the engine is told its layers outside of the draft's config: the option's name, and the ids that
            make it serve what was trained.
        refusal: What the engine's own check says against this kind of draft for the target; None where it is let in.
    """

    wiring: Wiring
    looks_in: tuple[tuple[str, ...], ...] = ()
    mended_ids: tuple[int, ...] | None = None
    uncaptured: tuple[int, ...] = ()
    refusal: Refusal | None = None
    option: tuple[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a rule may look at: one draft, the target it speaks for, and the wirings at both ends.

    A look over an engine's own tree has no draft: then ``engines`` alone holds something.

    ``training`` is extracted from code or declared with ``--trained-by``; None where neither is known.
    ``servings`` holds one entry for each engine that the draft is served by. ``engines`` holds what the source of
    each of them says; of its target classes, the one that serves the draft's target.

    ``checkpoint`` and ``target_checkpoint`` are the headers of what lies beside the two configs; None where nothing
    does. ``embeddings`` and ``heads`` hold some rows of both embeddings and of both heads where both have one;
    ``tokenizers`` says how the two tokenizers differ, where they do. ``launch`` is the command that starts the engine,
    where the user named one. ``draft_classes`` says of each engine, as far as its source or its profile tells, whether
    it registers the draft's class, what that class makes of the draft's own weights, and in which order it joins the
    embedding and the hidden state; ``trained_join`` says the latter of the training code.
    ``built`` is what that class builds and loads, where the checkpoint's header is known.
    ``trained_rotary`` says which numbers of a head that code turns together, and ``uncounted_positions`` are
    parameters of rotary embeddings in it that are never read.
    ``dropped`` is what the run of a training stack set and the draft's config does not say; ``weight_maps`` is what
    each of its exporters makes of the names of the draft's tensors.

    ``elsewhere`` is what the newest bundled release of each engine would feed the draft, where nobody named an engine;
    ``registered_elsewhere`` names each and says whether it registers the draft's class.

    ``practice`` is what the training code was seen to do besides capturing; ``dump`` is what lies on the disk between
    capture and training. ``parent`` is the header of the draft that this one was trained further from.
    """

    draft: DraftConfig | None
    target: TargetConfig | None
    training: Wiring | None
    servings: tuple[Served, ...]
    engines: tuple[EngineFacts, ...] = ()
    elsewhere: tuple[Served, ...] = ()
    registered_elsewhere: tuple[tuple[str, bool], ...] = ()
    checkpoint: Checkpoint | None = None
    target_checkpoint: Checkpoint | None = None
    embeddings: EmbeddingRows | None = None
    heads: EmbeddingRows | None = None
    tokenizer: Tokenizer | None = None
    target_tokenizer: Tokenizer | None = None
    tokenizers: TokenizerPair | None = None
    launch: Launch | None = None
    draft_classes: tuple[DraftClass, ...] = ()
    built: tuple[DraftModules, ...] = ()
    trained_join: Join | None = None
    trained_rotary: Rotary | None = None
    uncounted_positions: tuple[Place, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    weight_maps: tuple[WeightMap, ...] = ()
    practice: Practice | None = None
    dump: Dump | None = None
    parent: Checkpoint | None = None


Check = Callable[["Rule", Facts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is forbidden, named after the bad pattern.

    Attributes:
        code: Family and number, ``CAP002``; never used again for something else.
        name: kebab-case, reads "allow NAME".
        summary: One line for lists.
        severity: What a finding is unless the rule says otherwise for the case at hand.
        check: Finds it in the facts of one pipeline.
    """

    code: str
    name: str
    summary: str
    severity: Severity
    check: Check

    def finding(
        self,
        message: str,
        span: Span,
        *,
        confidence: Confidence,
        severity: Severity | None = None,
        annotation: str = "",
        related: tuple[Related, ...] = (),
        help: str | None = None,
        edits: tuple[Edit, ...] = (),
        identity: tuple[str, ...] = (),
    ) -> Finding:
        """A finding of this rule; ``identity`` is what stays the same when lines move."""
        return Finding(
            self.code,
            self.name,
            severity or self.severity,
            confidence,
            message,
            span,
            annotation,
            related,
            help,
            edits,
            identity,
        )
