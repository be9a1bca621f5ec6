// SPDX-License-Identifier: Apache-2.0
// Finds the steady state of a trace: named ranges, or a repeating sequence.
#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "profile/trace/trace.h"

namespace kernelpro {

namespace {

constexpr int kLeastRepetitions = 4;
constexpr std::size_t kMostOperations = 200'000;  // longer traces: only the last ones
constexpr std::size_t kMostCandidates = 64;       // periods tried in full
// Distances to the k-th earlier occurrence of the same operation, k up to this.
constexpr std::size_t kEarlier = 8;
// A repetition must cover at least this part of the operations or of the GPU time.
constexpr double kLeastPart = 0.25;
// A shorter period that covers this part of the busiest stretch explains the same repetition.
constexpr double kAlmost = 0.9;

// One operation, in the order in which the host issued it.
struct Operation {
  std::int64_t asked = 0;  // start of its API call, if known
  std::uint64_t node = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint32_t symbol = 0;  // equal: the same work
  bool wait = false;         // the host waits; no GPU work
  bool kernel = false;
};

struct CallKey {
  std::uint32_t process, correlation;
  bool operator==(const CallKey&) const = default;
};
struct HashCall {
  std::size_t operator()(const CallKey& k) const {
    return std::hash<std::uint64_t>()((static_cast<std::uint64_t>(k.process) << 32) |
                                      k.correlation);
  }
};
using CallTable = std::unordered_map<CallKey, const Trace::Api*, HashCall>;

CallTable table_of(const Trace& trace) {
  CallTable table;
  for (const Trace::Api& call : trace.calls) {
    if (call.correlation != 0) table[{call.process, call.correlation}] = &call;
  }
  return table;
}

template <class Record>
const Trace::Api* call_of(const CallTable& table, const Record& record) {
  const auto found = table.find({record.process, record.correlation});
  return found == table.end() ? nullptr : found->second;
}

class Sequence {
 public:
  explicit Sequence(const Trace& trace) {
    const CallTable table = table_of(trace);
    for (const Trace::Kernel& k : trace.kernels) {
      std::string what = k.name;
      for (const auto* dims : {&k.grid, &k.block}) {
        for (const std::uint32_t d : *dims) what += ' ' + std::to_string(d);
      }
      add(table, k, what);
      operations_.back().kernel = kernels_ = true;
    }
    for (const Trace::Copy& c : trace.copies) {
      add(table, c, "copy " + std::to_string(static_cast<int>(c.kind)) + std::to_string(c.bytes));
    }
    for (const Trace::Memset& m : trace.memsets) add(table, m, "set " + std::to_string(m.bytes));
    for (const Trace::Api& call : trace.calls) {
      if (api_class(call.name) != ApiClass::kSync) continue;
      operations_.push_back({call.start, 0, call.start, call.end, symbol(call.name), true, false});
    }
    std::stable_sort(
        operations_.begin(), operations_.end(), [](const Operation& a, const Operation& b) {
          return std::tie(a.asked, a.node, a.start) < std::tie(b.asked, b.node, b.start);
        });
    if (operations_.size() > kMostOperations) {
      operations_.erase(operations_.begin(),
                        operations_.end() - static_cast<std::ptrdiff_t>(kMostOperations));
    }
  }

  const std::vector<Operation>& operations() const { return operations_; }
  std::size_t size() const { return operations_.size(); }

  // The most frequent distances between equal operations.
  std::vector<std::size_t> candidates() const {
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> seen;
    std::unordered_map<std::size_t, double> votes;
    for (std::size_t i = 0; i < size(); ++i) {
      std::vector<std::size_t>& places = seen[operations_[i].symbol];
      for (std::size_t k = 1; k <= std::min(kEarlier, places.size()); ++k) {
        const std::size_t distance = i - places[places.size() - k];
        votes[distance] += 1;
      }
      places.push_back(i);
    }
    std::vector<std::pair<double, std::size_t>> ranked;
    for (const auto& [distance, count] : votes) {
      if (distance * kLeastRepetitions <= size()) ranked.push_back({count, distance});
    }
    std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    if (ranked.size() > kMostCandidates) ranked.resize(kMostCandidates);
    std::vector<std::size_t> distances;
    for (const auto& [count, distance] : ranked) distances.push_back(distance);
    std::sort(distances.begin(), distances.end());
    return distances;
  }

  // Of the stretches [begin, end) in which every operation equals the one `period` before it, and
  // which are long enough to count, the busiest; the longest of equally busy ones.
  std::pair<std::size_t, std::size_t> busiest_run(std::size_t period) const {
    std::pair<std::size_t, std::size_t> best{0, 0};
    double most = -1;
    const auto look = [&](std::size_t begin, std::size_t end) {
      if (end - begin < kLeastRepetitions * period) return;
      const double time = busy(begin, end);
      if (time < most || (time == most && end - begin <= best.second - best.first)) return;
      most = time;
      best = {begin, end};
    };
    std::size_t run = 0;
    for (std::size_t i = period; i < size(); ++i) {
      if (operations_[i].symbol == operations_[i - period].symbol) {
        ++run;
        continue;
      }
      if (run > 0) look(i - run - period, i);
      run = 0;
    }
    if (run > 0) look(size() - run - period, size());
    return best;
  }

  // GPU time; of kernels alone if there are any: copies of a check or of set-up may repeat more
  // often than the work.
  double busy(std::size_t begin, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!operations_[i].wait && (operations_[i].kernel || !kernels_)) {
        sum += static_cast<double>(operations_[i].end - operations_[i].start);
      }
    }
    return sum;
  }

 private:
  std::uint32_t symbol(const std::string& what) {
    return symbols_.emplace(what, static_cast<std::uint32_t>(symbols_.size())).first->second;
  }
  template <class Record>
  void add(const CallTable& table, const Record& record, const std::string& what) {
    const Trace::Api* call = call_of(table, record);
    operations_.push_back({call != nullptr ? call->start : record.start, record.graph_node,
                           record.start, record.end, symbol(what), false, false});
  }

  std::unordered_map<std::string, std::uint32_t> symbols_;
  std::vector<Operation> operations_;
  bool kernels_ = false;
};

struct Repetition {
  std::size_t begin = 0, end = 0, period = 0;
  std::size_t length() const { return end - begin; }
};

Repetition find_repetition(const Sequence& sequence) {
  std::vector<Repetition> found;
  double most = 0;
  for (const std::size_t period : sequence.candidates()) {
    const auto [begin, end] = sequence.busiest_run(period);
    if (end == begin) continue;
    found.push_back({begin, end, period});
    most = std::max(most, sequence.busy(begin, end));
  }
  for (const Repetition& r : found) {  // shortest period first
    if (sequence.busy(r.begin, r.end) < kAlmost * most) continue;
    const double total = sequence.busy(0, sequence.size());
    const bool matters =
        static_cast<double>(r.length()) >= kLeastPart * static_cast<double>(sequence.size()) ||
        (total > 0 && sequence.busy(r.begin, r.end) >= kLeastPart * total);
    return matters ? r : Repetition();
  }
  return {};
}

// Starts a period after a wait if there is one, so that the wait belongs to the work before it.
std::size_t aligned_begin(const std::vector<Operation>& operations, const Repetition& r) {
  for (std::size_t i = r.begin; i < r.begin + r.period; ++i) {
    const bool after_wait = i > 0 && operations[i - 1].wait;
    if (after_wait && !operations[i].wait) return i;
  }
  for (std::size_t i = r.begin; i < r.begin + r.period; ++i) {
    if (!operations[i].wait) return i;
  }
  return r.begin;
}

TraceWindow whole(const Trace& trace) {
  TraceWindow window;
  window.chosen = "the whole trace: nothing in it repeats";
  const CallTable table = table_of(trace);
  TraceWindow::Part part{INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN};
  const auto widen = [&](const auto& records) {
    for (const auto& r : records) {
      const Trace::Api* call = call_of(table, r);
      part.begin = std::min(part.begin, r.start);
      part.end = std::max(part.end, r.end);
      part.host_begin = std::min(part.host_begin, call != nullptr ? call->start : r.start);
    }
  };
  widen(trace.kernels);
  widen(trace.copies);
  widen(trace.memsets);
  part.host_end = part.end;
  if (part.end > part.begin) window.parts.push_back(part);
  return window;
}

// From the start of the second repetition to the start of the last one: whole periods.
TraceWindow periodic(const Sequence& sequence, const Repetition& r, const Trace& trace) {
  const std::vector<Operation>& operations = sequence.operations();
  const std::size_t begin = aligned_begin(operations, r) + r.period;
  const std::size_t periods = (r.end - 1 - begin) / r.period;
  const std::size_t last = begin + periods * r.period;
  const auto first_start = [&](std::size_t from) {
    std::int64_t start = INT64_MAX;
    for (std::size_t i = from; i < std::min(from + r.period, operations.size()); ++i) {
      if (!operations[i].wait) start = std::min(start, operations[i].start);
    }
    return start;
  };
  TraceWindow::Part part{first_start(begin), first_start(last), operations[begin].asked,
                         operations[last].asked};
  if (periods < 1 || part.begin == INT64_MAX || part.end <= part.begin) return whole(trace);
  TraceWindow window;
  window.parts.push_back(part);
  window.periods = static_cast<int>(periods);
  window.steady = true;
  window.chosen = std::to_string(periods) + " repetitions of the same " +
                  (r.period == 1 ? "operation" : std::to_string(r.period) + " operations");
  return window;
}

TraceWindow named(const Trace& trace, const std::string& name) {
  const CallTable table = table_of(trace);
  std::vector<const Trace::Range*> ranges;
  for (const Trace::Range& range : trace.ranges) {
    if (range.name == name) ranges.push_back(&range);
  }
  if (ranges.size() > 1) ranges.erase(ranges.begin());
  TraceWindow window;
  for (const Trace::Range* range : ranges) {
    TraceWindow::Part part{INT64_MAX, INT64_MIN, range->start, range->end};
    const auto widen = [&](const auto& records) {
      for (const auto& r : records) {
        const Trace::Api* call = call_of(table, r);
        const std::int64_t asked = call != nullptr ? call->start : r.start;
        if (r.process != range->process || asked < range->start || asked >= range->end) continue;
        part.begin = std::min(part.begin, r.start);
        part.end = std::max(part.end, r.end);
      }
    };
    widen(trace.kernels);
    widen(trace.copies);
    widen(trace.memsets);
    if (part.end <= part.begin) continue;
    if (!window.parts.empty()) part.begin = std::max(part.begin, window.parts.back().end);
    if (part.end > part.begin) window.parts.push_back(part);
  }
  window.periods = std::max(1, static_cast<int>(window.parts.size()));
  window.steady = !window.parts.empty();
  window.chosen = std::to_string(window.parts.size()) + " ranges named " + name;
  return window;
}

}  // namespace

TraceWindow select_window(const Trace& trace, const std::string& range) {
  if (!range.empty()) return named(trace, range);
  const Sequence sequence(trace);
  const Repetition repetition = find_repetition(sequence);
  return repetition.period == 0 ? whole(trace) : periodic(sequence, repetition, trace);
}

}  // namespace kernelpro
