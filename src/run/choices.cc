// SPDX-License-Identifier: Apache-2.0
#include "run/choices.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/files.h"
#include "core/candidate/language.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {

namespace {

std::string safe_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    result += plain ? c : '_';
  }
  return result.empty() ? "task" : result;
}

bool runs_on(const Task& task, TargetKind target) {
  return !native_kernel(task, target).empty() && !cases_for(task, target).empty();
}

}  // namespace

TargetKind choose_target(const std::string& name) {
  if (const auto target = target_from_name(name)) return *target;
  return describe_cuda_machine() ? TargetKind::kCuda : TargetKind::kCpu;
}

TargetKind choose_target(const Task& task, const std::string& name) {
  if (const auto target = target_from_name(name)) return *target;
  return runs_on(task, TargetKind::kCuda) ? choose_target(name) : TargetKind::kCpu;
}

Result<TargetKind> choose_target(const Host& host, const Task* task, const std::string& name) {
  if (host.here()) {
    const TargetKind chosen = task != nullptr ? choose_target(*task, name) : choose_target(name);
    // Before anything else can be missing: PyTorch with CUDA, a compiler.
    if (chosen == TargetKind::kCuda) KP_TRY(describe_cuda_machine());
    return chosen;
  }
  if (const auto target = target_from_name(name)) return *target;
  if (task != nullptr && !runs_on(*task, TargetKind::kCuda)) return TargetKind::kCpu;
  KP_ASSIGN(const bool cuda, host.has_cuda());
  return cuda ? TargetKind::kCuda : TargetKind::kCpu;
}

std::string new_run_directory(const Task& task, TargetKind target, const std::string& folder) {
  return new_run_directory(safe_name(task.name) + "-" + std::string(target_name(target)), folder);
}

std::string new_run_directory(const std::string& name, const std::string& folder) {
  std::string stamp = utc_now();
  std::erase_if(stamp, [](char c) { return c == ':' || c == '-'; });
  const std::string base = join(folder, safe_name(name) + "-" + stamp);
  static_cast<void>(make_dirs(folder));
  std::string directory = base;
  for (int i = 2; ::mkdir(directory.c_str(), 0777) != 0 && errno == EEXIST; ++i) {
    directory = base + "-" + std::to_string(i);
  }
  return directory;
}

void drop_run_directory(const std::string& directory) { ::rmdir(directory.c_str()); }

}  // namespace kernelpro
