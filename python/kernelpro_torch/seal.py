# SPDX-License-Identifier: Apache-2.0
"""Detects changes to our code by a candidate. A candidate shares our process and can replace our
functions; replacements that outlast one command are detected."""

import sys
import types


class Seal:
    """Remembers the functions of this package, of its classes and of `objects`, and the functions
    that they imported by name."""

    def __init__(self, objects):
        self._known = []
        for name, module in list(sys.modules.items()):
            if name == __package__ or name.startswith(__package__ + "."):
                self._remember(module)
        for value in objects:
            self._remember(value)

    def broken(self):
        """The name of something that was changed, or None."""
        for holder, names, values, codes in self._known:
            held = vars(holder)
            for name, value, code in zip(names, values, codes):
                if held.get(name) is not value or _code(value) != code:
                    return f"{_name(holder)}.{name}"
            if not isinstance(holder, (type, types.ModuleType)):
                for name in held:
                    # An instance attribute shadows its class's function.
                    if name not in names and callable(getattr(type(holder), name, None)):
                        return f"{_name(holder)}.{name}"
        return None

    def _remember(self, holder):
        names = [name for name, value in vars(holder).items() if _is_code(value)]
        values = [vars(holder)[name] for name in names]
        self._known.append((holder, names, values, [_code(value) for value in values]))
        if not isinstance(holder, types.ModuleType):
            return
        for value in values:
            if isinstance(value, type) and value.__module__ == holder.__name__:
                self._remember(value)


def _is_code(value):
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))


def _code(value):
    function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return (getattr(function, "__code__", None), getattr(function, "__defaults__", None))


def _name(holder):
    return getattr(holder, "__qualname__", None) or getattr(holder, "__name__", None) or (
        type(holder).__qualname__)
