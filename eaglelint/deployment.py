"""What is taken for granted about a server: the names that ``--assume`` knows, their values and their defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from eaglelint.exceptions import WrongUsage

__all__ = ["CHOICES", "DEFAULT", "Choice", "Deployment", "parse_assumptions"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One fact about a server that changes what a draft is served; without ``values`` it is a number."""

    name: str
    default: str
    about: str
    values: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """How it is written: ``pp=N``, ``platform=cuda|rocm|…``."""
        return f"{self.name}={'|'.join(self.values) or 'N'}"


_SWITCH = ("off", "on")

CHOICES = (
    Choice("pp", "1", "pipeline stages"),
    Choice("tp", "1", "devices that share each layer"),
    Choice("dp-attention", "off", "attention in data-parallel groups", _SWITCH),
    Choice("tbo", "off", "two batches that overlap", _SWITCH),
    Choice("images", "off", "images, audio or video in the batch", _SWITCH),
    Choice(
        "platform", "cuda", "the kind of device", ("cuda", "rocm", "cpu", "xpu", "hpu", "npu", "musa", "mps", "tpu")
    ),
    Choice("capture-mode", "full", "which tokens SGLang stores states for", ("full", "last", "null")),
    Choice("runner", "", "vLLM's model runner, where not the one that the release takes", ("v1", "v2")),
)
_BY_NAME = {choice.name: choice for choice in CHOICES}
_ENV = "env:"
_MOST = 1024


@dataclass(frozen=True, slots=True)
class Deployment:
    """A server, as far as it is not read from files. ``given`` holds what differs from the defaults, by name."""

    given: tuple[tuple[str, str], ...] = ()

    def value(self, name: str) -> str:
        """The value of one of the names in ``CHOICES``."""
        return dict(self.given).get(name, _BY_NAME[name].default)

    def number(self, name: str) -> int:
        return int(self.value(name))

    def on(self, name: str) -> bool:
        return self.value(name) == "on"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that are set."""
        return {name.removeprefix(_ENV): value for name, value in self.given if name.startswith(_ENV)}


DEFAULT = Deployment()


def parse_assumptions(texts: Iterable[str]) -> Deployment:
    """Read ``pp=2``, ``tbo``, ``env:NAME=VALUE``; the last of two that contradict each other holds.

    Raises:
        WrongUsage: A name or a value is not known.
    """
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name.startswith(_ENV):
            if not re.fullmatch(r"env:[A-Za-z_]\w*", name) or not equals:
                raise WrongUsage(f"--assume {text}: write env:NAME=VALUE, such as env:SGLANG_ENABLE_SPEC_V2=1.")
            given[name] = value
            continue
        choice = _BY_NAME.get(name)
        if choice is None:
            known = ", ".join([*(choice.usage for choice in CHOICES), "env:NAME=VALUE"])
            raise WrongUsage(f"--assume {text}: there is no assumption {name or 'without a name'}. Known are {known}.")
        value = value.lower() if equals else ("on" if choice.values == _SWITCH else "")
        if choice.values and value not in choice.values:
            raise WrongUsage(f"--assume {text}: {choice.about}: write {choice.usage}.")
        if not choice.values and not (re.fullmatch(r"[0-9]{1,4}", value) and 1 <= int(value) <= _MOST):
            raise WrongUsage(f"--assume {text}: {choice.about}: write {name}=N with a number from 1 to {_MOST}.")
        given[name] = str(int(value)) if not choice.values else value
    for choice in CHOICES:
        if given.get(choice.name) == choice.default:
            del given[choice.name]
    return Deployment(tuple(sorted(given.items())))
