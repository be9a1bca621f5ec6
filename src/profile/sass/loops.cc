// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/loops.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/text.h"
#include "profile/sass/dataflow.h"

namespace kernelpro {

namespace {

// One nesting level outweighs this much work in one iteration; loops with at least kHotShare of the
// heaviest one's weight are hot too. Estimates.
constexpr double kDepthFactor = 16;
constexpr double kHotShare = 0.2;
constexpr int kMaxDepth = 12;
constexpr std::size_t kMostCompared = 500;  // loops
constexpr int kLongestWait = 8;             // instructions of a loop that only waits
constexpr int kLongestCas = 40;             // of a loop around a compare-and-swap
constexpr int kComparisonAhead = 40;        // instructions from a comparison to its branch

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const SassInstruction& at(const SassFunction& f, int index) {
  return f.code[static_cast<std::size_t>(index)];
}

// The branch destination: the last operand, "`(.L_x_3)" or "0x2f0".
std::string_view destination(const SassInstruction& i) {
  const std::size_t comma = i.operands.rfind(',');
  std::string_view last = i.operands;
  if (comma != std::string::npos) last = last.substr(comma + 1);
  last = trim(last);
  if (last.starts_with("`(") && last.back() == ')') return last.substr(2, last.size() - 3);
  return last;
}

class Targets {
 public:
  explicit Targets(const SassFunction& function) : function_(function) {
    for (std::size_t i = 0; i < function.code.size(); ++i) {
      index_[function.code[i].address] = static_cast<int>(i);
    }
  }

  int of(std::string_view name) const {
    const auto label = function_.labels.find(std::string(name));
    if (label != function_.labels.end()) {
      return label->second < static_cast<int>(function_.code.size()) ? label->second : -1;
    }
    if (!name.starts_with("0x")) return -1;
    unsigned long long address = 0;
    name.remove_prefix(2);
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), address, 16);
    if (error != std::errc() || end != name.data() + name.size()) return -1;
    const auto found = index_.find(address);
    return found != index_.end() ? found->second : -1;
  }

  // BRX R2 -0x120 (*"BRANCH_TARGETS .L_x_12,.L_x_13"*)
  std::vector<int> listed(const std::string& operands) const {
    std::vector<int> result;
    constexpr std::string_view kKey = "BRANCH_TARGETS ";
    const std::size_t at = operands.find(kKey);
    if (at == std::string::npos) return result;
    std::string_view list = std::string_view(operands).substr(at + kKey.size());
    list = list.substr(0, list.find('"'));
    for (const std::string& name : split(list, ',')) {
      const int target = of(trim(name));
      if (target >= 0) result.push_back(target);
    }
    return result;
  }

 private:
  const SassFunction& function_;
  std::map<unsigned long long, int> index_;
};

bool is_cas(const SassInstruction& i) {
  return (i.op == Op::kGlobalAtomic || i.op == Op::kSharedAtomic) &&
         (i.has("CAS") || i.has("CAST"));
}

// Whether a compare-and-swap is retried with the value it found: an update, not a lock.
bool updates_by_cas(const SassFunction& f, const std::vector<int>& body) {
  if (static_cast<int>(body.size()) > kLongestCas) return false;
  const Dataflow flow(f, body, true);
  for (int p = 0; p < flow.size(); ++p) {
    if (!is_cas(flow.at(p))) continue;
    std::vector<int> work{p};
    std::set<int> seen;
    while (!work.empty()) {
      const int reader = work.back();
      work.pop_back();
      for (const Dependence& d : flow.reads(reader)) {
        if (d.use != Use::kData) continue;
        if (d.from == p) return true;
        if (seen.insert(d.from).second) work.push_back(d.from);
      }
    }
  }
  return false;
}

// Spinning on a barrier, a lock or a flag.
bool waits(const SassFunction& f, const std::vector<int>& body) {
  if (static_cast<int>(body.size()) > kLongestWait || updates_by_cas(f, body)) return false;
  return std::any_of(body.begin(), body.end(), [&](int index) {
    const SassInstruction& i = at(f, index);
    return i.root == "NANOSLEEP" || (i.root == "SYNCS" && i.has("TRYWAIT")) || is_cas(i) ||
           (i.op == Op::kGlobalLoad && (i.has("STRONG") || i.has("VOLATILE")));
  });
}

double work_of(const SassInstruction& i) {
  switch (i.op) {
    case Op::kTensor:
    case Op::kWarpgroup:
      return 64;
    case Op::kGlobalLoad:
    case Op::kGlobalStore:
    case Op::kAsyncCopy:
    case Op::kBulkCopy:
    case Op::kTexture:
    case Op::kGlobalAtomic:
      return 8;
    case Op::kLocalLoad:
    case Op::kLocalStore:
    case Op::kSharedAtomic:
      return 4;
    case Op::kSharedLoad:
    case Op::kMatrixLoad:
    case Op::kSharedStore:
    case Op::kFp64:
      return 2;
    case Op::kFp32:
    case Op::kSpecial:
      return 1;
    case Op::kSelect:
      return i.root.starts_with("FMNMX") ? 1 : 0;
    case Op::kHalf:
      return contains(i.operands, "-RZ, RZ") ? 0 : 1;
    default:
      return 0;
  }
}

struct Weighed {
  HotLoop loop;
  std::set<std::string> payload;        // kinds of work, without widths
  std::set<std::pair<int, int>> lines;  // its source lines
};

// Marks the argument reduction for large angles, after a comparison with 105615: usual operands
// skip it, though it contains a loop. Covers its instructions up to the target of the branch around
// it.
void mark_trigonometric(const SassFunction& f, const std::vector<Flow>& flow,
                        std::vector<bool>* cold, std::vector<int>* paths) {
  for (std::size_t i = 0; i < f.code.size(); ++i) {
    if (f.code[i].root != "FSETP" || !contains(f.code[i].operands, "105615")) continue;
    const Access access = access_of(f.code[i]);
    if (access.writes.empty()) continue;
    const int predicate = access.writes[0].first;
    for (std::size_t b = i + 1; b < std::min(f.code.size(), i + kComparisonAhead); ++b) {
      if (f.code[b].root != "BRA" || f.code[b].guard.empty()) continue;
      if (register_of(std::string_view(f.code[b].guard).substr(1)) != predicate) continue;
      const int target = flow[b].target;
      if (target <= static_cast<int>(b)) break;
      for (std::size_t k = b + 1; k < static_cast<std::size_t>(target); ++k) (*cold)[k] = true;
      paths->push_back(static_cast<int>(b));
      break;
    }
  }
}

// Marks the block around a call needed only for rare operands.
void mark_slow_calls(const SassFunction& f, const std::vector<Flow>& flow,
                     std::vector<bool>* cold) {
  std::vector<bool> leads(f.code.size() + 1, false);
  for (std::size_t i = 0; i < flow.size(); ++i) {
    if (flow[i].target >= 0) leads[static_cast<std::size_t>(flow[i].target)] = true;
    if (f.code[i].op == Op::kBranch || f.code[i].op == Op::kExit) leads[i + 1] = true;
  }
  for (std::size_t i = 0; i < f.code.size(); ++i) {
    if (!calls_slow_path(f.code[i])) continue;
    std::size_t first = i, last = i;
    while (first > 0 && !leads[first]) --first;
    while (last + 1 < f.code.size() && !leads[last + 1]) ++last;
    for (std::size_t k = first; k <= last; ++k) (*cold)[k] = true;
    i = last;
  }
}

// Loops of a device function are nested as deeply as its deepest call.
void deepen_callees(const SassFunction& f, const std::vector<Flow>& flow,
                    std::vector<Loop>* loops) {
  std::map<int, int> called;  // depth by first instruction
  for (int round = 0; round < 4; ++round) {
    std::vector<int> depth(f.code.size(), 0);
    for (const Loop& loop : *loops) {
      for (const int i : loop.body) {
        int& d = depth[static_cast<std::size_t>(i)];
        d = std::max(d, loop.depth);
      }
    }
    bool changed = false;
    for (std::size_t i = 0; i < f.code.size(); ++i) {
      if (f.code[i].root != "CALL" || flow[i].target < 0) continue;
      int& d = called[flow[i].target];
      if (depth[i] <= d) continue;
      for (Loop& loop : *loops) {
        const auto owner = called.upper_bound(loop.header);
        if (owner == called.begin() || std::prev(owner)->first != flow[i].target) continue;
        loop.depth = std::min(loop.depth + depth[i] - d, kMaxDepth);
        changed = true;
      }
      d = depth[i];
    }
    if (!changed) return;
  }
}

std::vector<Weighed> weigh(const SassFunction& f, const std::vector<Loop>& loops,
                           const HotCode& code) {
  std::vector<int> owner(f.code.size(), -1);
  for (std::size_t l = 0; l < loops.size(); ++l) {
    for (const int i : loops[l].body) {
      int& o = owner[static_cast<std::size_t>(i)];
      if (o < 0 || loops[static_cast<std::size_t>(o)].depth < loops[l].depth) {
        o = static_cast<int>(l);
      }
    }
  }
  std::vector<Weighed> all(loops.size());
  for (std::size_t i = 0; i < owner.size(); ++i) {
    if (owner[i] < 0 || code.cold[i]) continue;
    Weighed& c = all[static_cast<std::size_t>(owner[i])];
    const double work = work_of(f.code[i]);
    c.loop.own.push_back(static_cast<int>(i));
    c.loop.weight += work;
    if (work <= 0) continue;
    c.payload.insert(f.code[i].root);
    if (f.code[i].file >= 0) c.lines.insert({f.code[i].file, f.code[i].line});
  }
  std::vector<Weighed> result;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    if (waits(f, loops[l].body) || code.cold[static_cast<std::size_t>(loops[l].header)]) continue;
    all[l].loop.body = loops[l].body;
    all[l].loop.header = loops[l].header;
    all[l].loop.parent = loops[l].parent;
    all[l].loop.depth = std::min(loops[l].depth, kMaxDepth);
    all[l].loop.weight = (all[l].loop.weight + 0.1) * std::pow(kDepthFactor, all[l].loop.depth);
    result.push_back(std::move(all[l]));
  }
  return result;
}

// Whether `shorter` is the remainder of `longer`: a subset of its kinds of work, from its lines.
bool is_remainder(const Weighed& shorter, const Weighed& longer) {
  if (shorter.loop.parent != longer.loop.parent || shorter.payload.empty()) return false;
  if (shorter.loop.own.size() >= longer.loop.own.size()) return false;
  const auto part_of = [](const auto& part, const auto& all) {
    return std::includes(all.begin(), all.end(), part.begin(), part.end());
  };
  if (shorter.lines.empty() || longer.lines.empty()) return shorter.payload == longer.payload;
  return part_of(shorter.payload, longer.payload) && part_of(shorter.lines, longer.lines);
}

// Of sibling loops that do the same work, the longer is the unrolled main loop and the shorter its
// remainder.
void drop_remainders(std::vector<Weighed>* all) {
  if (all->size() > kMostCompared) return;
  std::vector<bool> dropped(all->size(), false);
  for (std::size_t i = 0; i < all->size(); ++i) {
    for (const Weighed& other : *all) dropped[i] = dropped[i] || is_remainder((*all)[i], other);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all->size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) (*all)[kept] = std::move((*all)[i]);
    ++kept;
  }
  all->resize(kept);
}

// The reached code, or only what lies outside of all loops.
HotLoop whole_kernel(const SassFunction& f, const HotCode& code, bool outside) {
  HotLoop all;
  all.loops = false;
  all.depth = 0;
  for (const int i : code.reached) {
    if (code.cold[static_cast<std::size_t>(i)]) continue;
    if (outside && code.depth[static_cast<std::size_t>(i)] > 0) continue;
    all.own.push_back(i);
    all.weight += work_of(at(f, i));
  }
  all.body = all.own;
  return all;
}

// Samples by instruction. Those of a helper (division, roots), which lies behind the kernel's own
// code and in none of its loops, belong in equal parts to the instructions that call it.
std::vector<double> samples_by_instruction(const SassFunction& f, const KernelSamples& samples) {
  std::vector<double> by(f.code.size(), 0.0);
  if (f.code.empty()) return by;
  const std::uint64_t base = f.code.front().address;
  std::map<std::uint64_t, std::size_t> index;
  for (std::size_t i = 0; i < f.code.size(); ++i) index[f.code[i].address - base] = i;
  for (const PcSamples& pc : samples.pcs) {
    const auto found = index.find(static_cast<std::uint64_t>(pc.offset));
    if (found == index.end()) continue;
    for (const StallSamples& stall : pc.stalls) by[found->second] += stall.all;
  }
  const Targets targets(f);
  std::map<int, std::vector<std::size_t>> callers;  // by a helper's first instruction
  for (std::size_t i = 0; i < f.code.size(); ++i) {
    if (f.code[i].root != "CALL") continue;
    const int target = targets.of(destination(f.code[i]));
    if (target >= 0) callers[target].push_back(i);
  }
  for (const auto& [first, from] : callers) {
    double inside = 0;
    for (auto i = static_cast<std::size_t>(first); i < f.code.size(); ++i) {
      inside += by[i];
      by[i] = 0;
      const std::string& guard = f.code[i].guard;
      if (f.code[i].root == "RET" && (guard.empty() || guard == "@PT")) break;
    }
    for (const std::size_t caller : from) by[caller] += inside / static_cast<double>(from.size());
  }
  return by;
}

double sum_over(const std::vector<double>& values, const std::vector<int>& at) {
  double sum = 0;
  for (const int i : at) sum += values[static_cast<std::size_t>(i)];
  return sum;
}

// Hot is where the samples lie. False: there are too few, or they lie nowhere that is known.
bool choose_by_samples(const SassFunction& f, const KernelSamples& samples,
                       const std::vector<Weighed>& all, HotCode* code) {
  const std::vector<double> by = samples_by_instruction(f, samples);
  if (std::accumulate(by.begin(), by.end(), 0.0) < kFewSamples) return false;
  std::vector<HotLoop> candidates;
  for (const Weighed& c : all) {
    candidates.push_back(c.loop);
    candidates.back().samples = sum_over(by, c.loop.own);
  }
  candidates.push_back(whole_kernel(f, *code, true));
  candidates.back().samples = sum_over(by, candidates.back().own);
  double most = 0;
  for (const HotLoop& c : candidates) most = std::max(most, c.samples);
  if (most < kFewSamples / 2) return false;
  for (HotLoop& c : candidates) {
    if (c.samples >= kHotShare * most) code->hot.push_back(std::move(c));
  }
  std::stable_sort(code->hot.begin(), code->hot.end(),
                   [](const HotLoop& a, const HotLoop& b) { return a.samples > b.samples; });
  return true;
}

// The loops with the most estimated work.
void choose_by_weight(const SassFunction& f, std::vector<Weighed> all, HotCode* code) {
  drop_remainders(&all);
  double heaviest = 0;
  for (const Weighed& c : all) heaviest = std::max(heaviest, c.loop.weight);
  for (Weighed& c : all) {
    if (c.loop.weight >= kHotShare * heaviest) code->hot.push_back(std::move(c.loop));
  }
  std::stable_sort(code->hot.begin(), code->hot.end(),
                   [](const HotLoop& a, const HotLoop& b) { return a.weight > b.weight; });
  if (code->hot.empty()) code->hot.push_back(whole_kernel(f, *code, false));
}

void count_loops(const SassFunction& f, const std::vector<Loop>& loops, HotCode* code) {
  code->depth.assign(f.code.size(), 0);
  for (const Loop& loop : loops) {
    if (waits(f, loop.body)) {
      ++code->wait_loops;
    } else {
      ++code->loops;
    }
    code->cas_loops += loop.innermost && updates_by_cas(f, loop.body);
    for (const int i : loop.body) {
      int& d = code->depth[static_cast<std::size_t>(i)];
      d = std::max(d, loop.depth);
    }
  }
}

}  // namespace

bool calls_slow_path(const SassInstruction& i) {
  return i.root == "CALL" && (contains(i.operands, "slowpath") || contains(i.operands, "_full") ||
                              contains(i.operands, "mediumpath"));
}

bool calls_integer_division(const SassInstruction& i) {
  return i.root == "CALL" && (contains(i.operands, "div_s64") || contains(i.operands, "div_u64") ||
                              contains(i.operands, "rem_s64") || contains(i.operands, "rem_u64"));
}

std::vector<Flow> flow_of(const SassFunction& function) {
  const Targets targets(function);
  std::vector<Flow> flow(function.code.size());
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const SassInstruction& at = function.code[i];
    const bool guarded = !at.guard.empty() && at.guard != "@PT";
    if (one_of(at.root, {"EXIT", "RET", "BRX", "JMX", "BRXU", "JMXU", "KILL"})) {
      flow[i].falls_through = guarded || (at.root != "RET" && contains(at.operands, "P"));
      if (at.root.starts_with("BRX")) {
        flow[i].more = targets.listed(at.operands);
        flow[i].falls_through = guarded;
      }
    }
    if (at.root == "CALL" && contains(at.operands, "`(") && !contains(at.operands, "__internal")) {
      flow[i].target = targets.of(destination(at));
      continue;
    }
    const bool collective = at.root == "WARPSYNC" && contains(at.operands, ",");
    if (!one_of(at.root, {"BRA", "JMP"}) && !collective) continue;
    // A uniform predicate is an operand before the destination.
    const bool conditional = guarded || contains(at.operands, ",");
    if (!conditional) flow[i].falls_through = false;
    flow[i].target = targets.of(destination(at));
  }
  return flow;
}

HotCode find_hot_code(const SassFunction& kernel, const KernelSamples* samples) {
  HotCode code;
  code.flow = flow_of(kernel);
  const std::vector<Flow>& flow = code.flow;
  code.cold.assign(kernel.code.size(), false);
  std::vector<int> slow_angles;
  mark_trigonometric(kernel, flow, &code.cold, &slow_angles);
  mark_slow_calls(kernel, flow, &code.cold);
  code.reached = reachable(flow);
  std::vector<Loop> loops = find_loops(flow);
  deepen_callees(kernel, flow, &loops);
  count_loops(kernel, loops, &code);
  std::vector<Weighed> all = weigh(kernel, loops, code);
  if (samples == nullptr || !choose_by_samples(kernel, *samples, all, &code)) {
    choose_by_weight(kernel, std::move(all), &code);
  }
  for (const int i : slow_angles) {
    code.trigonometric_slow_paths += std::any_of(
        code.hot.begin(), code.hot.end(),
        [&](const HotLoop& h) { return std::binary_search(h.own.begin(), h.own.end(), i); });
  }
  return code;
}

}  // namespace kernelpro
