// SPDX-License-Identifier: Apache-2.0
#include "base/cuda_toolkit.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/files.h"

namespace kernelpro {
namespace {

class CudaToolkit : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH", "PATH"}) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const char* name : {"CUDA_HOME", "CUDA_PATH", "PATH"}) {
      const auto known = before_.find(name);
      known == before_.end() ? ::unsetenv(name) : ::setenv(name, known->second.c_str(), 1);
    }
  }
  // A program in a toolkit.
  std::string program(const std::string& root, const std::string& name) const {
    const std::string path = join(join(dir_.path(), root), "bin/" + name);
    EXPECT_TRUE(make_dirs(dirname(path)));
    EXPECT_TRUE(write_file(path, "#!/bin/sh\n"));
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    return path;
  }
  std::string folder(const std::string& name) const { return join(dir_.path(), name); }

  TempDir dir_;
  std::map<std::string, std::string> before_;
};

TEST_F(CudaToolkit, WhatTheUserNamesComesFirst) {
  const std::string home = program("home", "nvcc"), other = program("other", "nvcc"),
                    path = program("path", "nvcc");
  ::setenv("PATH", dirname(path).c_str(), 1);
  EXPECT_EQ(find_cuda_tool("nvcc"), path);
  ::setenv("CUDA_PATH", folder("other").c_str(), 1);
  EXPECT_EQ(find_cuda_tool("nvcc"), other);
  ::setenv("CUDA_HOME", folder("home").c_str(), 1);
  EXPECT_EQ(find_cuda_tool("nvcc"), home);
  const auto roots = cuda_toolkits();
  EXPECT_EQ(roots, (std::vector<std::string>{folder("home"), folder("other"), "/usr/local/cuda",
                                             folder("path")}));
}

TEST_F(CudaToolkit, AToolkitWithoutACompilerIsFoundThroughALink) {
  const std::string real = program("real", "nvdisasm");
  ASSERT_TRUE(make_dirs(folder("links")));
  ASSERT_EQ(::symlink(real.c_str(), (folder("links") + "/nvdisasm").c_str()), 0);
  ::setenv("PATH", folder("links").c_str(), 1);
  EXPECT_EQ(cuda_toolkits().back(), std::filesystem::canonical(folder("real")));
}

TEST_F(CudaToolkit, HeadersAndLibrariesAreLookedForInItsOrder) {
  ::setenv("CUDA_HOME", folder("home").c_str(), 1);
  const std::string headers = folder("home/targets/x86_64-linux/include");
  ASSERT_TRUE(make_dirs(headers));
  ASSERT_TRUE(write_file(join(headers, "cuda_fp16.h"), ""));
  EXPECT_EQ(find_cuda_headers(), headers);
  const auto paths = cuda_library_paths("nvrtc");
  EXPECT_EQ(paths.front(), folder("home") + "/lib64/libnvrtc.so.13");
  EXPECT_EQ(paths.back(), "libnvrtc.so");
  EXPECT_EQ(paths[paths.size() - 3], "libnvrtc.so.13") << "a newer one comes first here, too";
}

}  // namespace
}  // namespace kernelpro
