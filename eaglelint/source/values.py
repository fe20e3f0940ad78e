"""The values of the abstract interpretation.

Plain Python data (ints, strings, lists, dicts, None) stands for itself. A tensor is a formal sum of *terms*: the
embedding, and one term for each branch (attention, MLP) that a layer adds. So ``hidden + residual`` is a union of
terms, a fused add-norm returns (norm of the union, the union), and a captured tensor is h[k] exactly when its terms
are all that had been added to the residual stream before layer k. Nothing about an engine is written here.

Nothing sets a field of a value that can be hashed. Those that are made by the hundred thousand are not frozen all the
same: that is most of what it costs to make one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from eaglelint.source.heap import CacheDict
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.slices import Site, Slice
from eaglelint.source.tree import SourceModule

__all__ = [
    "BoundMethod",
    "Branch",
    "BuiltinMethod",
    "Cat",
    "Choice",
    "ClassValue",
    "Closure",
    "Collector",
    "ContextCall",
    "Dim",
    "Env",
    "External",
    "Frame",
    "Function",
    "Input",
    "Instance",
    "Iteration",
    "LayerOutput",
    "ModuleHook",
    "ModuleItems",
    "ModuleValue",
    "Norm",
    "NotForeseen",
    "Opaque",
    "Partial",
    "SuperValue",
    "Tensor",
    "TensorBuffer",
    "TensorView",
    "Term",
    "Unknown",
    "Weight",
]


# --- tensors -------------------------------------------------------------------------------------------------------


@dataclass(slots=True, unsafe_hash=True)
class Input:
    """What the stream starts from: the embedding, or a placeholder for a layer's input."""

    name: str


@dataclass(frozen=True, slots=True)
class Weight:
    """A named tensor of a state dict; what is done to it alone leaves it the same one."""

    name: str


@dataclass(slots=True, unsafe_hash=True)
class Branch:
    """What one module computed from normed input: attention's or the MLP's contribution.

    ``layer`` is the decoder layer that was running, -1 before the first; ``what`` names the module, ``serial`` counts
    its calls in that layer.
    """

    layer: int
    serial: int
    what: str = ""


@dataclass(slots=True, unsafe_hash=True)
class Norm:
    """The norm of a tensor."""

    of: Tensor


@dataclass(frozen=True, slots=True)
class Cat:
    """A concatenation along the feature axis, in order."""

    parts: tuple[Tensor, ...]


@dataclass(slots=True, unsafe_hash=True)
class Opaque:
    """The result of something that could not be followed, and why.

    Where ``serial`` is given it is one certain state, if an unknown one: the ``serial``-th of its kind in ``layer``,
    and of several results the ``part``. Without, any two may or may not be the same state.
    """

    why: str
    site: Site | None = None
    layer: int = -1
    serial: int | None = None
    part: tuple[int, ...] = ()


Term = Input | Weight | Branch | Norm | Cat | Opaque


@dataclass(slots=True, unsafe_hash=True)
class Tensor:
    """A formal sum of terms.

    ``site`` is where it was stored, for evidence; ``storage`` tells an alias, which sees what is added in place, from a
    copy. Neither counts in comparisons.
    """

    terms: frozenset[Term]
    site: Site | None = field(default=None, compare=False)
    storage: object = field(default_factory=object, compare=False, repr=False)

    @classmethod
    def of(cls, term: Term) -> Tensor:
        return cls(frozenset((term,)))

    def at(self, site: Site | None) -> Tensor:
        """The same tensor, stored here."""
        return Tensor(self.terms, site, self.storage)

    def single(self) -> Term | None:
        return next(iter(self.terms)) if len(self.terms) == 1 else None


class Iteration(list[Any]):
    """What is left of an iteration, which can be gone through once."""


class ModuleItems(list[Any]):
    """A list of modules."""


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """What a decoder layer without source returns: taken apart into a pair, or used whole, as its caller does."""

    hidden: Tensor
    residual: Tensor | None
    whole: Tensor


@dataclass(eq=False, slots=True)
class TensorBuffer:
    """A preallocated buffer that views are written into; ``writes`` maps the view's place to what was written."""

    writes: dict[Any, Any] = field(default_factory=dict)
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class TensorView:
    """A stretch of a buffer along the feature axis: its place in units of the feature width, None if unknown."""

    buffer: TensorBuffer
    place: int | None


@dataclass(frozen=True, slots=True)
class Dim:
    """A multiple of a tensor's feature width, which is never known here: ``count`` times H."""

    count: int


# --- everything else -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """The one condition that decides a truth value, and what it is on either side."""

    key: tuple[str, str]
    texts: tuple[str, ...]
    values: tuple[bool, bool]


@dataclass(slots=True, unsafe_hash=True)
class Unknown:
    """A value that is not known. All of which nothing is known are equal: two outcomes that are unknown agree."""

    why: str = field(default="", compare=False)
    present: bool = field(default=False, compare=False)  # known not to be None
    choice: Choice | None = field(default=None, compare=False)
    key: str = field(default="", compare=False)  # where it would stand in the target's config
    of: str = ""  # the expression of the target's config whose value it is: where two have the same, they are the same
    text: bool = field(default=False, compare=False)  # known to be a string

    def named(self, of: str) -> Unknown:
        """The same value with an expression."""
        return Unknown(self.why, self.present, self.choice, self.key, of)


@dataclass(slots=True, unsafe_hash=True)
class External:
    """Something from a package that is not among the sources: ``torch.cat``."""

    name: str


@dataclass(frozen=True, slots=True)
class ModuleValue:
    module: SourceModule


@dataclass(frozen=True, slots=True)
class ClassValue:
    module: SourceModule
    info: ClassInfo


@dataclass(slots=True, unsafe_hash=True)
class Function:
    """A function or method of the sources. ``owner`` is the class that defines it, for ``super()``."""

    module: SourceModule
    info: FunctionInfo
    owner: ClassValue | None = None
    qualname: str = field(default="", init=False, compare=False, repr=False)  # with the class's name before it

    def __post_init__(self) -> None:
        self.qualname = f"{self.owner.info.name}.{self.info.name}" if self.owner is not None else self.info.name


@dataclass(eq=False, slots=True)
class Closure:
    """A nested function or lambda with the variables around it, and the defaults as they were when it was made."""

    node: cst.FunctionDef | cst.Lambda
    frame: Any  # the Frame that it was made in; typed there
    defaults: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, unsafe_hash=True)
class BoundMethod:
    function: Function
    receiver: Any


@dataclass(frozen=True, slots=True)
class BuiltinMethod:
    """A method of a list, dict, set, string or tensor: ``aux.append`` with its receiver."""

    receiver: Any
    name: str


class NotForeseen(Exception):
    """Something is asked of a stand-in that it has no answer to."""


@dataclass(eq=False, slots=True)
class Collector:
    """A stand-in for the ``index``-th collector that a layer is handed (collectors.py), or for a method of it.

    ``value`` is one that it stands for. Whoever asks what kind of value this is has a use for it that is not foreseen.
    """

    index: int
    value: Any
    method: str = ""

    @property  # type: ignore[misc]  # object's own can be set
    def __class__(self) -> Any:
        raise NotForeseen


@dataclass(eq=False, slots=True)
class Partial:
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(eq=False, slots=True)
class ContextCall:
    """A call of a ``@contextmanager`` function: it runs around the body of the ``with`` that enters it.

    ``wanted`` is the attribute that is computed from ``__init__`` and that the function may set.
    """

    function: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    wanted: str | None = None


@dataclass(frozen=True, slots=True)
class ModuleHook:
    """torch's ``register_module_module_registration_hook(function)``, in force while it is entered."""

    function: Any


@dataclass(frozen=True, slots=True)
class SuperValue:
    receiver: Any
    after: ClassValue


@dataclass(eq=False, slots=True)
class Instance:
    """An object. Attributes that no method has set yet are computed from ``__init__`` when first read.

    ``cls`` is None for a stand-in of something outside the sources, whose other attributes are unknown.
    ``payload`` is the list behind a subclass of ``list``, the tuple that is a shape. ``layer`` is its index where it is
    a decoder layer. ``closed`` objects have no attributes but the given ones. ``is_config``: a section of the target's
    config. ``shared`` ones are held by a module: what ``__init__`` leaves None in them is set at run time.
    """

    cls: ClassValue | None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    lazy: dict[str, Any] = field(default_factory=CacheDict)
    name: str = ""
    payload: list[Any] | tuple[Any, ...] | None = None
    layer: int | None = None
    siblings: list[Any] | None = None
    closed: bool = False
    is_config: bool = False
    shared: bool = False
    made_with: dict[str, Any] = field(default_factory=dict)  # what had been set on it when it was remembered
    pending: set[str] = field(default_factory=set)
    made: tuple[Site, ...] = ()  # the calls that led to the one that made it, the outermost first
    building: list[dict[str, Any]] = field(default_factory=list)  # what a running __init__ has set so far


@dataclass(eq=False, slots=True)
class Env:
    """Local variables, with the enclosing function's behind them."""

    variables: dict[str, Any]
    outer: Env | None = None
    elsewhere: dict[str, Env | None] | None = None  # nonlocal names, and global ones (None)

    def find(self, name: str) -> Env | None:
        env: Env | None = self
        while env is not None and name not in env.variables:
            env = env.outer
        return env


@dataclass(eq=False, slots=True)
class Frame:
    """One running function: where its code stands and what ``super()`` and global names mean in it."""

    slice: Slice
    module: SourceModule
    env: Env
    function: str = ""
    owner: ClassValue | None = None
    receiver: Any = None
    resume: Any = None  # in a context manager: runs the body of the ``with`` on what is yielded
    # While an attribute is computed from a sliced __init__: attributes that were set meanwhile stay.
    initialising: Instance | None = None
    wanted: str | None = None
    asides: frozenset[cst.BaseStatement] = frozenset()  # what it runs where that is little work and forks nowhere
    stub: bool = False
