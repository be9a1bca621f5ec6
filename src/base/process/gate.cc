// SPDX-License-Identifier: Apache-2.0
#include "base/process/gate.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.h"

namespace kernelpro {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kApart = 64;
constexpr double kSpin_s = 0.002, kYield_s = 0.02;  // then it sleeps between looks

tl::unexpected<Error> failed(const char* what) {
  return fail(ErrorKind::kEnvironment, std::string(what) + ": " + std::strerror(errno),
              "free memory, or raise the limit on open files (ulimit -n)");
}

std::atomic_ref<std::uint64_t> word(void* page, Sign sign) {
  char* at = static_cast<char*>(page) + kApart * static_cast<std::size_t>(sign);
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at));
}

}  // namespace

Result<Gate> Gate::make() {
  Fd fd(::memfd_create("kernelpro-gate", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ::ftruncate(fd.get(), kPageBytes) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failed("cannot make shared memory");
  }
  KP_ASSIGN(Gate gate, map(fd.get()));
  gate.fd_ = std::move(fd);
  return gate;
}

Result<Gate> Gate::map(int fd) {
  void* page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return failed("cannot map shared memory");
  Gate gate;
  gate.page_ = page;
  return gate;
}

Gate::Gate(Gate&& other) noexcept { *this = std::move(other); }

Gate& Gate::operator=(Gate&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(page_, other.page_);
  return *this;
}

Gate::~Gate() {
  if (page_ != nullptr) ::munmap(page_, kPageBytes);
}

std::uint64_t Gate::read(Sign sign) const {
  return word(page_, sign).load(std::memory_order_acquire);
}

void Gate::give(Sign sign, std::uint64_t turn) {
  word(page_, sign).store(turn, std::memory_order_release);
}

bool Gate::await(Sign sign, std::uint64_t turn, double timeout_s) const {
  const double start = real_clock().now_s();
  for (;;) {
    if (read(sign) == turn) return true;
    if (read(Sign::kOver) == turn) return read(sign) == turn;
    const double waited = real_clock().now_s() - start;
    if (waited > timeout_s) return false;
    if (waited < kSpin_s) continue;
    if (waited < kYield_s) {
      ::sched_yield();
      continue;
    }
    const timespec pause{0, 20'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace kernelpro
