// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/capture/call_capture.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/hash.h"

namespace kernelpro {

namespace {

// The second capture's distances differ from one kind of memory to the next. Bases are far from the
// numbers that kernels get.
constexpr std::uint64_t kSecondTensors = 0x040000000000ull;  // added to the layout's
constexpr std::uint64_t kSecondScratch = 0x360000000000ull;
constexpr std::uint64_t kHeld[] = {0x5a0000000000ull, 0x5b0000000000ull, 0x5c0000000000ull};
constexpr std::uint64_t kMostContents = 256ull << 20;  // of one piece of memory held before a call

AddressLayout moved(AddressLayout layout, std::uint64_t by) {
  layout.base += by;
  for (AddressLayout::Slot& slot : layout.slots) {
    slot.address += by;
    slot.mapping += by;
  }
  return layout;
}

}  // namespace

CallCapture::~CallCapture() { close(); }

bool CallCapture::ready(std::optional<Arena>* arena, std::uint64_t base) {
  if (*arena) return true;
  Result<Arena> made = Arena::make(cu_, device_, base);
  if (!made) return false;
  arena->emplace(std::move(*made));
  return true;
}

std::uint64_t CallCapture::allocate(std::uint64_t bytes, CUstream stream) {
  const std::lock_guard lock(mutex_);
  std::uint64_t address = 0;
  if (calling_) {
    const int number = allocations_++;
    const auto place = places_.find(number);
    const auto slot = place == places_.end() ? SIZE_MAX : static_cast<std::size_t>(place->second);
    if (slot < layout_.slots.size() && bytes <= layout_.slots[slot].mapping +
                                                    layout_.slots[slot].mapping_bytes -
                                                    layout_.slots[slot].address) {
      address = layout_.slots[slot].address;
    } else if (scratch_) {
      address = scratch_->allocate(bytes, stream);
    }
    if (address != 0) numbers_[address] = number;
  } else {
    std::optional<Arena>& arena = held_[stage_];
    if (ready(&arena, kHeld[stage_])) address = arena->allocate(bytes, stream);
  }
  short_of_memory_ = short_of_memory_ || address == 0;
  return address;
}

void CallCapture::free(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (scratch_) scratch_->free(address);
  for (std::optional<Arena>& arena : held_) {
    if (arena) arena->free(address);
  }
}

void CallCapture::share(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (scratch_) scratch_->share(address);
  for (std::optional<Arena>& arena : held_) {
    if (arena) arena->share(address);
  }
}

Result<void> CallCapture::open(const AddressLayout& layout, bool second) {
  close();
  const std::lock_guard lock(mutex_);
  stage_ = second ? 2 : 1;
  layout_ = second ? moved(layout, kSecondTensors) : layout;
  KP_ASSIGN(range_, AddressRange::reserve(cu_, layout_.base, layout_.reserve_bytes));
  for (const AddressLayout::Slot& slot : layout_.slots) {
    KP_ASSIGN(PhysicalMemory memory, PhysicalMemory::create(cu_, device_, slot.mapping_bytes));
    KP_TRY(range_.map(device_, slot.mapping, slot.mapping_bytes, memory.handle()));
    slots_.push_back(std::move(memory));
  }
  return {};
}

void CallCapture::close() {
  const std::lock_guard lock(mutex_);
  if (graph_ != nullptr) cu_.GraphDestroy(graph_);
  graph_ = nullptr;
  numbers_.clear();
  range_ = AddressRange();
  slots_.clear();
}

Result<void> CallCapture::begin(CUstream stream, const std::map<int, int>& places) {
  const std::lock_guard lock(mutex_);
  if (graph_ != nullptr) cu_.GraphDestroy(graph_);
  graph_ = nullptr;
  scratch_.reset();
  if (!ready(&scratch_, stage_ == 2 ? kSecondScratch : layout_.scratch_base())) {
    return fail(ErrorKind::kEnvironment, "no addresses are left for the call's memory", "");
  }
  places_ = places;
  numbers_.clear();
  allocations_ = 0;
  // Relaxed: what a call does besides, such as loading a module, is not a reason to refuse it.
  KP_CUDA_TRY(cu_.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  calling_ = true;
  return {};
}

Result<void> CallCapture::end(CUstream stream) {
  const std::lock_guard lock(mutex_);
  if (!calling_) return fail(ErrorKind::kInternal, "no call is being captured", "");
  calling_ = false;
  const CUresult result = cu_.StreamEndCapture(stream, &graph_);
  if (result == CUDA_SUCCESS && graph_ != nullptr) return {};
  graph_ = nullptr;
  return fail(ErrorKind::kBadInput,
              "the call cannot be captured into a CUDA graph: " + cuda_error_text(result),
              "in forward, leave out what waits for the GPU, and join other streams");
}

int CallCapture::steps(CUstream stream) const {
  const std::lock_guard lock(mutex_);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  std::size_t count = 0;
  if (cu_.StreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr) !=
          CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_ACTIVE ||
      cu_.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    return -1;
  }
  return static_cast<int>(count);
}

int CallCapture::number_of(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = numbers_.find(address);
  return found == numbers_.end() ? -1 : found->second;
}

// The piece of memory around an address that existed before the call.
std::optional<CapturedCall::Range> CallCapture::range_of(std::uint64_t address) const {
  for (const std::optional<Arena>& arena : held_) {
    if (!arena || !arena->contains(address)) continue;
    const Arena::Block* block = arena->find(address);
    // What was freed is no longer an address: a number left behind in padding.
    return block == nullptr ? CapturedCall::Range{}
                            : CapturedCall::Range{block->address, block->bytes};
  }
  unsigned type = 0;
  CapturedCall::Range range;
  if (cu_.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
      type != CU_MEMORYTYPE_DEVICE ||
      cu_.PointerGetAttribute(&range.address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) !=
          CUDA_SUCCESS ||
      cu_.PointerGetAttribute(&range.bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) !=
          CUDA_SUCCESS) {
    return std::nullopt;
  }
  return range;
}

bool CallCapture::holds(std::uint64_t address) {
  if (scratch_ && scratch_->contains(address)) return true;
  const std::optional<CapturedCall::Range> range = range_of(address);
  if (!range) return false;
  if (range->bytes > 0) noted_[range->address] = *range;
  return true;
}

tl::expected<int, CaptureFault> CallCapture::image_of(const CUDA_KERNEL_NODE_PARAMS& launch,
                                                      const std::string& name) {
  CUmodule module = nullptr;
  if (launch.func != nullptr && cu_.FuncGetModule(&module, launch.func) != CUDA_SUCCESS) {
    module = nullptr;
  }
  return images_->find(module, name);
}

Result<void> CallCapture::read_held(const std::string& folder, CapturedCall::Held* held) {
  if (held->range.bytes > kMostContents) return {};
  std::string bytes(held->range.bytes, '\0');
  KP_CUDA_TRY(cu_.MemcpyDtoH(bytes.data(), held->range.address, bytes.size()));
  held->content = hash_hex(bytes);
  held->file = held->content + ".bin";
  return write_file(join(folder, held->file), bytes);
}

tl::expected<CapturedCall, CaptureFault> CallCapture::exported(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  const auto fault = [](const std::string& rule, const std::string& reason) {
    return tl::unexpected<CaptureFault>(CaptureFault{rule, reason});
  };
  if (graph_ == nullptr) return fault("capture", "no call was captured");
  noted_.clear();
  auto plan = export_graph(cu_, graph_, layout_, this);
  if (!plan) return tl::unexpected<CaptureFault>(plan.error());
  if (plan->kernel_count() == 0) return fault("no-kernel", "the call launches no kernel");
  CapturedCall call;
  call.plan = std::move(*plan);
  call.tensors = {layout_.base, layout_.reserve_bytes};
  call.scratch = {scratch_->base(), scratch_->used()};
  for (const auto& [address, range] : noted_) {
    CapturedCall::Held& held = call.held.emplace_back();
    held.range = range;
    if (const Result<void> read = read_held(folder, &held); !read) {
      return fault("capture", read.error().message);
    }
  }
  return call;
}

}  // namespace kernelpro

#endif
