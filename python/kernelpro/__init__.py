# SPDX-License-Identifier: Apache-2.0
"""KernelPro from Python: measure, diagnose and optimize kernels, and use the winners.

    import kernelpro

    verdict = kernelpro.evaluate("examples/softmax", "kernel.cpp")
    live = kernelpro.optimize("examples/softmax", evaluations=24)
    for event in live:
        print(event)
    result = live.result()
    print(result.speedup, kernelpro.load(result).frame())

Every call starts the program `kernelpro` and reads its JSON; what the program refuses raises a
KernelProError with the program's own message. Nothing is needed besides the standard library:
pandas only for `frame`, PyTorch only for modules.
"""

from .commands import diagnose, evaluate, evaluate_many, export, load, runs
from .errors import (BusyError, InputError, KernelProError, MachineError, StoreError, TaskRefused)
from .kernels import accelerate, accelerated, explain, restore
from .live import LiveRun, optimize, resume
from .program import program, version
from .records import columns, frame
from .tasks import module_task
from .values import (Candidate, Diagnosis, Evaluation, Event, Export, Finding, Metric, Part,
                     Prescription, Run, RunResult, RunSummary, SpeedUp, Timing)

__all__ = [
    "BusyError", "Candidate", "Diagnosis", "Evaluation", "Event", "Export", "Finding",
    "InputError", "KernelProError", "LiveRun", "MachineError", "Metric", "Part", "Prescription",
    "Run", "RunResult", "RunSummary", "SpeedUp", "StoreError", "TaskRefused", "Timing",
    "accelerate", "accelerated", "columns", "diagnose", "evaluate", "evaluate_many", "explain",
    "export", "frame", "load", "module_task", "optimize", "program", "restore", "resume", "runs",
    "version",
]
