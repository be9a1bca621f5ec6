# SPDX-License-Identifier: Apache-2.0
"""Detects changes to our code by a candidate. A candidate shares our process and can replace our
functions, what they close over, and the constants and built-in functions that they use; changes
that outlast one command are detected. So are hooks that run its code at our calls. (What it does to
the seal itself is not: host forms are timed by the supervisor's clock too.)"""

import builtins
import ctypes
import gc
import sys
import types

_REPLACED_BY_LIBRARIES = {"_", "__import__", "print", "open"}  # built-in names, for honest reasons


class Seal:
    """Remembers the functions of this package, of its classes and of `objects`, with the functions
    that these close over, the constants beside them, and the modules and functions that they
    import."""

    def __init__(self, objects):
        self._known = []  # (what to call it, current value, value then)
        self._names = []  # (instance, its callable attributes)
        self._seen = set()
        for name, module in list(sys.modules.items()):
            if name == __package__ or name.startswith(__package__ + "."):
                self._remember(module)
        for value in objects:
            if isinstance(value, types.FunctionType):
                self._follow(value)
            else:
                self._remember(value)
        for name in set(vars(builtins)) - _REPLACED_BY_LIBRARIES:
            self._keep(name, vars(builtins), name)
        self._hooks = _hooks()

    def broken(self):
        """The name of something that was changed, or None."""
        for label, read, then in self._known:
            try:
                now = read()
            except ValueError:  # an emptied cell
                return label
            if now is not then and not (type(now) is tuple and now == then):
                return label
        for instance, names in self._names:
            for name in vars(instance):
                # An instance attribute shadows its class's function.
                if name not in names and callable(getattr(type(instance), name, None)):
                    return f"{_name(instance)}.{name}"
        return next((name for name, hook in _hooks().items() if hook != self._hooks[name]), None)

    def _remember(self, holder):
        held = vars(holder)
        names = {name for name, value in held.items() if _is_code(value)}
        constants = {name for name, value in held.items()
                     if isinstance(value, types.ModuleType) or name.isupper()}
        for name in names | constants:
            self._keep(f"{_name(holder)}.{name}", held, name)
        if not isinstance(holder, (type, types.ModuleType)):
            self._names.append((holder, names))
            for name, value in held.items():
                if isinstance(value, ctypes._SimpleCData):  # an event's handle, say
                    self._keep(f"{_name(holder)}.{name}", held, name)
                    self._watch(f"{_name(holder)}.{name}", lambda v=value: (v.value,))
        for name in names:
            value = held[name]
            self._follow(value)
            mine = isinstance(value, type) and isinstance(holder, types.ModuleType)
            if mine and value.__module__ == holder.__name__:
                self._remember(value)

    def _follow(self, value):
        """What a function does depends on its code, its defaults and what it closes over."""
        function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        if isinstance(function, ctypes._CFuncPtr):
            self._watch(_name(function), lambda: (function.argtypes, function.restype,
                                                  getattr(function, "errcheck", None)))
        if not isinstance(function, types.FunctionType):
            return
        ours = (function.__module__ or "").startswith(__package__)
        self._watch(_name(function), lambda: (function.__code__, function.__defaults__))
        for cell in (function.__closure__ or ()) if ours else ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            if _is_code(content):
                self._watch(_name(function), lambda cell=cell: cell.cell_contents)
                self._follow(content)

    def _keep(self, label, held, name):
        self._watch(label, lambda: held.get(name))

    def _watch(self, label, read):
        self._known.append((label, read, read()))


def _hooks():
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(i) for i in range(6)] if monitoring is not None else []
    return {"sys.setprofile": sys.getprofile(), "sys.settrace": sys.gettrace(),
            "gc.callbacks": list(gc.callbacks), "sys.monitoring": tools}


def _is_code(value):
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))


def _name(holder):
    return getattr(holder, "__qualname__", None) or getattr(holder, "__name__", None) or (
        type(holder).__qualname__)
