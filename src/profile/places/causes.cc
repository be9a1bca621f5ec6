// SPDX-License-Identifier: Apache-2.0
#include "profile/places/causes.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.h"
#include "profile/places/slices.h"
#include "profile/sass/loops.h"

namespace kernelpro {

namespace {

constexpr int kDepth = 5;              // steps of a slice
constexpr std::size_t kMostUses = 40;  // of one kind
constexpr std::size_t kMostLines = 4;
constexpr std::size_t kMostBranches = 200;
constexpr int kMostCode = 20'000;  // longer kernels have no slices

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

bool computes(const SassInstruction& i) {
  switch (i.op) {
    case Op::kInteger:
    case Op::kSelect:
    case Op::kMove:
    case Op::kCount:
    case Op::kConvert:
      return true;
    default:
      return false;
  }
}

bool reads_block(const SassInstruction& i) { return contains(i.operands, "SR_CTAID"); }

// Lines by what they contribute.
class Tally {
 public:
  explicit Tally(const SassFunction& f) : f_(f) {}

  void add(const SassInstruction& i, double weight) {
    if (i.file < 0) return;
    lines_[{i.file, i.line}] += weight;
    if (i.calls < 0) return;
    for (const auto& call : f_.calls[slot(i.calls)]) calls_[call] += weight;
  }

  CodeLines lines() const { return {most(lines_), most(calls_)}; }

 private:
  using Weights = std::map<std::pair<int, int>, double>;

  std::vector<SourceLine> most(const Weights& weights) const {
    std::vector<std::pair<double, std::pair<int, int>>> order;
    for (const auto& [place, weight] : weights) order.push_back({-weight, place});
    std::sort(order.begin(), order.end());
    std::vector<SourceLine> result;
    for (const auto& [weight, place] : order) {
      if (result.size() == kMostLines) break;
      result.push_back({f_.files[slot(place.first)], place.second, ""});
    }
    return result;
  }

  const SassFunction& f_;
  Weights lines_, calls_;
};

class Causes {
 public:
  Causes(const SassFunction& f, const HotCode& hot)
      : f_(f), hot_(hot), control_(control_flow(f, hot.flow)), slicer_(f, control_) {}

  std::map<std::string, CodeLines> lines() {
    std::map<std::string, CodeLines> result;
    const auto keep = [&](const char* name, const Tally& tally) {
      CodeLines found = tally.lines();
      if (!found.lines.empty()) result[name] = std::move(found);
    };
    keep("slice.global", sliced([](const SassInstruction& i) {
           return i.op == Op::kGlobalLoad || i.op == Op::kGlobalStore || i.op == Op::kAsyncCopy;
         }));
    keep("slice.shared", sliced([](const SassInstruction& i) {
           return i.op == Op::kSharedLoad || i.op == Op::kSharedStore || i.op == Op::kMatrixLoad;
         }));
    keep("slice.branch", branch_lines());
    keep("slice.block", block_lines());
    return result;
  }

 private:
  const SassInstruction& at(int k) const { return f_.code[slot(k)]; }

  // The hot instructions of the kind; those of the heaviest loop first.
  template <class Is>
  std::vector<int> uses(Is is) const {
    std::vector<int> found;
    for (const HotLoop& loop : hot_.hot) {
      for (const int k : loop.own) {
        if (found.size() < kMostUses && is(at(k))) found.push_back(k);
      }
    }
    return found;
  }

  // What the instruction computes with, the address for an access, with the number of steps to it.
  std::vector<std::pair<int, int>> slice(int use) const {
    const int base = address_of(at(use)).base;
    std::vector<std::pair<int, int>> found;
    std::set<int> seen = {use};
    std::vector<std::pair<int, int>> open = {{use, 0}};
    while (!open.empty()) {
      const auto [k, depth] = open.back();
      open.pop_back();
      for (const Reached& r : slicer_.producers(k)) {
        if (!r.by_register || !computes(at(r.instruction))) continue;
        if (depth == 0 && base >= 0 && !writes(r.instruction, base)) continue;
        if (!seen.insert(r.instruction).second) continue;
        found.emplace_back(r.instruction, depth);
        if (depth + 1 < kDepth) open.emplace_back(r.instruction, depth + 1);
      }
    }
    return found;
  }

  template <class Is>
  Tally sliced(Is is) const {
    Tally tally(f_);
    for (const int use : uses(is)) {
      for (const auto& [k, depth] : slice(use)) tally.add(at(k), 1.0 / (1 + depth));
    }
    return tally;
  }

  // Of branches that may part the lanes of a warp. A lane's number that is taken apart or compared
  // for equality parts more warps than one that is compared with a size.
  Tally branch_lines() const {
    Tally apart(f_), any(f_);
    std::size_t seen = 0;
    for (const int k : hot_.reached) {
      const SassInstruction& i = at(k);
      if (i.op != Op::kBranch || i.guard.empty() || i.guard == "@PT") continue;
      if (contains(i.guard, "U") || hot_.cold[slot(k)] || ++seen > kMostBranches) continue;
      const auto steps = slice(k);
      const auto has = [&](auto is) {
        return std::any_of(steps.begin(), steps.end(),
                           [&](const auto& step) { return is(at(step.first)); });
      };
      if (!has([](const SassInstruction& s) {
            return contains(s.operands, "SR_TID") || contains(s.operands, "SR_LANEID");
          })) {
        continue;
      }
      const bool equal = has([](const SassInstruction& s) {
        return contains(s.root, "ISETP") && (s.has("EQ") || s.has("NE"));
      });
      const bool taken_apart = has([](const SassInstruction& s) {
        return s.root == "LOP3" || s.root == "ULOP3" || s.root == "R2P";
      });
      for (const auto& [step, depth] : steps) {
        (equal || taken_apart ? apart : any).add(at(step), 1.0 / (1 + depth));
      }
    }
    return apart.lines().lines.empty() ? any : apart;
  }

  bool writes(int k, int reg) const {
    const Access access = access_of(at(k));
    return std::any_of(access.writes.begin(), access.writes.end(), [&](const RegisterSpan& span) {
      return span.first <= reg + 1 && reg < span.first + span.count;
    });
  }

  // The first steps from the block's number, in the code's order.
  Tally block_lines() const {
    constexpr int kSteps = 3, kUnknown = kSteps + 1;
    Tally tally(f_);
    std::vector<int> step(kRegisterSlots, kUnknown);
    for (const int k : hot_.reached) {
      const SassInstruction& i = at(k);
      const Access access = access_of(i);
      int least = kUnknown;
      for (const OperandUse& use : access.reads) {
        for (int r = use.registers.first; r < use.registers.first + use.registers.count; ++r) {
          if (r >= 0 && r < kRegisterSlots) least = std::min(least, step[slot(r)] + 1);
        }
      }
      const bool begins = reads_block(i);
      if (begins) least = 0;
      const bool follows = computes(i) && least <= kSteps;
      if (follows && !begins) tally.add(i, 1.0 / (1 + least));
      for (const RegisterSpan& span : access.writes) {
        for (int r = span.first; r < span.first + span.count; ++r) {
          if (r >= 0 && r < kRegisterSlots) {
            step[slot(r)] = begins ? 0 : follows ? least : kUnknown;
          }
        }
      }
    }
    return tally;
  }

  const SassFunction& f_;
  const HotCode& hot_;
  ControlFlow control_;
  Slicer slicer_;
};

}  // namespace

std::map<std::string, CodeLines> cause_lines(const SassFunction& kernel) {
  if (kernel.code.empty() || static_cast<int>(kernel.code.size()) > kMostCode) return {};
  const HotCode hot = find_hot_code(kernel);
  return Causes(kernel, hot).lines();
}

}  // namespace kernelpro
