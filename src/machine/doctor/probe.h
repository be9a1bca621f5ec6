// SPDX-License-Identifier: Apache-2.0
// The finding of one probe of this machine.
#pragma once

#include <string>

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

}  // namespace kernelpro
