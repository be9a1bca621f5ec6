# SPDX-License-Identifier: Apache-2.0
"""The program `kernelpro`: where it is, how its options are written, how it is run."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

from .errors import InputError, MachineError, error_of

PathLike = str | os.PathLike[str]
Scalar = PathLike | int | float
# True is a flag; None and False leave an option out; a sequence repeats it; a mapping repeats it
# as NAME=VALUE.
Option = Scalar | Sequence[Scalar] | Mapping[str, Scalar] | None


def program() -> Path:
    """The program: $KERNELPRO_PROGRAM, else what was installed with this package, else the
    first on PATH."""
    chosen = os.environ.get("KERNELPRO_PROGRAM")
    if chosen:
        if not os.access(chosen, os.X_OK):
            raise MachineError(f"there is no program {chosen}",
                               "point KERNELPRO_PROGRAM at kernelpro, or unset it")
        return Path(chosen)
    installed = _installed()
    if installed is not None:
        return installed
    found = shutil.which("kernelpro")
    if found is None:
        raise MachineError("the program kernelpro was not found",
                           "install it (`pip install .` in KernelPro's folder, or `make install`), "
                           "or point KERNELPRO_PROGRAM at it")
    return Path(found)


@functools.lru_cache(maxsize=1)
def _installed() -> Path | None:
    try:
        files = importlib.metadata.files("kernelpro") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate()))
        if path.name == "kernelpro" and os.access(path, os.X_OK) and path.is_file():
            return path.resolve()
    return None


def version() -> str:
    """For example "0.1.0 (48ea07428489)": the version, and the commit that it was built from."""
    return _run(["--version"], None).stdout.split(" ", 1)[-1].strip()


def arguments_of(options: Mapping[str, Option]) -> list[str]:
    """{"evaluations": 24, "no_record": True} as ["--evaluations=24", "--no-record"]."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [f"{option}={key}={_text(each)}" for key, each in value.items()]
        elif isinstance(value, (str, int, float, os.PathLike)):
            words.append(f"{option}={_text(value)}")
        else:
            words += [f"{option}={_text(each)}" for each in value]
    return words


def _text(value: Scalar) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def path_argument(path: PathLike) -> str:
    """A positional argument, which must not look like an option."""
    text = os.fspath(path)
    if not text:
        raise InputError("a path is empty", "name a file or folder")
    return os.path.join(".", text) if text.startswith("-") else text


def environment() -> dict[str, str]:
    """The program's: PyTorch files run in this interpreter, where it has PyTorch, unless the
    variable names another one."""
    variables = dict(os.environ)
    if "KERNELPRO_PYTHON" not in variables and importlib.util.find_spec("torch") is not None:
        variables["KERNELPRO_PYTHON"] = sys.executable
    return variables


def _run(arguments: Sequence[str], given: str | None) -> subprocess.CompletedProcess[str]:
    command = [str(program()), *arguments]
    try:
        return subprocess.run(command, input=given, capture_output=True, text=True,
                              encoding="utf-8", errors="replace", env=environment(),
                              stdin=subprocess.DEVNULL if given is None else None)
    except OSError as error:
        raise MachineError(f"{command[0]} cannot be started: {error.strerror}",
                           "install KernelPro again") from error


def run(arguments: Sequence[str], given: str | None = None,
        fine: Sequence[int] = (0,)) -> str:
    """What the program printed. `given`: its standard input. Raises unless it ends with one of the
    statuses in `fine`."""
    done = _run(arguments, given)
    if done.returncode not in fine:
        raise error_of(done.returncode, done.stderr)
    return done.stdout


def run_json(arguments: Sequence[str], given: str | None = None,
             fine: Sequence[int] = (0,)) -> Any:
    """The same with --json, parsed. A status in `fine` that came without JSON is an error after
    all."""
    done = _run([*arguments, "--json"], given)
    if done.returncode in fine and done.stdout.strip():
        return json.loads(done.stdout)
    raise error_of(done.returncode, done.stderr)
