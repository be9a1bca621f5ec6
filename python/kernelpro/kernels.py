# SPDX-License-Identifier: Apache-2.0
"""Exported winners in place of a module's forward, and the module itself wherever none fits."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import types
import warnings
import weakref
from pathlib import Path
from typing import Any, Callable, TypeVar

from .commands import export
from .errors import InputError, MachineError
from .program import PathLike
from .values import Candidate, Export, Run, RunResult, RunSummary

M = TypeVar("M")

# An export, its folder or its model_new.py; or a run or candidate, which is exported first.
KernelLike = PathLike | Export | Run | RunResult | RunSummary | Candidate

# Largest relative difference (Euclidean) of a kernel's and the module's result, by the contract
# that the kernel was judged by. The run has judged the kernel; this finds a module that computes
# something else than the task's.
_TOLERANCE = {"fp32": 1e-4, "tf32": 4e-3, "fp16": 1e-2, "bf16": 4e-2}
_BY_MODE = ("Dropout", "BatchNorm", "InstanceNorm", "RReLU")


def _torch() -> Any:
    return importlib.import_module("torch")


def accelerate(module: M, *kernels: KernelLike) -> M:
    """Lets an nn.Module, or all of a class, compute with the first of the kernels that fits a call,
    and by itself where none does: other shapes, types or devices, gradients, autocast, compilation,
    another mode (train or eval) if that matters. Changes `module` and returns it; `restore` undoes
    it, `explain` says why a call falls back.

    A module's first call with a kernel runs both and compares; where they differ, or the module was
    constructed otherwise than the task's, it warns and keeps computing by itself."""
    Module = _torch().nn.Module
    if not isinstance(module, Module) and not (isinstance(module, type) and
                                               issubclass(module, Module)):
        raise InputError(f"{type(module).__name__} is not an nn.Module", "name a module or a class")
    if not kernels:
        raise InputError("no kernel was given", "name an export, or a run with a winner")
    dispatch = _Dispatch([_load(_module_file(each)) for each in kernels])
    restore(module)
    if isinstance(module, type):
        own: Any = vars(module).get("forward")  # None: inherited

        @functools.wraps(getattr(module, "forward"))
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            original = getattr(super(module, self), "forward") if own is None else (
                functools.partial(own, self))
            return dispatch(self, original, args, kwargs)

        forward.kernelpro = dispatch, own  # type: ignore[attr-defined]
        setattr(module, "forward", forward)
    else:
        vars(module)["forward"] = _Forward(module, dispatch)
    return module


def accelerated(*kernels: KernelLike) -> Callable[[M], M]:
    """`accelerate` as a decorator of a class."""
    return lambda module: accelerate(module, *kernels)


def restore(module: M) -> M:
    """Lets a module, or a class, compute by itself again."""
    if isinstance(module, type):
        dispatch, own = getattr(vars(module).get("forward"), "kernelpro", (None, None))
        if own is not None:
            setattr(module, "forward", own)
        elif dispatch is not None:
            delattr(module, "forward")
    elif isinstance(vars(module).get("forward"), _Forward):
        del vars(module)["forward"]
    return module


def explain(module: Any, *args: Any, **kwargs: Any) -> str:
    """Why the module would compute this call by itself; "" where a kernel does it."""
    own = vars(module).get("forward")
    if isinstance(own, _Forward):
        return own.dispatch.choose(module, args, kwargs)[1]
    dispatch, _ = getattr(type(module).forward, "kernelpro", (None, None))
    if dispatch is None:
        return "no kernel was given to this module: kernelpro.accelerate does that"
    return str(dispatch.choose(module, args, kwargs)[1])


class _Forward:
    """Stands in a module's own dictionary, so that calls find it before the class's forward."""

    def __init__(self, module: Any, dispatch: _Dispatch) -> None:
        self.module, self.dispatch = module, dispatch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        original = functools.partial(type(self.module).forward, self.module)
        return self.dispatch(self.module, original, args, kwargs)


def _module_file(kernel: KernelLike) -> Path:
    if isinstance(kernel, (Run, RunResult, RunSummary, Candidate)):
        kernel = export(kernel)
    if isinstance(kernel, Export):
        if kernel.module is None:
            raise InputError(f"the task {kernel.task} is not a PyTorch file, so its export has no "
                             "module", "optimize a PyTorch file, or kernelpro.module_task(...)")
        return kernel.module
    path = Path(kernel)
    path = path / "model_new.py" if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"there is no export {path}", "kernelpro export RUN writes one")
    return path.resolve()


def _load(path: Path) -> _Kernel:
    return _loaded(str(path), path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=None)
def _loaded(path: str, mtime_ns: int) -> _Kernel:
    """Builds the kernel: seconds on the CPU, a minute on a GPU the first time."""
    spec = importlib.util.spec_from_file_location(f"kernelpro_export_{abs(hash(path))}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise MachineError(f"{path} cannot be built here: {error}",
                           "use it where it was measured, or export a kernel for this machine"
                           ) from error
    if not hasattr(module, "kp_misfit"):
        raise InputError(f"{path} was exported by an older KernelPro", "export it again")
    return _Kernel(path, module)


def _constructed(file: Any) -> Any:
    """The task's module; its configuration counts, not its weights, which may be large."""
    arguments = file.get_init_inputs()
    try:
        with _torch().device("meta"):
            return file.Model(*arguments)
    except Exception:  # an older PyTorch, or a constructor that reads values
        with _torch().random.fork_rng(devices=[]):
            return file.Model(*arguments)


class _Kernel:
    """One model_new.py."""

    def __init__(self, path: str, module: types.ModuleType) -> None:
        self.path, self.file = path, module
        self.like = _constructed(module)
        self.modes = any(part in type(m).__name__ for m in self.like.modules() for part in _BY_MODE)

    def misfit(self, module: Any, args: Any, kwargs: Any) -> str:
        if self.modes and module.training != self.like.training:
            return f"the kernel computes what the module does with training={self.like.training}"
        return str(self.file.kp_misfit(module, *args, **kwargs))

    def __call__(self, module: Any, args: Any, kwargs: Any) -> Any:
        return self.file.kp_forward(module, *args, **kwargs)

    def tolerance(self) -> float:
        return _TOLERANCE.get(self.file.KP_PRECISION, 1e-4)


class _Dispatch:
    """Which kernel does which call. What was found out about a module is kept while it lives."""

    def __init__(self, kernels: list[_Kernel]) -> None:
        self.kernels = kernels
        self.proven: weakref.WeakKeyDictionary[Any, dict[Any, str]] = weakref.WeakKeyDictionary()

    def __deepcopy__(self, memo: Any) -> _Dispatch:
        return self  # a copied module proves itself anew

    def __call__(self, module: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        kernel, _ = self.choose(module, args, kwargs)
        if kernel is None:
            return original(*args, **kwargs)
        proven = self.proven.setdefault(module, {})
        key = kernel, _others(args, kwargs)
        if key in proven:
            return kernel(module, args, kwargs)
        result, proven[key] = _prove(kernel, module, original, args, kwargs)
        if proven[key]:
            warnings.warn(f"{type(module).__name__} computes by itself, not with {kernel.path}: "
                          f"{proven[key]}", RuntimeWarning, stacklevel=3)
        return result

    def choose(self, module: Any, args: Any, kwargs: Any) -> tuple[_Kernel | None, str]:
        """The first kernel that fits, or why none does."""
        why = _unfit_surroundings(module, args, kwargs)
        if why:
            return None, why
        others = _others(args, kwargs)
        reasons = []
        for kernel in self.kernels:
            why = self.proven.get(module, {}).get((kernel, others), "") or kernel.misfit(
                module, args, kwargs)
            if not why:
                return kernel, ""
            reasons.append(why)
        return None, "; ".join(dict.fromkeys(reasons))


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _leaves(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def _others(args: Any, kwargs: Any) -> Any:
    """The arguments that are not tensors: the kernel was made for certain ones, so that each new
    combination has to prove itself."""
    torch = _torch()
    return tuple((type(leaf), repr(leaf)) for leaf in _leaves((args, kwargs))
                 if not isinstance(leaf, torch.Tensor))


def _autocast() -> bool:
    torch = _torch()
    try:
        return bool(torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"))
    except TypeError:  # before PyTorch 2.4
        return bool(torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled())


def _unfit_surroundings(module: Any, args: Any, kwargs: Any) -> str:
    torch = _torch()
    if getattr(getattr(torch, "compiler", None), "is_compiling", bool)():
        return "torch.compile is at work"
    if _autocast():
        return "autocast is on"
    if torch.is_grad_enabled() and any(
            isinstance(leaf, torch.Tensor) and leaf.requires_grad
            for leaf in _leaves((args, kwargs)) + list(module.parameters())):
        return "gradients are recorded, and the kernel has none: use torch.no_grad()"
    return ""


def _version(tensor: Any) -> int:
    return 0 if tensor.is_inference() else int(tensor._version)


def _prove(kernel: _Kernel, module: Any, original: Callable[..., Any], args: Any,
           kwargs: Any) -> tuple[Any, str]:
    """The module's own result, and why the kernel must not replace it; "": it may."""
    torch = _torch()
    watched = [leaf for leaf in _leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    watched += list(module.buffers())
    with torch.no_grad():
        why = _unlike(module, kernel.like)
        got = None if why else kernel(module, args, kwargs)
        versions = [_version(each) for each in watched]
        expected = original(*args, **kwargs)
        if why:
            return expected, why
        if versions != [_version(each) for each in watched]:
            return expected, "forward changes its inputs or buffers"
        return expected, _difference(got, expected, kernel.tolerance())


def _unlike(module: Any, like: Any) -> str:
    """Whether a module was constructed as the task's: the same submodules with the same numbers."""
    theirs, ours = dict(module.named_modules()), dict(like.named_modules())
    if theirs.keys() != ours.keys():
        return "it does not have the submodules of the task's module"
    torch = _torch()
    internal = vars(torch.nn.Module()).keys()
    for name, part in ours.items():
        if name and type(part).__name__ != type(theirs[name]).__name__:
            return f"{name} is a {type(theirs[name]).__name__}, not a {type(part).__name__}"
        for key, value in vars(part).items():
            if key in internal or not isinstance(
                    value, (bool, int, float, str, tuple, type(None), torch.dtype)):
                continue
            there = vars(theirs[name]).get(key)
            if there != value:
                return (f"{name + '.' if name else ''}{key} is {there!r}; the kernel was made for "
                        f"{value!r}")
    return ""


def _difference(got: Any, expected: Any, tolerance: float) -> str:
    torch = _torch()
    theirs = expected if isinstance(expected, tuple) else (expected,)
    ours = got if isinstance(got, tuple) else (got,)
    if len(ours) != len(theirs) or not all(isinstance(t, torch.Tensor) for t in theirs):
        return "it does not return a tensor or a tuple of tensors"
    for a, b in zip(ours, theirs):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"it returns {b.dtype} {tuple(b.shape)}, the kernel {a.dtype} {tuple(a.shape)}"
        if not a.dtype.is_floating_point:
            if not torch.equal(a, b):
                return "the results differ"
            continue
        a, b = a.double(), b.double()
        finite = torch.isfinite(b)
        x, y = a[~finite], b[~finite]
        if not bool(((x == y) | (x.isnan() & y.isnan())).all()):
            return "the results differ where they are not finite"
        apart, scale = float((a - b)[finite].norm()), float(b[finite].norm())
        if not apart <= tolerance * scale:
            return f"the results differ by {apart / scale if scale else apart:.1e}"
    return ""
