// SPDX-License-Identifier: Apache-2.0
// Role `cpu`: maps one case's buffers between unmapped pages, gives up unneeded rights, loads the
// shared object and calls it on command. Messages: core/cpu_protocol.h.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/process/channel.h"
#include "base/process/subprocess.h"
#include "core/cpu_protocol.h"
#include "measure/worker/cpu_sandbox.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPage = 4096;

struct Mapped {
  CpuSetup setup;
  std::vector<CpuSlot> slots;
  std::vector<void*> addresses;               // of the slots, then of the workspace
  std::vector<std::vector<void*>> arguments;  // by set: the contents of the kernel's Args
  std::string object;
  CpuStatus* status = nullptr;
};

// The tensor's pages with an unmapped page on either side.
void* map_slot(const CpuSlot& slot, int inputs, int outputs) {
  if (slot.bytes == 0) return nullptr;
  const std::size_t reserve = static_cast<std::size_t>(slot.mapped + 2 * kPage);
  // Large ones start on 2 MiB, so that the OS can use large pages if it has them.
  constexpr std::size_t kLarge = 2u << 20;
  const std::size_t unit = slot.mapped >= static_cast<std::int64_t>(kLarge) ? kLarge : kPage;
  char* base = static_cast<char*>(::mmap(nullptr, reserve + unit, PROT_NONE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (base == MAP_FAILED) return nullptr;
  const std::uintptr_t lowest = reinterpret_cast<std::uintptr_t>(base) + kPage;
  char* pages = base + kPage + ((unit - lowest % unit) % unit);
  const bool writable = slot.writable != 0;
  // Populated: the first call on a set is timed like any other.
  void* at = ::mmap(
      pages, static_cast<std::size_t>(slot.mapped), writable ? PROT_READ | PROT_WRITE : PROT_READ,
      MAP_SHARED | MAP_FIXED | MAP_POPULATE, writable ? outputs : inputs, slot.offset);
  if (at == MAP_FAILED) return nullptr;
  ::madvise(at, static_cast<std::size_t>(slot.mapped), MADV_HUGEPAGE);
  return pages + slot.first;
}

// Reads the set-up frame. Returns the error, or "".
std::string read_setup(const Frame& frame, Mapped* mapped) {
  if (frame.bytes.size() < sizeof(CpuSetup) || frame.fds.size() != 3) return "a short set-up frame";
  std::memcpy(&mapped->setup, frame.bytes.data(), sizeof(CpuSetup));
  const CpuSetup& setup = mapped->setup;
  if (setup.tensors < 1 || setup.sets < 1) return "an empty set-up frame";
  const std::size_t tensors = static_cast<std::size_t>(setup.tensors);
  const std::size_t sets = static_cast<std::size_t>(setup.sets);
  const std::size_t count = tensors * sets + (setup.has_workspace != 0 ? 1 : 0);
  const std::size_t slots_end = sizeof(CpuSetup) + count * sizeof(CpuSlot);
  if (frame.bytes.size() < slots_end) return "a short set-up frame";
  mapped->slots.resize(count);
  std::memcpy(mapped->slots.data(), frame.bytes.data() + sizeof(CpuSetup), count * sizeof(CpuSlot));
  mapped->object = frame.bytes.substr(slots_end);
  void* status = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, frame.fds[0].get(), 0);
  if (status == MAP_FAILED) return "the status page cannot be mapped";
  mapped->status = static_cast<CpuStatus*>(status);
  for (const CpuSlot& slot : mapped->slots) {
    void* at = map_slot(slot, frame.fds[1].get(), frame.fds[2].get());
    if (at == nullptr && slot.bytes > 0) return "a tensor cannot be mapped: not enough memory";
    mapped->addresses.push_back(at);
  }
  if (setup.has_workspace == 0) mapped->addresses.push_back(nullptr);
  for (std::size_t set = 0; set < sets; ++set) {
    const auto first = mapped->addresses.begin() + static_cast<std::ptrdiff_t>(set * tensors);
    mapped->arguments.emplace_back(first, first + static_cast<std::ptrdiff_t>(tensors));
    mapped->arguments.back().push_back(mapped->addresses.back());
  }
  return "";
}

using Entry = void (*)(const void* arguments);

Entry load(const Mapped& mapped, std::string* problem) {
  mapped.status->phase = CpuStatus::kLoading;
  if (mapped.object.empty()) return [](const void*) {};
  void* library = ::dlopen(mapped.object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *problem = std::string("the shared object cannot be loaded: ") + ::dlerror();
    return nullptr;
  }
  void* symbol = ::dlsym(library, kCpuEntry);
  if (symbol == nullptr) *problem = std::string("the shared object does not define ") + kCpuEntry;
  return reinterpret_cast<Entry>(symbol);
}

void run_calls(Entry entry, const Mapped& mapped, const CpuCall& order) {
  for (std::int32_t i = 0; i < order.repeats; ++i) {
    for (std::int32_t set = 0; set < order.sets; ++set) {
      entry(mapped.arguments[static_cast<std::size_t>(order.first + set)].data());
    }
  }
}

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// Frames of a Channel by plain reads and writes: the sandbox refuses messages, which can carry
// descriptors.
bool write_frame(const std::string& bytes) {
  const std::string whole = bytes_of(static_cast<std::uint32_t>(bytes.size())) + bytes;
  for (std::size_t done = 0; done < whole.size();) {
    const ssize_t n = ::write(Child::kChannelFd, whole.data() + done, whole.size() - done);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

bool report(const std::string& problem, const std::vector<void*>& addresses) {
  CpuReady ready;
  ready.ok = problem.empty() ? 1 : 0;
  problem.copy(ready.problem, sizeof ready.problem - 1);
  std::string bytes = bytes_of(ready);
  for (const void* address : addresses) bytes += bytes_of(address);
  return write_frame(bytes) && ready.ok != 0;
}

// An order as it arrives, read at once: an order takes no more calls of the system than it must.
struct OrderFrame {
  std::uint32_t length = 0;
  CpuCall order;
};
static_assert(sizeof(OrderFrame) == sizeof(std::uint32_t) + sizeof(CpuCall));

// False: the supervisor has gone. Stops at a frame of another length.
bool read_order(OrderFrame* frame) {
  for (std::size_t done = 0; done < sizeof *frame;) {
    const ssize_t n =
        ::read(Child::kChannelFd, reinterpret_cast<char*>(frame) + done, sizeof *frame - done);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
    if (done >= sizeof frame->length && frame->length != sizeof frame->order) return true;
  }
  return true;
}

}  // namespace

int cpu_worker(int, char**) {
  // Otherwise the C library asks about the descriptor when a candidate first prints.
  static char printed[4096];
  std::setvbuf(stdout, printed, _IOFBF, sizeof printed);
  Channel channel{Fd(Child::kChannelFd)};
  Frame frame;
  if (channel.receive(&frame, -1) != ChannelState::kOk) return 0;
  Mapped mapped;
  std::string problem = read_setup(frame, &mapped);
  frame.fds.clear();  // no other mapping of the files is possible from here on
  if (problem.empty()) {
    problem = enter_cpu_sandbox(mapped.status, mapped.object, mapped.setup.address_space);
  }
  if (!report(problem, mapped.addresses)) return 1;
  Entry entry = load(mapped, &problem);
  if (!report(problem, {})) return 1;
  for (;;) {
    mapped.status->phase = CpuStatus::kIdle;
    OrderFrame ordered;
    if (!read_order(&ordered)) return 0;
    const CpuCall& order = ordered.order;
    if (ordered.length != sizeof order) return 1;
    if (order.first < 0 || order.sets < 0 || order.sets > mapped.setup.sets - order.first) return 1;
    mapped.status->phase = CpuStatus::kCalling;
    run_calls(entry, mapped, order);
    if (!write_frame(bytes_of(CpuDone{}))) return 0;
  }
}

}  // namespace kernelpro
