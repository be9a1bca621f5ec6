// SPDX-License-Identifier: Apache-2.0
// What this machine allows and lacks, for `kernelpro doctor`. Each probe looks for itself (a file,
// a program, a library, a system call) and never throws. All together they take about a second, and
// what they start is ended when it takes too long.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

enum class ProbeState { kOk, kLimited, kMissing };
std::string probe_state_name(ProbeState state);  // "OK", "limited", "missing"

struct Probe {
  std::string group;  // "cpu target", "cuda target", "PyTorch tasks", "limits", "KernelPro"
  std::string name;   // "host compiler"
  ProbeState state = ProbeState::kOk;
  std::string found;  // what was found, or why not
  std::string next;   // how to get it; "" when OK
};

// In a fixed order, groups together.
std::vector<Probe> probe_machine();
// Whether PyTorch can use the GPU; imports it, which takes seconds. Belongs to "PyTorch tasks".
Probe probe_torch_device();

}  // namespace kernelpro
