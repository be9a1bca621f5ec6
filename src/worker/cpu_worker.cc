// SPDX-License-Identifier: Apache-2.0
// Role `cpu`: maps one case's buffers between unmapped pages, gives up what a kernel has no use
// for, loads the shared object and calls it when told to. core/cpu_protocol.h has the messages.
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/subprocess.h"
#include "core/cpu_protocol.h"
#include "worker/cpu_sandbox.h"
#include "worker/roles.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPage = 4096;

struct Mapped {
  CpuSetup setup;
  std::vector<CpuSlot> slots;
  std::vector<void*> addresses;
  std::string object;
  CpuStatus* status = nullptr;
};

std::int64_t now_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// The tensor's pages with an unmapped page on either side.
void* map_slot(const CpuSlot& slot, int inputs, int outputs) {
  if (slot.bytes == 0) return nullptr;
  const std::size_t reserve = static_cast<std::size_t>(slot.mapped + 2 * kPage);
  // Room to begin on 2 MiB, so that the kernel can use large pages where it has them.
  constexpr std::size_t kLarge = 2u << 20;
  char* base = static_cast<char*>(::mmap(nullptr, reserve + kLarge, PROT_NONE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (base == MAP_FAILED) return nullptr;
  const std::uintptr_t lowest = reinterpret_cast<std::uintptr_t>(base) + kPage;
  char* pages = base + kPage + ((kLarge - lowest % kLarge) % kLarge);
  const bool writable = slot.writable != 0;
  void* at = ::mmap(pages, static_cast<std::size_t>(slot.mapped),
                    writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_FIXED,
                    writable ? outputs : inputs, slot.offset);
  if (at == MAP_FAILED) return nullptr;
  ::madvise(at, static_cast<std::size_t>(slot.mapped), MADV_HUGEPAGE);
  return pages + slot.first;
}

// Reads the set-up frame. Returns what is wrong with it, or "".
std::string read_setup(const Frame& frame, Mapped* mapped) {
  if (frame.bytes.size() < sizeof(CpuSetup) || frame.fds.size() != 3) return "a short set-up frame";
  std::memcpy(&mapped->setup, frame.bytes.data(), sizeof(CpuSetup));
  const std::size_t count =
      static_cast<std::size_t>(mapped->setup.tensors + mapped->setup.has_workspace);
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
  if (mapped->setup.has_workspace == 0) mapped->addresses.push_back(nullptr);
  return "";
}

using Entry = void (*)(const void* arguments);

void call(Entry entry, const Mapped& mapped) { entry(mapped.addresses.data()); }

Entry load(const Mapped& mapped, std::string* problem) {
  mapped.status->phase = CpuStatus::kLoading;
  void* library = ::dlopen(mapped.object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *problem = std::string("the shared object cannot be loaded: ") + ::dlerror();
    return nullptr;
  }
  void* symbol = ::dlsym(library, kCpuEntry);
  if (symbol == nullptr) *problem = std::string("the shared object does not define ") + kCpuEntry;
  return reinterpret_cast<Entry>(symbol);
}

CpuDone run_calls(Entry entry, const Mapped& mapped, const CpuCall& order) {
  for (int i = 0; i < order.warmup; ++i) call(entry, mapped);
  CpuDone done;
  const std::int64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  const std::int64_t start = now_ns(CLOCK_MONOTONIC);
  for (int i = 0; i < order.calls; ++i) call(entry, mapped);
  done.elapsed_ns = now_ns(CLOCK_MONOTONIC) - start;
  done.cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  return done;
}

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

bool report(Channel& channel, const std::string& problem, const Mapped& mapped) {
  CpuReady ready;
  ready.ok = problem.empty() ? 1 : 0;
  problem.copy(ready.problem, sizeof ready.problem - 1);
  std::string bytes = bytes_of(ready);
  for (const void* address : mapped.addresses) bytes += bytes_of(address);
  return channel.send(bytes) == ChannelState::kOk && ready.ok != 0;
}

}  // namespace

int cpu_worker(int, char**) {
  Channel channel{Fd(Child::kChannelFd)};
  Frame frame;
  if (channel.receive(&frame, -1) != ChannelState::kOk) return 0;
  Mapped mapped;
  std::string problem = read_setup(frame, &mapped);
  frame.fds.clear();  // the files cannot be mapped another way from here on
  if (problem.empty()) problem = enter_cpu_sandbox(mapped.status, mapped.setup.address_space);
  Entry entry = nullptr;
  if (problem.empty()) entry = load(mapped, &problem);
  if (!report(channel, problem, mapped)) return 1;
  for (;;) {
    mapped.status->phase = CpuStatus::kIdle;
    if (channel.receive(&frame, -1) != ChannelState::kOk) return 0;
    CpuCall order;
    if (frame.bytes.size() != sizeof order) return 1;
    std::memcpy(&order, frame.bytes.data(), sizeof order);
    mapped.status->phase = CpuStatus::kCalling;
    const CpuDone done = run_calls(entry, mapped, order);
    if (channel.send(bytes_of(done)) != ChannelState::kOk) return 0;
  }
}

}  // namespace kernelpro
