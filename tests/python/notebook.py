# SPDX-License-Identifier: Apache-2.0
"""Runs a notebook's cells in order, in the current folder, as Jupyter would.

    notebook.py FILE
"""

import ast
import json
import linecache
import sys
import types


def run_cell(number, text, scope):
    name = f"<cell {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)  # as IPython does
    tree = ast.parse(text, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), scope)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
        if value is not None:
            print(value)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    notebook = types.ModuleType("__main__")  # what pickles and inspects looks there
    sys.modules["__main__"] = notebook
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            print(f"== cell {number}", flush=True)
            run_cell(number, "".join(cell["source"]), vars(notebook))


if __name__ == "__main__":
    main()
