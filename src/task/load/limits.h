// SPDX-License-Identifier: Apache-2.0
// Bounds on a task's declarations, far above what any real task needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/task/task.h"

namespace kernelpro {

inline constexpr std::size_t kMaxNameBytes = 64;
inline constexpr std::size_t kMaxTensors =
    60;  // their buffers travel in one frame (base/process/channel.h)
// For a PyTorch module, including parameters: DenseNet-201 and ResNet-101 have over 300.
inline constexpr std::size_t kMaxModuleTensors = 1024;
inline constexpr std::size_t kMaxCases = 64;
inline constexpr std::size_t kMaxRank = 16;
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;  // of one tensor
inline constexpr std::int64_t kMaxTextBytes = 8 << 20;            // of one file of the folder

// Why the tensor's init cannot be drawn in its dtype ("low must be below high"), or "".
std::string init_problem(const Tensor& tensor);

}  // namespace kernelpro
