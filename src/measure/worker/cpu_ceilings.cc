// SPDX-License-Identifier: Apache-2.0
// Role `cpu-ceilings`: measures this processor's limits: copy bandwidth of buffers far larger than
// the caches, and fp32 FMA rate from registers, on all threads, with the widest vectors it has.
// Answers each frame with a CpuCeilings (core/plan/cpu_protocol.h).
//
// A rate counts over a window in which each thread does one share. Windows are a fraction of a
// millisecond, far shorter than a scheduler's slice, and many: on a busy machine most are
// disturbed, and the best is one during which every thread had its processor to itself. Undisturbed
// windows agree to a percent, so windows are tried until the two best do.
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/process/channel.h"
#include "base/process/subprocess.h"
#include "core/plan/cpu_protocol.h"
#include "machine/cpu.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

constexpr double kCopySeconds = 0.04;  // per variant and measurement, at least
constexpr double kFmaSeconds = 0.02;
constexpr double kLongest = 0.15;  // per variant and measurement, if no two windows agree
constexpr double kSizing = 0.005;  // to estimate how much work fits a window
constexpr double kSizingLongest = 0.3;
constexpr int kAccumulators = 12;     // enough to hide an FMA's latency on two pipes
constexpr double kCopyWindow = 3e-4;  // roughly; far shorter ones would end in the store buffers
constexpr double kFmaWindow = 1e-4;
constexpr std::size_t kLeastChunk = 256 << 10;

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
    asm volatile("" ::: "memory");  // or the loop becomes a memcpy call
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

// Processors that this process may use.
std::vector<int> processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> all;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) all.push_back(cpu);
  }
  return all;
}

void pin_to(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<std::size_t>(cpu), &mask);
  ::sched_setaffinity(0, sizeof mask, &mask);
}

// Requests short time slices, which come more often: on a busy machine, all threads then run at
// the same time more often. Kernels before 6.12 ignore it.
void ask_for_short_turns() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline, period;
  } attributes{};
  attributes.size = sizeof attributes;
  attributes.policy = SCHED_OTHER;
  attributes.nice = ::getpriority(PRIO_PROCESS, 0);
  attributes.runtime_ns = 100'000;  // the minimum
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Barrier for all threads. They spin: a thread that slept would start late. The last one to arrive
// runs `last` before the others continue.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}
  template <class Last>
  void wait(const Last& last) {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      last();
      arrived_ = 0;
      round_ = round + 1;
      return;
    }
    for (int spins = 0; round_.load() == round; ++spins) {
      if (spins >= kSpins) ::sched_yield();  // another thread may need this processor
    }
  }

 private:
  static constexpr int kSpins = 20000;
  const int threads_;
  std::atomic<int> arrived_{0}, round_{0};
};

// The measuring threads, each on its own processor.
class Team {
 public:
  explicit Team(int threads) : threads_(threads), begun_(threads), ended_(threads) {
    const std::vector<int> all = processors();
    if (static_cast<int>(all.size()) == threads) processors_ = all;
  }

  // Shortest window in which every thread did `work(thread, window)` once. Tries windows for at
  // least `seconds` and until the two shortest agree, for at most `longest`.
  template <class Work>
  double best_seconds(double seconds, double longest, const Work& work) {
    double best = 1e30, second = 1e30, latest = 0;
    bool more = true;
    const double start = real_clock().now_s();
    Meeting begin(threads_), done(threads_);
    const auto body = [&](int thread) {
      const auto at = static_cast<std::size_t>(thread);
      if (!processors_.empty()) pin_to(processors_[at]);
      ask_for_short_turns();
      for (int window = 0; more; ++window) {
        begin.wait([] {});
        begun_[at] = real_clock().now_s();
        work(thread, window);
        ended_[at] = real_clock().now_s();
        done.wait([&] {
          const double took = *std::max_element(ended_.begin(), ended_.end()) -
                              *std::min_element(begun_.begin(), begun_.end());
          second = std::min(second, std::max(best, took));
          best = std::min(best, took);
          latest = took;
          const double spent = real_clock().now_s() - start;
          const bool agreed = best < kWhole && second < kAgreement * best;
          more = spent < seconds || (spent < longest && !agreed);
        });
        // Threads that share processors with other work may stay out of step for long: each waits
        // for a different time.
        if (more && latest > kDisturbed * best) pause(thread, window);
      }
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads_; ++thread) others.emplace_back(body, thread);
    body(0);
    for (std::thread& other : others) other.join();
    return best;
  }

 private:
  static constexpr double kAgreement = 1.01;
  static constexpr double kWhole = 1e-3;  // longer windows may include another process's slice
  static constexpr double kDisturbed = 4;
  static void pause(int thread, int window) {
    const unsigned mixed = 2654435761u * static_cast<unsigned>(31 * window + thread + 1);
    std::this_thread::sleep_for(std::chrono::microseconds((mixed >> 16) % 4000));
  }

  const int threads_;
  std::vector<int> processors_;  // empty: not known one by one
  std::vector<double> begun_, ended_;
};

// Memory of the kind that candidates work on (measure/cpu/buffers.h): shared memory seldom has
// large pages, and a copy with them is up to half as fast again.
char* allocate(std::size_t bytes) {
  const Fd file(::memfd_create("kernelpro", MFD_CLOEXEC));
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  ::madvise(at, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(at);
}

// Two buffers; each thread uses its own share of both.
struct Buffers {
  char* from = nullptr;
  char* to = nullptr;
  std::size_t share = 0;  // bytes
  std::size_t bytes = 0;
};

bool make_buffers(const CpuInfo& cpu, Team* team, Buffers* buffers) {
  const std::size_t unit = kLeastChunk * static_cast<std::size_t>(cpu.threads);
  // Each buffer alone is far larger than the cache, within the spare memory of the machine.
  std::int64_t wanted = std::max<std::int64_t>(4 * cpu.cache_bytes, 128 << 20);
  wanted = std::min({wanted, std::int64_t{2} << 30, available_memory_bytes() / 4});
  buffers->bytes = std::max<std::size_t>(1, static_cast<std::size_t>(wanted) / unit) * unit;
  buffers->share = buffers->bytes / static_cast<std::size_t>(cpu.threads);
  buffers->from = allocate(buffers->bytes);
  buffers->to = allocate(buffers->bytes);
  if (buffers->from == nullptr || buffers->to == nullptr) return false;
  // First touched by the thread that will use it, so that it is on that thread's node.
  team->best_seconds(0, 0, [&](int thread, int) {
    const std::size_t at = buffers->share * static_cast<std::size_t>(thread);
    std::memset(buffers->from + at, 1, buffers->share);
    std::memset(buffers->to + at, 2, buffers->share);
  });
  return true;
}

// Copies `chunk` bytes per window and thread. Windows walk through the whole share, so that the
// cache holds nothing of what comes next.
double copy_seconds(const Buffers& buffers, Team* team, const CopyVariant& variant,
                    std::size_t chunk, double seconds, double longest) {
  const std::size_t places = buffers.share / chunk;
  return team->best_seconds(seconds, longest, [&](int thread, int window) {
    const std::size_t at = buffers.share * static_cast<std::size_t>(thread) +
                           static_cast<std::size_t>(window) % places * chunk;
    variant.run(buffers.from + at, buffers.to + at, chunk);
  });
}

void measure_copy(const CpuInfo& cpu, const Buffers& buffers, Team* team,
                  std::vector<std::size_t>* chunks, CpuCeilings* result, std::string* how) {
  const std::vector<CopyVariant> variants = copy_variants();
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (i == chunks->size()) {
      const double least =
          copy_seconds(buffers, team, variants[i], kLeastChunk, kSizing, kSizingLongest);
      const auto times = static_cast<std::size_t>(kCopyWindow / least);
      chunks->push_back(kLeastChunk *
                        std::clamp<std::size_t>(times, 1, buffers.share / kLeastChunk));
    }
    const std::size_t chunk = (*chunks)[i];
    const double seconds = copy_seconds(buffers, team, variants[i], chunk, kCopySeconds, kLongest);
    const double rate =
        2.0 * static_cast<double>(chunk) * static_cast<double>(cpu.threads) / seconds;
    if (rate <= result->copy_bytes_per_s) continue;
    result->copy_bytes_per_s = rate;
    *how = "copy of " + std::to_string(buffers.bytes >> 20) + " MiB, " + variants[i].name;
  }
}

void measure_fma(const CpuInfo& cpu, Team* team, std::vector<std::int64_t>* rounds,
                 CpuCeilings* result, std::string* how) {
  constexpr std::int64_t kFewest = 1000;
  std::vector<float> sink(static_cast<std::size_t>(cpu.threads) * 16);
  const auto seconds_of = [&](const FmaVariant& variant, std::int64_t count, double seconds,
                              double longest) {
    return team->best_seconds(seconds, longest, [&](int thread, int) {
      sink[static_cast<std::size_t>(thread) * 16] += variant.run(count);
    });
  };
  std::string best;
  const std::vector<FmaVariant> variants = fma_variants();
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (i == rounds->size()) {
      const double least = seconds_of(variants[i], kFewest, kSizing, kSizingLongest);
      const auto times = static_cast<std::int64_t>(kFmaWindow / least);
      rounds->push_back(kFewest * std::clamp<std::int64_t>(times, 1, 1000));
    }
    const std::int64_t count = (*rounds)[i];
    const double seconds = seconds_of(variants[i], count, kFmaSeconds, kLongest);
    const double rate = 2.0 * variants[i].lanes * kAccumulators * static_cast<double>(count) *
                        cpu.threads / seconds;
    if (rate <= result->fma_flops_per_s) continue;
    result->fma_flops_per_s = rate;
    best = variants[i].name;
  }
  *how += "; " + best + " from registers; " + std::to_string(cpu.threads) + " threads";
}

}  // namespace

int cpu_ceilings(int, char**) {
  Channel channel{Fd(kChannelFd)};
  const CpuInfo cpu = read_cpu_info();
  Team team(cpu.threads);
  Buffers buffers;
  if (!make_buffers(cpu, &team, &buffers)) return 1;
  std::vector<std::size_t> chunks;  // of each variant's windows, once known
  std::vector<std::int64_t> rounds;
  Frame frame;
  while (channel.receive(&frame, -1) == ChannelState::kOk) {
    CpuCeilings result;
    std::string how;
    measure_copy(cpu, buffers, &team, &chunks, &result, &how);
    measure_fma(cpu, &team, &rounds, &result, &how);
    how.copy(result.how, sizeof result.how - 1);
    const std::string bytes(reinterpret_cast<const char*>(&result), sizeof result);
    if (channel.send(bytes) != ChannelState::kOk) return 1;
  }
  return 0;
}

}  // namespace kernelpro
