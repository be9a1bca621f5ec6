// SPDX-License-Identifier: Apache-2.0
// A candidate compiled for one case of its task, and the compiler's resource figures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/launch_plan.h"

namespace kernelpro {

// ptxas -v, per kernel.
struct KernelResources {
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;  // -1: unknown, as of a library's code
  int spill_load_bytes = 0;
  int shared_bytes = 0;  // static
};

struct Binary {
  enum class Form { kSharedObject, kHostForm, kPlanForm, kModule };
  Form form = Form::kSharedObject;
  std::string case_name;
  std::string hash;           // of compiler, flags and input: its cache key
  std::string shared_object;  // path; cpu target, and host form's code for the capture process
  std::string cubin;          // path; cuda target
  std::vector<std::string>
      images;               // paths of a captured PyTorch call's cubins, in place of `cubin`
  std::string module;       // path of the .py; kModule
  LaunchPlan plan;          // plan form and captured PyTorch calls; the host form's is captured
  std::uint64_t place = 0;  // where the addresses in `plan` hold (`placed`); 0: it has none
  std::map<std::string, KernelResources> resources;  // by mangled kernel name; cuda
  double compile_ms = 0;                             // 0 when it came from the cache
  std::string warnings;
};

// A compiled candidate: one binary per case of cases_for(task, target), in that order.
struct Subject {
  std::string hash;  // Candidate::content_hash
  std::vector<Binary> binaries;
  // Another setting of a source that was judged in full: it may be screened (Evaluator::evaluate).
  bool variant = false;
};

// A task's compiled references; empty for a task that a PyTorch module defines.
struct References {
  std::vector<Binary> binaries;  // one per case of cases_for(task, target), in that order
  std::optional<Binary> host;    // cuda: reference.cpp in the smallest case, for the cross-check
};

}  // namespace kernelpro
