"""What an engine's file has to say, and the stand-ins for what its code is handed from outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import libcst as cst

from eaglelint.artifacts.target import LAYER_COUNT_KEYS
from eaglelint.cache.units import Unit
from eaglelint.source.construct import function_node
from eaglelint.source.lookup import MISSING, find_method, global_value
from eaglelint.source.machine import Machine
from eaglelint.source.tree import Binding, SourceModule, SourceTree
from eaglelint.source.values import ClassValue, External, Instance, Partial, Tensor

_T = TypeVar("_T")

_END_OF_HEADER = re.compile(r"\)\s*(?:->[^:\n]*)?:[ \t]*(?:#[^\n]*)?\n")
_CONFIG = re.compile(r""":\s*["']*(\w*Config\w*)""")  # as a parameter is annotated

__all__ = [
    "DraftReads",
    "DraftRegistry",
    "Engine",
    "EngineSource",
    "Resolved",
    "TakesIdsByOption",
    "TakesNoIds",
    "adopt_config_class",
    "adopt_named_class",
    "config_object",
    "mentioned_names",
    "stand_in",
    "token_indices",
]


@dataclass(frozen=True, slots=True)
class EngineSource:
    """One engine's source: the package directory and the release, where it can be told."""

    engine: str
    package: Path
    version: str | None
    tree: SourceTree

    @property
    def label(self) -> str:
        return f"{self.engine} {self.version}" if self.version else f"{self.engine} ({self.tree.display(self.package)})"

    def unit(self, what: str, parts: object) -> Unit[Any]:
        """A piece of work that reads this source alone."""
        tree = self.tree
        place = (self.engine, self.version, str(self.package), [str(root) for root in tree.roots])
        known = (place, str(tree.relative_to), parts)
        return Unit(what, known, tree.snapshot, notes=tree.unreadable, display=tree.display)

    def remember(self, what: str, parts: object, compute: Callable[[], _T]) -> _T:
        """The result of ``compute``, which reads this source alone: of an earlier run, or computed now."""
        unit: Unit[_T] = self.unit(what, parts)
        found = unit.recall()
        return unit.run(compute) if found is None else found[0]


@dataclass(slots=True)
class DraftReads:
    """Which keys of a draft config a resolver asked for, in order, and which lists of ids it found."""

    asked: list[tuple[str, ...]] = field(default_factory=list)
    found: list[tuple[tuple[str, ...], list[int]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an engine's resolver made of a draft config: the ids it took, None for its default list."""

    ids: Any
    captures: bool = True


def mentioned_names(source: EngineSource, path: Path) -> frozenset[str]:
    """The names of classes that stand in a file as text."""
    try:
        text = source.tree.read(path)
    except OSError:
        return frozenset()
    return frozenset(name.decode() for name in re.findall(rb"""["']([A-Z]\w{5,80})["']""", text))


@runtime_checkable
class DraftRegistry(Protocol):
    """An engine whose registry of draft classes is read."""

    def registered(self, source: EngineSource) -> tuple[frozenset[str], tuple[str, ...]]:
        """The architectures that the engine's registry knows; and those of them that are drafts."""

    def draft_names(self, architectures: tuple[str, ...]) -> tuple[str, ...]:
        """The names under which the registry is asked for a draft with these architectures."""

    def draft_binding(self, source: EngineSource, name: str) -> Binding | None:
        """The class that the registry has for a draft under exactly this name."""

    def draft_files(self, source: EngineSource) -> dict[str, Path]:
        """The files with the classes of all drafts, by their names: as text tells where that is enough."""


@runtime_checkable
class ConfigAdapters(DraftRegistry, Protocol):
    """An engine that rewrites drafts' configs of another format."""

    def adapters(self, source: EngineSource) -> dict[str, Binding]:
        """The functions that rewrite one, by the kind of draft as the foreign config names it."""


@runtime_checkable
class TargetChecker(Protocol):
    """An engine that refuses some targets for some kinds of draft, by a check of its own."""

    def check_target(self, machine: Machine, source: EngineSource, kind: str, target: Instance) -> None:
        """Run the check as far as it concerns the target; raises Raised where it refuses it."""


class Engine(Protocol):
    """Where an engine's wiring begins.

    Attributes:
        setters: The names of the method by which a target class takes the ids of an EAGLE-3 draft.
        resolvers: The functions whose ids are those that are captured, ``ModelRunner.__init__``.
        usual_offset: What most classes add to an id to get its boundary: a guess for the first run, which confirms it.
    """

    name: str
    setters: tuple[str, ...]
    resolvers: tuple[str, ...]
    usual_offset: int

    def find_package(self, path: Path) -> Path | None:
        """The package directory in or at a path."""

    def target_classes(self, source: EngineSource, kind: str = "eagle3") -> list[Binding]:
        """All classes of models that define, inherit or pass on a setter for the capture of that kind of draft."""

    def target_class(self, source: EngineSource, name: str) -> Binding | None:
        """The class of a target by its architecture's name."""

    def wrapping_classes(self, source: EngineSource) -> tuple[list[Binding], frozenset[str]]:
        """Those that an architecture's name may lead to and that may make an object of a class that may have a setter.

        And the names of the classes that may have one.
        """

    def startup(self, source: EngineSource) -> tuple[Path, ...]:
        """The directories with the code that reads a draft's config and sets the runners up."""

    def runners(self, source: EngineSource) -> list[Binding]:
        """The classes that load a model, hand it the ids and record its graphs."""

    def prepare(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Set up intercepts for a run."""

    def admit(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """The engine's own check of the server's options, where some were given; raises Raised if it refuses them."""

    def build_model(self, machine: Machine, cls: Binding, target: Any) -> Instance:
        """The target model, with the target's config."""

    def build_draft(
        self, machine: Machine, source: EngineSource, kind: str, draft: Instance, target: Instance
    ) -> Instance | None:
        """The draft model for a draft's config, of the class that its architecture names; None if there is none."""

    def configure(
        self, machine: Machine, source: EngineSource, model: Instance, kind: str, draft: Any, ids: Any
    ) -> bool:
        """Hand the ids to the model as the engine does: from a draft config, or as given. False: no capture."""

    def forward(self, machine: Machine, source: EngineSource, model: Instance, received: Any = None) -> Any:
        """Run the model, or one stage of it on what the stage before handed over.

        Returns:
            The captured states as the engine's runner receives them; what goes to the next stage where one follows.
        """

    def concatenate(self, machine: Machine, source: EngineSource, captured: Any) -> Any:
        """Join the captured states as the engine does before the draft's ``fc``."""


class TakesNoIds:
    """What an engine says whose models have no method that takes ids: nobody can lack it, or call it too late."""

    resolvers: tuple[str, ...] = ()

    def wrapping_classes(self, source: EngineSource) -> tuple[list[Binding], frozenset[str]]:
        return [], frozenset()

    def startup(self, source: EngineSource) -> tuple[Path, ...]:
        return ()

    def runners(self, source: EngineSource) -> list[Binding]:
        return []

    def admit(self, machine: Machine, source: EngineSource, kind: str) -> None:
        """Its checks speak of no assumption that changes the wiring."""


@runtime_checkable
class TakesIdsByOption(Protocol):
    """An engine that is told the layers when it is started, whatever a draft's config says.

    Attributes:
        ids_option: The option's name.
    """

    ids_option: str


def stand_in(machine: Machine, name: str, **attrs: Any) -> Instance:
    """An object from outside: the given attributes are known, all others unknown."""
    return machine.new_instance(Instance(None, attrs=dict(attrs), name=name))


def token_indices(machine: Machine, name: str) -> Instance:
    """A tensor of integers, one for each token: ids, positions. Its length is that of the states."""
    shape = Instance(None, name="shape", payload=machine.leading)
    return stand_in(machine, name, shape=shape)


class _Tracked(dict[str, Any]):
    """A section of the draft config that notes which of its keys are read."""

    def __init__(self, data: dict[str, Any], path: tuple[str, ...], reads: DraftReads) -> None:
        super().__init__(
            {
                key: _Tracked(value, (*path, key), reads) if isinstance(value, dict) else value
                for key, value in data.items()
            }
        )
        self._path = path
        self._reads = reads

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self._reads.asked.append((*self._path, key))
        return super().__contains__(key)

    def __getitem__(self, key: str) -> Any:
        self._reads.asked.append((*self._path, key))
        value = super().__getitem__(key)
        self._note(key, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        self._reads.asked.append((*self._path, key))
        value = super().get(key, default)
        self._note(key, value)
        return value

    def _note(self, key: str, value: Any) -> None:
        if (
            isinstance(value, list)
            and value
            and all(isinstance(item, int) and not isinstance(item, bool) for item in value)
        ):
            self._reads.found.append(((*self._path, key), value))


def config_object(
    machine: Machine, data: dict[str, Any], *, reads: DraftReads | None = None, name: str = "config"
) -> Instance:
    """A Hugging Face config with these keys.

    With ``reads`` it is a draft's: keys that it lacks are absent, sections stay dicts, and reads are noted. Without,
    it is a target's: keys that it lacks have some default of the config class and are unknown; sections are configs.
    """
    if reads is not None:
        draft = Instance(None, attrs=_Tracked(data, (), reads), name=name, closed=True)
        return draft
    attrs = {
        key: config_object(machine, value, name=f"{name}.{key}")
        if isinstance(value, dict) and (key.endswith("_config") or key in ("encoder", "decoder"))
        else value
        for key, value in data.items()
    }
    config = machine.new_instance(Instance(None, attrs=attrs, name=name, is_config=True))
    # transformers' PretrainedConfig.get_text_config: the language model's config where there is one, else itself.
    attrs["get_text_config"] = Partial(External("intrinsic.given"), (attrs.get("text_config", config),), {})
    if name.endswith(".text_config") or any(key in data for key in LAYER_COUNT_KEYS):
        attrs.setdefault("text_config", MISSING)  # a language model's config holds no other
    return config


def adopt_config_class(machine: Machine, cls: ClassValue, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Give a target's config the class that a model's ``__init__`` names for it, where the sources have that class.

    What the config does not say has the defaults of that class, as when ``transformers`` reads a config.json.
    """
    if not machine.config_defaults:
        return
    key = ("config classes", cls.module.name, cls.info.name)
    if key not in machine.memo:
        machine.memo[key] = _config_parameters(machine, cls)
    for index, name, found in machine.memo[key]:
        value = kwargs.get(name, args[index] if index < len(args) else None)
        if isinstance(value, Instance) and value.cls is None and "get_text_config" in value.attrs:
            _adopt(machine, found, value)


def adopt_named_class(machine: Machine, module: SourceModule, config: Any) -> None:
    """Give a target's config the class that the classes of a model's file name for their ``config``, if it is one.

    For an engine whose models are handed something else, of which the config is a part.
    """
    if not machine.config_defaults or not isinstance(config, Instance) or config.cls is not None:
        return
    key = ("config class", module.name)
    if key not in machine.memo:
        takers = (_config_parameters(machine, ClassValue(module, info)) for info in module.index.classes.values())
        machine.memo[key] = {cls for found in takers for _, name, cls in found if name == "config"}
    if len(machine.memo[key]) == 1:
        _adopt(machine, next(iter(machine.memo[key])), config)


def _config_parameters(machine: Machine, cls: ClassValue) -> list[tuple[int, str, ClassValue]]:
    """The parameters of ``__init__`` that are annotated with a config's class of the sources."""
    initialiser = find_method(machine, cls, "__init__")
    if initialiser is None:
        return []
    text = initialiser.module.text(initialiser.info.line, initialiser.info.end_line)
    end = _END_OF_HEADER.search(text)
    configs = {}
    for name in dict.fromkeys(_CONFIG.findall(text, 0, len(text) if end is None else end.end())):
        config = global_value(machine, initialiser.module, name)
        if isinstance(config, ClassValue) and find_method(machine, config, "__init__") is not None:
            configs[name] = config
    if not configs:
        return []  # without parsing it
    _, node = function_node(initialiser)
    found = []
    for index, parameter in enumerate((*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)):
        annotation = parameter.annotation.annotation if parameter.annotation is not None else None
        name = annotation.value if isinstance(annotation, cst.Name) else None
        if isinstance(annotation, cst.SimpleString) and isinstance(annotation.evaluated_value, str):
            name = annotation.evaluated_value
        if name in configs:
            found.append((index - 1, parameter.name.value, configs[name]))
    return found


def _adopt(machine: Machine, cls: ClassValue, config: Instance) -> None:
    config.cls = cls
    config.kwargs = {name: value for name, value in config.attrs.items() if name != "get_text_config"}
    machine.used_assumptions.add(f"the defaults of {cls.info.name}")


def enum_member(machine: Machine, source: EngineSource, directories: tuple[Path, ...], cls: str, member: str) -> Any:
    """A member of an enum of the engine's source, None where there is none."""
    from eaglelint.source.lookup import MISSING, get_attribute

    found = source.tree.find_class(cls, directories)
    if found is None or not hasattr(found.item, "methods"):
        return None
    value = get_attribute(machine, ClassValue(found.module, found.item), member)  # type: ignore[arg-type]
    return None if value is MISSING else value


def hidden_state() -> Tensor:
    from eaglelint.source.values import Input

    return Tensor.of(Input("embedding"))


Intercept = Callable[..., Any]
