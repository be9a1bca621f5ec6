// SPDX-License-Identifier: Apache-2.0
#include "base/cuda_toolkit.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/files.h"

namespace kernelpro {

namespace {

std::vector<std::string> named_toolkits() {
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (root != nullptr && *root != '\0') roots.emplace_back(root);
  }
  return roots;
}

std::string tool_in(const std::vector<std::string>& roots, const std::string& name) {
  for (const std::string& root : roots) {
    // Some packages do not put compute-sanitizer in bin.
    for (const std::string& folder : {std::string("bin"), name}) {
      const std::string found = find_program(join(join(root, folder), name));
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> cuda_toolkits() {
  std::vector<std::string> roots = named_toolkits();
  roots.emplace_back("/usr/local/cuda");
  for (const char* program : {"nvcc", "nvdisasm", "cuobjdump"}) {
    const std::string found = find_program(program);
    if (found.empty()) continue;
    roots.push_back(dirname(dirname(found)));
    std::error_code ignored;
    const std::string real = std::filesystem::canonical(found, ignored).string();
    if (!real.empty() && dirname(dirname(real)) != roots.back()) {
      roots.push_back(dirname(dirname(real)));
    }
    break;
  }
  return roots;
}

std::string find_cuda_tool(const std::string& name) {
  std::string found = tool_in(named_toolkits(), name);
  if (found.empty()) found = find_program(name);
  return found.empty() ? tool_in(cuda_toolkits(), name) : found;
}

std::string find_cuda_headers() {
  for (const std::string& root : cuda_toolkits()) {
    for (const char* folder : {"include", "targets/x86_64-linux/include"}) {
      std::string path = join(root, folder);
      if (exists(join(path, "cuda_fp16.h"))) return path;
    }
  }
  return "";
}

std::vector<std::string> cuda_library_folders() {
  std::vector<std::string> folders;
  for (const std::string& root : cuda_toolkits()) {
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "extras/CUPTI/lib64"}) {
      folders.push_back(join(root, folder));
    }
  }
  return folders;
}

std::vector<std::string> cuda_library_paths(const std::string& library) {
  std::vector<std::string> paths;
  std::vector<std::string> folders = cuda_library_folders();
  folders.emplace_back();  // the loader's own search
  for (const std::string& folder : folders) {
    for (const char* version : {".13", ".12", ""}) {
      const std::string name = "lib" + library + ".so" + version;
      paths.push_back(folder.empty() ? name : join(folder, name));
    }
  }
  return paths;
}

}  // namespace kernelpro
