"""Context managers, hooks and super() with a class: what Python does around a body."""

from __future__ import annotations

from typing import Any

import pytest

from eaglelint.source.machine import Raised


def test_a_context_manager_runs_around_the_body(interpret: Any) -> None:
    """What it does before and after the yield, what it yields, and what the body returns."""
    source = """
        from contextlib import contextmanager

        @contextmanager
        def noted(seen, name):
            seen.append(f"enter {name}")
            yield name.upper()
            seen.append(f"leave {name}")

        def inner(seen):
            with noted(seen, "a") as a, noted(seen, "b") as b:
                seen.append(a + b)
                return len(seen)

        def main():
            seen = []
            return inner(seen), seen
    """
    assert interpret(source) == (3, ["enter a", "enter b", "AB", "leave b", "leave a"])


def test_an_exception_passes_through_the_yield(interpret: Any) -> None:
    """The context manager's own try sees what the body raises."""
    source = """
        from contextlib import contextmanager

        @contextmanager
        def guarded(seen):
            try:
                yield
            except ValueError:
                seen.append("caught")
            finally:
                seen.append("finally")

        def main():
            seen = []
            with guarded(seen):
                raise ValueError("x")
            with guarded(seen):
                seen.append("body")
            return seen
    """
    assert interpret(source) == ["caught", "finally", "body", "finally"]


def test_an_exception_that_it_does_not_catch(interpret: Any) -> None:
    """Goes on to the caller."""
    source = """
        from contextlib import contextmanager

        @contextmanager
        def plain():
            yield

        def main():
            with plain():
                raise KeyError("k")
    """
    with pytest.raises(Raised, match="KeyError"):
        interpret(source)


WRAPPER = """
    from contextlib import contextmanager
    from torch import nn
    from torch.nn.modules.module import register_module_module_registration_hook

    class Part(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name = name

    class Whole(nn.Module):
        names = []

        @contextmanager
        def marked(self):
            found = list()

            def hook(module, name, child):
                if module is self:
                    found.append(name)

            with register_module_module_registration_hook(hook):
                yield found
            self.names = found

        def __init__(self):
            super().__init__()
            self.before = Part("before")
            with self.marked():
                self.first = Part("one")
                self.number = 7
                self.second = Part("two")
            self.after = Part("after")
            self.register_buffer("scale", 3)

    def main():
        whole = Whole()
        children = [child.name for child in whole.children()]
        return whole.names, whole.second.name, children, [n for n, _ in whole.named_children()], whole.scale
"""


def test_what_a_hook_collects_of_an_initialiser(interpret: Any) -> None:
    """The modules that became children inside the with, by their names; all children in order; a buffer."""
    names, second, children, named, scale = interpret(WRAPPER)
    assert (names, second, scale) == (["first", "second"], "two", 3)
    assert children == ["before", "one", "two", "after"]
    assert named == ["before", "first", "second", "after"]


def test_super_with_a_class(interpret: Any) -> None:
    """super(CLASS, self) looks behind that class, in methods and in __init__."""
    source = """
        class A:
            def __init__(self):
                self.value = "a"

            def name(self):
                return "A"

        class B(A):
            def __init__(self):
                super().__init__()
                self.value = "b"

            def name(self):
                return "B" + super().name()

        class C(B):
            def __init__(self):
                super(B, self).__init__()

            def name(self):
                return "C" + super(B, self).name()

        def main():
            return C().value, C().name(), B().value, B().name()
    """
    assert interpret(source) == ("a", "CA", "b", "BA")


def test_what_one_statement_of_a_base_sets_is_one_object(interpret: Any) -> None:
    """Two names for one part stay that, also where the class has an ``__init__`` of its own, which names neither."""
    source = """
        class Part:
            pass

        class Base:
            def __init__(self):
                made = Part()
                self.first, self.second = made, made

        class Whole(Base):
            def __init__(self):
                super().__init__()
                self.other = 1

        def main():
            whole = Whole()
            return whole.first is whole.second
    """
    assert interpret(source) is True


def test_an_attribute_that_init_deletes(interpret: Any) -> None:
    """A subclass of the same name takes away what its base made, for one layer; or sets something else instead."""
    source = """
        from base import Layer

        class Layer(Layer):
            def __init__(self, number):
                super().__init__()
                if number == 0:
                    del self.norm
                if number == 2:
                    del self.norm
                    self.norm = "identity"

        def main():
            return [getattr(Layer(number), "norm", "none") for number in range(3)], Layer(0).other
    """
    base = """
        class Layer:
            def __init__(self):
                self.norm = "norm"
                self.other = "other"
    """
    assert interpret(source, base=base) == (["none", "norm", "identity"], "other")
