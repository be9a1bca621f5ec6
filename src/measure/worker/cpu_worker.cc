// SPDX-License-Identifier: Apache-2.0
// Role `cpu`: maps one case's buffers between unmapped pages, gives up unneeded rights, loads the
// shared object and calls it on command. Messages: core/plan/cpu_protocol.h. Nothing that
// identifies the machine or its user stays in this process's memory: paths, names, numbers of
// users.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
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
#include "measure/worker/cpu_gate.h"
#include "measure/worker/cpu_sandbox.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPage = 4096;

// The pages of the system's clock carry the kernel's release in a note, which is no part of what
// they do: it becomes zeros, in this process's own copy of the page.
void forget_release(const char* clock) {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(clock);
  const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(clock + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type != PT_NOTE) continue;
    const std::uintptr_t note = reinterpret_cast<std::uintptr_t>(clock) + parts[i].p_offset;
    void* first = reinterpret_cast<void*>(note / kPage * kPage);
    const std::size_t bytes = note % kPage + parts[i].p_filesz;
    if (::mprotect(first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) continue;
    std::memset(reinterpret_cast<void*>(note), 0, parts[i].p_filesz);
    ::mprotect(first, bytes, PROT_READ | PROT_EXEC);
  }
}

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
      case AT_SYSINFO_EHDR:
        forget_release(reinterpret_cast<const char*>(entry->a_un.a_val));
        entry->a_type = AT_IGNORE;  // the C library has it
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

// Room for all tensors, nothing mapped: so that one range of addresses has them.
class Room {
 public:
  static constexpr std::size_t kAround = 256 << 10;  // of its pages on either side, never used
  static constexpr std::size_t kLarge = 2u << 20;

  bool reserve(const std::vector<CpuSlot>& slots) {
    std::size_t bytes = 2 * kAround + kPage;
    for (const CpuSlot& slot : slots) bytes += needed(slot);
    void* at =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return false;
    begin_ = reinterpret_cast<std::uintptr_t>(at);
    end_ = begin_ + bytes;
    next_ = begin_ + kAround;
    return true;
  }
  // The status page, which must not go away either: the gate and handlers write to it.
  void* map_status(int file) {
    void* at = ::mmap(reinterpret_cast<void*>(next_), kPage, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, file, 0);
    next_ += kPage;
    return at == MAP_FAILED ? nullptr : at;
  }
  // The tensor's pages with an unmapped page on either side.
  void* map(const CpuSlot& slot, int inputs, int outputs) {
    if (slot.bytes == 0) return nullptr;
    const std::uintptr_t lowest = next_ + kPage;
    const std::uintptr_t pages = lowest + (unit(slot) - lowest % unit(slot)) % unit(slot);
    next_ += needed(slot);
    const bool writable = slot.writable != 0;
    // Populated: the first call on a set is timed like any other.
    void* at =
        ::mmap(reinterpret_cast<void*>(pages), static_cast<std::size_t>(slot.mapped),
               writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
               writable ? outputs : inputs, slot.offset);
    if (at == MAP_FAILED) return nullptr;
    ::madvise(at, static_cast<std::size_t>(slot.mapped), MADV_HUGEPAGE);
    return static_cast<char*>(at) + slot.first;
  }
  PageRange range() const { return {begin_ + kAround / 2, end_ - kAround / 2}; }

 private:
  // Large ones start on 2 MiB, so that the OS can use large pages if it has them.
  static std::size_t unit(const CpuSlot& slot) {
    return slot.mapped >= static_cast<std::int64_t>(kLarge) ? kLarge : kPage;
  }
  static std::size_t needed(const CpuSlot& slot) {
    if (slot.bytes == 0) return 0;
    return static_cast<std::size_t>(slot.mapped) + 2 * kPage + unit(slot);
  }
  std::uintptr_t begin_ = 0, end_ = 0, next_ = 0;
};

struct Mapped {
  CpuSetup setup;
  std::vector<CpuSlot> slots;
  Room room;
  std::vector<void*> addresses;  // of the slots, then of the workspace
  Orderly orderly;
  Fd object;  // none: calls do nothing
  CpuStatus* status = nullptr;
};

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
  if (!mapped->room.reserve(mapped->slots)) return "no room for the tensors: not enough memory";
  mapped->status = static_cast<CpuStatus*>(mapped->room.map_status(frame.fds[0].get()));
  if (mapped->status == nullptr) return "the status page cannot be mapped";
  for (const CpuSlot& slot : mapped->slots) {
    void* at = mapped->room.map(slot, frame.fds[1].get(), frame.fds[2].get());
    if (at == nullptr && slot.bytes > 0) return "a tensor cannot be mapped: not enough memory";
    mapped->addresses.push_back(at);
  }
  if (setup.has_workspace == 0) mapped->addresses.push_back(nullptr);
  for (std::size_t set = 0; set < sets; ++set) {
    const auto first = mapped->addresses.begin() + static_cast<std::ptrdiff_t>(set * tensors);
    std::vector<std::vector<void*>>& arguments = mapped->orderly.arguments;
    arguments.emplace_back(first, first + static_cast<std::ptrdiff_t>(tensors));
    arguments.back().push_back(mapped->addresses.back());
  }
  mapped->orderly.sets = setup.sets;
  return "";
}

using Entry = void (*)(const void* arguments);

Entry load(const Mapped& mapped, std::string* problem) {
  if (!mapped.object.valid()) return [](const void*) {};
  void* library = ::dlopen(kCpuObjectName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *problem = std::string("the shared object cannot be loaded: ") + ::dlerror();
    return nullptr;
  }
  void* symbol = ::dlsym(library, kCpuEntry);
  if (symbol == nullptr) *problem = std::string("the shared object does not define ") + kCpuEntry;
  return reinterpret_cast<Entry>(symbol);
}

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string frame_of(const std::string& bytes) {
  return bytes_of(static_cast<std::uint32_t>(bytes.size())) + bytes;
}

std::string report_of(const std::string& problem) {
  CpuReady ready;
  ready.ok = problem.empty() ? 1 : 0;
  problem.copy(ready.problem, sizeof ready.problem - 1);
  return bytes_of(ready);
}

// By a plain write: the sandbox refuses messages, which can carry descriptors.
bool write_frame(int file, const std::string& bytes) {
  const std::string whole = frame_of(bytes);
  for (std::size_t done = 0; done < whole.size();) {
    const ssize_t n = ::write(file, whole.data() + done, whole.size() - done);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

// Before any candidate code runs, by a descriptor that is closed afterwards.
bool report_ready(const Fd& early, const std::string& problem,
                  const std::vector<void*>& addresses) {
  std::string bytes = report_of(problem);
  for (const void* address : addresses) bytes += bytes_of(address);
  return write_frame(early.get(), bytes) && problem.empty();
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
  static Mapped mapped;  // for whatever the stack holds
  std::string problem = read_setup(frame, &mapped);
  if (frame.fds.size() == 4) mapped.object = std::move(frame.fds[3]);
  frame.fds.clear();  // no other mapping of the files is possible from here on
  Fd early(::fcntl(kChannelFd, F_DUPFD_CLOEXEC, kChannelFd + 1));
  if (problem.empty()) {
    problem = enter_cpu_sandbox(mapped.status, mapped.object.get(), mapped.setup.address_space,
                                {mapped.room.range()});
  }
  if (!report_ready(early, problem, mapped.addresses)) ::_exit(1);
  early.reset();
  mapped.orderly.entry = load(mapped, &problem);
  static std::string loaded;
  loaded = frame_of(report_of(problem));
  answer_and_serve(loaded.data(), loaded.size(), &mapped.orderly);
}

}  // namespace kernelpro
