// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kernelpro {

// Path of a program of the CUDA toolkit (nvcc, nvdisasm, compute-sanitizer ...): in $CUDA_HOME or
// $CUDA_PATH, on PATH, in /usr/local/cuda; or "".
std::string find_cuda_tool(const std::string& name);

}  // namespace kernelpro
