// SPDX-License-Identifier: Apache-2.0
// Memory shared by the judge and a PyTorch module's process.
#pragma once

#include <cstdint>

namespace kernelpro {

// A buffer owned by the judge. If `wide`, it holds a floating output's expected results as doubles.
struct SharedBuffer {
  int tensor = 0;         // index into Task::tensors
  bool expected = false;  // the expected result of an output, not the output itself
  bool wide = false;
  int fd = -1;               // owned by the caller
  std::uint64_t bytes = 0;   // of the whole mapping
  std::uint64_t offset = 0;  // of the first element
};

}  // namespace kernelpro
