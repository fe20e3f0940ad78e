"""Parts of a model whose classes are not at hand: linear layers, attention back ends, norms, bases of classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from eaglelint.probe.wiring.facts import value_fact
from eaglelint.probe.wiring.standin import StandIn

__all__ = ["StandInBase", "StandInModule"]


class StandInModule(nn.Module):  # type: ignore[misc]
    """A part of a model whose class is not at hand: a linear layer, an attention back end, a norm."""

    standin_kind = "module"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        nn.Module.__init__(self)
        object.__setattr__(self, "standin_arguments", kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            if name.startswith("__") and name.endswith("__"):
                raise
        known = value_fact(name)
        kind = type(self).standin_kind
        value = StandIn(f"{kind}.{name}") if known is NotImplemented else known
        object.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            nn.Module.__setattr__(self, name, value)
        except (TypeError, AttributeError, KeyError):
            object.__setattr__(self, name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return StandIn(f"{type(self).standin_kind}()", state=True)

    def register_parameter(self, name: str, param: Any) -> None:
        self.__dict__.pop(name, None)
        self._parameters[name] = param if isinstance(param, nn.Parameter) else None

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        self.__dict__.pop(name, None)
        self._buffers[name] = tensor if isinstance(tensor, torch.Tensor) else None

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def _false(self, other: Any) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _false


class StandInBase:
    """A base class that is not at hand and takes no part in the model's structure."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls
