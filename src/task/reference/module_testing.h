// SPDX-License-Identifier: Apache-2.0
// For tests: one process of PyTorch, the sources of modules, and a module with buffers in shared
// memory, as in the cpu target's judge.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "core/task/task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

ReferenceSettings cpu_settings();

// One process for all tests: importing torch takes seconds.
Result<std::unique_ptr<ModuleReference>>& cpu_reference();

#define NEED_TORCH()                                                                 \
  if (!cpu_reference() && cpu_reference().error().kind == ErrorKind::kEnvironment) { \
    GTEST_SKIP() << cpu_reference().error().message;                                 \
  }                                                                                  \
  ASSERT_TRUE(cpu_reference()) << cpu_reference().error().text()

// A file with a Model of these statements, and get_inputs() of these expressions; `top` goes before
// the class.
std::string module_source(const std::string& constructor, const std::string& forward,
                          const std::string& inputs, const std::string& top = "",
                          const std::string& parameters = "x");

class SharedMemory {
 public:
  explicit SharedMemory(std::uint64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  int fd() const { return fd_.get(); }
  std::uint64_t bytes() const { return bytes_; }
  void* data() const { return data_; }

 private:
  Fd fd_;
  std::uint64_t bytes_;
  void* data_;
};

// A described module's buffers for one set: every input, parameter and wide expected result.
class TestSet {
 public:
  TestSet(const Task& task, const Case& c);
  const std::vector<SharedBuffer>& buffers() const { return buffers_; }
  // Elements of an input or parameter, or of an output's expected result (doubles).
  template <class T>
  std::vector<T> values(const std::string& tensor) const {
    const auto [data, bytes] = find(tensor);
    const T* begin = static_cast<const T*>(data);
    return {begin, begin + bytes / sizeof(T)};
  }
  template <class T>
  void set(const std::string& tensor, const std::vector<T>& values) {
    const auto [data, bytes] = find(tensor);
    std::copy(values.begin(), values.end(), static_cast<T*>(data));
  }

 private:
  std::pair<void*, std::uint64_t> find(const std::string& tensor) const;

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<SharedMemory>> memory_;
  std::vector<SharedBuffer> buffers_;
};

// A task with one timed case "only" from the description.
Task task_of(const ModuleDescription& description, const std::string& source);

}  // namespace kernelpro
