// SPDX-License-Identifier: Apache-2.0
// Combines the results of the other files in this folder for one kernel.
#include "profile/sass/sass.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "profile/sass/chain.h"
#include "profile/sass/counts.h"
#include "profile/sass/lanes.h"
#include "profile/sass/loops.h"
#include "profile/sass/patterns.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxText = 8000;
constexpr std::size_t kMaxLines = 6;   // named per metric
constexpr std::size_t kMaxShown = 12;  // rows of the chain and of the waits
constexpr int kMaxBody = 20'000;       // instructions; longer bodies are only counted
constexpr int kInstructionBytes = 16;

std::string place_of(const SassFunction& f, const SassInstruction& i) {
  if (i.file < 0 || i.file >= static_cast<int>(f.files.size())) return "";
  return f.files[static_cast<std::size_t>(i.file)] + ":" + std::to_string(i.line);
}

std::string name_of(const SassInstruction& i) {
  std::string name = i.root;
  for (const std::string& modifier : i.modifiers) name += "." + modifier;
  return name;
}

class Mixer {
 public:
  Mixer(const SassFunction& f, const KernelSamples* samples)
      : f_(f), code_(find_hot_code(f, samples)) {}

  SassMix mix() {
    count_kernel();
    count_hot();
    for (const HotLoop& loop : code_.hot) study(loop);
    finish();
    return std::move(mix_);
  }

 private:
  const SassInstruction& at(int index) const { return f_.code[static_cast<std::size_t>(index)]; }

  // Counts the instructions and their source lines under the metric.
  void count(const std::string& metric, const std::vector<int>& instructions) {
    mix_.metrics[metric] += static_cast<double>(instructions.size());
    if (instructions.empty()) return;
    auto& lines = lines_[metric];
    for (const int index : instructions) count_line(at(index), &lines);
  }

  void raise(const std::string& metric, double value) {
    double& known = mix_.metrics[metric];
    known = std::max(known, value);
  }

  void count_kernel() {
    std::map<std::string, double>& m = mix_.metrics;
    double total = 0, unknown = 0, coded = 0;
    for (const SassInstruction& i : f_.code) {
      if (i.root == "NOP") continue;
      total += 1;
      unknown += i.op == Op::kUnknown;
      coded += i.control.known;
    }
    m["sass.instructions"] = total;
    m["sass.code_bytes"] = total * kInstructionBytes;
    m["sass.unknown_share"] = total > 0 ? unknown / total : 0;
    m["sass.control_codes"] = total > 0 && coded == total ? 1 : 0;
    m["sass.loops"] = code_.loops;
    m["sass.wait_loops"] = code_.wait_loops;
    m["sass.cas_loops"] = code_.cas_loops;
    m["sass.local_depth"] = 0;
    for (const SassCount& row : kernel_counts()) {
      std::vector<int> found;
      for (const int i : code_.reached) {
        const bool usual = !code_.cold[static_cast<std::size_t>(i)] || at(i).op == Op::kCall;
        if (usual && row.counts(at(i))) found.push_back(i);
      }
      count(row.name, found);
    }
    for (const int i : code_.reached) {
      const bool local = at(i).op == Op::kLocalLoad || at(i).op == Op::kLocalStore;
      if (!local || code_.cold[static_cast<std::size_t>(i)]) continue;
      raise("sass.local_depth", code_.depth[static_cast<std::size_t>(i)]);
    }
  }

  void count_hot() {
    std::map<std::string, double>& m = mix_.metrics;
    for (const HotLoop& loop : code_.hot) {
      mix_.weight += loop.weight;
      mix_.loops += loop.loops;
      raise("sass.hot.depth", loop.depth);
      for (const int i : loop.own) {
        if (at(i).root != "NOP") hot_.push_back(i);
      }
    }
    m["sass.hot.loops"] = mix_.loops;
    m["sass.hot.instructions"] = static_cast<double>(hot_.size());
    m["sass.hot.code_bytes"] = static_cast<double>(hot_.size()) * kInstructionBytes;
    for (const SassCount& row : hot_counts()) {
      std::vector<int> found;
      for (const int i : hot_) {
        if (row.counts(at(i))) found.push_back(i);
      }
      count(row.name, found);
    }
    m["sass.hot.trigonometric_slow_paths"] = code_.trigonometric_slow_paths;
  }

  // Analyses that need the order of one loop's instructions.
  void study(const HotLoop& loop) {
    std::vector<int> body;
    for (const int i : loop.own) {
      if (at(i).root != "NOP") body.push_back(i);
    }
    if (body.empty() || static_cast<int>(body.size()) > kMaxBody) return;
    const Dataflow flow(f_, body, loop.loops);
    const auto places = [&](const std::vector<int>& found) {
      std::vector<int> result;
      for (const int p : found) result.push_back(body[static_cast<std::size_t>(p)]);
      return result;
    };
    study_lanes(flow, body);
    for (const auto& [op, name] : {std::pair{Op::kGlobalLoad, "sass.hot.global_loads"},
                                   std::pair{Op::kGlobalStore, "sass.hot.global_stores"},
                                   std::pair{Op::kSharedLoad, "sass.hot.shared_loads"}}) {
      const Mergeable found = mergeable(flow, op, lanes_of(body));
      count(std::string(name) + "_mergeable", places(found.places));
      mix_.metrics[std::string(name) + "_merged"] += found.merged;
      if (op == Op::kGlobalStore) continue;
      count(std::string(name) + "_invariant", places(invariant_loads(flow, op, loop.body)));
    }
    count("sass.hot.staged_copies", places(staged_copies(flow)));
    count("sass.hot.global_updates", places(updates(flow)));
    count("sass.hot.address", places(address_arithmetic(flow)));
    count("sass.hot.fp32_fusable", places(fusable_multiplies(flow)));
    count("sass.hot.integer_divisions", places(inline_divisions(flow)));
    count("sass.hot.half_conversions", places(half_conversions(flow)));
    for (const Op op : {Op::kGlobalLoad, Op::kGlobalStore}) {
      count("sass.hot.global_strided_filled", places(filled_gaps(flow, op, lanes_of(body))));
    }
    study_branches(loop);
    study_barriers(flow);
    study_waits(flow, body, &loop == &code_.hot.front());
    const Flight flight = loads_in_flight(flow);
    raise("sass.hot.global_loads_in_flight", flight.loads);
    raise("sass.hot.global_bytes_in_flight", flight.bytes);
    raise("sass.hot.async_groups", flight.async_groups);
    std::vector<int> slow;
    for (const int i : loop.body) {
      if (calls_slow_path(at(i))) slow.push_back(i);
    }
    count("sass.hot.slow_path_calls", slow);
    // Loops are sorted heaviest first.
    if (&loop == &code_.hot.front()) study_chain(flow, flight);
  }

  std::vector<LaneAccess> lanes_of(const std::vector<int>& body) {
    if (lanes_.empty()) lanes_ = lane_accesses(f_);
    std::vector<LaneAccess> result;
    for (const int i : body) result.push_back(lanes_[static_cast<std::size_t>(i)]);
    return result;
  }

  void study_lanes(const Dataflow& flow, const std::vector<int>& body) {
    const std::vector<LaneAccess> lanes = lanes_of(body);
    std::vector<int> unit, uniform, strided, conflicting, indexed;
    std::map<std::string, double>& m = mix_.metrics;
    for (int p = 0; p < flow.size(); ++p) {
      const SassInstruction& i = flow.at(p);
      const LaneAccess& access = lanes[static_cast<std::size_t>(p)];
      const int index = body[static_cast<std::size_t>(p)];
      if (i.root == "LDC" && address_of(i).base >= 0 && !access.uniform) indexed.push_back(index);
      if (!access.known) continue;
      if (i.op == Op::kGlobalLoad || i.op == Op::kGlobalStore) {
        m["sass.hot.global_sectors"] += access.sectors;
        m["sass.hot.global_sectors_fewest"] += access.fewest_sectors;
        const bool even = access.sectors <= access.fewest_sectors;
        (access.uniform ? uniform : even ? unit : strided).push_back(index);
        raise("sass.hot.global_lane_stride", even ? 0 : std::abs(access.stride));
      }
      const bool shared = i.op == Op::kSharedLoad || (i.op == Op::kSharedStore && i.root == "STS");
      if (!shared || access.ways == 0) continue;
      raise("sass.hot.shared_ways", access.ways);
      if (access.ways > 1) conflicting.push_back(index);
    }
    count("sass.hot.global_unit_stride", unit);
    count("sass.hot.global_uniform", uniform);
    count("sass.hot.global_strided", strided);
    count("sass.hot.shared_conflicting", conflicting);
    count("sass.hot.constant_loads_indexed", indexed);
  }

  // Counts conditional branches, except those that close the loop.
  void study_branches(const HotLoop& loop) {
    std::vector<int> found;
    for (const int i : loop.own) {
      const Flow& flow = code_.flow[static_cast<std::size_t>(i)];
      const bool closes = loop.loops && flow.target == loop.header;
      if (at(i).root == "BRA" && flow.falls_through && !closes) found.push_back(i);
    }
    count("sass.hot.branches", found);
  }

  void study_barriers(const Dataflow& flow) {
    std::vector<int> barriers;
    for (int p = 0; p < flow.size(); ++p) {
      if (flow.at(p).root == "BAR") barriers.push_back(p);
    }
    if (barriers.empty()) return;
    int fewest = std::numeric_limits<int>::max();
    for (std::size_t k = 1; k < barriers.size(); ++k) {
      fewest = std::min(fewest, barriers[k] - barriers[k - 1] - 1);
    }
    // From the last, around the loop, to the first.
    if (flow.loops()) fewest = std::min(fewest, barriers[0] + flow.size() - barriers.back() - 1);
    if (fewest == std::numeric_limits<int>::max()) return;
    double& known = mix_.metrics["sass.hot.between_barriers"];
    known = known > 0 ? std::min(known, static_cast<double>(fewest)) : fewest;
  }

  void study_waits(const Dataflow& flow, const std::vector<int>& body, bool hottest) {
    std::map<std::string, std::vector<int>> producers;
    for (const char* name :
         {"global", "local", "shared", "special", "shuffle", "atomic", "constant", "other"}) {
      producers[name];
    }
    std::size_t shown = 0;
    for (const Wait& wait : waits_of(flow)) {
      const SassInstruction& producer = flow.at(wait.producer);
      producers[kind_of(producer)].push_back(body[static_cast<std::size_t>(wait.producer)]);
      if (!hottest || shown++ >= kMaxShown) continue;
      const SassInstruction& waiting = flow.at(wait.place);
      mix_.waits += spaced(name_of(waiting), place_of(f_, waiting)) + " waits for " +
                    spaced(name_of(producer), place_of(f_, producer)) + "\n";
    }
    for (const auto& [name, found] : producers) count("sass.hot.waits_" + name, found);
  }

  static std::string spaced(const std::string& a, const std::string& b) {
    return b.empty() ? a : a + " (" + b + ")";
  }

  static const char* kind_of(const SassInstruction& i) {
    switch (i.op) {
      case Op::kGlobalLoad:
      case Op::kTexture:
        return "global";
      case Op::kLocalLoad:
        return "local";
      case Op::kSharedLoad:
      case Op::kMatrixLoad:
        return "shared";
      case Op::kSpecial:
      case Op::kConvert:
      case Op::kFp64:
        return "special";
      case Op::kShuffle:
      case Op::kVote:
        return "shuffle";
      case Op::kGlobalAtomic:
      case Op::kSharedAtomic:
        return "atomic";
      case Op::kConstantLoad:
        return "constant";
      default:
        return i.root == "FCHK" ? "special" : "other";
    }
  }

  void study_chain(const Dataflow& flow, const Flight& flight) {
    const Chain chain = chain_of(flow);
    std::map<std::string, double>& m = mix_.metrics;
    m["sass.loop.instructions"] = flow.size();
    m["sass.loop.issue_cycles"] = chain.issue_cycles;
    m["sass.loop.alone_cycles"] = chain.alone_cycles;
    m["sass.loop.chain_cycles"] = chain.chain_cycles;
    m["sass.loop.chain_length"] = chain.chain_length;
    m["sass.loop.carried_cycles"] = chain.carried_cycles;
    m["sass.loop.carried_length"] = static_cast<double>(chain.carried.size());
    m["sass.loop.load_use_cycles"] = flight.use_cycles;
    auto& lines = lines_["sass.loop.carried_cycles"];
    std::vector<std::pair<std::string, int>> steps;  // runs of equal steps merged
    for (const int place : chain.carried) {
      const SassInstruction& i = flow.at(place);
      count_line(i, &lines);
      const std::string step = spaced(name_of(i), place_of(f_, i));
      if (steps.empty() || steps.back().first != step) steps.push_back({step, 0});
      ++steps.back().second;
    }
    for (std::size_t k = 0; k < std::min(steps.size(), kMaxShown); ++k) {
      const auto& [step, times] = steps[k];
      mix_.chain += (times > 1 ? std::to_string(times) + " x " : "") + step + "\n";
    }
  }

  void finish() {
    std::map<std::string, double>& m = mix_.metrics;
    // Metrics without a loop body to study are 0.
    for (const char* name :
         {"global_loads_mergeable", "global_loads_merged", "global_loads_invariant",
          "global_stores_mergeable", "global_stores_merged", "shared_loads_mergeable",
          "shared_loads_merged", "shared_loads_invariant", "global_sectors",
          "global_sectors_fewest"}) {
      m[std::string("sass.hot.") + name];
    }
    // A 64-bit division has an inline 32-bit version beside its call, for operands that fit.
    raise("sass.hot.integer_divisions", m["sass.hot.division_calls"]);
    if (m["sass.hot.division_calls"] > 0 && lines_["sass.hot.integer_divisions"].at.empty()) {
      lines_["sass.hot.integer_divisions"] = lines_["sass.hot.division_calls"];
    }
    for (const auto& [metric, lines] : lines_) {
      CodeLines found{most_of(lines.at), most_of(lines.calls)};
      if (!found.lines.empty()) mix_.where[metric] = std::move(found);
    }
    add_text();
  }

  // How often each line counts for a metric, and each call around a line.
  using Numbers = std::map<std::pair<int, int>, int>;
  struct Lines {
    Numbers at, calls;
  };

  void count_line(const SassInstruction& i, Lines* lines) const {
    if (i.file < 0) return;
    ++lines->at[{i.file, i.line}];
    if (i.calls < 0) return;
    for (const auto& call : f_.calls[static_cast<std::size_t>(i.calls)]) ++lines->calls[call];
  }

  std::vector<SourceLine> most_of(const Numbers& numbers) const {
    std::vector<std::pair<int, std::pair<int, int>>> order;
    for (const auto& [place, number] : numbers) order.push_back({-number, place});
    std::sort(order.begin(), order.end());
    std::vector<SourceLine> lines;
    for (std::size_t k = 0; k < std::min(order.size(), kMaxLines); ++k) {
      const auto& [file, line] = order[k].second;
      lines.push_back({f_.files[static_cast<std::size_t>(file)], line, ""});
    }
    return lines;
  }

  void add_text() {
    std::string& text = mix_.text;
    for (const HotLoop& loop : code_.hot) {
      std::string last;
      for (const int index : loop.own) {
        const SassInstruction& i = at(index);
        if (i.root == "NOP") continue;
        if (text.size() >= kMaxText) break;
        const std::string place = place_of(f_, i);
        if (place != last && !place.empty()) text += " " + place + "\n";
        last = place;
        text +=
            "  " + (i.guard.empty() ? "" : i.guard + " ") + name_of(i) + " " + i.operands + "\n";
      }
      if (loop.loops) text += "  --\n";
    }
    text = clip(text, kMaxText);
  }

  const SassFunction& f_;
  HotCode code_;
  SassMix mix_;
  std::vector<int> hot_;  // instructions of the hot loops
  std::vector<LaneAccess> lanes_;
  std::map<std::string, Lines> lines_;  // by metric
};

}  // namespace

SassMix hot_mix(const SassFunction& kernel, const KernelSamples* samples) {
  return Mixer(kernel, samples).mix();
}

std::vector<SassKernel> kernel_mixes(std::string_view text) {
  std::vector<SassKernel> kernels;
  for (const SassFunction& function : parse_sass(text)) {
    if (!function.entry || function.code.empty()) continue;
    kernels.push_back({function.name, hot_mix(function)});
  }
  return kernels;
}

}  // namespace kernelpro
