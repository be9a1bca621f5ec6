// SPDX-License-Identifier: Apache-2.0
// Writes the machine code of every module that the program loads beside the trace, once for each
// content: FOLDER/<hash>.cubin. Which of it was launched is found out later, from the trace. Never
// fails the program. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace kernelpro::tracer {

class ModuleWriter {
 public:
  // Beyond `limit` bytes in all, modules are left out.
  ModuleWriter(std::string folder, std::uint64_t limit)
      : folder_(std::move(folder)), limit_(limit) {}
  void write(const void* image, std::size_t bytes) noexcept;
  std::uint64_t left_out() const { return left_out_; }

 private:
  const std::string folder_;
  const std::uint64_t limit_;
  std::mutex mutex_;
  std::set<std::string> known_;
  std::uint64_t written_ = 0;
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace kernelpro::tracer
