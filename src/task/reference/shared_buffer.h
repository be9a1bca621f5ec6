// SPDX-License-Identifier: Apache-2.0
// Memory that the judge shares with the process of a PyTorch module.
#pragma once

#include <cstdint>

namespace kernelpro {

// A buffer of the judge's. Expected results of floating outputs lie as doubles when `wide`.
struct SharedBuffer {
  int tensor = 0;         // index into Task::tensors
  bool expected = false;  // the expected result of an output, not the output itself
  bool wide = false;
  int fd = -1;               // stays the caller's
  std::uint64_t bytes = 0;   // of the whole mapping
  std::uint64_t offset = 0;  // of the first element in it
};

}  // namespace kernelpro
