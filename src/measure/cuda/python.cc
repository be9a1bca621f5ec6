// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/python.h"

#include <algorithm>
#include <cstdlib>

#include "base/process/available_memory.h"
#include "base/process/sandbox.h"
#include "task/reference/module_reference.h"
#include "task/reference/python.h"

namespace kernelpro {

namespace {
constexpr std::int64_t kHostMemory = 64LL << 30;  // a candidate may compile with several processes
}

Result<CudaLink> start_module_worker(const Task& task, const std::string& gpu) {
  if (!task.module) {
    return fail(ErrorKind::kBadInput, "a PyTorch candidate needs a task that is a PyTorch file",
                "give the module's .py as the task");
  }
  KP_ASSIGN(const PythonCommand python, python_command("candidate"));
  const std::string folder = join(cache_dir(), "candidates");
  KP_TRY(make_dirs(folder));
  Command command;
  command.argv = python.argv;
  command.env = python.env;
  command.env.push_back("TORCH_EXTENSIONS_DIR=" + join(folder, "extensions"));
  command.env.push_back("TRITON_CACHE_DIR=" + join(folder, "triton"));
  command.env.push_back("TORCHINDUCTOR_CACHE_DIR=" + join(folder, "inductor"));
  command.env.push_back("CUDA_CACHE_PATH=" + join(folder, "cuda"));
  command.env.push_back("KERNELPRO_BUILDS=" + folder);
  command.env.push_back("TMPDIR=" + folder);
  command.env.push_back("HOME=" + folder);
  if (!gpu.empty()) command.env.push_back("CUDA_VISIBLE_DEVICES=" + gpu);
  // Files that it reads: the interpreter's and ours, the CUDA toolkit, the task, the candidate.
  std::vector<std::string> roots = {join(cache_dir(), "")};
  if (const auto facts = find_python("")) {
    for (std::string& root : program_roots(facts->interpreter)) roots.push_back(std::move(root));
  }
  // The user's own packages (pip install --user), which HOME would hide.
  if (const char* home = std::getenv("HOME")) {
    const std::string local = join(home, ".local");
    if (is_dir(join(local, "lib"))) {
      command.env.push_back("PYTHONUSERBASE=" + local);
      roots.push_back(join(local, "lib"));
    }
  }
  if (!task.module->path.empty()) roots.push_back(dirname(task.module->path));
  if (const char* cuda = std::getenv("CUDA_HOME")) roots.emplace_back(cuda);
  command.sandbox = candidate_python_sandbox(folder, roots);
  command.limits.memory_bytes =
      std::min(kHostMemory, module_memory_limit(available_memory_bytes()));
  command.limits.output_killed = 256 << 20;
  return CudaLink::start(std::move(command));
}

}  // namespace kernelpro
