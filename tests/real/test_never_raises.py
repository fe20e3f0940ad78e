"""Whatever a release's source says, and whatever is done to it: an answer, never an exception, within the budget."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent, indent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eaglelint.artifacts.target import TargetConfig
from eaglelint.derive import Derivation, Deriver, ServingRequest
from eaglelint.overlay import overlaid
from eaglelint.serving import EngineHandle, open_source
from eaglelint.source.index import ClassInfo, FunctionInfo
from eaglelint.source.machine import Budget
from eaglelint.source.tree import Binding, SourceModule
from tests.real.packages import LMDEPLOY_0_14_0, SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_19_1, VLLM_0_33_0, Package
from tests.real.packages import package_directory as unpacked

pytestmark = pytest.mark.real

LAYERS = 8
BUDGET = Budget(steps=2_500, attribute_steps=800, call_steps=1_200)
# A step is counted when it begins; the one that exceeds the budget is the last.
SLACK = 2
KINDS = ("eagle3", "dflash", "dspark")
MUTATED = {
    SGLANG_0_5_9: ("LlamaForCausalLM", "DeepseekV2ForCausalLM", "GptOssForCausalLM"),
    VLLM_0_33_0: ("LlamaForCausalLM",),
}


def derive(handle: EngineHandle, binding: Binding, kind: str = "eagle3") -> tuple[Derivation, int]:
    """The answer for the class's own list, and the steps that it took."""
    deriver = Deriver(handle.engine, handle.source, LAYERS, budget=BUDGET)
    request = ServingRequest(binding, LAYERS, TargetConfig.synthetic(LAYERS).data, kind)
    return deriver.derive(request), deriver.steps


def sound(found: Derivation, steps: int) -> bool:
    """One of the three answers, an unknown one with its reason, and no more steps than allowed."""
    wiring = found.wiring
    answered = bool(wiring.reason) if wiring.status == "unknown" else bool(wiring.slots)
    return answered and steps <= BUDGET.steps + SLACK


@pytest.mark.parametrize(
    "package",
    [SGLANG_0_5_9, SGLANG_0_5_23, VLLM_0_19_1, VLLM_0_33_0, LMDEPLOY_0_14_0],
    ids=lambda p: f"{p.name}=={p.version}",
)
def test_every_class_of_a_release(package: Package, real_engine: Callable[[str, str], EngineHandle]) -> None:
    """Each target class under each kind of draft, on a budget that many of them exceed."""
    handle = real_engine(package.name, package.version)
    asked = 0
    for kind in KINDS:
        for binding in handle.target_classes(kind):
            assert isinstance(binding, Binding)
            assert sound(*derive(handle, binding, kind)), (kind, binding.item)
            asked += 1
    assert asked > 0


# --- mutations -----------------------------------------------------------------------------------------------------


class _Mutation(ast.NodeTransformer):
    """Changes the nodes with these numbers, each in the way that its kind allows."""

    def __init__(self, chosen: dict[int, int], names: list[str]) -> None:
        self.chosen, self.names, self.count = chosen, names, 0

    def visit(self, node: ast.AST) -> ast.AST:
        number, self.count = self.count, self.count + 1
        way = self.chosen.get(number)
        changed = super().visit(node)
        return changed if way is None else self._changed(changed, way)

    def _changed(self, node: ast.AST, way: int) -> ast.AST:
        match node:
            case ast.Name():
                return ast.copy_location(ast.Name(self.names[way % len(self.names)], node.ctx), node)
            case ast.Constant(value=int()):
                return ast.copy_location(ast.Constant([0, -1, 10**9, None, "x", 1.5, True][way % 7]), node)
            case ast.Call() if node.args:
                node.args = [node.args[::-1], node.args[1:], [*node.args, node.args[0]], [ast.Starred(node.args[0])]][
                    way % 4
                ]
            case ast.Attribute():
                node.attr = self.names[way % len(self.names)]
            case ast.Compare():
                node.ops = [[ast.Eq(), ast.In(), ast.Is(), ast.Lt(), ast.NotIn()][way % 5]] * len(node.ops)
            case ast.If() | ast.While():
                node.test = ast.Constant(way % 2 == 0) if way % 3 else ast.UnaryOp(ast.Not(), node.test)
            case ast.Return():
                node.value = [None, ast.Tuple([node.value or ast.Constant(None)], ast.Load()), ast.Name("self")][
                    way % 3
                ]
            case ast.Assign() | ast.AugAssign() | ast.Expr():
                return ast.copy_location(ast.Pass(), node)
            case ast.For():
                node.iter = [ast.Name("self"), ast.List([node.iter], ast.Load()), ast.Constant(3)][way % 3]
        return node


def mutated(text: str, chosen: dict[int, int]) -> str:
    """A function's text with some nodes changed; as it was where it cannot be written down again."""
    plain = dedent(text)
    tree = ast.parse(plain)
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {"self", "len", "undefined"})
    count = sum(1 for _ in ast.walk(tree))
    chosen = {number % count: way for number, way in chosen.items()}
    changed = ast.unparse(ast.fix_missing_locations(_Mutation(chosen, names).visit(tree)))
    return indent(changed, text[: len(text) - len(text.lstrip())]) + "\n"


def functions(module: SourceModule) -> Iterator[FunctionInfo]:
    """The methods of a file that make and run models."""
    for cls in module.index.classes.values():
        yield from (info for info in cls.methods.values() if info.name.startswith(("__init__", "forward", "set_")))


@pytest.mark.parametrize("package", list(MUTATED), ids=lambda p: f"{p.name}=={p.version}")
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_mutated_functions(package: Package, data: st.DataObject) -> None:
    """Real methods with a few nodes changed at random: mostly nonsense, and still an answer."""
    directory = unpacked(package)
    spec = f"{package.name}@{directory.parent}"
    handle = open_source(spec, root=directory.parent)
    binding = handle.target_class(data.draw(st.sampled_from(MUTATED[package]), label="class"))
    assert isinstance(binding, Binding)
    module = binding.module
    info = data.draw(st.sampled_from(sorted(functions(module), key=lambda item: item.line)), label="function")
    numbers = st.integers(0, 2_000)
    chosen = data.draw(st.dictionaries(numbers, numbers, min_size=1, max_size=4), label="nodes")
    text = "".join(module.lines)
    before, own, after = "".join(module.lines[: info.line - 1]), module.text(info.line, info.end_line), ""
    after = "".join(module.lines[info.end_line :])
    assert len(before) + len(own) + len(after) == len(text)
    with overlaid({Path(module.path): (before + mutated(own, chosen) + after).encode()}):
        fresh = open_source(spec, root=directory.parent)
        again = fresh.target_class(binding.item.name if isinstance(binding.item, ClassInfo) else "")
        assert isinstance(again, Binding)
        found, steps = derive(fresh, again)
    assert sound(found, steps)
