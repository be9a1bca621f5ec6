# SPDX-License-Identifier: Apache-2.0
"""A task file in KernelBench's form: `Model`, `get_inputs`, `get_init_inputs`.

The integers at the top of the file (`N = 1024`, `M = 4 * 256`) are its dimensions. To change sizes,
other literals are written into the syntax tree before it runs, so everything that the file derives
from them follows.
"""

import ast
import linecache
import os
import random
import sys
import traceback
import types

import torch

from . import sandbox
from .channel import Refusal

PARAMETER_SEED = 42  # KernelBench draws constructor arguments and weights under this seed
_NEEDED = ("Model", "get_inputs", "get_init_inputs")
_loaded = 0


class ModuleFile:
    """The file's namespace after running it. Raises Refusal, with the end of the traceback, if it
    does not run or lacks something."""

    def __init__(self, source, path="", dims=None, needed=_NEEDED):
        global _loaded
        _loaded += 1
        name = f"kernelpro_task_{_loaded}"
        self.file = path or f"<{name}>"
        set_arithmetic_flags()
        folder = os.path.dirname(os.path.abspath(path)) if path else ""
        if folder and folder not in sys.path:
            sys.path.append(folder)  # for imports from the file's own folder
        with telling(f"{self.file} cannot be loaded"):
            tree = ast.parse(source, filename=self.file)
            self.dims = substitute(tree, dims or {})
            self.module = types.ModuleType(name)
            self.module.__file__ = self.file
            # Lets tracebacks and inspect.getsource show its lines, which were not read from disk.
            lines = source.splitlines(keepends=True)
            linecache.cache[self.file] = (len(source), None, lines, self.file)
            sys.modules[name] = self.module
            exec(compile(tree, self.file, "exec"), self.module.__dict__)
        self.flags = arithmetic_flags()  # as set by the file
        missing = [each for each in needed if not callable(self.get(each))]
        if missing:
            raise Refusal(f"{self.file} does not define {' and '.join(missing)}", "task",
                          "a task file defines the class Model and the functions get_inputs() and "
                          "get_init_inputs(), as KernelBench's do")

    def get(self, name):
        return getattr(self.module, name, None)

    def init_inputs(self, prepare=lambda value: value):
        """Constructor arguments, as (positional, named). `prepare` is applied to each."""
        seed_everything(PARAMETER_SEED)
        with telling("get_init_inputs() failed"):
            given = self.get("get_init_inputs")()
        given = [] if given is None else given
        # KernelBench's files return a list; some task collections add a dict of named arguments.
        if isinstance(given, dict):
            return [], {name: prepare(value) for name, value in given.items()}
        if (isinstance(given, (list, tuple)) and len(given) == 2 and isinstance(given[0], list)
                and isinstance(given[1], dict)):
            return ([prepare(v) for v in given[0]],
                    {name: prepare(value) for name, value in given[1].items()})
        return [prepare(value) for value in given], {}

    def construct(self, class_name="Model", prepare=lambda value: value):
        """An instance under the fixed seed, in the mode set by its constructor."""
        positional, named = self.init_inputs(prepare)
        seed_everything(PARAMETER_SEED)
        with telling(f"{class_name} could not be constructed"), torch.no_grad():
            model = self.get(class_name)(*positional, **named)
        if not isinstance(model, torch.nn.Module):
            raise Refusal(f"{class_name} is not a torch.nn.Module", "task",
                          f"let the class {class_name} inherit from torch.nn.Module")
        return model

    def inputs(self):
        """The result of get_inputs(), as a list. The caller must seed first."""
        with telling("get_inputs() failed"):
            given = self.get("get_inputs")()
        if not isinstance(given, (list, tuple)):
            raise Refusal(f"get_inputs() gives {type(given).__name__}, not a list", "task",
                          "return the arguments of forward as a list")
        return list(given)


class telling:
    """Turns any exception of the task's code, SystemExit included, into a Refusal with the end of
    the traceback."""

    def __init__(self, what):
        self.what = what

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or isinstance(error, (Refusal, KeyboardInterrupt)):
            return False
        if is_out_of_memory(error):
            raise Refusal(f"{self.what}: not enough memory: {first_line(error)}", "memory",
                          "evaluate a smaller case, or set KERNELPRO_MODULE_MEMORY to more "
                          "gigabytes") from None
        raise Refusal(f"{self.what}:\n{shown(kind, error, trace)}", "task",
                      sandbox.advice(error) or "fix the file") from None


def is_out_of_memory(error):
    known = getattr(torch.cuda, "OutOfMemoryError", None)
    text = str(error)
    return (isinstance(error, MemoryError) or (known is not None and isinstance(error, known))
            or "out of memory" in text or "can't allocate memory" in text
            or "DefaultCPUAllocator" in text)


def first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def shown(kind, error, trace, lines=12, size=3000):
    """The end of the traceback without our own frames."""
    own = os.path.dirname(os.path.abspath(__file__))
    told = traceback.TracebackException(kind, error, trace)
    told.stack = traceback.StackSummary.from_list(
        [frame for frame in told.stack if not os.path.abspath(frame.filename).startswith(own)])
    text = "".join(told.format(chain=False)).rstrip().splitlines()
    return "\n".join(text[-lines:])[-size:]


def seed_everything(seed):
    """torch (every device), Python's random, and NumPy's global generator if NumPy is loaded."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


def substitute(tree, dims):
    """Writes `dims` into the tree; returns all dimensions with their new values."""
    found = {}

    def visit(target, value):
        """The expression that replaces `value` for this target."""
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            if len(target.elts) == len(value.elts):
                value.elts = [visit(t, v) for t, v in zip(target.elts, value.elts)]
            return value
        known = _integer(value)
        if not isinstance(target, ast.Name) or known is None:
            return value
        found[target.id] = int(dims.get(target.id, known))
        if found[target.id] == known:
            return value
        return ast.copy_location(ast.Constant(found[target.id]), value)

    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            value = statement.value
            for target in statement.targets:
                value = visit(target, value)
            statement.value = value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            statement.value = visit(statement.target, statement.value)
    unknown = sorted(set(dims) - set(found))
    if unknown:
        has = ", ".join(found) if found else "none"
        raise Refusal(f"the file has no integer {', '.join(unknown)} at its top level", "input",
                      f"its integers are: {has}")
    ast.fix_missing_locations(tree)
    return found


_BINARY = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
    ast.LShift: lambda a, b: a << b,
}


def _integer(node):
    """The value of an expression of integer literals only; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and abs(node.value) < 1 << 62 else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _integer(node.operand)
        return None if value is None else (-value if isinstance(node.op, ast.USub) else value)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _integer(node.left), _integer(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, (ast.Pow, ast.LShift)) and not 0 <= right <= 62:
            return None
        try:
            value = _BINARY[type(node.op)](left, right)
        except ArithmeticError:
            return None
        return value if abs(value) < 1 << 62 else None
    return None


# PyTorch's arithmetic switches, with their defaults: (holder, attribute, default, strict).
def _switches():
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return [
        (cuda, "allow_tf32", False, False),
        (cudnn, "allow_tf32", True, False),
        (cuda, "allow_fp16_reduced_precision_reduction", True, False),
        (cuda, "allow_bf16_reduced_precision_reduction", True, False),
        (cuda, "allow_fp16_accumulation", False, False),
        (cudnn, "deterministic", False, True),
        (cudnn, "benchmark", False, False),
    ]


def arithmetic_flags():
    """The current switches, for set_arithmetic_flags."""
    flags = {}
    for holder, name, _, _ in _switches():
        try:
            flags[(id(holder), name)] = getattr(holder, name)
        except (AttributeError, RuntimeError, AssertionError):
            pass  # not in this torch
    return flags


def set_arithmetic_flags(flags=None, *, strict=False, tf32=False):
    """Sets the switches in `flags`; without it PyTorch's defaults, or with `strict` the most exact
    and reproducible arithmetic. `tf32` also allows TF32."""
    for holder, name, default, exact in _switches():
        value = exact if strict else default
        if flags is not None:
            value = flags.get((id(holder), name), value)
        if tf32 and name == "allow_tf32":
            value = True
        try:
            if getattr(holder, name) != value:
                setattr(holder, name, value)
        except (AttributeError, RuntimeError, AssertionError):
            pass
