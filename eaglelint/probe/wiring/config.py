"""The target's config of a run: what is given, usual sizes, and stand-ins for what the code takes for granted."""

from __future__ import annotations

import sys
from typing import Any

from eaglelint.probe.wiring.facts import encoder_keys, sizes, usual_keys, value_fact
from eaglelint.probe.wiring.signatures import WIDTH
from eaglelint.probe.wiring.standin import StandIn, is_attribute_access

__all__ = ["Config", "target_config"]

_LANGUAGE = ("text_config", "llm_config", "language_config", "thinker_config", "decoder")


_ENCODERS = ("vision_config", "audio_config", "speech_config", "vit_config", "sound_config", "visual")


class Config:
    """A config: keys that it lacks are missing to getattr, and stand-ins where they are read outright."""

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self.__dict__["config_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if not is_attribute_access(sys._getframe(1)):
            raise AttributeError(f"{self.config_name} has no {name}")
        value: Any = value_fact(name)
        if value is NotImplemented and name.endswith(_ENCODERS):
            value = Config(f"{self.config_name}.{name}", encoder_keys())
        elif value is NotImplemented:
            value = StandIn(f"{self.config_name}.{name}")
        self.__dict__[name] = value
        return value

    def get_text_config(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__.get("text_config", self)

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "config_name"}

    def update(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __copy__(self) -> Config:
        return Config(self.config_name, {key: value for key, value in self.__dict__.items() if key != "config_name"})

    def __deepcopy__(self, memo: Any) -> Config:
        return self.__copy__()

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]

    def keys(self) -> Any:
        return self.to_dict().keys()

    def get(self, name: str, default: Any = None) -> Any:
        return self.__dict__.get(name, default)

    def __repr__(self) -> str:
        return f"<{self.config_name}>"


def target_config(data: dict[str, Any], num_layers: int, name: str = "config") -> Config:
    """The config with these keys, its language model's sections filled in with usual sizes."""
    values: dict[str, Any] = usual_keys(num_layers)
    for key, value in data.items():
        if isinstance(value, dict) and (key.endswith("_config") or key in _LANGUAGE):
            values[key] = target_config(value, num_layers, f"{name}.{key}")
        else:
            values[key] = value
    values.update(sizes(WIDTH))
    if values.get("architectures") == []:
        del values["architectures"]
    return Config(name, values)
