// SPDX-License-Identifier: Apache-2.0
#include "task/reference/module_process.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/process/available_memory.h"
#include "base/text.h"
#include "task/reference/python.h"
#include "task/reference/python_command.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kWritten = 1LL << 30;  // per file in the scratch folder
constexpr std::int64_t kUnused = 4LL << 30;   // of address space: threads' stacks and heaps
constexpr unsigned kProcesses = 512;          // processes and threads, or
constexpr unsigned kProcessesPerCore = 8;     // pools have a thread for each core
constexpr double kGigabyte = 1e9;

// Of our environment, what locates programs, libraries and downloaded models, and chooses numbers
// of threads and GPUs. None that holds a secret.
std::vector<std::string> inherited_variables() {
  return {"PATH",
          "LANG",
          "LC_ALL",
          "LC_CTYPE",
          "TZ",
          "LD_LIBRARY_PATH",
          "PYTHONPATH",
          "PYTHONHOME",
          "VIRTUAL_ENV",
          "CONDA_PREFIX",
          "CC",
          "CXX",
          "CUDA_HOME",
          "CUDA_PATH",
          "CUDA_VISIBLE_DEVICES",
          "CUDA_DEVICE_ORDER",
          "NVIDIA_VISIBLE_DEVICES",
          "NVIDIA_DRIVER_CAPABILITIES",
          "OMP_NUM_THREADS",
          "MKL_NUM_THREADS",
          "OPENBLAS_NUM_THREADS",
          "PYTORCH_CUDA_ALLOC_CONF",
          "TORCH_CUDA_ARCH_LIST",
          "TORCH_HOME",
          "HF_HOME",
          "HF_HUB_OFFLINE",
          "TRANSFORMERS_OFFLINE"};
}

std::vector<std::string> paths_in(const char* variable) {
  const char* value = std::getenv(variable);
  std::vector<std::string> paths;
  for (const std::string& path : split(value == nullptr ? "" : value, ':')) {
    if (!path.empty()) paths.push_back(absolute(path));
  }
  return paths;
}

std::vector<std::string> readable(const PythonFacts& facts, const std::string& package,
                                  const std::string& folder) {
  std::vector<std::string> wanted = facts.folders;
  wanted.push_back(dirname(facts.interpreter));
  wanted.push_back(folder);
  for (const char* variable : {"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"}) {
    for (std::string& path : paths_in(variable)) wanted.push_back(std::move(path));
  }
  std::erase_if(wanted, [](const std::string& path) { return path.empty() || holds_homes(path); });
  wanted.push_back(dirname(package));
  for (std::string& path : paths_in("KERNELPRO_MODULE_READ")) wanted.push_back(std::move(path));
  return wanted;
}

Result<double> positive(const char* variable, double otherwise) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return otherwise;
  char* end = nullptr;
  const double number = std::strtod(value, &end);
  if (*end == '\0' && number > 0 && number < 1e9) return number;
  return fail(ErrorKind::kBadInput,
              std::string(variable) + " is \"" + clip(printable(value), 40) +
                  "\", which is not a positive number",
              "correct it, or unset it");
}

Result<std::int64_t> memory_limit(const ModuleProcessSettings& settings) {
  if (settings.memory_bytes > 0) return settings.memory_bytes;
  KP_ASSIGN(const double gigabytes, positive("KERNELPRO_MODULE_MEMORY", 0));
  if (gigabytes > 0) return static_cast<std::int64_t>(gigabytes * kGigabyte);
  return module_memory_limit(available_memory_bytes());
}

// The driver makes this device with a program that needs privileges, which a sandbox withholds.
void make_cuda_devices() {
  if (!exists("/dev/nvidiactl") || exists("/dev/nvidia-uvm")) return;
  Command command;
  command.argv = {"nvidia-modprobe", "-u", "-c", "0"};
  command.limits.wall_seconds = 20;
  static_cast<void>(run(command));  // without it, PyTorch says that it finds no GPU
}

}  // namespace

Result<ModuleProcess> module_process(const ModuleProcessSettings& settings) {
  KP_ASSIGN(PythonCommand python, python_command(settings.role, settings.python));
  KP_ASSIGN(const PythonFacts facts, find_python(settings.python));
  KP_ASSIGN(const std::string package, unpacked_package());
  KP_ASSIGN(const std::int64_t memory, memory_limit(settings));
  const bool cuda = settings.target == TargetKind::kCuda;
  if (cuda) make_cuda_devices();
  ModuleProcess process;
  process.scratch = std::make_unique<TempDir>();
  const std::string& scratch = process.scratch->path();
  Command& command = process.command;
  command.argv = std::move(python.argv);
  command.argv.emplace_back(target_name(settings.target));
  command.cwd = scratch;
  command.keep = inherited_variables();
  command.env = std::move(python.env);
  for (const char* name : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR",
                           "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH"}) {
    command.env.push_back(std::string(name) + "=" + scratch);
  }
  // With more, the compiler's pool needs semaphores in /dev/shm.
  command.env.emplace_back("TORCHINDUCTOR_COMPILE_THREADS=1");
  if (!facts.user_base.empty()) command.env.push_back("PYTHONUSERBASE=" + facts.user_base);
  if (!cuda) command.env.emplace_back("CUDA_VISIBLE_DEVICES=");
  if (cuda && !settings.gpu.empty()) {
    command.env.emplace_back("CUDA_VISIBLE_DEVICES=" + settings.gpu);
  }
  command.limits.memory_bytes = memory;
  command.limits.at_rest = true;
  command.limits.frame_fds = 0;  // it has none to give
  Sandbox sandbox = candidate_python_sandbox(scratch, readable(facts, package, settings.folder));
  sandbox.max_processes = static_cast<int>(
      std::max(kProcesses, kProcessesPerCore * std::thread::hardware_concurrency()));
  sandbox.file_bytes = kWritten;
  // Faster than the watch, but for each process; CUDA maps far more than it uses.
  if (!cuda) sandbox.data_bytes = 2 * memory + kUnused;
  command.sandbox = std::move(sandbox);
  return process;
}

Result<double> module_seconds(double otherwise) {
  return positive("KERNELPRO_MODULE_SECONDS", otherwise);
}

std::string module_limit_advice(Exit::Kind kind) {
  switch (kind) {
    case Exit::Kind::kOutOfMemory:
      return "give smaller sizes for integers at the top of the file (--set NAME=VALUE), free "
             "memory, or set KERNELPRO_MODULE_MEMORY to more gigabytes: without it the limit is "
             "half of what is available when the process starts";
    case Exit::Kind::kTimedOut:
      return "check that the file terminates, choose smaller sizes, or set "
             "KERNELPRO_MODULE_SECONDS to more seconds for one command";
    case Exit::Kind::kTooManyProcesses:
      return "take out what starts processes and threads: a task's file needs none";
    case Exit::Kind::kFlooded:
      return "take out what the file prints";
    case Exit::Kind::kExited:
    case Exit::Kind::kSignalled:
      break;
  }
  return "";
}

}  // namespace kernelpro
