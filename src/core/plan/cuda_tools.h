// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kernelpro {

// Path of a CUDA toolkit program (nvcc, nvdisasm, compute-sanitizer ...): from $CUDA_HOME or
// $CUDA_PATH, PATH, or /usr/local/cuda; else "".
std::string find_cuda_tool(const std::string& name);

}  // namespace kernelpro
