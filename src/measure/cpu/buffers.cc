// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/buffers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/task/inputs.h"
#include "core/task/key.h"

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
  slot.first = spec.at_start ? 0 : slot.mapped - aligned;
  // Large buffers start where the OS could use large pages.
  *file_end = round_up(*file_end, slot.mapped >= kLarge ? kLarge : kPage);
  slot.offset = *file_end;
  *file_end += slot.mapped;
  return slot;
}

// What belongs around a slot's tensor: as many bytes as the slot's pages have besides it. As
// floating-point numbers they are NaNs for a third of the secrets, and ordinary for another.
struct Around {
  Around(const CpuSlot& slot, std::uint64_t secret)
      : before(static_cast<std::size_t>(slot.first)),
        behind(static_cast<std::size_t>(slot.mapped - slot.first - slot.bytes)) {
    const std::size_t words = (before + behind + 7) / 8;
    KP_ASSERT(words <= std::size(contents));
    const std::uint64_t keep = secret % 3 == 2 ? ~0ull : 0x803f803f803f803full;
    // NaNs as fp32, and in both halves as bf16; or numbers from 128 on.
    const std::uint64_t set = secret % 3 == 2   ? 0
                              : secret % 3 == 1 ? 0x4300430043004300ull
                                                : 0x7fc07fc07fc07fc0ull;
    for (std::size_t i = 0; i < words; ++i) contents[i] = (kp::mix64(secret + i) & keep) | set;
  }
  const char* bytes() const { return reinterpret_cast<const char*>(contents); }

  std::size_t before, behind;
  std::uint64_t contents[(kPage + kCpuSlotAlign) / 8 + 1];
};

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
  buffers.around_.resize(buffers.slots_.size());
  buffers.surround(0, buffers.slots_.size());
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
  around_ = std::move(other.around_);
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
  return pages(slot) + slot.first;
}

CpuBuffers::Place CpuBuffers::place_of(std::size_t i) const {
  const CpuSlot& slot = slots_[i];
  const File& file = slot.writable != 0 ? outputs_ : inputs_;
  return {file.fd.get(), file.bytes, slot.offset + slot.first};
}

void CpuBuffers::surround(std::size_t first, std::size_t count) const {
  for (std::size_t i = first; i < first + count; ++i) {
    const CpuSlot& slot = slots_[i];
    if (slot.bytes == 0) continue;
    around_[i] = fresh_secret();
    const Around around(slot, around_[i]);
    std::memcpy(pages(slot), around.bytes(), around.before);
    std::memcpy(pages(slot) + slot.first + slot.bytes, around.bytes() + around.before,
                around.behind);
  }
}

std::optional<CpuBuffers::Broken> CpuBuffers::broken_canary() const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const CpuSlot& slot = slots_[i];
    if (slot.writable == 0 || slot.bytes == 0) continue;
    const Around around(slot, around_[i]);
    const char* const behind = pages(slot) + slot.first + slot.bytes;
    const char* const wanted = around.bytes() + around.before;
    if (std::memcmp(behind, wanted, around.behind) != 0) {
      const char* const at = std::mismatch(behind, behind + around.behind, wanted).first;
      return Broken{i, slot.bytes + (at - behind)};
    }
    if (std::memcmp(pages(slot), around.bytes(), around.before) == 0) continue;
    for (std::size_t b = around.before; b-- > 0;) {
      if (pages(slot)[b] != around.bytes()[b]) {
        return Broken{i, static_cast<std::int64_t>(b) - slot.first};
      }
    }
  }
  return std::nullopt;
}

}  // namespace kernelpro
