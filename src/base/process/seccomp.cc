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
