"""The algorithms of the engine."""

from enum import Enum, auto


class SpeculativeAlgorithm(Enum):
    EAGLE = auto()
    EAGLE3 = auto()
    NONE = auto()

    def is_eagle3(self):
        return self == SpeculativeAlgorithm.EAGLE3
