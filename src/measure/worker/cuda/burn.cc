// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/burn.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <array>
#include <optional>

#include "base/clock.h"

namespace kernelpro {

namespace {

// Calls are submitted in chunks, several ahead: the GPU never waits for the host, which reads the
// counter (2 ms) meanwhile, and no submission delays the host's reading for long.
constexpr std::size_t kChunksAhead = 4;
constexpr double kChunkS = 5e-3;
constexpr double kMostCalls = 256;
constexpr double kNoTickS = 3;

class Burner {
 public:
  Burner(const CudaDriver& cu, CUstream stream, const std::vector<const ReplayGraph*>& graphs)
      : cu_(cu), stream_(stream), graphs_(graphs) {}
  ~Burner() {
    static_cast<void>(cu_.StreamSynchronize(stream_));
    for (CUevent event : events_) {
      if (event != nullptr) cu_.EventDestroy(event);
    }
    if (first_ != nullptr) cu_.EventDestroy(first_);
  }
  Burner(const Burner&) = delete;
  Burner& operator=(const Burner&) = delete;

  Result<Burned> run(const EnergyCounter& counter, double preheat_s, double window_s) {
    KP_TRY(start());
    TickFinder ticks;
    std::optional<EnergyTick> from;
    const double begin = real_clock().now_s();
    for (;;) {
      KP_TRY(refill());
      KP_ASSIGN(const auto joules, counter.joules());
      const double now = real_clock().now_s();
      const bool tick = ticks.see(now, joules);
      if (tick && from && now - from->at_s >= window_s) return finish(*from, ticks.last());
      if (tick && !from && now - begin >= preheat_s) from = ticks.last();
      if (now - begin > preheat_s + window_s + kNoTickS) {
        return fail(ErrorKind::kEnvironment, "the GPU's energy counter does not move",
                    "leave out --objective and --energy: this GPU does not report its energy");
      }
    }
  }

 private:
  Result<void> start() {
    for (CUevent& event : events_) KP_CUDA_TRY(cu_.EventCreate(&event, CU_EVENT_DEFAULT));
    KP_CUDA_TRY(cu_.EventCreate(&first_, CU_EVENT_DEFAULT));
    // One round of all graphs, to estimate how long a call takes.
    const double begin = real_clock().now_s();
    for (std::size_t i = 0; i < graphs_.size(); ++i) KP_TRY(launch());
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_));
    const double call_s = (real_clock().now_s() - begin) / static_cast<double>(graphs_.size());
    chunk_ = static_cast<std::uint64_t>(std::clamp(kChunkS / call_s, 1.0, kMostCalls));
    launched_ = 0;
    KP_CUDA_TRY(cu_.EventRecord(first_, stream_));
    for (std::size_t i = 0; i < kChunksAhead; ++i) KP_TRY(submit(i));
    return {};
  }

  Result<void> launch() {
    KP_CUDA_TRY(graphs_[next_++ % graphs_.size()]->launch(stream_));
    ++launched_;
    return {};
  }

  Result<void> submit(std::size_t slot) {
    for (std::uint64_t i = 0; i < chunk_; ++i) KP_TRY(launch());
    KP_CUDA_TRY(cu_.EventRecord(events_[slot], stream_));
    last_ = slot;
    return {};
  }

  // Replaces every finished chunk with another.
  Result<void> refill() {
    for (std::size_t i = 0; i < kChunksAhead; ++i) {
      const std::size_t oldest = (last_ + 1) % kChunksAhead;
      const CUresult state = cu_.EventQuery(events_[oldest]);
      if (state == CUDA_ERROR_NOT_READY) return {};
      KP_CUDA_TRY(state);
      KP_TRY(submit(oldest));
    }
    return {};
  }

  Result<Burned> finish(const EnergyTick& from, const EnergyTick& to) {
    KP_CUDA_TRY(cu_.StreamSynchronize(stream_));
    float ms = 0;
    KP_CUDA_TRY(cu_.EventElapsedTime(&ms, first_, events_[last_]));
    Burned burned;
    burned.calls = launched_;
    burned.us_per_call = 1e3 * static_cast<double>(ms) / static_cast<double>(launched_);
    burned.window_s = to.at_s - from.at_s;
    burned.watts = (to.joules - from.joules) / burned.window_s;
    return burned;
  }

  const CudaDriver& cu_;
  CUstream stream_;
  const std::vector<const ReplayGraph*>& graphs_;
  std::array<CUevent, kChunksAhead> events_{};
  CUevent first_ = nullptr;
  std::size_t next_ = 0, last_ = 0;
  std::uint64_t chunk_ = 1, launched_ = 0;
};

}  // namespace

Result<Burned> burn(const CudaDriver& cu, CUstream stream,
                    const std::vector<const ReplayGraph*>& graphs, const EnergyCounter& counter,
                    double preheat_s, double window_s) {
  return Burner(cu, stream, graphs).run(counter, preheat_s, window_s);
}

}  // namespace kernelpro

#endif
