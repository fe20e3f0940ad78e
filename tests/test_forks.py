"""Work in a fork: its result is the same, and so is its failure. Tests run with threads, so each starts a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eaglelint.forks import cores

ROOT = Path(__file__).parent.parent


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux" or cores() < 2, reason="without forks all is computed when asked for")
def test_a_fork_hands_its_result_over_and_nothing_else() -> None:
    """What it prints is printed once, what it changes is not seen, and what was buffered is not printed twice."""
    program = """
import os
from eaglelint.forks import begin
seen = []
def compute():
    seen.append(1)
    return os.getpid(), {"n": 3}
print("before")
(where, value) = begin(compute)()
print(value, where == os.getpid(), seen)
"""
    assert _run(program) == "before\n{'n': 3} False []\n"


def test_a_failing_fork_fails_where_it_is_asked() -> None:
    """It ends without a result, is computed again, and the error is raised for who asks."""
    program = """
import sys
from eaglelint.forks import begin
sys.stderr = sys.stdout
result = begin(lambda: 1 // 0)
print("begun")
try:
    result()
except ZeroDivisionError as error:
    print(error)
"""
    assert _run(program).splitlines()[-1] == "integer division or modulo by zero"


def test_a_result_can_be_asked_for_in_another_fork() -> None:
    """Two processes that read one pipe would each get half: the second computes."""
    program = """
from eaglelint.forks import begin
first = begin(lambda: list(range(100_000)))
second = begin(lambda: len(first()))
print(second(), len(first()))
"""
    assert _run(program) == "100000 100000\n"


def test_a_trace_tells_the_same_with_and_without_forks(tmp_path: Path) -> None:
    """Headers and what is known of values come from forks in a large tree."""
    (tmp_path / "model.py").write_text(
        "class Base:\\n    def forward(self, x, aux=None):\\n        if aux is None:\\n            aux = []\\n"
        "        aux.append(x)\\n        return aux\\n\\n\\nclass Model(Base):\\n    pass\\n\\n\\n"
        "def run(x):\\n    model = Model()\\n    out = model.forward(x)\\n    return out\\n".replace("\\n", "\n")
    )
    program = f"""
import json
from pathlib import Path
from eaglelint.trace import project, trace, tracer
if {{forks}}:
    project._LARGE = tracer._MANY = 0
else:
    project._LARGE = tracer._MANY = 10**12
print(json.dumps(trace("aux", [Path({str(tmp_path)!r})], relative_to=Path({str(tmp_path)!r})).to_json()))
"""
    told = [_run(program.replace("{forks}", forks)) for forks in ("True", "False")]
    assert told[0] == told[1]
    assert '"out"' in told[0]
