"""What an engine's source does, class by class: the facts that rules over serving source look at."""
