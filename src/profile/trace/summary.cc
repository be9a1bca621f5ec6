// SPDX-License-Identifier: Apache-2.0
// Computes the metrics of a trace window.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/statistics/statistics.h"
#include "base/text.h"
#include "core/plan/kernel_name.h"
#include "profile/trace/trace.h"

namespace kernelpro {

namespace {

using Part = TraceWindow::Part;
using Span = std::array<std::int64_t, 2>;

constexpr std::size_t kMostKernels = 16;
constexpr double kNsPerUs = 1e3;

enum class GapCause { kSync, kAllocation, kLaunch, kQueue, kUnknown };
constexpr const char* kGapMetrics[] = {"trace.gaps_sync", "trace.gaps_allocation",
                                       "trace.gaps_launch", "trace.gaps_queue",
                                       "trace.gaps_unknown"};

// Anything that ran on the device.
struct Item {
  std::int64_t start, end;
  std::uint32_t process, correlation;
  bool kernel;
};

double us(double ns) { return ns / kNsPerUs; }
double us(std::int64_t ns) { return us(static_cast<double>(ns)); }

// Merges spans sorted by start into sorted, disjoint ones.
std::vector<Span> merged(const std::vector<Span>& spans) {
  std::vector<Span> result;
  for (const Span& s : spans) {
    if (!result.empty() && s[0] <= result.back()[1]) {
      result.back()[1] = std::max(result.back()[1], s[1]);
    } else {
      result.push_back(s);
    }
  }
  return result;
}

std::int64_t length(const std::vector<Span>& spans) {
  std::int64_t sum = 0;
  for (const Span& s : spans) sum += s[1] - s[0];
  return sum;
}

// How much of [begin, end) the sorted, disjoint spans cover.
std::int64_t covered(const std::vector<Span>& spans, std::int64_t begin, std::int64_t end) {
  auto it = std::partition_point(spans.begin(), spans.end(),
                                 [&](const Span& s) { return s[1] <= begin; });
  std::int64_t sum = 0;
  for (; it != spans.end() && (*it)[0] < end; ++it) {
    sum += std::min((*it)[1], end) - std::max((*it)[0], begin);
  }
  return sum;
}

// The device with the most kernel time: metrics of several devices must not be mixed.
std::uint32_t busiest_device(const Trace& trace) {
  std::map<std::uint32_t, double> busy;
  for (const auto& k : trace.kernels) busy[k.device] += static_cast<double>(k.end - k.start);
  for (const auto& c : trace.copies) busy[c.device] += 0;
  std::uint32_t best = busy.empty() ? 0 : busy.begin()->first;
  for (const auto& [device, time] : busy) {
    if (time > busy[best]) best = device;
  }
  return best;
}

// Whether the kernel is a pass over memory, by the names that PyTorch and its compiler use.
bool is_pointwise(const std::string& name) {
  for (const char* part : {"elementwise_kernel", "reduce_kernel", "triton_poi_", "triton_red_",
                           "triton_per_", "CatArrayBatchedCopy", "softmax_warp", "cunn_SoftMax",
                           "layer_norm", "multi_tensor_apply"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

class Summary {
 public:
  Summary(const Trace& trace, const TraceWindow& window, Evidence* evidence)
      : trace_(trace),
        window_(window),
        evidence_(evidence),
        periods_(std::max(1, window.periods)),
        device_(busiest_device(trace)) {
    for (const Trace::Api& call : trace.calls) {
      calls_[key(call.process, call.correlation)] = &call;
      const ApiClass what = api_class(call.name);
      if (what == ApiClass::kSync || is_synchronous_copy(call.name)) waits_.push_back(&call);
      if (what == ApiClass::kAllocate) allocations_.push_back({call.start, call.end});
    }
    allocations_ = merged(allocations_);
    overheads_ = merged(trace.overheads);
    std::sort(waits_.begin(), waits_.end(),
              [](const auto* a, const auto* b) { return a->end < b->end; });
  }

  void write() {
    kernels();
    copies();
    memsets();
    memory();
    calls();
    timeline();
    set("trace.periods", window_.steady ? periods_ : 0);
    set("trace.dropped", static_cast<double>(trace_.dropped));
    per_kernel();
    notes();
  }

 private:
  static std::uint64_t key(std::uint32_t process, std::uint32_t correlation) {
    return (static_cast<std::uint64_t>(process) << 32) | correlation;
  }
  static bool is_synchronous_copy(std::string_view name) {
    return api_class(name) == ApiClass::kCopy && !contains(name, "Async");
  }

  void set(const std::string& name, double value) { evidence_->set(name, value, trace_.source); }
  // Sets a sum over the window as a value per period.
  void set_sum(const std::string& name, double value) { set(name, value / periods_); }

  const Part* part_at(std::int64_t time) const {
    auto it = std::partition_point(window_.parts.begin(), window_.parts.end(),
                                   [&](const Part& p) { return p.end <= time; });
    return it != window_.parts.end() && it->begin <= time ? &*it : nullptr;
  }
  template <class Record>
  bool counts(const Record& r) const {
    return r.device == device_ && part_at(r.start) != nullptr;
  }
  bool counts_call(const Trace::Api& call) const {
    for (const Part& p : window_.parts) {
      if (call.start >= p.host_begin && call.start < p.host_end) return true;
    }
    return false;
  }
  // Includes records outside the window: the first one after a part explains why its end was idle.
  template <class Record>
  void add_items(const std::vector<Record>& records, bool kernel) {
    for (const Record& r : records) {
      if (r.device != device_) continue;
      items_.push_back({r.start, r.end, r.process, r.correlation, kernel});
    }
  }

  void kernels() {
    std::vector<double> times;
    std::set<std::uint32_t> streams;
    double graph = 0, pointwise = 0, pointwise_us = 0;
    for (const Trace::Kernel& k : trace_.kernels) {
      if (!counts(k)) continue;
      times.push_back(us(k.end - k.start));
      streams.insert(k.stream);
      graph += k.graph_node != 0;
      if (is_pointwise(k.name)) {
        pointwise += 1;
        pointwise_us += us(k.end - k.start);
      }
    }
    set_sum("trace.kernels", static_cast<double>(times.size()));
    set_sum("trace.kernels_graph", graph);
    set_sum("trace.pointwise", pointwise);
    set_sum("trace.pointwise_us", pointwise_us);
    set("trace.streams", static_cast<double>(streams.size()));
    if (!times.empty()) set("trace.kernel_median", median(std::move(times)));
  }

  // Device memory that is allocated when the window begins, which bounds what its kernels touch.
  void memory() {
    std::map<std::pair<std::uint32_t, std::uint64_t>, double> live;
    for (const Trace::Memory& m : trace_.memory) {
      if (m.device != device_ || m.time > window_.parts.front().end) continue;
      if (m.allocated) {
        live[{m.process, m.address}] = static_cast<double>(m.bytes);
      } else {
        live.erase({m.process, m.address});
      }
    }
    double bytes = 0;
    for (const auto& [address, size] : live) bytes += size;
    if (bytes > 0) set("trace.allocated_bytes", bytes);
  }

  void copies() {
    double host = 0, host_us = 0, host_bytes = 0, pageable = 0;
    double device = 0, device_us = 0, device_bytes = 0;
    for (const Trace::Copy& c : trace_.copies) {
      if (!counts(c)) continue;
      if (c.kind == Trace::CopyKind::kDeviceToDevice) {
        device += 1;
        device_us += us(c.end - c.start);
        device_bytes += static_cast<double>(c.bytes);
      } else if (c.kind == Trace::CopyKind::kHostToDevice ||
                 c.kind == Trace::CopyKind::kDeviceToHost) {
        host += 1;
        host_us += us(c.end - c.start);
        host_bytes += static_cast<double>(c.bytes);
        pageable += c.pageable;
        host_copies_.push_back({c.start, c.end});
      }
    }
    set_sum("trace.copies_host", host);
    set_sum("trace.copies_host_us", host_us);
    set_sum("trace.copies_host_bytes", host_bytes);
    set_sum("trace.copies_pageable", pageable);
    set_sum("trace.copies_device", device);
    set_sum("trace.copies_device_us", device_us);
    set_sum("trace.copies_device_bytes", device_bytes);
  }

  void memsets() {
    double count = 0, time = 0, bytes = 0;
    for (const Trace::Memset& m : trace_.memsets) {
      if (!counts(m)) continue;
      count += 1;
      time += us(m.end - m.start);
      bytes += static_cast<double>(m.bytes);
    }
    set_sum("trace.memsets", count);
    set_sum("trace.memsets_us", time);
    set_sum("trace.memsets_bytes", bytes);
  }

  void calls() {
    if (trace_.calls.empty()) return;
    double syncs = 0, syncs_us = 0, allocations = 0, allocations_us = 0;
    std::vector<double> launches;
    for (const Trace::Api& call : trace_.calls) {
      if (!counts_call(call)) continue;
      const ApiClass what = api_class(call.name);
      const double time = us(call.end - call.start);
      if (what == ApiClass::kLaunch) launches.push_back(time);
      if (what == ApiClass::kSync) {
        syncs += 1;
        syncs_us += time;
      }
      if (what == ApiClass::kAllocate) {
        allocations += 1;
        allocations_us += time;
      }
    }
    set_sum("trace.syncs", syncs);
    set_sum("trace.syncs_us", syncs_us);
    set_sum("trace.allocations", allocations);
    set_sum("trace.allocations_us", allocations_us);
    if (!launches.empty()) set("trace.launch_api", median(std::move(launches)));
  }

  // Why nothing ran between `begin` and the start of `next`.
  GapCause cause_of(std::int64_t begin, const Item& next) const {
    const auto found = calls_.find(key(next.process, next.correlation));
    if (found == calls_.end() || next.correlation == 0) return GapCause::kUnknown;
    const Trace::Api& call = *found->second;
    if (covered(allocations_, begin, next.start) * 2 >= next.start - begin) {
      return GapCause::kAllocation;
    }
    // It was issued before the gap began: the queue, a dependency or the graph delayed it.
    if (call.end <= begin) return GapCause::kQueue;
    // The last wait on the same thread that ended before the call, if it waited for the GPU's last
    // work.
    auto it = std::partition_point(waits_.begin(), waits_.end(),
                                   [&](const Trace::Api* w) { return w->end <= call.start; });
    while (it != waits_.begin()) {
      const Trace::Api& wait = **--it;
      if (wait.end < begin) break;  // and all others ended earlier
      if (wait.thread == call.thread && wait.process == call.process) return GapCause::kSync;
    }
    return GapCause::kLaunch;
  }

  void gap(std::int64_t begin, const Item* next, std::int64_t end) {
    const std::int64_t held_up = covered(overheads_, begin, end);
    overhead_ += held_up;
    const std::int64_t time = end - begin - held_up;
    if (time <= 0) return;
    longest_gap_ = std::max(longest_gap_, time);
    gaps_ += time;
    const GapCause cause = next != nullptr ? cause_of(begin, *next) : GapCause::kUnknown;
    by_cause_[static_cast<std::size_t>(cause)] += time;
  }

  // Walks one part in time order.
  void walk(const Part& part, std::vector<Item>::const_iterator begin,
            std::vector<Item>::const_iterator end) {
    std::int64_t at = part.begin;  // the GPU was busy up to here
    for (auto it = begin; it != end; ++it) {
      if (it->start > at) gap(at, &*it, it->start);
      const std::int64_t until = std::min(it->end, part.end);
      overlap_ += static_cast<double>(std::max<std::int64_t>(0, std::min(at, until) - it->start));
      at = std::max(at, until);
    }
    if (at >= part.end) return;
    // The next item after the part explains the idle time before it.
    const Item* next = nullptr;
    if (end != items_.end() && end->start <= part.end) next = &*end;
    gap(at, next, part.end);
  }

  void timeline() {
    add_items(trace_.kernels, true);
    add_items(trace_.copies, false);
    add_items(trace_.memsets, false);
    std::stable_sort(items_.begin(), items_.end(),
                     [](const Item& a, const Item& b) { return a.start < b.start; });
    std::int64_t span = 0;
    for (const Part& part : window_.parts) {
      const auto from = [&](std::int64_t time) {
        return std::partition_point(items_.cbegin(), items_.cend(),
                                    [&](const Item& i) { return i.start < time; });
      };
      walk(part, from(part.begin), from(part.end));
      span += part.end - part.begin;
    }
    span -= overhead_;
    std::vector<Span> kernel_spans;
    for (const Item& item : items_) {
      if (item.kernel && part_at(item.start) != nullptr)
        kernel_spans.push_back({item.start, item.end});
    }
    kernel_spans = merged(kernel_spans);
    double alone = 0;
    for (const Span& c : host_copies_) {
      alone += static_cast<double>(c[1] - c[0] - covered(kernel_spans, c[0], c[1]));
    }
    set_sum("trace.span", us(span));
    // A call of what repeats.
    if (window_.steady && span > 0) set_sum("timing.median", us(span));
    set_sum("trace.busy", us(span - gaps_));
    set_sum("trace.kernels_us", us(length(kernel_spans)));
    set_sum("trace.overlap", us(overlap_));
    set_sum("trace.gaps", us(gaps_));
    set("trace.longest_gap", us(longest_gap_));
    set_sum("trace.copies_host_alone_us", us(alone));
    for (std::size_t i = 0; i < by_cause_.size(); ++i) set_sum(kGapMetrics[i], us(by_cause_[i]));
  }

  struct Group {
    double time = 0;  // ns
    double launches = 0;
    double threads = -1;
    const Trace::Kernel* largest = nullptr;
    bool concurrent = false;
  };

  void per_kernel() {
    std::map<std::string, Group> groups;
    double total = 0;
    const Trace::Kernel* before = nullptr;
    std::string name_before;
    for (const Trace::Kernel& k : trace_.kernels) {
      if (!counts(k)) continue;
      Group& group = groups[k.name];
      group.time += static_cast<double>(k.end - k.start);
      total += static_cast<double>(k.end - k.start);
      group.launches += 1;
      double threads = 1;
      for (const std::uint32_t d : k.grid) threads *= d;
      for (const std::uint32_t d : k.block) threads *= d;
      if (threads > group.threads) {
        group.threads = threads;
        group.largest = &k;
      }
      if (before != nullptr && k.start < before->end) {
        group.concurrent = true;
        groups[name_before].concurrent = true;
      }
      if (before == nullptr || k.end > before->end) {
        before = &k;
        name_before = k.name;
      }
    }
    std::vector<const std::pair<const std::string, Group>*> order;
    for (const auto& entry : groups) order.push_back(&entry);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->second.time > b->second.time; });
    if (order.size() > kMostKernels) order.resize(kMostKernels);
    for (const auto* entry : order) {
      evidence_->kernels.push_back({demangled(entry->first), {}});
      kernel_facts(entry->second, total, &evidence_->kernels.back().facts);
    }
  }

  void kernel_facts(const Group& group, double total, Evidence* facts) const {
    // All that a trace gives is times, also where the usual source counts or reads code.
    const auto put = [&](const char* name, double value) {
      facts->set(name, value, Level::kTiming, trace_.source);
    };
    if (total > 0) put("kernel.share", group.time / total);
    put("kernel.launches", group.launches / periods_);
    put("kernel.concurrent", group.concurrent ? 1 : 0);
    put("gpu__time_duration.sum", group.time / periods_);
    const Trace::Kernel& k = *group.largest;
    const auto volume = [](const std::array<std::uint32_t, 3>& v) {
      return static_cast<double>(v[0]) * v[1] * v[2];
    };
    if (volume(k.grid) == 0 || volume(k.block) == 0) return;
    put("launch__grid_size", volume(k.grid));
    put("launch__block_size", volume(k.block));
    put("launch__cluster_size", std::max(1.0, volume(k.cluster)));
    put("launch__shared_mem_per_block_dynamic", k.dynamic_shared);
    put("launch__shared_mem_per_block_static", k.static_shared);
    if (k.registers > 0) put("launch__registers_per_thread", k.registers);
  }

  void notes() {
    std::string all = window_.chosen;
    for (const std::string& note : trace_.notes) all += "\n" + note;
    evidence_->texts["trace"] = all;
    if (trace_.dropped > 0) {
      evidence_->note_missing({Family::kTrace,
                               std::to_string(trace_.dropped) + " were lost",
                               "trace a shorter run of the program",
                               {},
                               "records"});
    }
    if (!trace_.complete) {
      evidence_->note_missing({Family::kTrace,
                               "a process ended before it had written its last records",
                               "let the program end by itself, or trace it for longer",
                               {},
                               "of its end"});
    }
    if (trace_.calls.empty()) {
      evidence_->note_missing({Family::kTrace,
                               "the trace has no calls of the host",
                               "record the CUDA API too (nsys: --trace=cuda)",
                               {"trace.syncs", "trace.syncs_us", "trace.allocations",
                                "trace.allocations_us", "trace.launch_api"}});
    }
  }

  const Trace& trace_;
  const TraceWindow& window_;
  Evidence* evidence_;
  int periods_;
  std::uint32_t device_;
  std::unordered_map<std::uint64_t, const Trace::Api*> calls_;
  std::vector<const Trace::Api*> waits_;  // by end
  std::vector<Span> allocations_;
  std::vector<Span> overheads_;
  std::vector<Span> host_copies_;
  std::vector<Item> items_;
  std::int64_t gaps_ = 0, longest_gap_ = 0, overhead_ = 0;
  double overlap_ = 0;
  std::array<std::int64_t, 5> by_cause_{};
};

}  // namespace

void summarize(const Trace& trace, const TraceWindow& window, Evidence* evidence) {
  if (window.parts.empty()) {
    evidence->note_missing({Family::kTrace,
                            window.steady || trace.ranges.empty()
                                ? "nothing of it ran on the GPU"
                                : "no range of that name launched anything",
                            "trace a run that uses the GPU"});
    return;
  }
  Summary(trace, window, evidence).write();
}

Evidence summarize(const Trace& trace) {
  Evidence evidence;
  summarize(trace, select_window(trace), &evidence);
  return evidence;
}

}  // namespace kernelpro
