// SPDX-License-Identifier: Apache-2.0
// The buffers of one case on the cpu target, in memory shared with one worker: inputs in one file,
// read-only for the worker, outputs and workspace in another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "core/plan/cpu_protocol.h"

namespace kernelpro {

struct BufferSpec {
  std::int64_t bytes = 0;
  bool writable = false;
  bool at_start = false;  // of its pages: directly behind unmapped memory
};

// One thread at a time. A worker keeps its mappings after this object is destroyed.
class CpuBuffers {
 public:
  // Fails with kEnvironment when the memory cannot be allocated.
  static Result<CpuBuffers> make(const std::vector<BufferSpec>& specs);
  CpuBuffers() = default;
  CpuBuffers(CpuBuffers&& other) noexcept;
  CpuBuffers& operator=(CpuBuffers&& other) noexcept;
  ~CpuBuffers();

  // First byte of buffer `i` in this process.
  char* data(std::size_t i) const;
  const std::vector<CpuSlot>& slots() const { return slots_; }
  std::int64_t total_bytes() const { return inputs_.bytes + outputs_.bytes; }
  // Location of a buffer, for a process that is trusted to write to all of them.
  struct Place {
    int fd = -1;  // owned by this object
    std::int64_t file_bytes = 0;
    std::int64_t offset = 0;  // of the first byte in the file
  };
  Place place_of(std::size_t i) const;
  int inputs_fd() const { return inputs_read_only_.get(); }
  int outputs_fd() const { return outputs_.fd.get(); }

  // Fills the memory around the tensors of slots [first, first + count), inputs' too, with contents
  // that nobody can predict and that are often no numbers. `broken_canary` checks that those around
  // writable slots are unchanged. They are not part of this object's value: const.
  void surround(std::size_t first, std::size_t count) const;
  struct Broken {
    std::size_t slot = 0;
    std::int64_t at = 0;  // byte relative to the tensor's first: negative, or >= its size
  };
  std::optional<Broken> broken_canary() const;

 private:
  struct File {
    Fd fd;
    char* base = nullptr;
    std::int64_t bytes = 0;
  };
  static Result<File> make_file(std::int64_t bytes);
  void release();
  char* pages(const CpuSlot& slot) const {
    return (slot.writable != 0 ? outputs_ : inputs_).base + slot.offset;
  }

  File inputs_, outputs_;
  Fd inputs_read_only_;
  std::vector<CpuSlot> slots_;
  mutable std::vector<std::uint64_t> around_;  // by slot: the secret of its surroundings
};

}  // namespace kernelpro
