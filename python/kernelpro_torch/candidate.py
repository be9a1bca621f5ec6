# SPDX-License-Identifier: Apache-2.0
"""The role "candidate": runs PyTorch candidates on the judge's buffers and times them.

The commands are those of the native worker (src/core/protocol.h). This process runs the candidate's
code, so it is not trusted: it holds inputs and outputs, never an expected result, its times are
checked against the supervisor's clock, and all its verdicts count as the candidate's own. It adds
checks that only this side can make, each with a named refusal:

    compile         the file cannot be imported or does not define ModelNew
    not-a-tensor    a result that is no plain tensor: it may be computed when it is read
    output-shape, output-type, output-device
    stream-escape   work that the current stream does not wait for
    patched-torch   a mode that changes what torch's own functions do is left on
    patched-worker  functions of this package, or what they use, are replaced by others, or hooks
                    are left on that run at our calls
"""

import contextlib
import gc
import sys

import torch

from . import buffers as memory
from . import devices, plain, tree
from .channel import Refusal
from .module_file import ModuleFile, seed_everything
from .seal import Seal
from .subject import Subject, first_causes, outputs_of, write

_SETTLE_US = 200.0  # limit for work that continues after its stream is done
_RELOAD_SECONDS = 0.3  # limit for reloading plus the first call
_SPARE = 2 << 30
_LATE_US = 3000.0  # delay of an audited call's inputs: longer than a module's submission
_detach = torch.Tensor.detach
_is_contiguous = torch.Tensor.is_contiguous


class TaskSide:
    """The task's view of one case: the nested arguments, the tensors, the constructor arguments.
    Without a module, the task calls forward(inputs..., parameters...) of ModelNew()."""

    def __init__(self, tensors, source, path, dims):
        by_role = {"input": [], "parameter": [], "output": []}
        for index, tensor in enumerate(tensors):
            item = {**tensor, "index": index, "torch_dtype": memory.DTYPES[tensor["dtype"]]}
            by_role[tensor["role"]].append(item)
        self.inputs, self.states = by_role["input"], by_role["parameter"]
        self.outputs = by_role["output"]
        self.recast = False  # the contract and the file give tensors different types
        self.file = None
        if not source:
            self.inputs, self.states = self.inputs + self.states, []
            self.arguments = [tree.Leaf(i) for i in range(len(self.inputs))]
            return
        self.file = ModuleFile(source, path, dims)
        self.arguments, given = _arguments(self.file)
        if len(given) != len(self.inputs):
            raise Refusal("the task's inputs are not those of its module", "environment",
                          "run again; report this with the task")
        self.recast = any(t.dtype != i["torch_dtype"] for t, i in zip(given, self.inputs))

    def init_inputs(self, prepare):
        return ([], {}) if self.file is None else self.file.init_inputs(prepare)


def _arguments(file):
    """(forward's nested arguments, their tensors), without data if get_inputs() allows."""
    for place in ("meta", None) if hasattr(torch, "get_default_device") else (None,):
        seed_everything(0)
        try:
            with torch.device(place) if place else contextlib.nullcontext():
                values = file.inputs()
        except Refusal:
            if place is None:
                raise
            continue
        tensors = []
        template = [tree.flatten(value, "", tensors) for value in values]
        return template, [tensor for _, tensor in tensors]


class OpenCase:
    def __init__(self, values):
        layout = values["layout"]
        self.slots = layout["slots"]
        self.tensors = values["tensors"]
        self.dims = values.get("dims") or {}
        self.sets = [{} for _ in range(values["sets"])]  # slot -> mapping
        self._views = {}
        self._given = {}  # set -> plain.Places of inputs and parameters

    def map(self, number, slot, fd, device):
        _, _, _, size = self.slots[slot]
        old = self.sets[number].pop(slot, None)
        if old is not None:
            old.close()
        self.sets[number][slot] = memory.map_memory(fd, size, device.name)
        self._views.pop((number, slot), None)
        self._given = {}

    def tensor(self, number, slot):
        """A task tensor over one set's memory; slots mapped only for set 0 are shared."""
        if slot not in self.sets[number]:
            number = 0
        view = self._views.get((number, slot))
        if view is None:
            address, _, mapping, _ = self.slots[slot]
            about = self.tensors[slot]
            view = self.sets[number][slot].tensor(address - mapping, about["dtype"],
                                                  about["shape"])
            self._views[number, slot] = view
        return view

    def given(self, number):
        """The memory of one set's inputs and parameters."""
        if number not in self._given:
            slots = [i for i, tensor in enumerate(self.tensors) if tensor["role"] != "output"]
            self._given[number] = plain.Places(
                [plain.memory(self.tensor(number, slot)) for slot in slots])
        return self._given[number]

    def close(self):
        self._views, self._given = {}, {}
        for number in self.sets:
            for mapping in number.values():
                mapping.close()
        self.sets = []


class Candidate:
    def __init__(self, device):
        self.device = device
        self._cases = {}
        self._tasks = {}  # case -> TaskSide
        self._subjects = {}  # (case, name) -> Subject

    def handlers(self):
        return {"hello": lambda command: None, "open": self.open, "memory": self.memory,
                "load": self.load, "run": self.run, "time": self.time, "loop": self.loop}

    def open(self, command):
        self._subjects, self._tasks = {}, {}
        for case in self._cases.values():
            case.close()
        self._cases = {each["case"]: OpenCase(each) for each in command.json["cases"]}

    def memory(self, command):
        case = self._case(command)
        slots = command.json.get("slots")
        slots = range(len(case.slots)) if slots is None else slots
        if len(command.fds) != len(slots):
            raise Refusal("descriptors and slots differ in number", "environment")
        for slot, fd in zip(slots, command.fds):
            # The workspace is for kernels; a PyTorch candidate allocates its own.
            if slot < len(case.tensors):
                case.map(command.json["set"], slot, fd, self.device)

    def load(self, command):
        name = command.json["case"]
        case = self._case(command)
        if name not in self._tasks:
            self._tasks[name] = TaskSide(case.tensors, command.get("task_source", ""),
                                         command.get("task_path", ""), case.dims)
        self._subjects.pop((name, command.json["subject"]), None)
        self._hide()
        plain.learn(case.tensor(0, 0))
        subject = Subject(command.json["module"], self._tasks[name], self.device,
                          command.get("precision", "fp32"), command.get("policy", "contract"))
        subject.cheap = subject.load_seconds < _RELOAD_SECONDS
        subject.measured = False
        subject.checks = 0
        self._subjects[name, command.json["subject"]] = subject
        return {"facts": {}, "notes": subject.notes}

    def run(self, command):
        case, subject = self._case(command), self._subject(command)
        for step in command.json["steps"]:
            self._reload(subject)
            subject.checks += 1
            self._guarded(subject, self._check, case, subject, step["set"], step.get("key", 0),
                          subject.checks % 2 == 0)

    def time(self, command):
        case = self._case(command)
        key = command.get("key", 0)
        self.device.rewrite_flush(key)
        for name in command.get("reload", []):
            self._reload(self._subject(command, name))
        times = []
        for step in command.json["steps"]:
            subject = self._subject(command, step["subject"])
            us = self._guarded(subject, self._timed, case, subject, step["set"], key)
            times.append(us if step.get("timed") else None)
        return {"times": times}

    def loop(self, command):
        case, sets = self._case(command), command.json["sets"]
        if not command.json["subject"]:
            return self._idle(case, sets)
        subject = self._subject(command)
        return self._guarded(subject, self._calls, case, subject, sets)

    def _calls(self, case, subject, sets):
        begin = devices.now_us()
        for number in sets:
            inputs = self._bind(case, subject, number)
            self.device.enter()
            self._take(case, subject, number, subject.call(inputs))
        submitted = devices.now_us() - begin
        self.device.synchronize()
        return {"submitted_us": submitted / max(1, len(sets))}

    def _idle(self, case, sets):
        """The overhead of a loop without the calls: binding parameters, copying outputs, and what
        is looked at meanwhile."""
        roles = [tensor["role"] for tensor in case.tensors]
        spare = [None if role == "input" else torch.zeros_like(case.tensor(0, i))
                 for i, role in enumerate(roles)]
        for number in sets:
            for slot, role in enumerate(roles):
                if role == "parameter":
                    write(self.device, "", spare[slot], case.tensor(number, slot))
            self.device.enter()
            for slot, role in enumerate(roles):
                if role == "output" and not plain.promise(spare[slot]):
                    case.given(number).hold(spare[slot])
                    self.device.copy(case.tensor(number, slot), spare[slot])
        self.device.synchronize()
        del spare
        self.device.release()

    def _hide(self):
        """Hides this process's objects from gc's object lists."""
        for case in self._cases.values():
            for number in range(len(case.sets)):
                for slot in range(len(case.tensors)):
                    case.tensor(number, slot)
        gc.freeze()

    def _case(self, command):
        case = self._cases.get(command.json.get("case"))
        if case is None:
            raise Refusal(f"no case {command.json.get('case')!r} is open", "environment")
        return case

    def _subject(self, command, name=None):
        key = command.json["case"], name or command.json["subject"]
        if key not in self._subjects:
            raise Refusal(f"no subject {key[1]!r} is loaded", "environment")
        return self._subjects[key]

    def _reload(self, subject):
        """Reloads for fresh Python state if cheap: autotuners and compilers would start over."""
        if not subject.measured or not subject.cheap:
            return
        self.device.synchronize()
        subject.load()

    def _bind(self, case, subject, number):
        task = subject.task
        subject.bind([case.tensor(number, item["index"]) for item in task.states])
        return subject.arguments([case.tensor(number, item["index"]) for item in task.inputs])

    def _guarded(self, subject, function, *arguments):
        """Turns any exception of the candidate into the answer: it crashed, with this text."""
        try:
            return function(*arguments)
        except Refusal:
            raise
        except BaseException as error:
            raise Refusal(first_causes(error, subject.path)) from None

    def _timed(self, case, subject, number, key):
        inputs = self._bind(case, subject, number)
        self.device.enter()
        self.device.synchronize()
        self.device.begin(subject.lead.microseconds())
        begin = devices.now_us()
        result = subject.call(inputs)
        outputs = self._take(case, subject, number, result, self.device.end)
        subject.lead.add(devices.now_us() - begin)
        us = self.device.between()
        self.device.settle()
        self._complete(case, subject, number, outputs)
        self._scribble(case, subject, number, outputs, key)
        return us

    def _check(self, case, subject, number, key, audited):
        inputs = self._bind(case, subject, number)
        self.device.enter()
        self.device.synchronize()
        outputs = [case.tensor(number, item["index"]) for item in subject.task.outputs]
        if audited and self.device.free_bytes() > _bytes(inputs) + 2 * _bytes(outputs) + _SPARE:
            self._audit(case, subject, number, key, inputs)
            self.device.release()
        begin = devices.now_us()
        result = subject.call(inputs)
        outputs = self._take(case, subject, number, result)
        self.device.settle()
        if not subject.measured:
            seconds = subject.load_seconds + (devices.now_us() - begin) / 1e6
            subject.cheap = subject.cheap and seconds < _RELOAD_SECONDS
            subject.measured = True
        self._complete(case, subject, number, outputs)
        self._scribble(case, subject, number, outputs, key)

    def _audit(self, case, subject, number, key, inputs):
        """Calls it with inputs that arrive late on the current stream, in other memory. Work that
        does not wait for the stream reads zeros or NaN; work that the stream does not wait for is
        still running when the outputs are copied."""
        shadows = self._late(inputs)
        result = subject.call(shadows)
        outputs = self._take(case, subject, number, result)
        late = self.device.settle()
        self._complete(case, subject, number, outputs)
        first = [devices.sample(output) for output in outputs]
        self._scribble(case, subject, number, outputs, key)
        del shadows, result, outputs
        second, third = (self._plainly(case, subject, number, inputs) for _ in range(2))
        for item, a, b, c in zip(subject.task.outputs, first, second, third):
            # If plain calls disagree too, leave it to the judge's comparison.
            if devices.far_apart(a, b) and not devices.far_apart(b, c):
                raise Refusal(f"the output {item['name']} differs when the inputs are elsewhere "
                              "and arrive late on the current stream: work does not wait for that "
                              "stream, or a result was kept", "stream-escape")
        if late > _SETTLE_US:
            subject.call(inputs)
            late = min(late, self.device.settle())
        if late > _SETTLE_US:
            raise Refusal(f"the device kept working for {late:.0f} us after the current stream was "
                          "done: all work must be joined to it", "stream-escape")

    def _plainly(self, case, subject, number, inputs):
        outputs = self._take(case, subject, number, subject.call(inputs))
        self.device.settle()
        return [devices.sample(output) for output in outputs]

    def _late(self, inputs):
        shadows = [torch.empty_like(t) for t in inputs]
        for shadow in shadows:
            shadow.fill_(float("nan") if shadow.dtype.is_floating_point else 0)
        self.device.synchronize()
        self.device.busy(_LATE_US)
        for shadow, t in zip(shadows, inputs):
            self.device.copy(shadow, t)
        return shadows

    def _complete(self, case, subject, number, outputs):
        """Checks that the outputs have not changed since they were copied on the timed stream."""
        for item, output in zip(subject.task.outputs, outputs):
            taken = case.tensor(number, item["index"])
            comparable = output.is_contiguous() and output.dtype == taken.dtype
            if comparable and not devices.same_bits(taken, _detach(output)):
                raise Refusal(f"the output {item['name']} was still being written after its stream "
                              "was done: work must go to the current stream, or be joined to it",
                              "stream-escape")

    def _take(self, case, subject, number, result, end=lambda: None):
        """Copies the outputs into the judge's buffers, immediately and on the timed stream. `end`
        stops the clock: fresh, contiguous tensors are complete by then; of any other the copy is
        the rest of the call's work (a transposition, an input that is passed on)."""
        self.device.enter()
        if _modes() > 0:
            raise Refusal("a torch function or dispatch mode is left on", "patched-torch")
        outputs = outputs_of(result, subject, self.device)
        targets = [case.tensor(number, item["index"]) for item in subject.task.outputs]
        kept = [self._is_kept(case, subject, number, output) for output in outputs]
        for now in (True, False):
            for target, output, held in zip(targets, outputs, kept):
                if now == (held or not _is_contiguous(output)):
                    self.device.copy(target, _detach(output))
            if now:
                end()
        return outputs

    def _is_kept(self, case, subject, number, output):
        """Whether it lies in memory of the inputs or of the module's state."""
        return subject.owns(output) or case.given(number).hold(output)

    def _scribble(self, case, subject, number, outputs, key):
        """Overwrites the result, so that a cached one is wrong in a later call. Leaves memory that
        the result shares with inputs or the module's state."""
        for output in outputs:
            if not self._is_kept(case, subject, number, output):
                self.device.scribble(_detach(output), key)


def _bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


_STACKS = [getattr(torch._C, name) for name in
           ("_len_torch_function_stack", "_len_torch_dispatch_stack") if hasattr(torch._C, name)]


def _modes():
    return sum(depth() for depth in _STACKS)


_SMALL = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


def _warm():
    """Does in advance what the first load would wait for, PyTorch's lazy imports: this process may
    start before its candidate exists. Without the GPU's context: it may never be needed."""
    try:
        _arguments(ModuleFile(_SMALL))
    except Exception:
        pass  # the first command reports what is wrong


def _why_no_gpu():
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA"
    try:
        torch.cuda.init()
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return "no device is visible"


def serve(channel, device="cuda"):
    sys.dont_write_bytecode = True
    _warm()
    worker, seal = None, None

    def ready(handler):
        def handle(command):
            nonlocal worker, seal
            if worker is None:
                if device == "cuda" and not torch.cuda.is_available():
                    raise Refusal(f"PyTorch finds no GPU here: {_why_no_gpu()}", "environment",
                                  "`kernelpro doctor` shows what is missing")
                worker = Candidate(devices.make(device))
            seal = seal or Seal([worker, worker.device])
            try:
                answer = worker.handlers()[handler](command)
            except Refusal:
                raise
            except Exception as error:  # the candidate broke the GPU context
                raise Refusal(first_causes(error, "candidate")) from None
            # A loop is timed by the supervisor, and whatever is replaced stays so until later.
            if handler != "loop" and (changed := seal.broken()):
                raise Refusal(f"{changed}, of the process that runs it, is replaced",
                              "patched-worker")
            return answer

        return handle

    verbs = ("hello", "open", "memory", "load", "run", "time", "loop")
    channel.serve({"imported": lambda command: None, **{verb: ready(verb) for verb in verbs}})
