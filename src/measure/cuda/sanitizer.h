// SPDX-License-Identifier: Apache-2.0
// Reruns a crash on the GPU under compute-sanitizer, where installed: which kernel, block, thread,
// address and source line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/binary.h"
#include "core/plan/launch_plan.h"
#include "core/plan/protocol.h"

namespace kernelpro {

// One sentence, or "" when compute-sanitizer is missing, finds nothing or takes longer than
// `timeout_s`. Runs the plan once in a separate process (role cuda-replay) over fresh buffers at
// the layout's addresses with fresh inputs. Blocks. `gpu`: as for CUDA_VISIBLE_DEVICES;
// "" keeps our own environment's.
std::string sanitize(const Binary& binary, const LaunchPlan& plan, const AddressLayout& layout,
                     const std::vector<JudgeTensor>& tensors, double timeout_s,
                     const std::string& gpu = "");

// The same sentence for a kernel's first record in compute-sanitizer's XML (--xml); addresses are
// given relative to the nearest tensor. "" when there is none. Any bytes are safe.
std::string sanitizer_sentence(std::string_view xml, const AddressLayout& layout,
                               const std::vector<JudgeTensor>& tensors);

}  // namespace kernelpro
