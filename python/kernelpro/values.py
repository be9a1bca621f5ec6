# SPDX-License-Identifier: Apache-2.0
"""What the program's JSON says, as typed values. `raw` is the JSON itself, with what has no field
here. Times are microseconds; what was not measured is None."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, TypeVar

from .program import PathLike
from .records import Cell, Record, frame

Json = Mapping[str, Any]
T = TypeVar("T")


def _from(key: str = "", convert: Callable[[Any], Any] | None = None, default: Any = None,
          show: bool = True) -> Any:
    """A field that is read from another key, or converted. `default` where the JSON has null."""
    return field(default_factory=lambda: default, repr=show,
                 metadata={"key": key, "convert": convert})


def _raw() -> Any:
    return field(default_factory=dict, repr=False, compare=False)


def read(cls: Callable[..., T], raw: Json) -> T:
    """A dataclass from the JSON: each field by its name, or as `_from` says."""
    values: dict[str, Any] = {}
    for each in dataclasses.fields(cls):  # type: ignore[arg-type]
        if each.name == "raw":
            values["raw"] = raw
            continue
        found = raw.get(each.metadata.get("key") or each.name)
        convert = each.metadata.get("convert")
        if found is not None:
            values[each.name] = convert(found) if convert else found
    return cls(**values)


def _each(cls: Callable[..., T]) -> Callable[[Iterable[Json]], tuple[T, ...]]:
    return lambda items: tuple(read(cls, item) for item in items)


def _positive(value: float) -> float | None:
    return value if value > 0 else None


def _path(value: str) -> Path:
    return Path(os.path.abspath(value))


@dataclass(frozen=True)
class SpeedUp:
    """How many times faster, with its 95 % interval."""

    ratio: float = 1.0
    low: float = 1.0
    high: float = 1.0

    def __str__(self) -> str:
        return f"{self.ratio:.3g}x ({self.low:.3g}x to {self.high:.3g}x)"


def _speedup(raw: Json, prefix: str = "", ratio: str = "ratio") -> SpeedUp:
    """JSON has no infinity: an interval that is open above has no upper end there."""
    high = raw[prefix + "high"]
    return SpeedUp(raw[ratio], raw[prefix + "low"] or 0.0, math.inf if high is None else high)


@dataclass(frozen=True)
class Timing:
    """One call on one case: the median of `samples`, with its 95 % interval."""

    case: str = ""
    median_us: float = 0.0
    low_us: float = 0.0
    high_us: float = 0.0
    samples: int = 0
    method: str = ""


@dataclass(frozen=True)
class Metric:
    """One observation. `level` says what it rests on: counters, samples, static or timing."""

    name: str
    value: float
    level: str
    source: str


def _metrics(evidence: Json) -> tuple[Metric, ...]:
    return tuple(Metric(name, item["value"], item["level"], item.get("source", ""))
                 for name, item in evidence.get("items", {}).items())


@dataclass(frozen=True)
class Part:
    """A part of the time of a call; the parts add up to it."""

    part: str = ""
    us: float = 0.0
    level: str = ""
    how: str = ""
    stall: str = ""


@dataclass(frozen=True)
class Prescription:
    """A change to make; `tag` is what knobs name."""

    tag: str = ""
    text: str = ""
    not_when: str = ""


@dataclass(frozen=True)
class Finding:
    """What one expert tool found. Gains are of the whole task, likely and at most."""

    tool: str = ""
    severity: str = ""
    cause: str = ""
    where: str = ""
    kernel: str = ""
    share: float = 0.0
    likely_speedup: float = 1.0
    upper_speedup: float = 1.0
    level: str = ""
    stop: bool = False
    prescriptions: tuple[Prescription, ...] = _from(convert=_each(Prescription), default=())
    raw: Json = _raw()


def _parts(account: Json) -> tuple[Part, ...]:
    return tuple(read(Part, part) for part in account.get("parts", ()))


@dataclass(frozen=True)
class Diagnosis:
    """What limits a kernel, and what to change: findings, largest gain first."""

    bound: str = "unknown"
    floor_us: float | None = _from(convert=_positive)
    fraction_of_ceiling: float | None = _from(convert=_positive)
    summary: str = ""
    findings: tuple[Finding, ...] = _from(convert=_each(Finding), default=())
    account: tuple[Part, ...] = _from(convert=_parts, default=(), show=False)
    # Of `diagnose` and `evaluate` alone:
    subject: str = ""
    basis: str = ""
    notes: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = field(default=(), repr=False)
    raw: Json = _raw()

    def records(self) -> list[Record]:
        """One row a finding."""
        return [{"tool": f.tool, "severity": f.severity, "cause": f.cause, "where": f.where,
                 "kernel": f.kernel, "share": f.share or None, "likely_speedup": f.likely_speedup,
                 "upper_speedup": f.upper_speedup, "level": f.level,
                 "tags": " ".join(p.tag for p in f.prescriptions)} for f in self.findings]

    def evidence_records(self) -> list[Record]:
        """One row a metric."""
        return [{"metric": m.name, "value": m.value, "level": m.level, "source": m.source}
                for m in self.metrics]


def read_diagnosis(raw: Json) -> Diagnosis:
    return read(Diagnosis, raw)


def read_gathered(raw: Json) -> Diagnosis:
    """Of `diagnose --json`."""
    return dataclasses.replace(
        read_diagnosis(raw["diagnosis"]), subject=raw["subject"], basis=raw["basis"],
        notes=tuple(raw["notes"]), metrics=_metrics(raw["evidence"]), raw=raw)


@dataclass(frozen=True)
class Evaluation:
    """The verdict on one kernel. `outcome`: correct, wrong-result, compile-error, crashed,
    timed-out or rejected; `reason` says why it is not correct, `rule` which rule it broke."""

    task: str = ""
    kernel: str = ""
    target: str = ""
    machine: str = ""
    policy: str = ""
    precision: str = ""
    outcome: str = ""
    rule: str = ""
    reason: str = ""
    trust: str = ""
    time_us: float | None = _from(convert=_positive)
    timings: tuple[Timing, ...] = _from(convert=_each(Timing), default=())
    versus: SpeedUp | None = _from(convert=_speedup)  # of the task's start, or of `against`
    labels: tuple[str, ...] = _from(convert=tuple, default=())
    notes: tuple[str, ...] = _from(convert=tuple, default=())
    knobs: Mapping[str, str] = field(default_factory=dict)
    hash: str = ""
    diagnosis: Diagnosis = Diagnosis()
    raw: Json = _raw()

    @property
    def correct(self) -> bool:
        return self.outcome == "correct"

    def record(self) -> Record:
        row: Record = {"task": self.task, "kernel": self.kernel, "target": self.target,
                       "outcome": self.outcome, "time_us": self.time_us,
                       **_speedup_cells(self.versus), "bound": self.diagnosis.bound,
                       "fraction_of_ceiling": self.diagnosis.fraction_of_ceiling}
        return {**row, **_knob_cells(self.knobs)}


def read_evaluation(raw: Json) -> Evaluation:
    """Of `evaluate --json`."""
    diagnosis = dataclasses.replace(read_diagnosis(raw["diagnosis"]), subject=raw["kernel"],
                                    metrics=_metrics(raw["evidence"]))
    plain = {key: value for key, value in raw.items() if key != "diagnosis"}
    return dataclasses.replace(read(Evaluation, plain), diagnosis=diagnosis, raw=raw)


def _speedup_cells(speedup: SpeedUp | None) -> Record:
    if speedup is None:
        return {"speedup": None, "speedup_low": None, "speedup_high": None}
    return {"speedup": speedup.ratio, "speedup_low": speedup.low, "speedup_high": speedup.high}


def _knob_cells(knobs: Mapping[str, str]) -> Record:
    return {f"knob.{name}": _number(value) for name, value in knobs.items()}


def _number(text: str) -> Cell:
    try:
        return int(text)
    except ValueError:
        return text


def _knobs(text: str) -> dict[str, str]:
    """"A=1 B=2"."""
    return dict(pair.partition("=")[::2] for pair in text.split())


@dataclass(frozen=True)
class Event:
    """Something that happened in a run, after its commit to the store. `kind`: prepared, evaluated,
    best, busy, waiting, model, refused, note, stopped, confirmed or unconfirmed."""

    kind: str = _from("event", default="")
    candidate: int | None = _from(convert=lambda number: number or None)
    outcome: str = ""
    detail: str = ""
    knobs: Mapping[str, str] = _from(convert=_knobs, default={})
    time_us: float | None = _from(convert=_positive)
    evaluations: int = 0
    max_evaluations: int = 0  # 0: no limit
    failures: int = 0
    best_us: float | None = _from(convert=_positive)
    # Of the best so far over the start; confirmed in fresh processes only in `confirmed`.
    speedup: SpeedUp = SpeedUp()
    fraction_of_ceiling: float | None = _from(convert=_positive)
    elapsed_s: float = 0.0
    left_s: float = 0.0
    raw: Json = _raw()

    def __str__(self) -> str:
        what = self.kind + (f" #{self.candidate}" if self.candidate else "")
        said = f": {self.detail}" if self.detail else ""
        return f"[{self.evaluations}] {what}{said}; best {self.speedup.ratio:.3g}x"


def read_event(raw: Json) -> Event:
    """A line of `optimize --json`."""
    best = _speedup(raw, "best_speedup_", "best_speedup")
    return dataclasses.replace(read(Event, raw), speedup=best)


@dataclass(frozen=True)
class RunResult:
    """How a run ended: `end` is done, interrupted (it can be resumed) or nothing (nothing was
    tried, or nothing is correct; `next` says what to do). `best`: the winner's number."""

    directory: Path = _from("run", _path, default=Path())
    report: Path = _from(convert=_path, default=Path())
    best: int | None = _from(convert=lambda number: number or None)
    best_us: float | None = _from(convert=_positive)
    speedup: SpeedUp = SpeedUp()
    fraction_of_ceiling: float | None = _from(convert=_positive)
    evaluations: int = 0
    stopped_by: str = ""
    end: str = ""
    next: str = ""
    raw: Json = _raw()

    @property
    def faster(self) -> bool:
        """Whether the winner beats the start beyond doubt."""
        return self.end != "nothing" and self.speedup.low > 1


def read_result(raw: Json) -> RunResult:
    """The last line of `optimize --json`."""
    speedup = _speedup(raw, "speedup_", "speedup")
    plain = {key: value for key, value in raw.items() if key != "speedup"}
    return dataclasses.replace(read(RunResult, plain), speedup=speedup, raw=raw)


@dataclass(frozen=True)
class Candidate:
    """One source at one setting of its knobs, as a run's store has it."""

    id: int = 0
    parent: int | None = _from(convert=lambda number: number or None)
    proposer: str = ""
    idea: str = ""
    language: str = ""
    source: str = field(default="", repr=False)
    knobs: Mapping[str, str] = field(default_factory=dict)
    outcome: str | None = None  # None: not evaluated
    time_us: float | None = _from(convert=_positive)
    speedup: SpeedUp | None = _from(convert=_speedup)
    order: int | None = None
    at_s: float | None = None
    diagnosis: Diagnosis = _from(convert=read_diagnosis, default=Diagnosis(), show=False)
    hash: str = ""
    directory: Path = field(default=Path(), repr=False)  # of its run
    raw: Json = _raw()

    @property
    def correct(self) -> bool:
        return self.outcome == "correct"

    def record(self) -> Record:
        row: Record = {"id": self.id, "parent": self.parent, "proposer": self.proposer,
                       "outcome": self.outcome, "time_us": self.time_us,
                       **_speedup_cells(self.speedup), "order": self.order, "at_s": self.at_s,
                       "bound": self.diagnosis.bound if self.outcome else None,
                       "fraction_of_ceiling": self.diagnosis.fraction_of_ceiling}
        return {**row, **_knob_cells(self.knobs)}


@dataclass(frozen=True)
class Run:
    """Everything in a run's store. `speedup`: of the best over the start, confirmed in fresh
    processes if `confirmed`."""

    directory: Path = _from(convert=_path, default=Path())
    task: str = ""
    target: str = ""
    created: str = ""
    version: str = ""
    machine: str = _from(convert=lambda machine: machine["name"], default="")
    evaluations: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    verdict: str = ""
    credit: str = ""
    confirmed: bool = False
    stopped_by: str | None = None  # None: it did not end, or is going on
    best: Candidate | None = None
    speedup: SpeedUp = SpeedUp()
    candidates: tuple[Candidate, ...] = field(default=(), repr=False)
    raw: Json = _raw()

    def candidate(self, id: int) -> Candidate:
        for each in self.candidates:
            if each.id == id:
                return each
        raise KeyError(f"the run has no candidate {id}")

    def records(self) -> list[Record]:
        """One row a candidate."""
        return [each.record() for each in self.candidates]

    def frame(self) -> Any:
        """The records as a pandas.DataFrame."""
        return frame(self.records())


def read_run(raw: Json) -> Run:
    """Of `show --json`."""
    plain = {key: value for key, value in raw.items() if key not in ("best", "candidates")}
    run = read(Run, plain)
    candidates = tuple(
        dataclasses.replace(read(Candidate, item), directory=run.directory)
        for item in raw["candidates"])
    run = dataclasses.replace(run, candidates=candidates, raw=raw)
    best = raw.get("best")
    if best is None:
        return run
    speedup = _speedup(best, "speedup_", "speedup")
    return dataclasses.replace(run, best=run.candidate(best["id"]), speedup=speedup)


@dataclass(frozen=True)
class RunSummary:
    """A run in a folder of runs."""

    directory: Path = _from("run", _path, default=Path())
    task: str = ""
    target: str = ""
    created: str = ""
    evaluations: int = 0
    speedup: float = 1.0
    best_us: float | None = _from(convert=_positive)
    fraction_of_ceiling: float | None = _from(convert=_positive)
    finished: bool = False
    raw: Json = _raw()

    def record(self) -> Record:
        return {"run": str(self.directory), "task": self.task, "target": self.target,
                "created": self.created, "evaluations": self.evaluations, "speedup": self.speedup,
                "best_us": self.best_us, "fraction_of_ceiling": self.fraction_of_ceiling,
                "finished": self.finished}


@dataclass(frozen=True)
class Export:
    """A kernel as standalone files. `builds`: whether the compiler took it; None: not tried."""

    task: str = ""
    case: str = ""
    language: str = ""
    precision: str = ""
    files: tuple[Path, ...] = _from(
        convert=lambda names: tuple(_path(name) for name in names), default=())
    builds: bool | None = None
    raw: Json = _raw()

    @property
    def module(self) -> Path | None:
        """model_new.py; None: the task is not a PyTorch file."""
        return next((file for file in self.files if file.name == "model_new.py"), None)


# Whatever names a run: its folder, or a value that came from it.
RunLike = PathLike | Run | RunResult | RunSummary


def run_directory(run: RunLike) -> PathLike:
    if isinstance(run, (Run, RunResult, RunSummary)):
        return run.directory
    return run
