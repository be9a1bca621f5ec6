# SPDX-License-Identifier: Apache-2.0
"""Tasks: what names one, and one made from a module that exists only in this process."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import linecache
import math
import re
import symtable
import textwrap
import types
from pathlib import Path
from typing import Any, Sequence

from .errors import InputError
from .program import PathLike, path_argument

# A task's folder or PyTorch file; or that file as an imported module, or its class Model.
TaskLike = PathLike | types.ModuleType | type


def task_path(task: TaskLike) -> str:
    """The path that the program gets."""
    if isinstance(task, types.ModuleType):
        if not task.__file__:
            raise InputError(f"the module {task.__name__} has no file", "name a task's file")
        return path_argument(task.__file__)
    if isinstance(task, type):
        home = inspect.getmodule(task)
        if task.__name__ == "Model" and all(
                hasattr(home, name) for name in ("get_inputs", "get_init_inputs")):
            return path_argument(inspect.getfile(task))
        raise InputError(
            f"{task.__name__} is not the class Model of a task's file",
            f"make a task of it: kernelpro.module_task({task.__name__}, inputs=[...])")
    return path_argument(task)


def module_task(module: type, inputs: Sequence[Any], init: Sequence[Any] = (), *,
                folder: PathLike = "tasks",
                name: str | None = None) -> Path:
    """Writes a task's file for an nn.Module class, and returns its path.

    `inputs`: arguments of forward, tensors or numbers; of tensors only shape, type and, for whole
    numbers, the range count. `init`: arguments of the constructor, plain values. The file holds the
    class and what it uses of its own module; read it, and change how inputs are drawn if their
    values matter."""
    sizes = _Sizes(inputs)
    imports, constants, definitions = _source_with_globals(module)
    if module.__name__ != "Model":
        definitions.append(f"Model = {module.__name__}")
    definitions += [
        f"def get_inputs():\n    return [{', '.join(map(sizes.draw, inputs))}]",
        f"def get_init_inputs():\n    return [{', '.join(map(sizes.literal, init))}]"]
    text = "\n".join([f"# Written by kernelpro.module_task from {module.__name__}.",
                      *sorted({"import torch", *imports}), "", *sizes.assignments(), *constants,
                      "\n", "\n\n\n".join(definitions), ""])
    path = Path(folder) / f"{name or _file_name(module.__name__)}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _file_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class _Sizes:
    """Equal sizes of the inputs, and arguments of the constructor that equal them, share a name at
    the top of the file: there the program changes them to check other sizes."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        found = {size for each in inputs for size in getattr(each, "shape", ()) if size > 1}
        self.names = {int(size): f"SIZE_{int(size)}" for size in sorted(found)}

    def assignments(self) -> list[str]:
        return [f"{name} = {size}" for size, name in self.names.items()]

    def literal(self, value: Any) -> str:
        if type(value) is int:
            return self.names.get(value, str(value))
        if isinstance(value, (tuple, list)):
            inside = ", ".join(map(self.literal, value))
            if isinstance(value, list):
                return f"[{inside}]"
            return f"({inside},)" if value else "()"
        if value is None or isinstance(value, (bool, float, str)):
            return _plain(value)
        raise InputError(f"an argument is a {type(value).__name__}, which a file cannot hold",
                         "give plain values: numbers, texts, tuples and lists of them")

    def draw(self, value: Any) -> str:
        if not hasattr(value, "shape"):
            return self.literal(value)
        shape = self.literal([int(size) for size in value.shape])
        dtype = str(value.dtype)
        if dtype == "torch.float32":
            return f"torch.randn({shape})"
        if dtype == "torch.bool":
            return f"torch.rand({shape}) < 0.5"
        if value.dtype.is_floating_point:
            return f"torch.randn({shape}).to({dtype})"
        low, high = (int(value.min()), int(value.max())) if value.numel() else (0, 1)
        return f"torch.randint({low}, {high + 1}, {shape}, dtype={dtype})"


def _source_with_globals(thing: Any) -> tuple[list[str], list[str], list[str]]:
    """What a class needs to stand alone: imports, constants, and definitions of its module in an
    order in which they can be read, itself last."""
    imports: list[str] = []
    constants: list[str] = []
    definitions: list[str] = []
    seen: set[str] = set()

    def collect(thing: Any) -> None:
        seen.add(thing.__name__)
        source = _source(thing)
        names = _globals_of(thing)
        for name in _names(source):
            if name in seen or name not in names or hasattr(builtins, name):
                continue
            seen.add(name)
            value = names[name]
            home = getattr(value, "__module__", None)
            if isinstance(value, types.ModuleType):
                short = f"import {name}"
                imports.append(short if value.__name__ == name else
                               f"import {value.__name__} as {name}")
            elif isinstance(value, (type, types.FunctionType)) and home == thing.__module__:
                collect(value)
            elif value is None or isinstance(value, (bool, int, float, str, tuple)):
                constants.append(f"{name} = {_plain(value)}")
            elif home and getattr(importlib.import_module(home), name, None) is value:
                imports.append(f"from {home} import {name}")
            else:
                raise InputError(
                    f"{thing.__name__} uses {name}, a {type(value).__name__} of its module, which "
                    "a task's file cannot hold",
                    "make it an argument of the constructor, or write the task by hand")
        definitions.append(source.strip())

    collect(thing)
    return imports, constants, definitions


def _plain(value: Any) -> str:
    """The text of a plain value, in a file without imports."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        inside = ", ".join(map(_plain, value))
        return f"({inside},)" if value else "()"
    return repr(value)


def _globals_of(thing: Any) -> dict[str, Any]:
    function = thing if isinstance(thing, types.FunctionType) else thing.__dict__.get("forward")
    if isinstance(function, types.FunctionType):
        return function.__globals__
    return vars(importlib.import_module(thing.__module__))


def _names(source: str) -> list[str]:
    """The globals that the code reads."""
    found: dict[str, None] = {}

    def walk(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            outermost = table.get_type() == "module"
            if symbol.is_referenced() and (outermost or symbol.is_global()):
                found[symbol.get_name()] = None
        for inner in table.get_children():
            walk(inner)

    walk(symtable.symtable(source, "<source>", "exec"))
    return list(found)


def _source(thing: Any) -> str:
    """Its text. A notebook's class has no file: its cell is that of its methods."""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        pass
    for method in vars(thing).values():
        if not isinstance(method, types.FunctionType):
            continue
        cell = "".join(linecache.getlines(method.__code__.co_filename))
        for node in ast.parse(cell).body if cell else ():
            if isinstance(node, ast.ClassDef) and node.name == thing.__name__:
                return ast.get_source_segment(cell, node) or ""
    raise InputError(f"the source of {thing.__name__} cannot be found",
                     "define it in a file or a notebook's cell")
