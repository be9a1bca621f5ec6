// SPDX-License-Identifier: Apache-2.0
// Role `cpu-ceilings`: what this processor can do at most, measured: copy bandwidth of buffers far
// larger than the caches, and fp32 FMA rate from registers, on all threads, with the widest vectors
// it has. Sends one frame: CpuCeilings (core/cpu_protocol.h).
#include <sys/mman.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <barrier>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/channel.h"
#include "base/clock.h"
#include "base/subprocess.h"
#include "core/cpu_protocol.h"
#include "device/cpu.h"
#include "worker/roles.h"

namespace kernelpro {

namespace {

constexpr double kSecondsEach = 0.12;  // per variant
constexpr int kAccumulators = 12;      // enough to hide an FMA's latency on two pipes

using Copy = void (*)(const char* from, char* to, std::size_t bytes);  // multiples of 256
using Fma = float (*)(std::int64_t rounds);
struct CopyVariant {
  const char* name;
  Copy run;
};
struct FmaVariant {
  const char* name;
  Fma run;
  int lanes;
};

void copy_plain(const char* from, char* to, std::size_t bytes) {
  typedef long long Vector __attribute__((vector_size(16)));
  const Vector* a = reinterpret_cast<const Vector*>(from);
  Vector* b = reinterpret_cast<Vector*>(to);
  for (std::size_t i = 0; i < bytes / 16; ++i) {
    b[i] = a[i];
    asm volatile("" ::: "memory");  // or it becomes a call of memcpy
  }
}

float fma_plain(std::int64_t rounds) {
  typedef float Vector __attribute__((vector_size(16)));
  Vector sums[kAccumulators] = {};
  const Vector x = {0.999f, 0.999f, 0.999f, 0.999f};
  for (std::int64_t r = 0; r < rounds; ++r) {
    for (Vector& sum : sums) sum = sum * x + x;
    asm volatile("" ::: "memory");
  }
  Vector total = {};
  for (const Vector& sum : sums) total += sum;
  return total[0];
}

#ifdef __x86_64__
__attribute__((target("avx2"))) void copy_avx2(const char* from, char* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i + 32));
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + i), a);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + i + 32), b);
  }
}

__attribute__((target("avx2"))) void stream_avx2(const char* from, char* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + 32), b);
  }
  _mm_sfence();
}

void stream_sse2(const char* from, char* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  _mm_sfence();
}

__attribute__((target("avx512f"))) void stream_avx512(const char* from, char* to,
                                                      std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i),
                        _mm512_load_si512(reinterpret_cast<const void*>(from + i)));
  }
  _mm_sfence();
}

__attribute__((target("avx2,fma"))) float fma_avx2(std::int64_t rounds) {
  __m256 sums[kAccumulators];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  const __m256 x = _mm256_set1_ps(0.999f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm256_fmadd_ps(sums[i], x, x);
  }
  __m256 total = sums[0];
  for (int i = 1; i < kAccumulators; ++i) total = _mm256_add_ps(total, sums[i]);
  return _mm256_cvtss_f32(total);
}

__attribute__((target("avx512f"))) float fma_avx512(std::int64_t rounds) {
  __m512 sums[kAccumulators];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const __m512 x = _mm512_set1_ps(0.999f);
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm512_fmadd_ps(sums[i], x, x);
  }
  __m512 total = sums[0];
  for (int i = 1; i < kAccumulators; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}
#endif

std::vector<CopyVariant> copy_variants() {
  std::vector<CopyVariant> all = {{"128-bit stores", copy_plain}};
#ifdef __x86_64__
  all.push_back({"128-bit non-temporal stores", stream_sse2});
  if (__builtin_cpu_supports("avx2")) {
    all.push_back({"256-bit stores", copy_avx2});
    all.push_back({"256-bit non-temporal stores", stream_avx2});
  }
  if (__builtin_cpu_supports("avx512f")) {
    all.push_back({"512-bit non-temporal stores", stream_avx512});
  }
#endif
  return all;
}

std::vector<FmaVariant> fma_variants() {
  std::vector<FmaVariant> all = {{"128-bit multiply and add", fma_plain, 4}};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    all.push_back({"256-bit FMA", fma_avx2, 8});
  }
  if (__builtin_cpu_supports("avx512f")) all.push_back({"512-bit FMA", fma_avx512, 16});
#endif
  return all;
}

// Shortest time of `work(thread)` on all threads at once, over about `seconds`.
template <class Work>
double best_seconds(int threads, double seconds, const Work& work) {
  double best = 1e30, start = 0;
  bool more = true;
  const double end = real_clock().now_s() + seconds;
  std::barrier begin(threads, [&]() noexcept { start = real_clock().now_s(); });
  std::barrier done(threads, [&]() noexcept {
    const double now = real_clock().now_s();
    best = std::min(best, now - start);
    more = now < end;
  });
  const auto body = [&](int thread) {
    for (bool first = true; first || more; first = false) {
      begin.arrive_and_wait();
      work(thread);
      done.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(body, thread);
  body(0);
  for (std::thread& other : others) other.join();
  return best;
}

char* allocate(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  ::madvise(at, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(at);
}

bool measure_copy(const CpuInfo& cpu, CpuCeilings* result, std::string* how) {
  const std::size_t unit = 4096u * static_cast<std::size_t>(cpu.threads);
  // Each buffer alone is far beyond the cache, within what the machine has to spare.
  std::int64_t wanted = std::max<std::int64_t>(4 * cpu.cache_bytes, 128 << 20);
  wanted = std::min({wanted, std::int64_t{2} << 30, available_memory_bytes() / 4});
  const std::size_t bytes =
      std::max<std::size_t>(1, static_cast<std::size_t>(wanted) / unit) * unit;
  const std::size_t share = bytes / static_cast<std::size_t>(cpu.threads);
  char* from = allocate(bytes);
  char* to = allocate(bytes);
  if (from == nullptr || to == nullptr) return false;
  // Touched by the thread that will use it, so that it lies on that thread's node.
  best_seconds(cpu.threads, 0, [&](int thread) {
    const std::size_t at = share * static_cast<std::size_t>(thread);
    std::memset(from + at, 1, share);
    std::memset(to + at, 2, share);
  });
  for (const CopyVariant& variant : copy_variants()) {
    const double seconds = best_seconds(cpu.threads, kSecondsEach, [&](int thread) {
      const std::size_t at = share * static_cast<std::size_t>(thread);
      variant.run(from + at, to + at, share);
    });
    const double rate = 2.0 * static_cast<double>(bytes) / seconds;
    if (rate <= result->copy_bytes_per_s) continue;
    result->copy_bytes_per_s = rate;
    *how = "copy of " + std::to_string(bytes >> 20) + " MiB, " + variant.name;
  }
  return true;
}

void measure_fma(const CpuInfo& cpu, CpuCeilings* result, std::string* how) {
  constexpr std::int64_t kRounds = 200000;
  std::vector<float> sink(static_cast<std::size_t>(cpu.threads) * 16);
  std::string best;
  for (const FmaVariant& variant : fma_variants()) {
    const double seconds = best_seconds(cpu.threads, kSecondsEach / 2, [&](int thread) {
      sink[static_cast<std::size_t>(thread) * 16] += variant.run(kRounds);
    });
    const double rate = 2.0 * variant.lanes * kAccumulators * kRounds * cpu.threads / seconds;
    if (rate <= result->fma_flops_per_s) continue;
    result->fma_flops_per_s = rate;
    best = variant.name;
  }
  *how += "; " + best + " from registers; " + std::to_string(cpu.threads) + " threads";
}

}  // namespace

int cpu_ceilings(int, char**) {
  Channel channel{Fd(Child::kChannelFd)};
  const CpuInfo cpu = read_cpu_info();
  CpuCeilings result;
  std::string how;
  if (!measure_copy(cpu, &result, &how)) return 1;
  measure_fma(cpu, &result, &how);
  how.copy(result.how, sizeof result.how - 1);
  const std::string bytes(reinterpret_cast<const char*>(&result), sizeof result);
  return channel.send(bytes) == ChannelState::kOk ? 0 : 1;
}

}  // namespace kernelpro
