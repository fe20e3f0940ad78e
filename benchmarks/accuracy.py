"""For how many of an engine's target classes the answer is exact, and why it is not for the others.

A class that has a setter and certainly hands the draft no state, as one that takes pooled embeddings from a language
model, defines no capture: the share of the answered is that of all others.

python benchmarks/accuracy.py                  the releases pinned in tests/real/packages.py, fetched by hash
python benchmarks/accuracy.py SOURCE ...       sglang@PATH, vllm@PATH: source trees or unpacked packages
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_STATUSES = ("exact", "conditional", "none", "unknown")
_LAYERS = 12


@dataclass(frozen=True)
class Case:
    """What every class is asked: a draft kind with the engine's own list of layers, or with one of ours."""

    kind: str
    explicit: bool

    def ids(self, layers: int) -> tuple[int, ...] | None:
        return (1, layers // 2 - 1, layers - 4) if self.explicit else None

    def __str__(self) -> str:
        return f"{self.kind}, {'ids from the draft' if self.explicit else 'default list'}"


_CASES = (Case("eagle3", False), Case("eagle3", True), Case("dflash", True), Case("dspark", True))


@dataclass(frozen=True)
class Answer:
    """What was derived for one class."""

    release: str
    case: Case
    target_class: str
    status: str
    slots: str
    why: str  # for an unknown: the reason, with its line; for a conditional: the conditions


def survey(sources: Sequence[str], *, cases: Sequence[Case] = _CASES, layers: int = _LAYERS, jobs: int) -> list[Answer]:
    """Derive every target class of every source in every case; classes without the kind's setter do not count."""
    work = [
        (source, case, name, layers) for source in sources for case in cases for name in _classes(source, case.kind)
    ]
    if jobs == 1:
        return [_answer(*item) for item in work]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(_answer, *zip(*work, strict=True), chunksize=4))


def _classes(source: str, kind: str) -> list[str]:
    handle = _handle(source)
    return [binding.item.name for binding in handle.engine.target_classes(handle.source, kind)]  # type: ignore[union-attr]


_opened: dict[str, object] = {}


def _handle(source: str):  # type: ignore[no-untyped-def]
    """The open source; opened once in each process, since its index is kept."""
    from eaglelint.serving import open_serving

    if source not in _opened:
        path = Path(source.partition("@")[2]).resolve()
        root = path.parent if path.name in ("sglang", "vllm") else path
        _opened[source] = open_serving(source, root=Path.cwd(), display_root=root)
    if not hasattr(_opened[source], "engine"):
        raise SystemExit(f"{source} is a bundled profile, which has no source. Write ENGINE@DIRECTORY.")
    return _opened[source]


def _answer(source: str, case: Case, name: str, layers: int) -> Answer:
    from eaglelint.artifacts.target import TargetConfig
    from eaglelint.derive import Deriver, ServingRequest

    handle = _handle(source)
    target = handle.engine.target_class(handle.source, name)
    request = ServingRequest(
        target, layers, TargetConfig.synthetic(layers).data, case.kind, layer_ids=case.ids(layers) or "default"
    )
    derivation = Deriver(handle.engine, handle.source, layers).derive(request)
    wiring = derivation.wiring
    conditions = "; ".join(condition.text for condition in wiring.conditions)
    why = {"exact": "", "conditional": conditions, "unknown": wiring.reason or conditions}[wiring.status]
    status = "none" if wiring.status == "unknown" and derivation.hands_nothing_on else wiring.status
    return Answer(handle.source.label, case, name, status, str(wiring), why)


def report(answers: Sequence[Answer]) -> Iterator[str]:
    """The counts and the open answers, as Markdown."""
    groups: dict[tuple[str, Case], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.release, answer.case), []).append(answer)
    yield "| release | draft | classes | exact | conditional | hands none on | unknown | answered |"
    yield "|---|---|---|---|---|---|---|---|"
    for (release, case), group in groups.items():
        counts = Counter(answer.status for answer in group)
        figures = " | ".join(str(counts[status]) for status in _STATUSES)
        capturing = len(group) - counts["none"]
        share = f"{(counts['exact'] + counts['conditional']) / capturing:.1%}" if capturing else "-"
        yield f"| {release} | {case} | {len(group)} | {figures} | {share} |"
    for status, title, head in (
        ("unknown", "Unknown", "reason"),
        ("none", "Has the setter, and hands the draft no state", "reason"),
        ("conditional", "Conditional", "conditions"),
    ):
        left = [answer for answer in answers if answer.status == status]
        if not left:
            continue
        yield ""
        yield f"### {title}"
        yield ""
        yield f"| release | draft | class | {head} |"
        yield "|---|---|---|---|"
        for answer in left:
            why = answer.why.replace("|", "\\|").replace("\n", " ")
            yield f"| {answer.release} | {answer.case} | {answer.target_class} | {why} |"


def pinned() -> list[str]:
    """The releases that the tests on real packages read."""
    from tests.real.packages import SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_33_0, package_directory

    return [f"{p.name}@{package_directory(p)}" for p in (SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_33_0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="SOURCE")
    parser.add_argument("--draft-kind", action="append", choices=sorted({case.kind for case in _CASES}))
    parser.add_argument("--num-layers", type=int, default=_LAYERS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--all", action="store_true", help="print each class's answer too")
    options = parser.parse_args()
    cases = [case for case in _CASES if not options.draft_kind or case.kind in options.draft_kind]
    answers = survey(options.sources or pinned(), cases=cases, layers=options.num_layers, jobs=options.jobs)
    print("\n".join(report(answers)))
    if options.all:
        print("\n### All\n\n| release | draft | class | status | states |\n|---|---|---|---|---|")
        for answer in answers:
            print(f"| {answer.release} | {answer.case} | {answer.target_class} | {answer.status} | {answer.slots} |")


if __name__ == "__main__":
    sys.path.insert(0, str(_ROOT))
    main()
