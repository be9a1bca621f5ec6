// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "diagnose/account/make_account.h"

namespace kernelpro {

namespace {
constexpr double kLineBytes = 64;
// Instructions that current x86 and Arm servers retire in a cycle at most, about.
constexpr double kWidth = 4;
}  // namespace

std::vector<AccountPart> processor_parts(double us, const Evidence& evidence,
                                         const Roofline& roofline) {
  Spending call(us);
  call.take({PartKind::kFloor,
             {},
             roofline.floor_us,
             Level::kTiming,
             roofline.theory == Bound::kCompute ? "the task's operations / arithmetic rate"
                                                : "compulsory bytes / copy bandwidth"});
  call.take({PartKind::kContention,
             {},
             us * roofline.foreign,
             Level::kTiming,
             "at most: the share of the processors that other processes used"});
  // With s of the time on one thread and the rest on all N: busy = s + (1 - s) N; with the work of
  // that time spread over all of them, s (1 - 1/N) of it goes.
  const auto busy = evidence.get("cpu.threads_busy");
  const double units = evidence.get("machine.parallel_units").value_or(0) * (1 - roofline.foreign);
  if (busy && *busy > 0 && units > 1) {
    const double alone = std::clamp((units - *busy) / (units - 1), 0.0, 1.0);
    call.take({PartKind::kSingleThread,
               {},
               us * alone * (1 - 1 / units),
               Level::kTiming,
               "processor time over wall time against the threads that were free (Amdahl)"});
  }
  const auto misses = evidence.get("cpu.perf.cache_misses");
  const auto bandwidth = evidence.get("ceiling.copy_bandwidth");
  if (misses && bandwidth && *bandwidth > 0) {
    call.take({PartKind::kTraffic,
               {},
               *misses * kLineBytes / *bandwidth * 1e6 - roofline.memory_floor_us,
               Level::kCounters,
               "last-level misses x 64 bytes / copy bandwidth, beyond the floor"});
  }
  if (const auto ipc = evidence.get("cpu.perf.ipc")) {
    call.take({PartKind::kIssue,
               {},
               call.left() * std::clamp(*ipc / kWidth, 0.0, 1.0),
               Level::kCounters,
               "instructions per cycle / 4, of the rest"});
  }
  return call.close("latency, dependent chains, extra instructions: not told apart");
}

}  // namespace kernelpro
