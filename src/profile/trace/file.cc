// SPDX-License-Identifier: Apache-2.0
#include "profile/trace/file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/files.h"
#include "base/text.h"
#include "profile/inject/trace_format.h"

namespace kernelpro {

namespace {

namespace format = trace_format;

constexpr std::int64_t kMostBytes = 1ll << 30;
constexpr std::size_t kLongestName = 64 << 10;
// Later than any clock; larger times are corrupt.
constexpr std::uint64_t kLatest = 1ull << 62;
constexpr std::uint32_t kLargestOffset = 1u << 30;  // in a function's code

// Values of CUPTI's enums.
constexpr int kHostToDevice = 1, kDeviceToHost = 2, kHostToArray = 3, kArrayToHost = 4;
constexpr int kFirstDeviceOnly = 5, kLastDeviceOnly = 8, kHostToHost = 9, kPeer = 10;
constexpr int kPageable = 1;
constexpr int kAsynchronous = 1;

Trace::CopyKind copy_kind(int kind) {
  if (kind == kHostToDevice || kind == kHostToArray) return Trace::CopyKind::kHostToDevice;
  if (kind == kDeviceToHost || kind == kArrayToHost) return Trace::CopyKind::kDeviceToHost;
  if (kind == kHostToHost) return Trace::CopyKind::kHostToHost;
  if ((kind >= kFirstDeviceOnly && kind <= kLastDeviceOnly) || kind == kPeer) {
    return Trace::CopyKind::kDeviceToDevice;
  }
  return Trace::CopyKind::kOther;
}

class Reader {
 public:
  Reader(std::string_view bytes, Trace* trace) : rest_(bytes), trace_(trace) {}

  bool read() {
    format::FileHead head{};
    if (!take(&head) || std::memcmp(head.magic, format::kMagic, sizeof head.magic) != 0 ||
        head.version != format::kVersion) {
      return false;
    }
    process_ = head.process;
    while (next()) {
    }
    trace_->complete = trace_->complete && ended_;
    merge_calls();
    merge_samples();
    return true;
  }

 private:
  struct Call {
    Trace::Api api;
    bool runtime = false;
  };

  template <class T>
  static bool take(std::string_view* from, T* value) {
    if (from->size() < sizeof(T)) return false;
    std::memcpy(value, from->data(), sizeof(T));
    from->remove_prefix(sizeof(T));
    return true;
  }
  template <class T>
  bool take(T* value) {
    return take(&rest_, value);
  }

  // Whether the span is plausible; CUPTI leaves zeros in records that it could not finish.
  bool times(std::uint64_t start, std::uint64_t end, std::int64_t* from, std::int64_t* to) {
    if (start == 0 || end < start || end > kLatest) {
      ++trace_->dropped;
      return false;
    }
    *from = static_cast<std::int64_t>(start);
    *to = static_cast<std::int64_t>(end);
    return true;
  }

  std::string name(std::uint32_t id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? "" : found->second;
  }

  bool next() {
    format::RecordHead head{};
    if (!take(&head) || rest_.size() < head.bytes) return false;
    std::string_view payload = rest_.substr(0, head.bytes);
    rest_.remove_prefix(head.bytes);
    switch (head.kind) {
      case format::Kind::kName: {
        format::Name n{};
        if (take(&payload, &n)) names_[n.id] = printable(payload.substr(0, kLongestName));
        return true;
      }
      case format::Kind::kKernel:
        return kernel(payload);
      case format::Kind::kCopy:
        return copy(payload);
      case format::Kind::kMemset:
        return memset(payload);
      case format::Kind::kApi:
        return call(payload);
      case format::Kind::kMarker:
        return marker(payload);
      case format::Kind::kOverhead: {
        format::Overhead o{};
        std::array<std::int64_t, 2> span{};
        if (take(&payload, &o) && o.start > 0 && times(o.start, o.end, &span[0], &span[1])) {
          trace_->overheads.push_back(span);
        }
        return true;
      }
      case format::Kind::kMemory:
        return memory(payload);
      case format::Kind::kSampling:
        return sampling(payload);
      case format::Kind::kSample:
        return sample(payload);
      case format::Kind::kNote:
        trace_->notes.push_back(printable(payload.substr(0, kLongestName)));
        return true;
      case format::Kind::kEnd: {
        format::End end{};
        if (take(&payload, &end) && end.dropped < kLatest) {
          trace_->dropped += static_cast<std::int64_t>(end.dropped);
        }
        ended_ = true;
        return false;
      }
    }
    return true;  // from a later version
  }

  bool sampling(std::string_view payload) {
    format::Sampling s{};
    if (!take(&payload, &s) || s.dropped > kLatest || s.period > 31) return true;
    trace_->samples.source = "cupti";
    trace_->samples.period_cycles = std::ldexp(1.0, static_cast<int>(s.period));
    trace_->samples.dropped += static_cast<double>(s.dropped);
    return true;
  }

  bool sample(std::string_view payload) {
    format::Sample s{};
    if (!take(&payload, &s) || s.offset > kLargestOffset) return true;
    const std::string reason = name(s.reason);
    const auto stall = stall_from_name(reason);
    if (!stall || trace_->samples.source.empty()) return true;
    StallSamples& at = samples_[name(s.function)][static_cast<int>(s.offset)][*stall];
    (reason.ends_with("_not_issued") ? at.exposed : at.all) += s.samples;
    return true;
  }

  // Adds this process's samples to those of the others.
  void merge_samples() {
    if (samples_.empty()) return;
    for (const KernelSamples& kernel : trace_->samples.kernels) {
      for (const PcSamples& pc : kernel.pcs) {
        for (const StallSamples& stall : pc.stalls) {
          StallSamples& at = samples_[kernel.function][pc.offset][stall.stall];
          at.all += stall.all;
          at.exposed += stall.exposed;
        }
      }
    }
    trace_->samples.kernels.clear();
    for (const auto& [function, pcs] : samples_) {
      KernelSamples& kernel = trace_->samples.kernels.emplace_back();
      kernel.function = function;
      for (const auto& [offset, stalls] : pcs) {
        PcSamples& pc = kernel.pcs.emplace_back();
        pc.offset = offset;
        for (const auto& [stall, at] : stalls) {
          pc.stalls.push_back({stall, std::max(at.all, at.exposed), at.exposed});
        }
      }
    }
  }

  bool kernel(std::string_view payload) {
    format::Kernel r{};
    Trace::Kernel k;
    if (!take(&payload, &r) || !times(r.start, r.end, &k.start, &k.end)) return true;
    k.name = name(r.name);
    k.correlation = r.correlation;
    k.stream = r.stream;
    k.device = r.device;
    k.graph_node = r.graph_node;
    k.graph = r.graph;
    std::copy(r.grid, r.grid + 3, k.grid.begin());
    std::copy(r.block, r.block + 3, k.block.begin());
    std::copy(r.cluster, r.cluster + 3, k.cluster.begin());
    k.registers = r.registers;
    k.static_shared = r.static_shared;
    k.dynamic_shared = r.dynamic_shared;
    k.local_bytes = r.local_bytes;
    k.process = process_;
    trace_->kernels.push_back(std::move(k));
    return true;
  }

  bool copy(std::string_view payload) {
    format::Copy r{};
    Trace::Copy c;
    if (!take(&payload, &r) || !times(r.start, r.end, &c.start, &c.end)) return true;
    c.kind = copy_kind(r.copy_kind);
    c.pageable = c.kind != Trace::CopyKind::kDeviceToDevice &&
                 (r.source_kind == kPageable || r.destination_kind == kPageable);
    c.asynchronous = (r.flags & kAsynchronous) != 0;
    c.bytes = r.bytes;
    c.correlation = r.correlation;
    c.stream = r.stream;
    c.device = r.device;
    c.graph_node = r.graph_node;
    c.process = process_;
    trace_->copies.push_back(c);
    return true;
  }

  bool memset(std::string_view payload) {
    format::Memset r{};
    Trace::Memset m;
    if (!take(&payload, &r) || !times(r.start, r.end, &m.start, &m.end)) return true;
    m.bytes = r.bytes;
    m.correlation = r.correlation;
    m.stream = r.stream;
    m.device = r.device;
    m.graph_node = r.graph_node;
    m.process = process_;
    trace_->memsets.push_back(m);
    return true;
  }

  bool memory(std::string_view payload) {
    format::Memory r{};
    Trace::Memory m;
    std::int64_t same = 0;
    if (!take(&payload, &r) || !times(r.time, r.time, &m.time, &same)) return true;
    m.address = r.address;
    m.bytes = r.bytes;
    m.device = r.device;
    m.allocated = r.allocated != 0;
    m.process = process_;
    trace_->memory.push_back(m);
    return true;
  }

  bool call(std::string_view payload) {
    format::Api r{};
    Call c;
    if (!take(&payload, &r) || !times(r.start, r.end, &c.api.start, &c.api.end)) return true;
    c.api.name = std::string(api_base_name(name(r.name)));
    c.api.correlation = r.correlation;
    c.api.thread = r.thread;
    c.api.process = process_;
    c.runtime = r.runtime != 0;
    calls_.push_back(std::move(c));
    return true;
  }

  bool marker(std::string_view payload) {
    format::Marker r{};
    if (!take(&payload, &r)) return true;
    std::int64_t time = 0, same = 0;
    if (!times(r.time, r.time, &time, &same)) return true;
    if (r.begins != 0) {
      open_ranges_[r.id] = {name(r.name), time, time, r.thread, process_};
      return true;
    }
    const auto found = open_ranges_.find(r.id);
    if (found == open_ranges_.end()) return true;
    found->second.end = std::max(time, found->second.start);
    trace_->ranges.push_back(std::move(found->second));
    open_ranges_.erase(found);
    return true;
  }

  // The runtime calls the driver: of nested calls on a thread, keep the outermost and assign it the
  // work that the inner one launched.
  void merge_calls() {
    std::stable_sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
      if (a.api.thread != b.api.thread) return a.api.thread < b.api.thread;
      if (a.api.start != b.api.start) return a.api.start < b.api.start;
      return a.api.end > b.api.end;
    });
    std::map<std::uint32_t, std::uint32_t> outer_of;
    const Trace::Api* outer = nullptr;
    bool outer_is_runtime = false;
    const std::size_t first = trace_->calls.size();
    trace_->calls.reserve(first + calls_.size());
    for (Call& c : calls_) {
      const bool inside = outer != nullptr && outer_is_runtime && !c.runtime &&
                          c.api.thread == outer->thread && c.api.end <= outer->end;
      if (inside) {
        if (c.api.correlation != outer->correlation) {
          outer_of[c.api.correlation] = outer->correlation;
        }
        continue;
      }
      trace_->calls.push_back(std::move(c.api));
      outer = &trace_->calls.back();
      outer_is_runtime = c.runtime;
    }
    const auto rename = [&](auto& records) {
      for (auto& record : records) {
        const auto found = outer_of.find(record.correlation);
        if (record.process == process_ && found != outer_of.end()) {
          record.correlation = found->second;
        }
      }
    };
    if (outer_of.empty()) return;
    rename(trace_->kernels);
    rename(trace_->copies);
    rename(trace_->memsets);
  }

  std::string_view rest_;
  Trace* trace_;
  std::uint32_t process_ = 0;
  bool ended_ = false;
  std::unordered_map<std::uint32_t, std::string> names_;
  std::vector<Call> calls_;
  std::unordered_map<std::uint32_t, Trace::Range> open_ranges_;
  std::map<std::string, std::map<int, std::map<Stall, StallSamples>>> samples_;
};

}  // namespace

bool read_trace(std::string_view bytes, Trace* trace) { return Reader(bytes, trace).read(); }

Result<Trace> read_trace_folder(const std::string& folder) {
  Trace trace;
  trace.source = "CUPTI activity";
  int files = 0, unreadable = 0;
  for (const std::string& name : list_dir(folder)) {
    if (!name.ends_with(".kptrace")) continue;
    ++files;
    const Result<std::string> bytes = read_file(join(folder, name), kMostBytes);
    if (!bytes || !read_trace(*bytes, &trace)) ++unreadable;
  }
  if (files == 0) {
    return fail(ErrorKind::kBadInput, folder + " holds no trace",
                "the traced program must use CUDA; a folder of `*.kptrace` files is expected");
  }
  if (files == unreadable) {
    return fail(ErrorKind::kBadInput, "the traces in " + folder + " cannot be read",
                "trace the program again with this version");
  }
  if (unreadable > 0) {
    trace.notes.push_back(std::to_string(unreadable) + " of " + std::to_string(files) +
                          " processes left a trace that cannot be read");
  }
  std::sort(trace.notes.begin(), trace.notes.end());
  trace.notes.erase(std::unique(trace.notes.begin(), trace.notes.end()), trace.notes.end());
  trace.sort();
  return trace;
}

}  // namespace kernelpro
