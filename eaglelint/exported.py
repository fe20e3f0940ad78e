"""What of a training run reaches the exported draft: settings that its config does not say, weights and their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

__all__ = ["Dropped", "Saved", "WeightMap"]


@dataclass(frozen=True, slots=True)
class Dropped:
    """One setting of a training run that the draft's config lacks, or says otherwise.

    Attributes:
        key: The setting, ``eagle_aux_hidden_state_layer_ids``.
        trained: Its value in training.
        exported: Its value in the draft's config, None where it has none.
        path: Where training sets it: file and line.
        stack: The training stack and its release.
        exporter: The function that writes the config, ``file:line``; empty where it is not known.
        place: The key path in the draft's config where the value should stand.
        read: Whether that function writes the run's setting by itself; None where that is not known.
    """

    key: str
    trained: Any
    exported: Any
    path: str
    line: int
    stack: str
    exporter: str
    place: tuple[str, ...]
    read: bool | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """What becomes of one tensor of the trainer's.

    Attributes:
        name: Its name in the state dict that the exporter is given; ``layers.0.*`` stands for a module's.
        written: The names under which it is written, several where it is split; none where it is left out.
        path: Where that is decided: file and line.
        trained: Whether training changes it; None where that is not known.
        condition: What that holds for, ``when ...``; empty where it always does.
        built: Where the trainer's class builds it, file and line.
    """

    name: str
    written: tuple[str, ...]
    path: str
    line: int
    trained: bool | None = None
    condition: str = ""
    built: tuple[str, int] = ("", 0)

    @property
    def renamed(self) -> bool:
        return self.written != (self.name,)


@dataclass(frozen=True, slots=True)
class WeightMap:
    """What an exporter, called in one certain way, writes of the tensors that it is given.

    Attributes:
        path: The exporter, file and line.
        names: What becomes of each tensor.
        added: The names that it writes besides.
        option: How it is called: ``--vllm``; empty where there is but one way.
        provisos: What the whole holds for, ``if ...``.
        stack: The training stack and its release.
    """

    path: str
    line: int
    names: tuple[Saved, ...]
    added: tuple[str, ...] = ()
    option: str = ""
    provisos: tuple[str, ...] = ()
    stack: str = ""

    @property
    def label(self) -> str:
        return f"{self.stack} ({self.option})" if self.option else self.stack

    @property
    def left_out(self) -> tuple[Saved, ...]:
        return tuple(saved for saved in self.names if not saved.written)

    def before(self, written: str) -> tuple[str, Saved] | None:
        """The name that a tensor of the written checkpoint had before, where that was another one."""
        for saved in self.names:
            for name in saved.written if saved.renamed else ():
                if fnmatchcase(written, name):
                    return _filled(saved.name, name, written), saved
        return None

    def after(self, name: str) -> tuple[str, Saved] | None:
        """The other name under which a draft's tensor is written, whatever the trainer keeps before its name."""
        for saved in self.names:
            if len(saved.written) == 1 and (fnmatchcase(name, saved.name) or saved.name.endswith(f".{name}")):
                written = _filled(saved.written[0], saved.name, name)
                return (written, saved) if written != name else None
        return None


def _filled(name: str, pattern: str, whole: str) -> str:
    """A name with the part in it that the pattern's ``*`` leaves open, as it is in the whole."""
    if name.count("*") != 1 or pattern.count("*") != 1:
        return name
    front, back = pattern.split("*")
    found = re.fullmatch(f"{re.escape(front)}(.*){re.escape(back)}", whole)
    return name if found is None else name.replace("*", found[1])
