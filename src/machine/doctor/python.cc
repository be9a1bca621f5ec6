// SPDX-License-Identifier: Apache-2.0
#include "machine/doctor/python.h"

#include <cstdlib>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr const char* kPython = "PyTorch tasks";

// Prints "python 3.12.3", "torch 2.11.0+cu130 13.0", "triton 3.6.0": one line each, none for
// missing packages. torch/version.py is small and standalone.
constexpr const char* kVersions = R"(
import importlib.util, platform, runpy, os
print("python", platform.python_version())
spec = importlib.util.find_spec("torch")
if spec and spec.origin:
    v = runpy.run_path(os.path.join(os.path.dirname(spec.origin), "version.py"))
    print("torch", v.get("__version__", "?"), v.get("cuda") or "none")
spec = importlib.util.find_spec("triton")
if spec:
    from importlib import metadata
    try:
        print("triton", metadata.version("triton"))
    except metadata.PackageNotFoundError:
        print("triton", "?")
)";

constexpr const char* kDevice = R"(
import torch
if torch.cuda.is_available():
    x = torch.ones(4, device="cuda")
    print("kernelpro-ok", torch.cuda.get_device_name(0), "sum", float(x.sum()))
else:
    print("kernelpro-none")
)";

std::string run_python(const std::string& python, const char* script, double seconds) {
  Command command;
  command.argv = {python, "-c", script};
  command.limits.wall_seconds = seconds;
  const auto exit = run(command);
  return exit ? exit->output : "";
}

// The rest of the line that starts with a word; "" if none does.
std::string after(const std::string& text, const std::string& word) {
  for (const std::string& line : lines(text)) {
    if (line.starts_with(word + " ")) return line.substr(word.size() + 1);
  }
  return "";
}

struct Interpreter {
  std::string path;
  std::string versions;  // output of kVersions
};

// As task/reference/python.h: the chosen one, else python3 on PATH, else the system's if that has
// PyTorch.
Interpreter interpreter() {
  const char* chosen = std::getenv("KERNELPRO_PYTHON");
  if (chosen != nullptr && *chosen != '\0') {
    const std::string path = find_program(chosen);
    return {path, path.empty() ? "" : run_python(path, kVersions, 10)};
  }
  Interpreter first;
  for (const char* name : {"python3", "/usr/bin/python3"}) {
    const std::string path = find_program(name);
    if (path.empty() || path == first.path) continue;
    Interpreter found{path, run_python(path, kVersions, 10)};
    if (!after(found.versions, "torch").empty()) return found;
    if (first.path.empty()) first = std::move(found);
  }
  return first;
}

Probe torch_probe(const std::string& versions) {
  const std::string torch = after(versions, "torch");
  const std::string next =
      "pip install torch (2.1 or newer for the cuda target, 1.13 for the cpu target), or set "
      "KERNELPRO_PYTHON to an interpreter that has it";
  if (torch.empty()) {
    return {kPython, "torch", ProbeState::kMissing,
            "this Python has no PyTorch: tasks given as PyTorch modules cannot run", next};
  }
  const std::vector<std::string> parts = words(torch);
  const bool cuda = parts.size() > 1 && parts[1] != "none";
  const std::string text = parts[0] + (cuda ? ", built for CUDA " + parts[1] : ", cpu only");
  if (!cuda) {
    return {kPython, "torch", ProbeState::kLimited,
            text + ": PyTorch tasks run on the cpu target only",
            "install a build of PyTorch for CUDA (pytorch.org/get-started)"};
  }
  return {kPython, "torch", ProbeState::kOk, text, ""};
}

}  // namespace

std::vector<Probe> probe_python() {
  const auto [python, versions] = interpreter();
  if (python.empty()) {
    return {{kPython, "python", ProbeState::kMissing,
             "no python3 on PATH: tasks given as PyTorch modules cannot run",
             "apt-get install python3, or set KERNELPRO_PYTHON to an interpreter"}};
  }
  const std::string version = after(versions, "python");
  if (version.empty()) {
    return {{kPython, "python", ProbeState::kMissing, python + " does not start",
             "set KERNELPRO_PYTHON to an interpreter that works"}};
  }
  std::vector<Probe> probes = {{kPython, "python", ProbeState::kOk, python + ", " + version, ""},
                               torch_probe(versions)};
  const std::string triton = after(versions, "triton");
  probes.push_back(triton.empty()
                       ? Probe{kPython, "triton", ProbeState::kLimited,
                               "not installed: candidates and baselines that need Triton "
                               "(torch.compile on the GPU) cannot run",
                               "pip install triton"}
                       : Probe{kPython, "triton", ProbeState::kOk, triton, ""});
  return probes;
}

Probe probe_torch_device() {
  const std::string python = interpreter().path;
  const std::string text = python.empty() ? "" : run_python(python, kDevice, 60);
  const std::string device = after(text, "kernelpro-ok");
  if (!device.empty()) {
    return {kPython, "torch device", ProbeState::kOk, device.substr(0, device.rfind(" sum")), ""};
  }
  if (contains(text, "kernelpro-none")) {
    return {kPython, "torch device", ProbeState::kLimited, "PyTorch sees no GPU",
            "check that PyTorch is built for the driver's CUDA version and that a GPU is visible"};
  }
  const std::vector<std::string> all = lines(text);
  return {kPython, "torch device", ProbeState::kMissing,
          all.empty() ? "PyTorch could not be imported within 60 s"
                      : "import torch fails: " + std::string(trim(all.back())),
          "python3 -c 'import torch' shows what is wrong"};
}

}  // namespace kernelpro
