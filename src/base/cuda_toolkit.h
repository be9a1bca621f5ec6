// SPDX-License-Identifier: Apache-2.0
// Where an installed CUDA toolkit lies. Reads the environment and the file system on each call.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// Its folders, of which some may not exist, in the order in which to look: $CUDA_HOME, $CUDA_PATH,
// /usr/local/cuda, that of the nvcc, nvdisasm or cuobjdump on PATH, and where its link leads.
std::vector<std::string> cuda_toolkits();

// Path of one of its programs (nvcc, nvdisasm, compute-sanitizer ...): from $CUDA_HOME or
// $CUDA_PATH, PATH, or the other toolkits; else "".
std::string find_cuda_tool(const std::string& name);

// The folder with cuda_fp16.h and the like; else "".
std::string find_cuda_headers();

// Folders in which its libraries may be, CUPTI's included.
std::vector<std::string> cuda_library_folders();

// What to try to open for a library, as "nvrtc", in this order: libnvrtc.so.13, .so.12 and .so in
// each of these folders, then the names alone, for the loader's own search.
std::vector<std::string> cuda_library_paths(const std::string& library);

}  // namespace kernelpro
