// SPDX-License-Identifier: Apache-2.0
#include "base/process/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>

namespace kernelpro {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "system-call filters are written for x86-64 and aarch64"
#endif

constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kReturn = BPF_RET | BPF_K;

}  // namespace

SeccompFilter::SeccompFilter() {
  add(kLoad, offsetof(seccomp_data, arch));
  jump(BPF_JEQ, kArchitecture, 1, 0);
  add(kReturn, SECCOMP_RET_KILL_PROCESS);
  add(kLoad, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  jump(BPF_JSET, 0x40000000u, 0, 1);  // the x32 numbers
  add(kReturn, SECCOMP_RET_KILL_PROCESS);
#endif
}

std::uint32_t SeccompFilter::allow() { return SECCOMP_RET_ALLOW; }
std::uint32_t SeccompFilter::refuse(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}
std::uint32_t SeccompFilter::trap() { return SECCOMP_RET_TRAP; }

void SeccompFilter::jump(std::uint16_t test, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
  code_.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), yes, no, k});
}

void SeccompFilter::when(long call, std::uint32_t verdict) {
  if (call < 0) return;
  jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 1);
  add(kReturn, verdict);
}

void SeccompFilter::when(std::initializer_list<long> calls, std::uint32_t verdict) {
  for (const long call : calls) when(call, verdict);
}

void SeccompFilter::on_argument(long call, int argument, std::uint16_t test, std::uint32_t k,
                                bool if_true, std::uint32_t verdict, std::uint32_t half) {
  if (call < 0) return;
  jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 4);
  add(kLoad, static_cast<std::uint32_t>(offsetof(seccomp_data, args)) +
                 8 * static_cast<std::uint32_t>(argument) + 4 * half);
  jump(test, k, if_true ? 0 : 1, if_true ? 1 : 0);
  add(kReturn, verdict);
  add(kLoad, offsetof(seccomp_data, nr));
}

void SeccompFilter::when_set(long call, int argument, std::uint32_t verdict) {
  on_argument(call, argument, BPF_JEQ, 0, false, verdict, 0);
  on_argument(call, argument, BPF_JEQ, 0, false, verdict, 1);
}
void SeccompFilter::when_any(long call, int argument, std::uint32_t bits, std::uint32_t verdict) {
  on_argument(call, argument, BPF_JSET, bits, true, verdict);
}
void SeccompFilter::when_none(long call, int argument, std::uint32_t bits, std::uint32_t verdict) {
  on_argument(call, argument, BPF_JSET, bits, false, verdict);
}
void SeccompFilter::when_equal(long call, int argument, std::uint32_t value,
                               std::uint32_t verdict) {
  on_argument(call, argument, BPF_JEQ, value, true, verdict);
}
void SeccompFilter::when_not(long call, int argument, std::uint32_t value, std::uint32_t verdict) {
  on_argument(call, argument, BPF_JEQ, value, false, verdict);
}

void SeccompFilter::when_masked(long call, int argument, std::uint32_t mask, std::uint32_t value,
                                std::uint32_t verdict) {
  if (call < 0) return;
  jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 5);
  add(kLoad, static_cast<std::uint32_t>(offsetof(seccomp_data, args)) +
                 8 * static_cast<std::uint32_t>(argument));
  add(BPF_ALU | BPF_AND | BPF_K, mask);
  jump(BPF_JEQ, value, 0, 1);
  add(kReturn, verdict);
  add(kLoad, offsetof(seccomp_data, nr));
}

namespace {

constexpr std::uint32_t of_argument(int argument, int half) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) +
         8 * static_cast<std::uint32_t>(argument) + 4 * static_cast<std::uint32_t>(half);
}

// Addresses in units that fit the filter's 32-bit words: user space has 48 bits at most.
constexpr int kUnitBits = 16;
std::uint32_t unit_of(std::uintptr_t address) {
  return static_cast<std::uint32_t>(address >> kUnitBits);
}

}  // namespace

// An argument in units, into the accumulator and M[scratch]. Too large a one jumps `to_far`
// instructions beyond the end of this.
void SeccompFilter::load_units(int argument, int scratch, std::uint8_t to_far) {
  const auto at = static_cast<std::uint32_t>(scratch);
  add(kLoad, of_argument(argument, 1));
  jump(BPF_JSET, 0xffff0000u, static_cast<std::uint8_t>(6 + to_far), 0);
  add(BPF_ALU | BPF_LSH | BPF_K, 32 - kUnitBits);
  add(BPF_ST, at);
  add(kLoad, of_argument(argument, 0));
  add(BPF_ALU | BPF_RSH | BPF_K, kUnitBits);
  add(BPF_LDX | BPF_MEM, at);
  add(BPF_ALU | BPF_OR | BPF_X, 0);
  // Eight in all, of which six follow the jump.
}

void SeccompFilter::when_touching(long call, const Pages& pages, const PageRange& range,
                                  std::uint32_t verdict) {
  if (call < 0) return;
  constexpr std::uint8_t kUnits = 8;
  // From the address on: its units, a store and a comparison, the length's, five for the sum, and
  // the verdict.
  constexpr std::uint8_t kSum = 5, kRest = kUnits + 2 + kUnits + kSum + 1;
  const std::uint8_t flags = pages.bits == 0 ? 0 : 2;
  jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, static_cast<std::uint8_t>(kRest + flags + 1));
  if (pages.bits != 0) {
    add(kLoad, of_argument(pages.flags, 0));
    jump(BPF_JSET, pages.bits, 0, kRest);
  }
  load_units(pages.address, 0, kUnits + 2 + kSum + 1);  // no address at all: the kernel refuses it
  add(BPF_ST, 0);
  jump(BPF_JGT, unit_of(range.end - 1), kUnits + kSum + 1, 0);
  load_units(pages.length, 1, kSum);  // larger than any range
  // Half of all addresses reaches the range from anywhere, and the sum would not fit 32 bits.
  jump(BPF_JGE, 1u << 31, kSum - 1, 0);
  add(BPF_LDX | BPF_MEM, 0);
  add(BPF_ALU | BPF_ADD | BPF_X, 0);
  add(BPF_ALU | BPF_ADD | BPF_K, 1);
  jump(BPF_JGE, unit_of(range.begin), 0, 1);
  add(kReturn, verdict);
  add(kLoad, offsetof(seccomp_data, nr));
}

void SeccompFilter::when_both(long call, const Equal& first, const Equal& second,
                              std::uint32_t verdict) {
  if (call < 0) return;
  jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 6);
  add(kLoad, of_argument(first.argument, 0));
  jump(BPF_JEQ, first.value, 0, 3);
  add(kLoad, of_argument(second.argument, 0));
  jump(BPF_JEQ, second.value, 0, 1);
  add(kReturn, verdict);
  add(kLoad, offsetof(seccomp_data, nr));
}

void SeccompFilter::when_on_file(long call, int file, std::uintptr_t at, std::uint32_t otherwise) {
  if (call < 0) return;
  constexpr auto kInstruction =
      static_cast<std::uint32_t>(offsetof(seccomp_data, instruction_pointer));
  jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, at == 0 ? 4 : 9);
  add(kLoad, of_argument(0, 0));
  jump(BPF_JEQ, static_cast<std::uint32_t>(file), 0, at == 0 ? 1 : 6);
  if (at != 0) {
    add(kLoad, kInstruction);
    jump(BPF_JEQ, static_cast<std::uint32_t>(at), 0, 3);
    add(kLoad, kInstruction + 4);
    jump(BPF_JEQ, static_cast<std::uint32_t>(at >> 32), 0, 1);
    add(kReturn, allow());
  }
  add(kReturn, otherwise);
  add(kLoad, offsetof(seccomp_data, nr));
}

std::vector<sock_filter> SeccompFilter::finish(std::uint32_t otherwise) {
  add(kReturn, otherwise);
  return std::move(code_);
}

int install_seccomp(const std::vector<sock_filter>& program) {
  const sock_fprog code{static_cast<unsigned short>(program.size()),
                        const_cast<sock_filter*>(program.data())};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code, 0, 0) == 0 ? 0 : errno;
}

}  // namespace kernelpro
