// SPDX-License-Identifier: Apache-2.0
#include "task/load/start.h"

#include "core/knobs.h"

namespace kernelpro {

namespace {

// The start for a PyTorch file without a kernel.
Candidate module_itself(const Module& module, TargetKind target) {
  Candidate candidate;
  if (target == TargetKind::kCpu) {  // cannot run PyTorch candidates
    candidate.source = "#include \"task.h\"\n\nextern \"C\" void launch(const Args&) {}\n";
    candidate.origin = {"start", 0, "An empty kernel: the task has none to begin from.", {}};
    return candidate;
  }
  candidate.language = Language::kPython;
  candidate.source = module.source;
  if (!candidate.source.ends_with('\n')) candidate.source += '\n';
  candidate.source += "\n\nclass ModelNew(Model):\n    pass\n";
  candidate.origin = {"start", 0, "The PyTorch module itself.", {}};
  return candidate;
}

}  // namespace

Result<Candidate> start_candidate(const Task& task, TargetKind target) {
  const bool cpu = target == TargetKind::kCpu;
  Candidate candidate;
  candidate.language = cpu ? Language::kCpp : Language::kCuda;
  candidate.source = cpu ? task.kernel_cpp : task.kernel_cu;
  if (candidate.source.empty() && !task.kernel_py.empty()) {
    if (cpu) {
      return fail(ErrorKind::kBadInput, "the cpu target runs no PyTorch candidates to start from",
                  "use --target cuda, or start from a .cpp");
    }
    candidate.language = Language::kPython;
    candidate.source = task.kernel_py;
    candidate.origin = {"start", 0, "The PyTorch implementation that was given.", {}};
    return candidate;
  }
  if (candidate.source.empty() && task.module) return module_itself(*task.module, target);
  if (candidate.source.empty()) {
    return fail(ErrorKind::kBadInput,
                "the task " + task.name + " has no starting kernel for the " +
                    std::string(target_name(target)) + " target",
                std::string("put one into its folder as ") + (cpu ? "kernel.cpp" : "kernel.cu"));
  }
  auto knobs = parse_knobs(candidate.source, reserved_names(task));
  if (!knobs) {
    Error error = std::move(knobs.error());
    error.message = std::string(cpu ? "kernel.cpp, " : "kernel.cu, ") + error.message;
    return tl::unexpected<Error>(std::move(error));
  }
  candidate.knobs = default_values(*knobs);
  candidate.origin = {"start", 0, "The task's own kernel with the first value of each knob.", {}};
  return candidate;
}

}  // namespace kernelpro
