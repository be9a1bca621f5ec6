// SPDX-License-Identifier: Apache-2.0
#include "core/plan/cuda_tools.h"

#include <cstdlib>

#include "base/files.h"

namespace kernelpro {

std::string find_cuda_tool(const std::string& name) {
  const auto in_toolkit = [&](const std::string& root) {
    // Some packages do not put compute-sanitizer in bin.
    for (const std::string& folder : {std::string("bin"), name}) {
      const std::string found = find_program(join(join(root, folder), name));
      if (!found.empty()) return found;
    }
    return std::string();
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (root == nullptr || *root == '\0') continue;
    if (const std::string found = in_toolkit(root); !found.empty()) return found;
  }
  const std::string found = find_program(name);
  return found.empty() ? in_toolkit("/usr/local/cuda") : found;
}

}  // namespace kernelpro
