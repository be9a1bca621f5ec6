// SPDX-License-Identifier: Apache-2.0
// Builds system-call filters (seccomp BPF). Rules are tried in the order they were added; the first
// match decides. A call of a foreign architecture (x32, i386) kills the process.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace kernelpro {

struct PageRange {
  std::uintptr_t begin = 0, end = 0;
};

class SeccompFilter {
 public:
  SeccompFilter();

  // The verdict on a call: allow, refuse with an errno, or raise SIGSYS in the calling thread.
  static std::uint32_t allow();
  static std::uint32_t refuse(int error);
  static std::uint32_t trap();

  // Negative numbers stand for calls that an architecture lacks; they add nothing.
  void when(long call, std::uint32_t verdict);
  void when(std::initializer_list<long> calls, std::uint32_t verdict);
  // ... if an argument is not zero, in either half.
  void when_set(long call, int argument, std::uint32_t verdict);
  // ... if the low half of an argument has any of `bits`; has none of them; is (not) `value`.
  void when_any(long call, int argument, std::uint32_t bits, std::uint32_t verdict);
  void when_none(long call, int argument, std::uint32_t bits, std::uint32_t verdict);
  void when_equal(long call, int argument, std::uint32_t value, std::uint32_t verdict);
  void when_not(long call, int argument, std::uint32_t value, std::uint32_t verdict);
  // ... if those of its bits that `mask` has are `value`.
  void when_masked(long call, int argument, std::uint32_t mask, std::uint32_t value,
                   std::uint32_t verdict);

  // ... if the low halves of two arguments are these values.
  struct Equal {
    int argument = 0;
    std::uint32_t value = 0;
  };
  void when_both(long call, const Equal& first, const Equal& second, std::uint32_t verdict);
  // ... if the pages from argument `address` on, as many bytes as argument `length` has, come
  // within 64 KiB of a range; where `bits` is not 0, only if argument `flags` has one of them.
  struct Pages {
    int address = 0, length = 1;
    int flags = 0;
    std::uint32_t bits = 0;
  };
  void when_touching(long call, const Pages& pages, const PageRange& range, std::uint32_t verdict);
  // A call whose first argument is the descriptor `file`: allowed if `at` is the address behind the
  // instruction that makes it; `otherwise` anywhere else, and everywhere if `at` is 0.
  void when_on_file(long call, int file, std::uintptr_t at, std::uint32_t otherwise);

  // Returns the program; `otherwise` is the verdict on all other calls. Call once.
  std::vector<sock_filter> finish(std::uint32_t otherwise);

 private:
  void add(std::uint16_t code, std::uint32_t k) { code_.push_back({code, 0, 0, k}); }
  void jump(std::uint16_t test, std::uint32_t k, std::uint8_t yes, std::uint8_t no);
  // `half`: 0 the low, 1 the high one.
  void on_argument(long call, int argument, std::uint16_t test, std::uint32_t k, bool if_true,
                   std::uint32_t verdict, std::uint32_t half = 0);

  void load_units(int argument, int scratch, std::uint8_t to_far);

  std::vector<sock_filter> code_;
};

// Installs a filter for the calling thread and whatever it execs; needs PR_SET_NO_NEW_PRIVS first.
// Async-signal-safe. Returns 0, or an errno.
int install_seccomp(const std::vector<sock_filter>& program);

}  // namespace kernelpro
