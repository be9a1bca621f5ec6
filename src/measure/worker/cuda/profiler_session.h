// SPDX-License-Identifier: Apache-2.0
// CUPTI's range profiler on this process's context: every kernel launched in a pass is its own
// range (AutoRange), and the caller runs the work once per pass (UserReplay), so that nothing is
// saved and restored. Opening takes about half a second, and so does closing: one session serves a
// process. One thread, current context.
#pragma once

#include "machine/driver/cupti_host.h"

#if KERNELPRO_HAVE_CUPTI

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "machine/driver/cuda_driver.h"

namespace kernelpro {

class CounterSession {
 public:
  // Fails with kEnvironment, with the remedy, where counters are unavailable.
  static Result<CounterSession> open();
  CounterSession(CounterSession&& other) noexcept;
  CounterSession& operator=(CounterSession&&) = delete;
  ~CounterSession();

  const std::string& chip() const { return host_.chip(); }

  // The metrics (names on this chip) that this GPU has, scheduled for few passes by trying some
  // orders. Cached.
  struct Schedule {
    CounterConfig config;
    std::vector<std::string> unknown;
  };
  Result<const Schedule*> schedule(const std::vector<std::string>& metrics);

  // Once per pass: `before`, which may run kernels that do not count, then `run`, which launches
  // `launches` kernels in order, with `begin` before and `end` after launch number `only`, or
  // around all of them (-1); it waits for the GPU before `end`. Collects all launches at once where
  // CUPTI counts them right, else one after the other, each with all passes. The values of each
  // launch in order, in the order of the schedule's metrics; NaN for missing values. After an error
  // the session may be unusable.
  struct Collected {
    std::vector<std::vector<double>> values;
    int passes = 0;
    // "set config", "passes", "first pass", "decode"; "all at once", where that failed first
    std::map<std::string, double> phases_ms;
  };
  using Step = std::function<Result<void>()>;
  using Run = std::function<Result<void>(int only, const Step& begin, const Step& end)>;
  Result<Collected> collect(const Schedule& schedule, std::size_t launches, const Step& before,
                            const Run& run);
  // A session's first collection costs much more than later ones: does one on `run`, whatever that
  // launches.
  Result<void> warm_up(const Schedule& schedule, const Step& run);

 private:
  CounterSession(const Cupti& cu, CounterHost host, CUpti_RangeProfiler_Object* profiler)
      : cu_(&cu), host_(std::move(host)), profiler_(profiler) {}
  using Bytes = std::vector<std::uint8_t>;
  Result<Bytes*> counter_data(const Schedule& schedule, std::size_t ranges);
  Result<void> set_config(const Schedule& schedule, std::size_t ranges, Bytes* data);
  // Adds the values of `launches` launches and the time taken; `counted` is the number that CUPTI
  // saw. Adds nothing if the two differ.
  Result<void> collect_ranges(const Schedule& schedule, std::size_t launches, int only,
                              const Step& before, const Run& run, Collected* collected,
                              std::size_t* counted);

  const Cupti* cu_;
  CounterHost host_;
  CUpti_RangeProfiler_Object* profiler_;
  std::map<std::vector<std::string>, std::unique_ptr<Schedule>> schedules_;
  // The driver keeps pointers to these: they live as long as the session.
  std::map<std::pair<const Schedule*, std::size_t>, std::unique_ptr<Bytes>> data_;
};

}  // namespace kernelpro

#endif
