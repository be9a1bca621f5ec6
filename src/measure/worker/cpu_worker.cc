// SPDX-License-Identifier: Apache-2.0
// Role `cpu`: maps one case's buffers between unmapped pages, gives up unneeded rights, loads the
// shared object and calls it on command. Messages: core/plan/cpu_protocol.h. Nothing that
// identifies the machine or its user stays in this process's memory: paths, names, numbers of
// users.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/channel.h"
#include "base/process/subprocess.h"
#include "core/plan/cpu_protocol.h"
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
  Fd object;                                  // none: calls do nothing
  CpuStatus* status = nullptr;
};

// The system gives every program its path and its user's numbers, on the stack.
void forget_origin(int argc, char** argv) {
  const auto rename = [](char* text) {
    constexpr std::string_view kName = "worker";
    const std::size_t length = std::strlen(text);
    std::memset(text, 0, length);
    kName.copy(text, length);
  };
  if (argc > 0) rename(argv[0]);
  char** end = environ;
  while (*end != nullptr) ++end;
  for (auto* entry = reinterpret_cast<ElfW(auxv_t)*>(end + 1); entry->a_type != AT_NULL; ++entry) {
    switch (entry->a_type) {
      case AT_EXECFN:
        rename(reinterpret_cast<char*>(entry->a_un.a_val));
        break;
      case AT_UID:
      case AT_EUID:
      case AT_GID:
      case AT_EGID:
        entry->a_un.a_val = kNobody;
        break;
      default:
        break;
    }
  }
}

// Whether rounding, precision, exceptions and the like are as the ABI has them for every call: a
// callee that changes them must restore them.
bool default_float_state() {
#if defined(__x86_64__)
  constexpr unsigned kControls = 0xffc0, kDefault = 0x1f80;  // without the sticky flags
  constexpr unsigned long long kDirection = 1u << 10;
  struct X87 {
    std::uint16_t control, unused1, status, unused2, tags, unused3;
    std::uint32_t rest[4];
  } x87;
  asm volatile("fnstenv %0\n\tfldenv %0" : "=m"(x87));
  return (__builtin_ia32_stmxcsr() & kControls) == kDefault && x87.control == 0x37f &&
         x87.tags == 0xffff && (__builtin_ia32_readeflags_u64() & kDirection) == 0;
#elif defined(__aarch64__)
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control == 0;
#endif
}

void require_default_float_state(CpuStatus* status) {
  if (default_float_state()) return;
  status->float_state = 1;
  ::_exit(kCpuFloatStateExit);
}

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
  if (frame.bytes.size() < sizeof(CpuSetup) || frame.fds.size() < 3 || frame.fds.size() > 4) {
    return "a short set-up frame";
  }
  std::memcpy(&mapped->setup, frame.bytes.data(), sizeof(CpuSetup));
  const CpuSetup& setup = mapped->setup;
  if (setup.tensors < 1 || setup.sets < 1) return "an empty set-up frame";
  const std::size_t tensors = static_cast<std::size_t>(setup.tensors);
  const std::size_t sets = static_cast<std::size_t>(setup.sets);
  const std::size_t count = tensors * sets + (setup.has_workspace != 0 ? 1 : 0);
  const std::size_t slots_end = sizeof(CpuSetup) + count * sizeof(CpuSlot);
  if (frame.bytes.size() != slots_end) return "a short set-up frame";
  mapped->slots.resize(count);
  std::memcpy(mapped->slots.data(), frame.bytes.data() + sizeof(CpuSetup), count * sizeof(CpuSlot));
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
  if (!mapped.object.valid()) return [](const void*) {};
  void* library = ::dlopen(kCpuObjectName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *problem = std::string("the shared object cannot be loaded: ") + ::dlerror();
    return nullptr;
  }
  require_default_float_state(mapped.status);  // constructors have run
  void* symbol = ::dlsym(library, kCpuEntry);
  if (symbol == nullptr) *problem = std::string("the shared object does not define ") + kCpuEntry;
  return reinterpret_cast<Entry>(symbol);
}

void run_calls(Entry entry, const Mapped& mapped, const CpuCall& order) {
  for (std::int32_t i = 0; i < order.repeats; ++i) {
    for (std::int32_t set = 0; set < order.sets; ++set) {
      entry(mapped.arguments[static_cast<std::size_t>(order.first + set)].data());
      require_default_float_state(mapped.status);
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
    const ssize_t n = ::write(kChannelFd, whole.data() + done, whole.size() - done);
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
        ::read(kChannelFd, reinterpret_cast<char*>(frame) + done, sizeof *frame - done);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
    if (done >= sizeof frame->length && frame->length != sizeof frame->order) return true;
  }
  return true;
}

}  // namespace

int cpu_worker(int argc, char** argv) {
  forget_origin(argc, argv);
  // Otherwise the C library asks about the descriptor when a candidate first prints.
  static char printed[4096];
  std::setvbuf(stdout, printed, _IOFBF, sizeof printed);
  Channel channel{Fd(kChannelFd)};
  Frame frame;
  if (channel.receive(&frame, -1) != ChannelState::kOk) return 0;
  Mapped mapped;
  std::string problem = read_setup(frame, &mapped);
  if (frame.fds.size() == 4) mapped.object = std::move(frame.fds[3]);
  frame.fds.clear();  // no other mapping of the files is possible from here on
  if (problem.empty()) {
    problem = enter_cpu_sandbox(mapped.status, mapped.object.get(), mapped.setup.address_space);
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
