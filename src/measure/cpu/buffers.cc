// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/buffers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kLarge = 2 << 20;

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Places one buffer at the next free pages of its file.
CpuSlot place(const BufferSpec& spec, std::int64_t* file_end) {
  CpuSlot slot;
  slot.bytes = spec.bytes;
  slot.writable = spec.writable ? 1 : 0;
  if (spec.bytes == 0) return slot;
  const std::int64_t aligned = round_up(spec.bytes, kCpuSlotAlign);
  slot.mapped = round_up(aligned, kPage);
  slot.first = slot.mapped - aligned;
  // Large buffers start where the OS could use large pages.
  *file_end = round_up(*file_end, slot.mapped >= kLarge ? kLarge : kPage);
  slot.offset = *file_end;
  *file_end += slot.mapped;
  return slot;
}

}  // namespace

Result<CpuBuffers::File> CpuBuffers::make_file(std::int64_t bytes) {
  const auto failed = [&](const char* what) {
    return fail(ErrorKind::kEnvironment,
                std::string(what) + " of " + human_bytes(static_cast<double>(bytes)) +
                    " for tensors: " + std::strerror(errno),
                "free some memory, or choose a smaller case");
  };
  File file;
  file.bytes = std::max(bytes, kPage);
  file.fd = Fd(::memfd_create("kernelpro", MFD_CLOEXEC));
  if (!file.fd.valid()) return failed("cannot create shared memory");
  if (::ftruncate(file.fd.get(), file.bytes) != 0) return failed("cannot size shared memory");
  void* base = ::mmap(nullptr, static_cast<std::size_t>(file.bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED, file.fd.get(), 0);
  if (base == MAP_FAILED) return failed("cannot map shared memory");
  ::madvise(base, static_cast<std::size_t>(file.bytes), MADV_HUGEPAGE);
  file.base = static_cast<char*>(base);
  return file;
}

Result<CpuBuffers> CpuBuffers::make(const std::vector<BufferSpec>& specs) {
  CpuBuffers buffers;
  std::int64_t inputs_end = 0, outputs_end = 0;
  for (const BufferSpec& spec : specs) {
    buffers.slots_.push_back(place(spec, spec.writable ? &outputs_end : &inputs_end));
  }
  KP_ASSIGN(buffers.inputs_, make_file(inputs_end));
  KP_ASSIGN(buffers.outputs_, make_file(outputs_end));
  // A descriptor opened for reading cannot be mapped writable or made writable.
  const std::string path = "/proc/self/fd/" + std::to_string(buffers.inputs_.fd.get());
  buffers.inputs_read_only_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!buffers.inputs_read_only_.valid()) {
    return fail(ErrorKind::kEnvironment,
                "cannot open " + path + " for reading: " + std::strerror(errno),
                "mount /proc on this machine");
  }
  buffers.set_canaries();
  return buffers;
}

CpuBuffers::CpuBuffers(CpuBuffers&& other) noexcept { *this = std::move(other); }

CpuBuffers& CpuBuffers::operator=(CpuBuffers&& other) noexcept {
  if (this == &other) return *this;
  release();
  inputs_ = std::exchange(other.inputs_, File{});
  outputs_ = std::exchange(other.outputs_, File{});
  inputs_read_only_ = std::move(other.inputs_read_only_);
  slots_ = std::move(other.slots_);
  return *this;
}

CpuBuffers::~CpuBuffers() { release(); }

void CpuBuffers::release() {
  for (File* file : {&inputs_, &outputs_}) {
    if (file->base != nullptr) ::munmap(file->base, static_cast<std::size_t>(file->bytes));
    *file = File{};
  }
}

char* CpuBuffers::data(std::size_t i) const {
  const CpuSlot& slot = slots_[i];
  if (slot.bytes == 0) return nullptr;
  return (slot.writable != 0 ? outputs_ : inputs_).base + slot.offset + slot.first;
}

CpuBuffers::Place CpuBuffers::place_of(std::size_t i) const {
  const CpuSlot& slot = slots_[i];
  const File& file = slot.writable != 0 ? outputs_ : inputs_;
  return {file.fd.get(), file.bytes, slot.offset + slot.first};
}

void CpuBuffers::set_canaries() {
  for (const CpuSlot& slot : slots_) {
    if (slot.writable == 0 || slot.bytes == 0) continue;
    char* pages = outputs_.base + slot.offset;
    std::memset(pages, kCpuCanary, static_cast<std::size_t>(slot.first));
    const std::int64_t end = slot.first + slot.bytes;
    std::memset(pages + end, kCpuCanary, static_cast<std::size_t>(slot.mapped - end));
  }
}

std::optional<CpuBuffers::Broken> CpuBuffers::broken_canary() const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const CpuSlot& slot = slots_[i];
    if (slot.writable == 0 || slot.bytes == 0) continue;
    const auto* pages = reinterpret_cast<const unsigned char*>(outputs_.base + slot.offset);
    for (std::int64_t b = slot.first + slot.bytes; b < slot.mapped; ++b) {
      if (pages[b] != kCpuCanary) return Broken{i, b - slot.first};
    }
    for (std::int64_t b = slot.first - 1; b >= 0; --b) {
      if (pages[b] != kCpuCanary) return Broken{i, b - slot.first};
    }
  }
  return std::nullopt;
}

}  // namespace kernelpro
