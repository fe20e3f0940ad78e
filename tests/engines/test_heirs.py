"""Which classes may have a method, as text tells: none that has it is missed, and what is plain is left aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from eaglelint.engines.heirs import heirs
from eaglelint.serving import open_source

BASE = "from torch import nn\n\n\nclass Base(nn.Module):\n    def set_ids(self):\n        pass\n"


def may_have_it(root: Path, text: str, *, other: str = "") -> bool:
    """Whether the class ``Model`` of that text may have the method of the class ``Base`` of another file."""
    models = root / "sglang/srt/models"
    models.mkdir(parents=True)
    for name, content in (("base", BASE), ("other", other), ("model", text)):
        (models / f"{name}.py").write_text(content, "utf-8")
    source = open_source(f"sglang@{root}", root=root, display_root=root).source
    return heirs(source, models, lambda content: b"set_ids" in content).may_include("Model")


@pytest.mark.parametrize(
    "text",
    [
        "class Model:\n    def set_ids(self):\n        pass\n",
        "from sglang.srt.models.base import Base\nclass Model(Base):\n    pass\n",
        "from sglang.srt.models.base import Base as Parent\nclass Model(Parent):\n    pass\n",
        "from .base import (\n    Base,\n)\nclass Between(Base): ...\nclass Model(\n    Between,\n): ...\n",
        "import sglang.srt.models.base as base\nclass Model(base.Base):\n    pass\n",
        "from sglang.srt.models import base\nclass Model(base.Base):\n    pass\n",
        "from sglang.srt.models.base import *\nclass Model(Base[int], metaclass=Meta):\n    pass\n",
        "from sglang.srt.layers.mixin import Mixin\nclass Model(Mixin):\n    pass\n",
        "class Model(make(Base)):\n    pass\n",
        "Parent = Base\nclass Model(Parent):\n    pass\n",
        "class Model(:\n    pass\n",
        "from sglang.srt.models.other import Child\nclass Model(Child):\n    pass\n",
    ],
)
def test_a_class_that_may_have_it(tmp_path: Path, text: str) -> None:
    """Its own or inherited, under whatever name; and what cannot be told may."""
    assert may_have_it(tmp_path, text, other="from .base import Base\nclass Child(Base):\n    pass\n")


@pytest.mark.parametrize(
    "text",
    [
        "class Model:\n    pass\n",
        "from torch import nn\nclass Model(nn.Module):\n    pass\n",
        "import torch.nn as nn\nclass Model(nn.Module):\n    pass\n",
        "import torch\nclass Model(torch.nn.Module, dict, metaclass=Meta):\n    pass\n",
        "from sglang.srt.models.other import Child\nclass Model(Child):\n    pass\n",
        "from sglang.srt.models.base import Base\nclass Model:\n    def __init__(self):\n        self.model = Base()\n",
    ],
)
def test_a_class_that_has_it_not(tmp_path: Path, text: str) -> None:
    assert not may_have_it(tmp_path, text, other="class Child:\n    pass\n")
