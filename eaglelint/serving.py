"""What ``--serving`` names: an engine's source tree, its installed package, or the profile of a release."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Protocol, TypeVar

from eaglelint.cache.units import active_store
from eaglelint.derive import Deriver, ServingRequest, definition, derive_serving, reads_ids_at
from eaglelint.engines.base import Engine, EngineSource
from eaglelint.engines.lmdeploy import LMDeploy
from eaglelint.engines.profile import Profile
from eaglelint.engines.profile_file import bundled_engines, bundled_profile, bundled_versions, read_profile
from eaglelint.engines.recall import class_in, recall, takes_ids_at
from eaglelint.engines.release import package_version
from eaglelint.engines.sglang import SGLang
from eaglelint.engines.tensorrt_llm import TensorRTLLM
from eaglelint.engines.transformers import Transformers
from eaglelint.engines.vllm import VLLM
from eaglelint.exceptions import UnreadableInput, WrongUsage
from eaglelint.sharing import OpenSources, open_sources
from eaglelint.source.machine import Budget
from eaglelint.source.snapshot import Snapshot
from eaglelint.source.tree import Binding, SourceTree
from eaglelint.survey.facts import Refusal, Run
from eaglelint.wiring import Projection, Wiring

__all__ = ["ENGINES", "EngineHandle", "ProfileHandle", "ServingEnd", "open_serving", "open_source"]

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (SGLang(), VLLM(), LMDeploy(), TensorRTLLM(), Transformers())
}


_T = TypeVar("_T")

_SPEC = re.compile(r"([A-Za-z0-9_.-]+?)(?:@(.+)|==(.+))?")


class ServingEnd(Protocol):
    """What one engine's release serves, whether it is interpreted now or was learned before."""

    @property
    def label(self) -> str:
        """The engine and its release, ``sglang 0.5.9``."""

    @property
    def where(self) -> str:
        """Where the answers come from, for messages."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences on files that could not be read."""

    def target_classes(self, kind: str = "eagle3") -> list[Binding | str]:
        """All classes of models that capture states for a draft of that kind."""

    def target_class(self, name: str) -> Binding | str | None:
        """The class that serves an architecture, as a request names it."""

    def wiring(self, request: ServingRequest) -> Wiring:
        """What a target class feeds the draft."""

    def reads_ids_at(self, request: ServingRequest, place: tuple[str, ...]) -> bool:
        """Whether ids at this key path of the draft's config are taken."""

    def refusal(self, request: ServingRequest) -> Refusal | None:
        """What the engine's own check of its configuration says against this kind of draft for this target."""


@dataclass(frozen=True, slots=True)
class EngineHandle:
    """An engine together with the source to interpret."""

    engine: Engine
    source: EngineSource

    @property
    def label(self) -> str:
        return self.source.label

    @property
    def where(self) -> str:
        return f"at {self.source.tree.display(self.source.package)}"

    @property
    def problems(self) -> tuple[str, ...]:
        unreadable = self.source.tree.unreadable
        return tuple(unreadable[name] for name in sorted(unreadable))

    def target_classes(self, kind: str = "eagle3") -> list[Binding | str]:
        return [*self.engine.target_classes(self.source, kind)]

    def target_class(self, name: str) -> Binding | str | None:
        return self.engine.target_class(self.source, name)

    def wiring(self, request: ServingRequest) -> Wiring:
        return self.remember("wiring", request, lambda: derive_serving(self.engine, self.source, request))

    def run(self, request: ServingRequest) -> Run:
        """The wiring, and what rules may know of how it came about."""
        from eaglelint.survey.classes import run_of
        from eaglelint.survey.injected import injected_late

        def derive() -> Run:
            deriver = Deriver(self.engine, self.source, request.num_layers, deployment=request.deployment)
            home = self.source.tree.display(definition(request).module.path.parent)
            run = run_of(deriver.derive(request), None, home)
            if run.wiring.status != "exact":
                return run
            late = injected_late(self.engine, self.source, request, deriver.loops, Budget())
            return replace(run, injected_late=late)

        return self.remember("run", request, derive)

    def reads_ids_at(self, request: ServingRequest, place: tuple[str, ...]) -> bool:
        return self.remember(
            "reads ids at", request, lambda: reads_ids_at(self.engine, self.source, request, place), place
        )

    def projection(self, request: ServingRequest, wiring: Wiring) -> Projection | None:
        """How wide the engine makes the draft's ``fc`` for these states."""
        from eaglelint.projection import derive_projection

        return self.remember(
            "projection", request, lambda: derive_projection(self.engine, self.source, request, wiring), wiring
        )

    def refusal(self, request: ServingRequest) -> Refusal | None:
        """What the engine's own check of its configuration says against this kind of draft for this target."""
        from eaglelint.admission import derive_refusal

        return self.remember("refusal", request, lambda: derive_refusal(self.engine, self.source, request))

    def remember(self, what: str, request: ServingRequest, compute: Callable[[], _T], *more: object) -> _T:
        """What was computed for this request, now or in an earlier run."""
        binding = definition(request)
        asked = [getattr(request, field.name) for field in fields(request) if field.name != "target_class"]
        parts = (binding.module.name, getattr(binding.item, "name", ""), *asked, *more)

        def run() -> _T:
            self.source.tree.module_at(binding.module.path)  # found before, and read for this too
            return compute()

        return self.source.remember(what, (vars(self.engine), *parts), run)


@dataclass(frozen=True, slots=True)
class ProfileHandle:
    """What was learned from one release of an engine."""

    profile: Profile
    file: str = ""  # as the user named it; empty for a bundled profile

    @property
    def label(self) -> str:
        return self.profile.label

    @property
    def where(self) -> str:
        if self.profile.by_hand:
            return "as it was read by hand"
        return f"as {self.file} has it" if self.file else "as its bundled profile has it"

    @property
    def problems(self) -> tuple[str, ...]:
        return ()

    def target_classes(self, kind: str = "eagle3") -> list[Binding | str]:
        return [*self.profile.classes]

    def target_class(self, name: str) -> Binding | str | None:
        return class_in(self.profile, name)

    def refusal(self, request: ServingRequest) -> Refusal | None:
        """Nothing: a profile holds no check of a target's type."""
        return None

    def wiring(self, request: ServingRequest) -> Wiring:
        assert isinstance(request.target_class, str)
        if request.deployment.given:
            raise WrongUsage(
                f"--assume: a profile knows a server without further assumptions. Pass the source of {self.label}, "
                f"--serving {self.profile.engine}@PATH."
            )
        return recall(
            self.profile,
            request.target_class,
            request.kind,
            request.num_layers,
            draft_data=request.draft_data,
            layer_ids=request.layer_ids,
        )

    def reads_ids_at(self, request: ServingRequest, place: tuple[str, ...]) -> bool:
        return takes_ids_at(self.profile, request.kind, request.draft_data or {}, place)


def open_serving(spec: str, *, root: Path, display_root: Path | None = None) -> ServingEnd:
    """Find the profile or the source that a ``--serving`` value names.

    Args:
        spec: ``sglang==0.5.9`` the bundled profile of exactly that release, ``sglang@FILE.json`` or ``FILE.json`` a
            learned one; ``sglang@PATH`` a source tree or unpacked package, ``sglang`` the installed package.
        root: What relative paths are relative to.
        display_root: What shown paths are relative to; the working directory if left out.

    Raises:
        WrongUsage: The engine is not known, or the release has no bundled profile.
        UnreadableInput: There is no such engine or profile at the path, or it is not installed.
    """
    spec = spec.strip()
    found = _SPEC.fullmatch(spec)
    path = found.group(2) if found else None
    if path is None and spec.lower().endswith(".json"):
        path = spec
    if path is not None and path.lower().endswith(".json") and (root / path).is_file():
        profile = read_profile(root / path, path)
        if found is not None and path != spec and found.group(1).lower() != profile.engine:
            raise WrongUsage(
                f"--serving {spec}: {path} is a profile of {profile.engine}. Write {profile.engine}@{path}."
            )
        return ProfileHandle(profile, path)
    version = found.group(3) if found else None
    if found is None or version is None:
        return open_source(spec, root=root, display_root=display_root)
    name = _known(spec, found.group(1))
    bundled = bundled_profile(name, version)
    if bundled is None:
        versions = ", ".join(bundled_versions(name)) or "none"
        raise WrongUsage(
            f"--serving {spec}: no profile of {name} {version} is bundled; bundled are {versions}. Learn it from the "
            f"release: pip download --no-deps {name}=={version}, then eaglelint engines learn FILE.whl -o FILE.json, "
            f"and pass --serving {name}@FILE.json."
        )
    return ProfileHandle(bundled)


def _known(spec: str, name: str) -> str:
    name = name.lower().replace("_", "-")
    known = sorted({*ENGINES, *bundled_engines()})
    if name not in known:
        raise WrongUsage(
            f"--serving {spec}: no engine of that name is known. Known are {', '.join(known)}; "
            "write sglang@PATH for a source tree or sglang for the installed package."
        )
    return name


def open_source(
    spec: str, *, root: Path, display_root: Path | None = None, snapshot: Snapshot | None = None
) -> EngineHandle:
    """Find the source that ``sglang@PATH`` or ``sglang``, the installed package, names.

    Raises:
        WrongUsage: The engine is not known.
        UnreadableInput: There is no such engine at the path, or it is not installed.
    """
    found = _SPEC.fullmatch(spec.strip())
    name = _known(spec, found.group(1) if found else spec)
    if name not in ENGINES:
        releases = " or ".join(f"{name}=={version}" for version in bundled_versions(name))
        raise WrongUsage(f"--serving {spec}: {name}'s source is not interpreted. Name what was read of it: {releases}.")
    engine, path = ENGINES[name], found.group(2) if found else None
    if path is None:
        package = _installed(engine)
        if package is None:
            raise UnreadableInput(
                f"--serving {spec}: {name} is not installed here. Pass its source, --serving {name}@PATH."
            )
    else:
        directory = (root / path).resolve() if not Path(path).is_absolute() else Path(path)
        if not directory.exists():
            raise UnreadableInput(
                f"--serving {spec}: there is no {path}. Pass the directory that holds the package {name}."
            )
        package = engine.find_package(directory)
        if package is None:
            raise UnreadableInput(
                f"--serving {spec}: {path} holds no {name} package. "
                f"Pass the directory that holds {name}/, or {name}/ itself."
            )
    shown_from = display_root or Path.cwd()
    shared = open_sources() if snapshot is None else OpenSources()
    key = (engine.name, package, shown_from)
    handle = shared.handles.get(key)
    if handle is None or not handle.source.tree.snapshot.holds():
        seen = snapshot or Snapshot(active_store(), lasting=shared.lasting)
        tree = SourceTree((package.parent,), relative_to=shown_from, snapshot=seen, outlines=True)
        handle = EngineHandle(engine, EngineSource(engine.name, package, package_version(package), tree))
        shared.handles[key] = handle
    return handle


def _installed(engine: Engine) -> Path | None:
    """The installed package's directory, found on the path and never imported."""
    for entry in sys.path:
        directory = Path(entry or ".")
        if (directory / engine.name).is_dir():
            package = engine.find_package(directory / engine.name)
            if package is not None:
                return package
    return None
