# SPDX-License-Identifier: Apache-2.0
"""The program's commands that answer at once, one function each. `options` are the command's own
(`kernelpro help COMMAND`), with underscores: evaluate(..., no_timing=True, knob={"TILE": 32})."""

from __future__ import annotations

import json
import os
from typing import Sequence

from .program import Option, PathLike, arguments_of, path_argument, run, run_json
from .tasks import TaskLike, task_path
from .values import (Candidate, Diagnosis, Evaluation, Export, Run, RunLike, RunSummary,
                     read, read_evaluation, read_gathered, read_run, run_directory)

# The path of a kernel's file, or its text: a text with a line end is a kernel, not a path.
SourceLike = PathLike


def evaluate(task: TaskLike, source: SourceLike, *, language: str | None = None,
             **options: Option) -> Evaluation:
    """Is the kernel correct, how fast is it, what limits it? `source`: a file, or the kernel's
    text; `language` (cpp, cuda, python) of a text is by default the target's own. A kernel that is
    not correct is an answer, not an exception."""
    text = source if isinstance(source, str) and "\n" in source else None
    words = ["evaluate", task_path(task), "-" if text else path_argument(source),
             *arguments_of({"language": language, **options})]
    return read_evaluation(run_json(words, text, fine=(0, 1)))


def evaluate_many(task: TaskLike, files: Sequence[PathLike],
                  **options: Option) -> list[Evaluation]:
    """The same for several files, which compile side by side."""
    if not files:
        return []
    answer = run_json(["evaluate", task_path(task), *map(path_argument, files),
                       *arguments_of(options)], fine=(0, 1))
    return [read_evaluation(item) for item in (answer if isinstance(answer, list) else [answer])]


def diagnose(what: RunLike | Candidate | None = None, *,
             program: Sequence[PathLike] = (),
             task: TaskLike | None = None, **options: Option) -> Diagnosis:
    """What limits a run's winner, a candidate, a kernel's file with `task`, a cubin, or a report of
    ncu or nsys; or a `program` with its arguments, which is run and traced on this GPU."""
    words = []
    if isinstance(what, Candidate):
        words.append(path_argument(f"{what.directory}:{what.id}"))
    elif what is not None:
        words.append(path_argument(run_directory(what)))
    words += arguments_of({**options, "task": None if task is None else task_path(task)})
    if program:
        words += ["--json", "--", *(os.fspath(word) for word in program)]
        return read_gathered(json.loads(run(["diagnose", *words])))
    return read_gathered(run_json(["diagnose", *words]))


def load(run: RunLike) -> Run:
    """Everything in a run's store; the run may be going on."""
    return read_run(run_json(["show", path_argument(run_directory(run))]))


def runs(folder: PathLike = "runs") -> list[RunSummary]:
    """The runs in a folder."""
    lines = run(["list", path_argument(folder), "--json"]).splitlines()
    return [read(RunSummary, json.loads(line)) for line in lines]


def export(run: RunLike | Candidate, *, output: PathLike | None = None,
           **options: Option) -> Export:
    """Writes a run's winner, or this candidate, as standalone files, by default into export/ in the
    run's folder. A kernel that does not compile on its own has `builds` False."""
    if isinstance(run, Candidate):
        options = {"candidate": run.id, **options}
        run = run.directory
    answer = run_json(["export", path_argument(run_directory(run)),
                       *arguments_of({"output": output, **options})], fine=(0, 1))
    return read(Export, answer)
