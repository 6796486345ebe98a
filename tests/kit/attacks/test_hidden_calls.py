"""Submissions that hide a forbidden call: it is seen, by whatever way they came by it.

Each is a right answer by its results, so all that it can lose it loses for the call. Calls that
nobody hides are in run/worker/test_forbidden.py.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from grader.engine import Engine, Request
from grader.run.collecting import with_checks
from grader.run.session import Checks
from grader.run.workers import Interpreter
from grader.types.report import Outcome, StageResult, Status
from grader.types.submission import Submission
from tests.kit.attacks.few_checks import leave_few
from tests.kit.support.checkout import COURSE

MHA = "torch.nn.MultiheadAttention"
FUNCTION = "torch.nn.functional.multi_head_attention_forward"
NATIVE = "torch.ops.aten._native_multi_head_attention"
ONNX = "torch.onnx.ops._impl.attention_23._init_fn"  # what torch.onnx.ops.attention calls
SDPA = "torch.nn.functional.scaled_dot_product_attention"
# The real rules of the last stage and one more, for a stage whose checks are quick.
NAMES = (*COURSE.stage("multi_head_attention").forbidden, SDPA)
KEPT = {"shape": 1, "values": 2}  # of its checks, and what each is worth
STAGE = replace(COURSE.stage("concat_heads"), forbidden=NAMES, points=sum(KEPT.values()))
SEED = 8

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux locks the worker")

JOINS = """
import functools, gc, importlib, importlib.util, operator, os, pickle, sys, threading, types

import torch

one = torch.ones(2, 3, 4)
{before}

def concat_heads(x):
    {use}
    B, H, T, d_k = x.shape
    return x.transpose(1, 2).reshape(B, T, H * d_k)
"""


@dataclass(frozen=True)
class Hidden:
    """What is done before the check asks, and while it is answered; the name that is to be seen."""

    use: str
    name: str = MHA
    before: str = ""


CALLS = b"def call(): return torch.nn.functional.multi_head_attention_forward(*[None] * 13)".hex()
ARGUMENTS = "*[one] * 3, 4, 2, *map(torch.ones, [(12, 4), 12, (4, 4), 4])"
KERNEL = f"_native_multi_head_attention({ARGUMENTS})"
ELSEWHERE = """
class Elsewhere(torch.Tensor):
    @staticmethod
    def __new__(cls, tensor):
        made = torch.Tensor._make_wrapper_subclass(cls, tensor.shape, device="meta")
        made.tensor = tensor
        return made

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        here = [a.tensor if isinstance(a, cls) else a for a in args]
        made = operation(*here, **kwargs or {})
        return cls(made) if isinstance(made, torch.Tensor) else made

taken = getattr(torch._C._nn, "scaled_dot_" + "product_attention")
one = Elsewhere(torch.ones(2, 2, 3, 4))
"""
NESTED = "one = torch.nested.nested_tensor([torch.ones({})] * 2)"
HIDDEN = {
    "getattr": Hidden("getattr(torch.nn, 'Multihead' + 'Attention')(4, 2)"),
    "getattr of a part of torch": Hidden(
        "getattr(getattr(torch, 'n' * 2), 'MultiheadAttention')(4, 2)"
    ),
    "importlib": Hidden("importlib.import_module('torch.' + 'nn').MultiheadAttention(4, 2)"),
    "__import__": Hidden("__import__('torch.nn', fromlist=['x']).MultiheadAttention(4, 2)"),
    "sys.modules": Hidden(
        "vars(sys.modules['torch.nn.modules.activation'])['Multihead' 'Attention'](4, 2)"
    ),
    "operator": Hidden("operator.attrgetter('nn.MultiheadAttention')(torch)(4, 2)"),
    "functools.partial": Hidden(
        "made()", before="made = functools.partial(torch.nn.MultiheadAttention, 4, 2)"
    ),
    "map": Hidden("list(map(torch.nn.MultiheadAttention, [4], [2]))"),
    "a class of another name": Hidden(
        "Innocent(4, 2)",
        before=(
            "class Innocent(getattr(torch.nn, 'MultiheadAttention')): pass\n"
            "Innocent.__module__ = 'mine'"
        ),
    ),
    "a class that is made": Hidden(
        "type('Innocent', (vars(torch.nn)['MultiheadAttention'],), {})(4, 2)"
    ),
    "an object without its constructor": Hidden(
        "kind.forward(mha, one, one, one)",
        before="kind = torch.nn.MultiheadAttention\nmha = kind(4, 2)",
    ),
    "an object made before": Hidden(
        "mha(one, one, one)", before="mha = torch.nn.MultiheadAttention(4, 2)"
    ),
    "its copy": Hidden(
        "mha(one, one, one)",
        before="import copy\nmha = copy.deepcopy(torch.nn.MultiheadAttention(4, 2))",
    ),
    "its pickle": Hidden(
        "mha(one, one, one)",
        before="mha = pickle.loads(pickle.dumps(torch.nn.MultiheadAttention(4, 2)))",
    ),
    "its forward under another name": Hidden(
        "mha.go(one, one, one)",
        before="mha = torch.nn.MultiheadAttention(4, 2)\nmha.go = mha.forward",
    ),
    "among all subclasses": Hidden(
        "next(k for k in torch.nn.Module.__subclasses__() if k.__name__[:9] == 'Multihead')(4, 2)"
    ),
    "among all objects": Hidden(
        "kind(4, 2)",
        before=(
            "gc.unfreeze()\nkinds = [o for o in gc.get_objects() if isinstance(o, type)]\n"
            "kind = next(k for k in kinds if k.__name__ == 'MultiheadAttention')"
        ),
    ),
    "a class of torch's that derives from it": Hidden(
        "mha(one, one, one)",
        before="import torch.ao.nn.quantizable as q\nmha = q.MultiheadAttention(4, 2)",
    ),
    "inside a layer": Hidden("torch.nn.TransformerEncoderLayer(4, 2)"),
    "inside a layer made before": Hidden(
        "layer(one)", before="layer = torch.nn.TransformerEncoderLayer(4, 2).eval()"
    ),
    "in a thread": Hidden(
        "t = threading.Thread(target=torch.nn.MultiheadAttention, args=(4, 2)); t.start(); t.join()"
    ),
    "in a thread that was started before": Hidden(
        "go.set(); done.wait(2)",
        before=(
            "go, done = threading.Event(), threading.Event()\n"
            "def later():\n    go.wait()\n    torch.nn.MultiheadAttention(4, 2)\n    done.set()\n"
            "threading.Thread(target=later, daemon=True).start()"
        ),
    ),
    "exec": Hidden("exec('torch.nn.Multihead' + 'Attention(4, 2)')"),
    "eval of what nobody reads": Hidden(
        "eval(bytes.fromhex('746f7263682e6e6e2e4d756c746968656164417474656e74696f6e28342c203229'))"
    ),
    "code that has the name of the kit's": Hidden(
        "mine['call']()",
        FUNCTION,
        "mine = {'__name__': 'grader.run.worker.bench', 'torch': torch}\n"
        f"exec(bytes.fromhex('{CALLS}'), mine)",
    ),
    "a finalizer": Hidden(
        "last.append(Last()); last.clear()",
        before="last = []\nclass Last:\n    def __del__(self): torch.nn.MultiheadAttention(4, 2)",
    ),
    "a backward pass": Hidden(
        "with torch.enable_grad(): Back.apply(torch.ones(1, requires_grad=True)).backward()",
        before=(
            "class Back(torch.autograd.Function):\n"
            "    @staticmethod\n    def forward(ctx, x): return x * 1\n"
            "    @staticmethod\n    def backward(ctx, g):\n"
            "        torch.nn.MultiheadAttention(4, 2)\n        return g"
        ),
    ),
    "an operator": Hidden(
        "Sum() + 1",
        before="class Sum:\n    def __add__(self, o): torch.nn.MultiheadAttention(4, 2)",
    ),
    "what is loaded again": Hidden(
        "importlib.reload(torch.nn.modules.activation).MultiheadAttention(4, 2)"
    ),
    "what was loaded again before": Hidden(
        "again.MultiheadAttention(4, 2)",
        before="import torch.nn.modules.activation as a\nagain = importlib.reload(a)",
    ),
    "what is imported anew": Hidden(
        "importlib.import_module('torch.nn.modules.activation').MultiheadAttention(4, 2)",
        before="del sys.modules['torch.nn.modules.activation']",
    ),
    "a second module of its file": Hidden(
        "second.MultiheadAttention(4, 2)",
        before=(
            "import torch.nn.modules.activation as a\n"
            "spec = importlib.util.spec_from_file_location('torch.nn.modules.second', a.__file__)\n"
            "second = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(second)"
        ),
    ),
    "a function": Hidden(
        "getattr(torch.nn.functional, 'multi_head_attention_' + 'forward')(*[None] * 13)", FUNCTION
    ),
    "a function taken before": Hidden(
        "taken(*[None] * 13)",
        FUNCTION,
        "taken = vars(torch.nn.functional)['multi_head_attention_forward']",
    ),
    "a function loaded again": Hidden(
        "torch.nn.functional.multi_head_attention_forward(*[None] * 13)",
        FUNCTION,
        "try: importlib.reload(torch.nn.functional)\nexcept RuntimeError: pass",
    ),
    "a function of the same code": Hidden(
        "mine(*[None] * 13)",
        FUNCTION,
        "f = torch.nn.functional.multi_head_attention_forward\n"
        "mine = types.FunctionType(f.__code__, f.__globals__, 'mine', f.__defaults__)",
    ),
    "a function by functools": Hidden(
        "functools.partial(torch.nn.functional.multi_head_attention_forward, None)(*[None] * 12)",
        FUNCTION,
    ),
    "what torch has for another format": Hidden(
        "vars(torch.onnx.ops)['atten' 'tion'](one, one, one, q_num_heads=2, kv_num_heads=2)",
        ONNX,
        "import torch.onnx.ops",
    ),
    "the operation of that": Hidden(
        "torch.ops.onnx.Attention.opset23(one, one, one, q_num_heads=2, kv_num_heads=2)", ONNX
    ),
    "torch._C._nn": Hidden("torch._C._nn.scaled_dot_product_attention(one, one, one)", SDPA),
    "torch._C._nn, taken before": Hidden(
        "taken(one, one, one)", SDPA, "taken = torch._C._nn.scaled_dot_product_attention"
    ),
    "torch.ops": Hidden("torch.ops.aten.scaled_dot_product_attention.default(one, one, one)", SDPA),
    "torch._C._jit": Hidden(
        "torch._C._jit_get_operation('aten::scaled_dot_product_attention')[0](one, one, one)", SDPA
    ),
    "a script": Hidden(
        "script(one)",
        SDPA,
        "script = torch.jit.CompilationUnit('''\n"
        "def f(x):\n    return torch.ops.aten.scaled_dot_product_attention(x, x, x)\n''').f",
    ),
    "torch.vmap": Hidden(
        "torch.vmap(taken)(one, one, one)",
        SDPA,
        "taken = torch._C._nn.scaled_dot_product_attention\none = torch.ones(2, 2, 3, 4)",
    ),
    "torch.vmap twice": Hidden(
        "torch.vmap(torch.vmap(taken))(one, one, one)",
        SDPA,
        "taken = torch._C._nn.scaled_dot_product_attention\none = torch.ones(2, 2, 2, 3, 4)",
    ),
    "an operation taken to its parts": Hidden(
        "torch.ops.aten.scaled_dot_product_attention.default.decompose(one, one, one)", SDPA
    ),
    "a key of torch's dispatcher": Hidden(
        "torch.ops.aten.scaled_dot_product_attention.default._op_dk(key, one, one, one)",
        SDPA,
        "key = torch._C.DispatchKey.CompositeImplicitAutograd",
    ),
    "a subclass of tensors that are elsewhere": Hidden(
        "assert taken(one, one, one).tensor.shape[-1] == 4", SDPA, ELSEWHERE
    ),
    "where no room is left to note it": Hidden(
        "for left in range(60): deep(sys.getrecursionlimit() - len(inspect.stack(0)) - left)",
        FUNCTION,
        "import inspect\ntaken = vars(torch.nn.functional)['multi_head_attention_forward']\n"
        "def down(more):\n    if more > 0: return down(more - 1)\n    taken()\n"
        "def deep(more):\n    try: down(more)\n    except (RecursionError, TypeError): pass",
    ),
    "a call that began before and waits": Hidden(
        "go.set()",
        FUNCTION,
        "go, inside = threading.Event(), threading.Event()\n"
        "class Query:\n    def dim(self): inside.set(); go.wait(); return 3\n"
        "taken = vars(torch.nn.functional)['multi_head_attention_forward']\n"
        "args = [Query(), *[None] * 12]\n"
        "threading.Thread(target=taken, args=args, daemon=True).start(); inside.wait(2)",
    ),
    "a trace": Hidden(
        "traced(one, one, one)",
        before="mha = getattr(torch.nn, 'Multihead' + 'Attention')(4, 2)\n"
        "traced = torch.jit.trace(mha, (one, one, one))",
    ),
    "a graph": Hidden(
        "graph(one)",
        before="from torch.fx.experimental.proxy_tensor import make_fx\n"
        "mha = getattr(torch.nn, 'Multihead' + 'Attention')(4, 2)\n"
        "graph = make_fx(lambda x: mha(x, x, x)[0])(one)",
    ),
    "a kernel": Hidden(f"torch.ops.aten.{KERNEL}", NATIVE),
    "a kernel, by torch._C": Hidden(f"torch._C._VariableFunctions.{KERNEL}", NATIVE),
    "a kernel, by torch": Hidden(f"torch.{KERNEL}", NATIVE),
    "a kernel taken before": Hidden(
        f"taken.call_boxed(keys, {ARGUMENTS})",
        NATIVE,
        "keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)\n"
        "taken = torch.library.get_kernel('aten::_native_multi_head_attention', 'CPU')",
    ),
    "a kernel inside that of a whole layer": Hidden(
        "with torch.no_grad(): torch._transformer_encoder_layer_fwd(one, 4, 2, *map(torch.ones, "
        "[(12, 4), 12, (4, 4), 4]), False, False, 1e-5, *[torch.ones(4)] * 4, *map(torch.ones, "
        "[(8, 4), 8, (4, 8), 4]))",
        NATIVE,
    ),
    "a kernel, of nested tensors": Hidden(f"torch.{KERNEL}", NATIVE, NESTED.format("3, 4")),
    "torch.ops, of nested tensors": Hidden(
        "torch.ops.aten.scaled_dot_product_attention.default(one, one, one)",
        SDPA,
        NESTED.format("2, 3, 4"),
    ),
    # Nothing is called while a check is answered, but it stands there.
    "only where no check looks": Hidden("x.shape[0] > 99 and torch.nn.MultiheadAttention(4, 2)"),
    "by the time of day": Hidden(
        "os.environ.get('TZ') and helper()",
        before="def helper(): return torch.nn.MultiheadAttention(4, 2)",
    ),
}

SCRIPTED = "torch.jit.script(getattr(torch.nn.functional, 'multi_head_' + 'attention_forward'))"


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, interpreter: Interpreter) -> Mapping[str, StageResult]:
    asked = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {spec.params["way"] for spec in asked if spec and "way" in spec.params}
    stages = tuple(STAGE if stage.slug == STAGE.slug else stage for stage in COURSE.stages)
    course = replace(COURSE, stages=stages)

    def body(checks: Checks) -> dict[str, StageResult]:
        engine = Engine(course, "cpu", interpreter, checks)

        def graded(source: str) -> StageResult:
            submission = Submission("hidden", {STAGE.file_name: source.encode()})
            return engine.grade(Request(submission, (STAGE,), SEED)).stages[0]

        leave_few(engine.checks, STAGE.slug, KEPT)
        found = {"honest": graded(JOINS.format(before="", use="pass"))}
        for way, hidden in HIDDEN.items():
            if way in wanted:
                found[way] = graded(JOINS.format(before=hidden.before, use=hidden.use))
        found[SCRIPTED] = graded(JOINS.format(before="", use=SCRIPTED))
        found["honest again"] = graded(JOINS.format(before="", use="pass"))
        return found

    return with_checks(course, [STAGE], body)


@pytest.mark.parametrize("way", HIDDEN)
def test_a_hidden_call_is_seen(results: Mapping[str, StageResult], way: str) -> None:
    name, result = HIDDEN[way].name, results[way]
    assert result.checks[0].id == "concat_heads.forbidden-call", result.checks[0].message
    assert f"calls {name}" in result.checks[0].message
    assert (result.status, result.score) == (Status.FAILED, 0)


def test_a_script_of_what_is_forbidden_cannot_be_made(results: Mapping[str, StageResult]) -> None:
    result = results[SCRIPTED]
    assert "Can't get source" in result.checks[0].message
    assert (result.status, result.score) == (Status.FAILED, 0)


@pytest.mark.parametrize("who", ["honest", "honest again"])
def test_the_others_get_their_points(results: Mapping[str, StageResult], who: str) -> None:
    result = results[who]
    assert (result.status, result.score) == (Status.PASSED, result.max_score)
    assert Outcome.FAILED not in {check.outcome for check in result.checks}
