"""Small programs on concrete data: the interpreter gives what Python gives."""

from __future__ import annotations

import sys
from textwrap import dedent, indent
from types import ModuleType
from typing import Any

import pytest

from eaglelint.source.machine import Raised
from eaglelint.source.values import Tensor, Unknown, Weight

# Each is the body of a function; what stands above a line of dashes stands at the top of its module.
PROGRAMS = [
    # numbers and strings
    "return [7 // 2, -7 // 2, 7 % -3, 2 ** 10, 1 / 4, -3, +3, ~3, 6 & 3, 6 | 3, 6 ^ 3, 1 << 4, 256 >> 2]",
    "return [round(2.5), round(3.5), int(-2.7), int('12'), float('1.5'), abs(-3), bool([]), bool('a'), str(12)]",
    "return [min(3, 1, 2), max([4, 9]), sum([1, 2, 3]), max([], default=5)]",
    "return ['a' + 'b', 'ab' * 2, 'a-b'.split('-'), 'X'.lower(), ' x '.strip(), 'abc'[1:], 'b' in 'abc', 'a.b'.rsplit('.', 1)]",
    "name, n = 'layer', 3\nreturn f'{name}.{n}' + f\"{'a'}b\"",
    "x, y, z = [1, 'a'], None, 'b'\nreturn f'{x} {y} {z!r} {z=} {x = }' 'c' f'{(1, True)}'",
    "return [1 < 2 < 3, 1 < 2 > 3, 1 == 1.0, None is None, [] is not None, not 0, 3 not in (1, 2)]",
    "return [0 or 5, 0 and 5, None or [], [] or 'x', 1 and 2 and 3]",
    "a, b = 1, 2\na, b = b, a\nreturn (a, b)",
    "a = b = [1]\na.append(2)\nreturn b",
    "a, *rest, z = range(5)\nreturn a, rest, z",
    "(a, (b, c)), d = (1, (2, 3)), 4\nreturn [a, b, c, d]",
    "x = 5\nx += 1\nx *= 2\nx -= 3\nx //= 2\nx **= 2\nx %= 7\nreturn x",
    "return (y := 3) + y",
    "return [n for n in range(10) if (half := n // 2) > 3 and half % 2 == 0]",
    # lists
    "x = [3, 1, 2]\nx.sort()\nx.insert(0, 9)\nx.extend([7, 8])\nx.remove(1)\nx += [5]\nreturn x",
    "x = [1, 2, 3, 4, 5]\nx[1:3] = []\ndel x[0]\nx[-1] = 9\nreturn x",
    "x = list(range(10))\nreturn [x[2:5], x[::-1], x[-3:], x[::3], x[5:2], x[:-8]]",
    "x = [1, 2, 3]\nreturn [x.index(2), x.count(3), x.pop(), x, len(x), x + [4], x * 2, [*x, *x]]",
    "x = [[0] * 2] * 2\nx[0][0] = 1\nreturn x",
    "x = [1, 2]\ny = x.copy()\nz = x[:]\nw = list(x)\nx.append(3)\nreturn [y, z, w]",
    "import copy\nx = [[1], 2]\ny = copy.copy(x)\nz = copy.deepcopy(x)\nx[0].append(5)\nx.append(3)\nreturn [y, z]",
    "return [sorted([3, 1, 2]), sorted({3, 1}, reverse=True), list(reversed([1, 2])), list(enumerate('ab', 1))]",
    "return [list(zip([1, 2, 3], 'ab')), list(map(str, [1, 2])), list(filter(None, [0, 1, 2])), any([0, 1]), all([])]",
    "from itertools import islice, chain\nreturn [list(islice(range(9), 2, 8, 3)), list(chain([1], (2, 3)))]",
    "x = [i * j for i in range(3) for j in range(i)]\ny = {i: -i for i in x}\nz = {i % 2 for i in range(5)}\nreturn [x, y, z]",
    "x = [1, 2, 3]\nfor i in x:\n    if i == 1:\n        x.append(4)\nreturn x",
    "x = [1, 2, 3, 4]\nseen = []\nfor i in x:\n    seen.append(i)\n    if i < 3:\n        x.remove(i)\nreturn [x, seen]",
    # iterators are used up
    "it = iter([1, 2, 3])\nfirst = next(it)\nreturn [first, list(it), list(it), next(it, 'end')]",
    "it = (i * 2 for i in range(4))\nreturn [2 in it, list(it)]",
    "it = enumerate('abc')\nfor i, c in it:\n    break\nreturn list(it)",
    "it = map(int, '123')\na = sum(it)\nreturn [a, sum(it)]",
    "it = zip('ab', 'cd')\nreturn [dict(it), dict(it)]",
    # patterns
    "import re\nreturn [re.sub(r'layers\\.(\\d+)', r'blocks.\\1', 'a.layers.3.b'), re.split(r'\\.', 'a.b'), re.findall(r'\\d', 'a1b2')]",
    "import re\nP = re.compile(r'^(.+\\.experts)\\.(\\d+)\\.(?P<what>up|down)$')\nm = P.match('mtp.experts.12.up')\nreturn [m.group(1), int(m.group(2)), m['what'], m.groups(), m.group(1, 3), m.end(), P.match('x')]",
    "import re\nreturn re.sub('[0-9]+', lambda m: str(int(m.group()) + 1), 'layers.9.norm.10')",
    "import re\nreturn ['yes' if re.search('embed', k) else 'no' for k in ('embed_tokens', 'norm')]",
    # dicts and sets
    "d = {'a': 1}\nd['b'] = 2\nd.update({'c': 3}, e=5)\nd.setdefault('a', 9)\nd.setdefault('f', 6)\nreturn d",
    "d = {'a': 1, 'b': 2, 'c': 3}\ndel d['a']\nx = d.pop('b')\ny = d.pop('zz', None)\nreturn [d, x, y, list(d.items()), 'c' in d]",
    "d = dict([(1, 2)], a=3)\nd |= {1: 5}\nitem = d.popitem()\nreturn [d, item, d.get(7), d.get(7, 8), {**d, 'z': 1}]",
    "d = {'a': 1}\ne = d.copy()\nd.clear()\nreturn [d, e, list(e.keys()), list(e.values())]",
    "s = {1, 2}\ns.add(3)\ns.discard(9)\ns.update([4])\nreturn [s, s & {1}, s | {7}, s - {1}, 3 in s, len(s), frozenset(s) == s]",
    "s = {1, 2}\nt = s\ns |= {9}\ns -= {1}\nt &= {2, 9, 4}\nreturn [s, t]",
    "s = {1, 2, 3}\ns.difference_update([1])\ns.intersection_update([2, 7])\ns.update([4], (5,))\nreturn [s, s.pop() in (2, 4, 5), len(s)]",
    # control flow
    "x = []\nfor i in range(10):\n    if i % 2:\n        continue\n    if i > 6:\n        break\n    x.append(i)\nelse:\n    x.append('else')\nreturn x",
    "for i in range(3):\n    pass\nelse:\n    i = 'else'\nreturn i",
    "n, x = 10, 0\nwhile n:\n    n -= 1\n    if n == 3:\n        break\n    x += n\nelse:\n    x = -1\nreturn x",
    "x = 1 if [] else 2 if 0 else 3\nreturn x",
    "if 0:\n    return 1\nelif '':\n    return 2\nelse:\n    return 3",
    "def early(i):\n    for j in range(i):\n        if j == 2:\n            return 'two'\n    return 'none'\nreturn [early(2), early(5)]",
    # exceptions
    "try:\n    return {'a': 1}['b']\nexcept KeyError:\n    return 'missing'",
    "try:\n    x = [1][3]\nexcept (KeyError, LookupError):\n    x = 'out'\nreturn x",
    "try:\n    return None.x\nexcept AttributeError:\n    return 'none'",
    "try:\n    return 1 + None\nexcept TypeError:\n    return 'type'",
    "x = []\ntry:\n    x.append(1)\n    x[5]\n    x.append(2)\nexcept IndexError as error:\n    x.append('caught')\nelse:\n    x.append('else')\nfinally:\n    x.append('finally')\nreturn x",
    "x = []\ntry:\n    x.append(1)\nexcept Exception:\n    x.append('caught')\nelse:\n    x.append('else')\nfinally:\n    x.append('finally')\nreturn x",
    "def fails():\n    try:\n        raise ValueError('no')\n    finally:\n        seen.append('finally')\nseen = []\ntry:\n    fails()\nexcept ValueError:\n    seen.append('outer')\nreturn seen",
    "def f():\n    try:\n        return 'try'\n    finally:\n        seen.append(1)\nseen = []\nreturn [f(), seen]",
    "try:\n    a, b = [1, 2, 3]\nexcept ValueError:\n    return 'too many'",
    "try:\n    next(iter([]))\nexcept StopIteration:\n    return 'stop'",
    "try:\n    int('x')\nexcept ValueError:\n    return 'value'",
    "try:\n    assert 1 == 2, 'no'\nexcept AssertionError:\n    return 'assert'",
    "for a in (1, 0):\n    try:\n        x = 4 // a\n    except ZeroDivisionError:\n        x = -x\nreturn x",
    "try:\n    [].pop()\nexcept IndexError:\n    return 'empty'",
    # functions
    "def f(a, b=2, *args, c, d=4, **kwargs):\n    return [a, b, args, c, d, kwargs]\nreturn [f(1, c=3), f(1, 2, 3, 4, c=5, e=6), f(*[1, 2], **{'c': 3})]",
    "def f(a, /, b, *, c):\n    return (a, b, c)\nreturn f(1, b=2, c=3)",
    "x = 1\ndef outer():\n    x = 2\n    def inner():\n        nonlocal x\n        x += 1\n        return x\n    inner()\n    return inner() + x\nreturn [outer(), x]",
    "fs = [lambda: i for i in range(3)]\ngs = [lambda i=i: i for i in range(3)]\nreturn [[f() for f in fs], [g() for g in gs]]",
    "n = 1\ndef f(x=n):\n    return x\nn = 2\nreturn [f(), f(5)]",
    "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nreturn fib(10)",
    "def make(k):\n    def add(x):\n        return x + k\n    return add\nreturn [make(2)(3), make(10)(3)]",
    "from functools import partial\ndef f(a, b, c=0):\n    return (a, b, c)\nreturn partial(f, 1, c=9)(2)",
    "x = [3, 1, 2]\ndef change(y):\n    y.append(4)\n    y = []\n    y.append(5)\n    return y\nreturn [change(x), x]",
    "i = 5\nx = [i for i in range(3)]\nreturn [i, x]",
    "def f(n, seen):\n    if n:\n        seen.append(n)\n        f(n - 1, seen)\n    return seen\nreturn f(3, [])",
    # globals
    "COUNT = 0\n\ndef bump():\n    global COUNT\n    COUNT += 1\n    return COUNT\n-----\nbump()\nbump()\nreturn COUNT",
    "IDS = [1]\nIDS.append(2)\nif len(IDS) > 1:\n    IDS += [3]\nelse:\n    IDS = []\n-----\nreturn IDS",
    "A = 1\nA = A + 1\nB = A * 10\n-----\nreturn [A, B]",
    "def f(x, seen=[]):\n    return len(seen)\n-----\nreturn f(1)",
    "TABLE = {name: len(name) for name in ('a', 'bb')}\nTABLE['c'] = 7\n-----\nreturn TABLE",
    "COUNT = 0\n\ndef bump():\n    global COUNT\n    COUNT += 1\n\ndef get():\n    return COUNT\n-----\nbump()\na = get()\nbump()\nreturn [a, get()]",
    "SEEN = {}\n\ndef count(name):\n    SEEN[name] = SEEN.get(name, 0) + 1\n    return SEEN[name]\n-----\nreturn [count('a'), count('a'), count('b'), SEEN]",
    "MADE = {}\nclass A:\n    def __init__(self, name):\n        self.name = name\n\ndef get(name):\n    if name not in MADE:\n        MADE[name] = A(name)\n    return MADE[name]\n-----\na, b = get('a'), get('b')\nreturn [get('a') is a, a is b, get('b').name, len(MADE)]",
    "class Config:\n    one = None\n    def __init__(self):\n        self.n = 3\n    @classmethod\n    def get(cls):\n        if cls.one is None:\n            cls.one = cls()\n        return cls.one\n-----\na = Config.get()\na.n = 5\nreturn [Config.get() is a, Config.get().n]",
    "FLAG = [False]\n\ndef flag():\n    return FLAG[0]\n\ndef toggle():\n    FLAG[0] = not FLAG[0]\n    return flag()\n-----\nreturn [toggle(), toggle(), toggle(), flag()]",
    "class A:\n    def __init__(self, table):\n        table['n'] = table.get('n', 0) + 1\n        self.n = table['n']\n-----\ntable = {}\na, b = A(table), A(table)\nreturn [a.n, b.n, a.n, table]",
    # classes
    "class A:\n    x = 1\n    def __init__(self, y):\n        self.y = y\n        self.z = self.y * 2\n    def both(self):\n        return self.x + self.y\n-----\na = A(3)\na.x = 10\nreturn [a.both(), a.z, A.x, A(4).both()]",
    "class A:\n    def name(self):\n        return 'A'\n    def hello(self):\n        return 'hello ' + self.name()\nclass B(A):\n    def name(self):\n        return 'B' + super().name()\n-----\nreturn B().hello()",
    "class A:\n    def f(self):\n        return ['A']\nclass B(A):\n    def f(self):\n        return ['B', *super().f()]\nclass C(A):\n    def f(self):\n        return ['C', *super().f()]\nclass D(B, C):\n    def f(self):\n        return ['D', *super().f()]\n-----\nreturn D().f()",
    "class A:\n    def __init__(self):\n        self.items = []\n        for i in range(3):\n            self.items.append(i)\n        self.count = len(self.items)\n-----\na = A()\nb = A()\nb.items.append(9)\nreturn [a.items, a.count, b.items]",
    "class A:\n    def __init__(self):\n        self.ids = [1]\n        self.count = len(self.ids)\n-----\na = A()\na.ids = [1, 2, 3]\nreturn [a.ids, a.count]",
    "class A:\n    def __init__(self, n=2):\n        self.setup(n)\n    def setup(self, n):\n        self.size = n\nclass B(A):\n    def __init__(self):\n        super().__init__(5)\n        self.size += 1\n-----\nreturn [A().size, B().size]",
    "class A:\n    @property\n    def p(self):\n        return 7\n    @staticmethod\n    def s(x):\n        return x\n    @classmethod\n    def c(cls):\n        return cls.make()\n    @classmethod\n    def make(cls):\n        return cls.__name__\nclass B(A):\n    pass\n-----\nreturn [A().p, A.s(1), A().s(2), B.c()]",
    "class A:\n    def __init__(self):\n        self._ids = []\n    @property\n    def ids(self):\n        return self._ids\n    @ids.setter\n    def ids(self, value):\n        self._ids = [v + 1 for v in value]\n-----\na = A()\na.ids = [1, 2]\nreturn a.ids",
    "from dataclasses import dataclass, field\n@dataclass\nclass P:\n    a: int = field(default=4)\n    b: list = field(default_factory=list)\n-----\nreturn [P().a, P(a=1).a, P().b]",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    n: int\n    a: tuple = None\n    def __post_init__(self):\n        if self.a is None:\n            self.a = (1, self.n // 2)\n        else:\n            self.a = sorted(list(self.a))\n        self.count = len(self.a)\n-----\nreturn [P(8).a, P(8, (5, 2)).a, P(8, a=[7, 3, 1]).count, P(n=6).count]",
    "from dataclasses import dataclass\n@dataclass\nclass B:\n    n: int = 3\n    def __post_init__(self):\n        self.twice = 2 * self.n\n@dataclass\nclass P(B):\n    k: int = 1\n    def __post_init__(self):\n        super().__post_init__()\n        if self.k > 1:\n            self.n = self.n + self.k\n-----\nreturn [P().twice, P(4).twice, P(4, 2).n, P(4, 2).twice, P(4).n]",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: int\n    b: int = 5\n-----\nreturn [P(1).a, P(1).b, P(1, 2).b, P(b=3, a=4).a]",
    "from enum import Enum\nclass E(Enum):\n    A = 1\n    B = 2\n    def first(self):\n        return self == E.A\n-----\ne = E.A\nreturn [e == E.A, e is E.B, e != E.B, e.first(), E.B.first(), e in (E.B,), E.A.name]",
    "from enum import IntEnum\nclass M(IntEnum):\n    NULL = 0\n    LAST = 1\n    FULL = 2\n-----\nreturn [M.NULL < M.FULL, M.FULL <= M.LAST, M.LAST >= 1, 2 > M.LAST, M.FULL > M.FULL]",
    "from enum import Enum\nclass E(Enum):\n    A = 1\n    B = 2\n    def __lt__(self, other):\n        return self.value > other.value\n-----\nreturn [E.A < E.B, E.B < E.A]",
    "class A:\n    pass\nclass B(A):\n    pass\n-----\nb = B()\nreturn [isinstance(b, A), isinstance(b, (int, B)), isinstance(3, int), isinstance('a', (list, str)), isinstance([], tuple)]",
    "class A:\n    def __init__(self):\n        self.x = 1\n-----\na = A()\nreturn [hasattr(a, 'x'), hasattr(a, 'y'), getattr(a, 'y', 5), getattr(a, 'x')]",
    "class A:\n    pass\n-----\na, b = A(), A()\nsetattr(a, 'flag', True)\ncollected = [getattr(o, 'flag', False) for o in (a, b)]\ndel a.flag\nreturn [collected, hasattr(a, 'flag')]",
    "class A:\n    def __len__(self):\n        return 3\n    def __getitem__(self, i):\n        return i * 2\n    def __call__(self, x):\n        return x + 1\n-----\na = A()\nreturn [len(a), a[4], a(1)]",
    "class A(list):\n    def last(self):\n        return self[-1]\n-----\na = A([1, 2])\na.append(3)\nreturn [a.last(), len(a), list(a), 2 in a]",
    "class A:\n    LIMIT = 3\n    DOUBLE = LIMIT * 2\n    ITEMS = []\n    ITEMS.append(DOUBLE)\n-----\nreturn [A.DOUBLE, A.ITEMS]",
    "def twice(f):\n    def wrapped(x):\n        return f(f(x))\n    return wrapped\n@twice\ndef add(x):\n    return x + 1\n-----\nreturn add(1)",
    "class A:\n    def __init__(self, inner):\n        self.inner = inner\nclass B:\n    def __init__(self):\n        self.value = 1\n        self.a = A(self)\n-----\nb = B()\nb.value = 2\nreturn [b.a.inner.value, b.a.inner is b]",
    "class A:\n    def __init__(self):\n        self.b = B()\n        self.c = C(self.b)\nclass B:\n    def __init__(self):\n        self.n = 0\nclass C:\n    def __init__(self, b):\n        self.b = b\n-----\na = A()\na.b.n = 5\nreturn a.c.b.n",
    "class A:\n    def __init__(self):\n        self.b = B()\n        self.c = C(self.b)\nclass B:\n    def __init__(self):\n        self.n = 0\nclass C:\n    def __init__(self, b):\n        self.b = b\n-----\na = A()\na.c.b.n = 5\nreturn a.b.n",
    "class Stack:\n    def __enter__(self):\n        return 5\n    def __exit__(self, *args):\n        return None\n-----\nwith Stack() as s:\n    x = s + 1\nreturn x",
    # definitions under conditions
    "try:\n    from json import no_such_name as f\nexcept ImportError:\n    def f():\n        return 'fallback'\n-----\nreturn 'either'",
    "if 1 > 2:\n    def f():\n        return 'then'\nelse:\n    pass\ndef f():\n    return 'last'\n-----\nreturn f()",
    "def f():\n    return 1\n\n\ndef f():\n    return 2\n-----\nreturn f()",
    "import math\nreturn [math.ceil(2.1), math.floor(-2.1), math.gcd(12, 18)]",
]

# Where the interpreter may say that it does not know, but may not say anything else.
OPEN = [
    "class A:\n    def __init__(self):\n        self.x = []\n        self.y = self.x\n-----\na = A()\na.x.append(1)\nreturn a.y",
    "class A:\n    def __init__(self):\n        self.items = []\n        for i in range(3):\n            self.items.append(i)\n        self.count = len(self.items)\n-----\na = A()\na.items.append(9)\nreturn [a.items, a.count, A().items]",
    "match 3:\n    case 1:\n        return 'one'\n    case n:\n        return n",
    "def g():\n    yield 1\n    yield 2\nreturn list(g())",
    "def f(x, seen=[]):\n    seen.append(x)\n    return seen\n-----\nf(1)\nreturn f(2)",
    "return sorted(['bb', 'a'], key=len)",
    "return '{:03d}'.format(7) + f'{3.14159:.2f}'",
    "class A:\n    def __eq__(self, other):\n        return True\n-----\nreturn A() == 5",
    "class A:\n    def __bool__(self):\n        return False\n-----\nreturn 1 if A() else 2",
    "class A:\n    def __contains__(self, x):\n        return x == 3\n-----\nreturn [3 in A(), 4 in A()]",
    "class A:\n    def __add__(self, x):\n        return 'added'\n-----\nreturn A() + 1",
    "class A:\n    def __getattr__(self, name):\n        return name\n-----\nreturn A().anything",
    "class A:\n    def __iter__(self):\n        return iter([1, 2])\n-----\nreturn list(A())",
    "x = {1: 'a'}\nreturn [k for k in x.keys() | {2}]",
    "return [*map(lambda a, b: a + b, [1, 2], [3, 4])]",
    "return ''.join(reversed('abc'))",
    "from collections import defaultdict\nd = defaultdict(list)\nd['a'].append(1)\nreturn dict(d)",
    "from collections import deque\nd = deque([1, 2])\nd.rotate(1)\nreturn list(d)",
    "from contextlib import contextmanager\n@contextmanager\ndef c():\n    yield 3\n-----\nwith c() as x:\n    return x",
    "x = [1, 2, 3]\nx.sort(key=lambda i: -i)\nreturn x",
    "return type(3) is int",
    "class A:\n    __slots__ = ('x',)\n-----\na = A()\na.x = 2\nreturn a.x",
    "return 10 ** 40 % 97",
    "x = set()\nx.add((1, 2))\nreturn (1, 2) in x",
    "def f(**options):\n    return options\nreturn f(**{'a': 1, **{'b': 2}})",
    "import os\nreturn len(os.sep) * 0 == 0",
    # a formatted number is unknown to the interpreter
    "one = int('{:d}'.format(1))\nx = [5, 6, 7]\ny = x.pop(one)\nreturn [x, y]",
    "one = int('{:d}'.format(1))\nx = [5, 1, 7]\nx.remove(one)\nreturn x",
    "one = int('{:d}'.format(1))\ns = {1, 2}\ns.discard(one)\nreturn [1 in s, 2 in s, len(s)]",
    "one = int('{:d}'.format(1))\ns = {1, 2}\ns.remove(one)\nreturn 1 in s",
    "one = int('{:d}'.format(1))\ns = {1, 2}\ns.add(one)\nreturn len(s)",
    "one = int('{:d}'.format(1))\ns = {2, 1}\ns.update([one])\nreturn [len(s), 1 in s]",
    "one = int('{:d}'.format(1))\nreturn [{2, 1} - {one}, {1} | {one}, {1}.union([one]), len({1, one})]",
    "one = int('{:d}'.format(1))\ns = {1, 2}\nd = dict(zip('ab', [one, 2]))\ns.difference_update(d.values())\nreturn 1 in s",
    "one = int('{:d}'.format(1))\nd = {1: 'a'}\nx = d.pop(one)\nreturn d",
    "one = int('{:d}'.format(1))\nd = {1: 'a'}\nd[one] = 'b'\nreturn d[1]",
    "one = int('{:d}'.format(1))\nx = [1, 2]\ndel x[one]\nd = {1: 2}\ndel d[one]\nreturn [x, d]",
    "one = int('{:d}'.format(1))\nd = {1: 2}\nd.setdefault(one, 3)\nd.setdefault(2, 5)\nreturn len(d)",
    "one = int('{:d}'.format(1))\ns = {1, 2}\nt = s\ns -= {one}\nreturn 1 in t",
    "one = int('{:d}'.format(1))\nreturn 1 in {2, 1} - {one}",
    "one = int('{:d}'.format(1))\nreturn 1 in {2, 1}.difference([one])",
    "one = int('{:d}'.format(1))\nx = [one, 2]\nx.remove(2)\nx.remove(1)\nreturn x",
    "one = int('{:d}'.format(1))\nx = [1, 2]\nx.insert(one, 9)\nreturn x",
    "one = int('{:d}'.format(1))\nreturn [(5, 6).index(6) if one else 0, [5, 6][one:], (1, 2).count(one), 'ab'[one]]",
]


def as_source(program: str) -> str:
    top, dashes, body = program.partition("-----\n")
    if not dashes:
        top, body = "", program
    return f"{top}\n\ndef main():\n{indent(dedent(body), '    ')}\n"


def by_python(source: str) -> Any:
    module = sys.modules["program"] = ModuleType("program")  # dataclasses look their module up
    try:
        exec(compile(source, "program.py", "exec"), vars(module))
        return module.main()
    finally:
        del sys.modules["program"]


def plain(value: Any) -> Any:
    """Lists for what the interpreter keeps as lists: views of dicts."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_what_python_gives(interpret: Any, program: str) -> None:
    """Values, types and order."""
    source = as_source(program)
    assert repr(plain(interpret(source))) == repr(plain(by_python(source)))


def holds_unknown(value: Any) -> bool:
    if isinstance(value, list | tuple | set):
        return any(holds_unknown(item) for item in value)
    if isinstance(value, dict):
        return any(holds_unknown(item) for pair in value.items() for item in pair)
    return isinstance(value, Unknown) or type(value).__module__.startswith("eaglelint")


@pytest.mark.parametrize("program", OPEN)
def test_what_is_not_followed_is_unknown(interpret: Any, program: str) -> None:
    """Never another value than Python's."""
    source = as_source(program)
    found = interpret(source)
    assert holds_unknown(found) or repr(found) == repr(by_python(source))


@pytest.mark.parametrize(
    ("body", "kind", "line"),
    [
        ("x = [1]\nreturn x[3]", "IndexError", 5),
        ("return {'a': 1}['b']", "KeyError", 4),
        ("x = None\nreturn x.y", "AttributeError", 5),
        ("raise RuntimeError('stop')", "RuntimeError", 4),
        ("a, b = (1,)", "ValueError", 4),
        ("assert 1 > 2", "AssertionError", 4),
    ],
)
def test_an_exception_has_its_line(interpret: Any, body: str, kind: str, line: int) -> None:
    """What Python would raise is raised, with the type and the place."""
    with pytest.raises(Raised) as caught:
        interpret(as_source(body))
    assert caught.value.site is not None
    assert (caught.value.kind, caught.value.site.path, caught.value.site.line) == (kind, "program.py", line)


def test_names_come_across_files(interpret: Any) -> None:
    """Functions, constants and classes of another module, under other names."""
    source = """
    from other import SIZE as size, scale, Base
    import other as module

    class Child(Base):
        pass

    def main():
        return [size, scale(2), Child().value(), module.SIZE]
    """
    other = "SIZE = 4\n\ndef scale(x):\n    return x * SIZE\n\nclass Base:\n    def value(self):\n        return scale(10)\n"
    assert interpret(source, other=other) == [4, 8, 40, 4]


def test_what_a_call_made_is_made_anew_by_the_next(interpret: Any) -> None:
    """A function of plain arguments is run once for all its calls, and still each has a list of its own."""
    source = """
        def numbers(n):
            return list(range(n))

        def main():
            first = numbers(3)
            first.append(9)
            return first, numbers(3)
    """
    assert interpret(source) == ([0, 1, 2, 9], [0, 1, 2])


def test_members_of_enums_have_values(interpret: Any) -> None:
    """Only a member of an enum of strings is equal to its value."""
    source = """
        import enum

        class Plain(enum.Enum):
            A = "a"

        class Text(str, enum.Enum):
            A = "a"

        def main():
            return Plain.A.value, Plain.A == "a", Text.A == "a", Text.A == "b", Plain.A.value == Text.A
    """
    assert interpret(source) == ("a", False, True, False, True)


def test_functions_as_class_variables(interpret: Any) -> None:
    """A function that stands in a class is a method; one in staticmethod() is not."""
    source = """
        def shifted(*args):
            return len(args)

        class Holder:
            bound = shifted
            free = staticmethod(shifted)

        def main():
            holder = Holder()
            return holder.bound(1), holder.free(1), Holder.bound(1), None.__class__ is None
    """
    assert interpret(source)[:3] == (2, 1, 1)


def test_attributes_set_by_a_literal_name(interpret: Any) -> None:
    """A class that sets one attribute by name has no others that nobody sets."""
    source = """
        class Holder:
            def mark(self, other):
                setattr(other, "marked", True)

        def main():
            holder = Holder()
            return getattr(holder, "captured", False), hasattr(holder, "captured")
    """
    assert interpret(source) == (False, False)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+b", "(a|aa)+$", ".*.*.*.*x", r"(a)\\1", "(a{1,9}){1,9}", "["],
)
def test_a_costly_pattern_is_not_tried(interpret: Any, pattern: str) -> None:
    """It comes out of foreign code: one that may search for ever gives an unknown value."""
    found = interpret(f"""
        import re

        def main():
            return re.match({pattern!r}, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
    """)
    assert isinstance(found, Unknown)


def test_what_a_pattern_does_not_tell_is_unknown(interpret: Any) -> None:
    """Flags, a text that is read at run time, and a group that there is not."""
    source = """
        import os, re

        def main():
            text = os.path.join(ROOT, "a")
            return re.compile("a", re.I), re.sub("a", "b", text), re.match("a", "a").group("name")
    """
    assert all(isinstance(item, Unknown) for item in interpret(source))


def test_a_weight_stays_one_whatever_is_done_to_it(interpret: Any) -> None:
    """Cloned, cast, cut or split, a named tensor of a state dict is that tensor; its size is not known."""
    machine_source = """
        def main(weight):
            first, second, third = weight.split([4, 2, 2], dim=0)
            return weight.clone().to("cpu")[:3], first, third.contiguous(), weight.shape[0]
    """
    weight = Tensor.of(Weight("qkv_proj.weight"))
    *same, size = interpret(machine_source, args=(weight,))
    assert same == [weight] * 3
    assert isinstance(size, Unknown)


@pytest.mark.parametrize(("call", "known"), [("torch.cuda.Stream()", True), ("torch.cuda.current_stream()", False)])
def test_what_a_class_from_outside_makes_is_there(interpret: Any, call: str, known: bool) -> None:
    """A class is told by its name; what a function gives may be None."""
    given = interpret(f"import torch\n\ndef main():\n    return {call} is None\n")
    assert (given is False) == known
    assert known or isinstance(given, Unknown)
