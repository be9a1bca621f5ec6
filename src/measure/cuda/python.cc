// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/python.h"

#include <algorithm>
#include <cstdlib>

#include "base/process/available_memory.h"
#include "base/process/sandbox.h"
#include "base/process/worker_path.h"
#include "task/reference/module_reference.h"
#include "task/reference/python.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kHostMemory = 64LL << 30;  // a candidate may compile with several processes

// `library`: a file that the role gets as its argument; may be empty. `first`: a command.
Result<CudaLink> start_python(const std::string& role, const std::string& library,
                              const char* first, const std::string& task_folder,
                              const std::string& gpu) {
  KP_ASSIGN(const PythonCommand python, python_command(role));
  KP_ASSIGN(const std::string package, unpacked_package());
  KP_ASSIGN(auto own, PrivateFolder::make(join(cache_dir(), "candidates")));
  const std::string& folder = own->path();
  Command command;
  command.argv = python.argv;
  if (!library.empty()) command.argv.push_back(library);
  command.env = python.env;
  command.env.push_back("TORCH_EXTENSIONS_DIR=" + join(folder, "extensions"));
  command.env.push_back("TRITON_CACHE_DIR=" + join(folder, "triton"));
  command.env.push_back("TORCHINDUCTOR_CACHE_DIR=" + join(folder, "inductor"));
  command.env.push_back("CUDA_CACHE_PATH=" + join(folder, "cuda"));
  command.env.push_back("KERNELPRO_BUILDS=" + folder);
  command.env.push_back("TMPDIR=" + folder);
  command.env.push_back("HOME=" + folder);
  if (!gpu.empty()) command.env.push_back("CUDA_VISIBLE_DEVICES=" + gpu);
  // Files that it reads: the interpreter's and ours, those on PYTHONPATH, the CUDA toolkit, the
  // task. Its candidate's is copied to its own folder.
  std::vector<std::string> roots = {dirname(package)};
  if (const auto facts = find_python("")) {
    for (std::string& root : candidate_roots(*facts)) roots.push_back(std::move(root));
  }
  // The user's own packages (pip install --user), which HOME would hide.
  bool user_packages = false;
  if (const char* home = std::getenv("HOME")) {
    const std::string local = join(home, ".local");
    if (is_dir(join(local, "lib"))) {
      command.env.push_back("PYTHONUSERBASE=" + local);
      roots.push_back(join(local, "lib"));
      user_packages = true;
    }
  }
  // Otherwise those would be in the folder that candidates write to, and run in the next process.
  if (!user_packages) command.env.push_back("PYTHONNOUSERSITE=1");
  if (!task_folder.empty()) roots.push_back(task_folder);
  if (const char* cuda = std::getenv("CUDA_HOME")) roots.emplace_back(cuda);
  if (!library.empty()) roots.push_back(dirname(library));
  command.sandbox = candidate_python_sandbox(folder, roots);
  command.limits.memory_bytes =
      std::min(kHostMemory, module_memory_limit(available_memory_bytes()));
  command.limits.output_killed = 256 << 20;
  Result<CudaLink> link = CudaLink::start(std::move(command));
  if (!link) return link;
  link->own(std::move(own));
  link->post({{"do", first}});
  return link;
}

}  // namespace

Result<CudaLink> start_module_worker(const std::string& folder, const std::string& gpu) {
  return start_python("candidate", "", "imported", folder, gpu);
}

Result<CudaLink> start_module_capture(const std::string& folder, const std::string& gpu) {
  const std::string library = companion_path("libkernelpro_capture.so");
  if (!exists(library)) {
    return fail(ErrorKind::kEnvironment, library + " is missing", "install kernelpro again");
  }
  return start_python("capture", library, "hello", folder, gpu);
}

}  // namespace kernelpro
