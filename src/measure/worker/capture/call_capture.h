// SPDX-License-Identifier: Apache-2.0
// Captures the calls of a program that allocates its own memory and loads its own modules: a
// PyTorch module. It gives the program all its device memory, so that it knows what an address
// points to. In the order of use, twice for each case, with the buffers elsewhere the second time:
//
//   open, [the program is made and called a few times], begin, [a call], end, exported, close
//
// `begin` and `end` may come several times; the last call counts. Allocations may come from any
// thread.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/captured_call.h"
#include "core/plan/launch_plan.h"
#include "machine/driver/cuda_driver.h"
#include "measure/worker/capture/arena.h"
#include "measure/worker/capture/images.h"
#include "measure/worker/cuda/capture.h"
#include "measure/worker/cuda/memory.h"

namespace kernelpro {

class CallCapture : public CaptureSurroundings {
 public:
  // `images`: of all modules that the process has loaded; outlives the object.
  CallCapture(const CudaDriver& cu, CUdevice device, LoadedImages* images)
      : cu_(cu), device_(device), images_(images) {}
  ~CallCapture() override;
  CallCapture(const CallCapture&) = delete;
  CallCapture& operator=(const CallCapture&) = delete;

  // PyTorch's allocator. 0: no memory is left, which `short_of_memory` remembers.
  std::uint64_t allocate(std::uint64_t bytes, CUstream stream);
  void free(std::uint64_t address);
  void share(std::uint64_t address);
  bool short_of_memory() const { return short_of_memory_; }

  // Maps memory behind a case's slots: at `layout` for the first capture, elsewhere for the second.
  Result<void> open(const AddressLayout& layout, bool second);
  // The slots' memory; the layout's addresses moved to this capture.
  const AddressLayout& layout() const { return layout_; }
  void close();

  // Begins to capture a stream. Allocation number `first` of the call, from 0, gets the memory of
  // slot `second` if it fits: so an output is computed in place.
  Result<void> begin(CUstream stream, const std::map<int, int>& places);
  Result<void> end(CUstream stream);
  // The nodes of the stream's graph so far; -1: it is not being captured.
  int steps(CUstream stream) const;
  // Which allocation of the latest call starts here; -1: none.
  int number_of(std::uint64_t address) const;

  // The captured call. Writes the contents of memory that it held before to `folder`.
  tl::expected<CapturedCall, CaptureFault> exported(const std::string& folder);

  bool holds(std::uint64_t address) override;
  tl::expected<int, CaptureFault> image_of(const CUDA_KERNEL_NODE_PARAMS& launch,
                                           const std::string& name) override;

 private:
  bool ready(std::optional<Arena>* arena, std::uint64_t base);
  std::optional<CapturedCall::Range> range_of(std::uint64_t address) const;
  Result<void> read_held(const std::string& folder, CapturedCall::Held* held);

  const CudaDriver& cu_;
  CUdevice device_;
  LoadedImages* images_;
  mutable std::recursive_mutex mutex_;
  int stage_ = 0;                 // 0 before the first capture, 1 and 2 in them
  std::optional<Arena> held_[3];  // by stage: what was allocated outside of captured calls
  std::optional<Arena> scratch_;  // ... and in the latest call
  bool calling_ = false;
  bool short_of_memory_ = false;
  AddressLayout layout_;
  std::vector<PhysicalMemory> slots_;
  AddressRange range_;  // unmapped before the memory is released
  CUgraph graph_ = nullptr;
  std::map<int, int> places_;
  std::map<std::uint64_t, int> numbers_;  // of the latest call's allocations, by address
  int allocations_ = 0;
  std::map<std::uint64_t, CapturedCall::Range> noted_;  // while exporting, by address
};

}  // namespace kernelpro

#endif
