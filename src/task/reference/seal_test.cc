// SPDX-License-Identifier: Apache-2.0
// What a PyTorch candidate's process checks about itself (python/kernelpro_torch/seal.py), and
// where it stops its clock: scripts that stand in for the GPU. Real Python; skipped without
// PyTorch.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "task/reference/python.h"
#include "task/reference/python_command.h"

namespace kernelpro {
namespace {

// What the script prints, in the package's folder.
std::string printed(const std::string& script) {
  const auto python = python_command("candidate");
  if (!python) return python.error().text();
  Command command;
  command.argv = {python->argv[0], "-c",
                  "import sys\nsys.path.insert(0, '" + dirname(dirname(python->argv[1])) + "')\n" +
                      "sys.dont_write_bytecode = True\n" + script};
  command.env = python->env;
  command.limits.wall_seconds = 300;
  const auto exit = run(command);
  return exit ? exit->output : exit.error().text();
}

// A driver function as the worker holds it: a closure over a function of ctypes.
constexpr const char* kSealed = R"(
import ctypes, os, types
from kernelpro_torch import candidate, devices
from kernelpro_torch.seal import Seal
libc = ctypes.CDLL(None)
driver = types.SimpleNamespace(labs=libc.labs, cuGetErrorString=libc.strerror)
device = devices.Cpu()
device.record = devices._function(driver, "labs", ctypes.c_long)
device.event = ctypes.c_void_p(5)
def handler(): return device
seal = Seal([device, handler])
assert seal.broken() is None, seal.broken()
def cell(function, name):
    return function.__closure__[function.__code__.co_freevars.index(name)]
def broken(attack):
    """In a process of its own."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        exec(attack)
        os._exit(0 if seal.broken() is None else 9)
    return os.waitpid(child, 0)[1] == 9 << 8
for attack in ["", *ATTACKS]:
    print(attack, "->", broken(attack))
)";

TEST(Seal, CoversWhatFunctionsCloseOver) {
  if (!find_python("")) GTEST_SKIP() << "PyTorch is not installed";
  const std::vector<std::string> attacks = {
      "cell(device.record, 'function').cell_contents = lambda *a: 0",
      "cell(device.record, 'text').cell_contents = lambda *a: 0",
      "del cell(device.record, 'function').cell_contents",
      "cell(device.record, 'function').cell_contents.errcheck = lambda *a: 0",
      "cell(device.record, 'function').cell_contents.restype = None",
      "device.event.value = 6",
      "device.event = ctypes.c_void_p(5)",
      "device.flush = lambda: None",
      "device.record = lambda *a: None",
      "devices.Cpu.flush.__defaults__ = (1,)"};
  const std::string list = "[\"" + join_text(attacks, "\", \"") + "\"]";
  const std::vector<std::string> found = lines(printed(replace_all(kSealed, "ATTACKS", list)));
  ASSERT_EQ(found.size(), attacks.size() + 1) << join_text(found, "\n");
  EXPECT_EQ(found[0], " -> False");
  for (std::size_t i = 0; i < attacks.size(); ++i) EXPECT_EQ(found[i + 1], attacks[i] + " -> True");
}

// The order in which a timed call's parts happen on the device.
constexpr const char* kTimed = R"(
import torch, types
from kernelpro_torch import candidate, devices, plain
from kernelpro_torch.devices import Lead
done = []
class Recorded(devices.Cpu):
    def begin(self, lead): done.append("begin"); super().begin(lead)
    def end(self): done.append("end"); super().end()
    def copy(self, to, source): done.append("copy"); super().copy(to, source)
device = Recorded()
plain.learn(torch.empty(1))
x, out = torch.rand(64, 64), torch.empty(64, 64)
table = torch.rand(64, 64)
item = {"index": 1, "name": "out", "shape": [64, 64], "torch_dtype": torch.float32}
task = types.SimpleNamespace(inputs=[{"index": 0}], states=[], outputs=[item])
case = types.SimpleNamespace(tensor=lambda number, slot: (x, out)[slot],
                             given=lambda number: plain.Places([plain.memory(x)]))
subject = types.SimpleNamespace(
    task=task, lead=Lead(), bind=lambda values: None, arguments=lambda inputs: inputs,
    output_type=lambda declared: declared, call=lambda inputs: eval(result),
    owns=plain.Places([plain.memory(table)]).hold)
for result in RESULTS:
    done.clear()
    candidate.Candidate(device)._timed(case, subject, 0, 3)
    print(*done, torch.equal(out, eval(result)))
)";

TEST(Timed, WhatACallLeavesUndoneIsDoneInItsTime) {
  if (!find_python("")) GTEST_SKIP() << "PyTorch is not installed";
  const std::vector<std::string> late = {"x.t()",
                                         "x",
                                         "x.view(64, 64)",
                                         "table",
                                         "table[:]",
                                         "(x + 1).t()",
                                         "torch.ones(1).expand(64, 64)"};
  const std::string list = "[\"x + 0\", \"" + join_text(late, "\", \"") + "\"]";
  const std::vector<std::string> found = lines(printed(replace_all(kTimed, "RESULTS", list)));
  ASSERT_EQ(found.size(), late.size() + 1) << join_text(found, "\n");
  EXPECT_EQ(found[0], "begin end copy True");
  for (std::size_t i = 0; i < late.size(); ++i) {
    EXPECT_EQ(found[i + 1], "begin copy end True") << late[i];
  }
}

}  // namespace
}  // namespace kernelpro
