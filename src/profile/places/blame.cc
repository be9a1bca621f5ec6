// SPDX-License-Identifier: Apache-2.0
#include "profile/places/blame.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "profile/sass/opcodes.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostBlamed = 8;
constexpr double kLeastPart = 0.05;
constexpr std::size_t kWindow = 64;  // instructions before a throttled one that is in no loop

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

bool is_mbarrier_wait(const SassInstruction& i) {
  return i.op == Op::kMbarrier && (i.has("TRYWAIT") || i.has("PHASECHK"));
}

bool is_async_wait(const SassInstruction& i) { return i.root == "DEPBAR"; }
bool is_async_copy(const SassInstruction& i) { return i.op == Op::kAsyncCopy; }
bool is_async_commit(const SassInstruction& i) { return i.root == "LDGDEPBAR"; }
// Into shared memory: those that leave it fill no buffer that anybody waits for.
bool is_bulk_load(const SassInstruction& i) {
  if (i.op != Op::kBulkCopy || i.root == "UTMASTG" || i.root == "UTMAREDG" || i.root == "UBLKRED") {
    return false;
  }
  const bool leaves = i.root == "UBLKCP" && i.modifiers.size() >= 2 && i.modifiers[0] == "G";
  return !leaves;
}
bool is_product(const SassInstruction& i) { return i.op == Op::kWarpgroup; }
bool is_detached_product(const SassInstruction& i) {
  return i.op == Op::kWarpgroup && i.root.starts_with("UTC");
}
bool is_arrival(const SassInstruction& i) { return i.op == Op::kMbarrier && i.has("ARRIVE"); }
bool is_product_wait(const SassInstruction& i) { return i.root == "WARPGROUP" && i.has("DEPBAR"); }
bool is_barrier(const SassInstruction& i) {
  return i.op == Op::kBarrier || i.op == Op::kClusterBarrier ||
         (i.root == "WARPGROUP" && i.has("ARRIVE"));
}
bool is_store(const SassInstruction& i) {
  return i.op == Op::kGlobalStore || i.op == Op::kGlobalAtomic;
}
bool is_fence(const SassInstruction& i) { return i.op == Op::kFence; }
bool never(const SassInstruction&) { return false; }

bool is_of(const SassInstruction& i, std::initializer_list<Op> ops) {
  return std::find(ops.begin(), ops.end(), i.op) != ops.end();
}

// Whether the instruction goes through the unit whose queue is full.
bool uses_unit(const SassInstruction& i, const SassInstruction& stalled, Stall stall) {
  if (stall == Stall::kLgThrottle) {
    return is_of(i, {Op::kGlobalLoad, Op::kGlobalStore, Op::kGlobalAtomic, Op::kLocalLoad,
                     Op::kLocalStore, Op::kAsyncCopy});
  }
  if (stall == Stall::kTexThrottle) return i.op == Op::kTexture;
  if (stall == Stall::kMioThrottle) {
    // An instruction that waits for the queue also fills it, but S2R (Op::kCount) is too rare to. A
    // constant load whose address is in a register goes through it too.
    const bool named = i.op != Op::kUnknown && i.op != Op::kOther && i.op != Op::kCount;
    if (named && i.op == stalled.op) return true;
    return is_of(i, {Op::kSharedLoad, Op::kSharedStore, Op::kSharedAtomic, Op::kMatrixLoad,
                     Op::kSpecial, Op::kConvert, Op::kShuffle}) ||
           (i.root == "LDC" && i.operands.find("][R") != std::string::npos);
  }
  return i.op == stalled.op && i.op != Op::kUnknown && i.op != Op::kOther;
}

// "0x2" of "SB0, 0x2": groups that may stay under way.
int groups_left(const SassInstruction& i) {
  const std::size_t at = i.operands.rfind("0x");
  if (at == std::string::npos || at + 2 >= i.operands.size()) return 0;
  const char c = i.operands[at + 2];
  return c >= '0' && c <= '9' ? c - '0' : 0;
}

}  // namespace

int waiter_of(const SassFunction& kernel, int k, Stall stall) {
  const auto behind = [&](int at, bool (*is)(const SassInstruction&)) {
    for (int distance = 1; distance <= std::min(2, at); ++distance) {
      if (is(kernel.code[slot(at - distance)])) return at - distance;
    }
    return at;
  };
  if (k == 0) return k;
  const bool waits_itself = kernel.code[slot(k)].control.waits != 0;
  switch (stall) {
    case Stall::kLongScoreboard:
      return kernel.code[slot(k - 1)].root == "DEPBAR" && !waits_itself ? k - 1 : k;
    case Stall::kBarrier:  // BAR, and perhaps B2R, which reads a reduction's result
      if (is_product_wait(kernel.code[slot(k)])) return k;
      return behind(k, [](const SassInstruction& i) {
        return (i.root == "BAR" && !i.has("ARV")) || i.root == "UCGABAR_WAIT";
      });
    case Stall::kMembar:  // MEMBAR, ERRBAR, CCTL
      return behind(k, [](const SassInstruction& i) { return i.root == "MEMBAR"; });
    default:
      return k;
  }
}

Stall awaited_at(const SassFunction& kernel, int waiter, Stall stall) {
  const SassInstruction& i = kernel.code[slot(waiter)];
  const bool product = (stall == Stall::kBarrier && is_product_wait(i)) ||
                       (stall == Stall::kWarpgroupArrive && is_product(i));
  return product ? Stall::kGmma : stall;
}

bool answers_far(const SassInstruction& i) {
  switch (i.op) {
    case Op::kGlobalLoad:
    case Op::kGlobalStore:
    case Op::kGlobalAtomic:
    case Op::kLocalLoad:
    case Op::kLocalStore:
    case Op::kTexture:
    case Op::kAsyncCopy:
    case Op::kBulkCopy:
    case Op::kTensorMemory:
      return true;
    default:
      return i.root == "LDGDEPBAR" || is_mbarrier_wait(i);
  }
}

Blamer::Blamer(const SassFunction& function, const HotCode& hot, const ControlFlow& control,
               const CodeLoad& load)
    : f_(function), hot_(hot), load_(load), slicer_(function, control) {}

double Blamer::issued(int index) const {
  constexpr double kUnseen = 1e-3;  // issues too seldom to be sampled
  return std::max(kUnseen, load_.issued[slot(index)]);
}

std::vector<Blamed> Blamer::shared(const std::vector<Candidate>& candidates) {
  double all = 0;
  for (const Candidate& c : candidates) all += c.weight;
  std::vector<Blamed> result;
  if (!(all > 0)) return result;
  for (const Candidate& c : candidates) {
    if (c.weight >= kLeastPart * all) result.push_back({c.instruction, c.weight / all});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Blamed& a, const Blamed& b) { return a.part > b.part; });
  if (result.size() > kMostBlamed) result.resize(kMostBlamed);
  return result;
}

std::vector<Blamed> Blamer::weighed(const std::vector<Reached>& producers) const {
  // Of a producer whose latency the path covers nothing is left to wait for.
  const auto covered = [&](const Reached& r) {
    return r.cycles >= typical_latency(at(r.instruction));
  };
  const bool all = std::all_of(producers.begin(), producers.end(), covered);
  std::vector<Candidate> candidates;
  for (const Reached& r : producers) {
    if (!all && covered(r)) continue;
    candidates.push_back({r.instruction, issued(r.instruction) / std::max(1, r.distance)});
  }
  return shared(candidates);
}

std::vector<Blamed> Blamer::scoreboard(int use, bool far) const {
  if (is_mbarrier_wait(at(use))) return from_other_warps(use);
  if (is_async_wait(at(use))) {
    std::vector<Blamed> copies = async_copies(use);
    if (!copies.empty()) return copies;
  }
  const std::vector<Reached> found = slicer_.producers(use);
  const auto choose = [&](auto keep) {
    std::vector<Reached> kept;
    std::copy_if(found.begin(), found.end(), std::back_inserter(kept), keep);
    return kept;
  };
  const auto of_class = [&](const Reached& r) {
    const SassInstruction& i = at(r.instruction);
    return far ? answers_far(i) : !answers_far(i) && (r.by_board || is_variable_latency(i.op));
  };
  std::vector<Reached> kept =
      choose([&](const Reached& r) { return r.by_register && r.by_board && of_class(r); });
  if (kept.empty()) kept = choose([&](const Reached& r) { return r.by_board && of_class(r); });
  if (kept.empty()) kept = choose(of_class);
  if (kept.empty()) kept = choose([](const Reached& r) { return r.by_board; });
  if (std::any_of(kept.begin(), kept.end(),
                  [&](const Reached& r) { return is_mbarrier_wait(at(r.instruction)); })) {
    return from_other_warps(use);
  }
  return weighed(kept);
}

std::vector<Blamed> Blamer::fixed_latency(int use) const {
  std::vector<Reached> kept;
  for (const Reached& r : slicer_.producers(use)) {
    const SassInstruction& i = at(r.instruction);
    const bool late = r.cycles <= typical_latency(i) + 2;
    if (r.by_register && !is_variable_latency(i.op) && late) kept.push_back(r);
  }
  if (!kept.empty()) return weighed(kept);
  // Whatever its operands, the instruction before it set the pace.
  const std::vector<Reached> last = slicer_.before(use, [](int) { return true; });
  if (last.empty()) return {};
  return {{last.front().instruction, 1}};
}

// Those before `use`, back to one that stops the search.
std::vector<Blamed> Blamer::preceding(int use, bool (*is)(const SassInstruction&),
                                      bool (*stops)(const SassInstruction&)) const {
  std::vector<Candidate> candidates;
  for (const Reached& r : slicer_.before(use, [&](int k) { return k == use || stops(at(k)); })) {
    if (!is(at(r.instruction))) continue;
    candidates.push_back({r.instruction, issued(r.instruction) / std::max(1, r.distance)});
  }
  return shared(candidates);
}

// The copies of the newest group that must be complete: before the commit that follows the groups
// that may stay under way. Around a loop these are the copies of its body.
std::vector<Blamed> Blamer::async_copies(int use) const {
  const int left = groups_left(at(use));
  int commits = 0;
  std::vector<Candidate> of_group, any;
  for (const Reached& r : slicer_.before(use, [&](int k) { return k == use; })) {
    commits += is_async_commit(at(r.instruction));
    if (!is_async_copy(at(r.instruction))) continue;
    const Candidate c{r.instruction, issued(r.instruction)};
    any.push_back(c);
    if (commits == left + 1) of_group.push_back(c);
  }
  return shared(of_group.empty() || left > 0 ? any : of_group);
}

// A wait at a barrier in shared memory is for what other warps, the copy engine or the matrix unit
// do. What the code does next shows which: copies go into a buffer that others have read, and
// products, or reads, follow a copy.
std::vector<Blamed> Blamer::from_other_warps(int use) const {
  const auto all_of = [&](bool (*is)(const SassInstruction&)) {
    std::vector<Candidate> found;
    for (const int k : hot_.reached) {
      if (is(at(k))) found.push_back({k, issued(k)});
    }
    return shared(found);
  };
  enum class Next { kUnknown, kCopy, kUse, kResult } next = Next::kUnknown;
  const int end = std::min(use + 200, static_cast<int>(f_.code.size()));
  for (int k = use + 1; k < end && next == Next::kUnknown; ++k) {
    if (is_bulk_load(at(k))) next = Next::kCopy;
    if (is_product(at(k)) || is_of(at(k), {Op::kMatrixLoad, Op::kSharedLoad})) next = Next::kUse;
    if (at(k).op == Op::kTensorMemory) next = Next::kResult;
  }
  std::vector<Blamed> result;
  if (next == Next::kCopy || next == Next::kResult) result = all_of(is_detached_product);
  if (result.empty() && next == Next::kCopy) result = all_of(is_arrival);
  if (result.empty()) result = all_of(is_bulk_load);
  if (result.empty()) result = all_of(is_async_copy);
  return result.empty() ? all_of(is_arrival) : result;
}

// What the latest warps do before they arrive: the costliest waits since the preceding barrier.
std::vector<Blamed> Blamer::since_barrier(int use) const {
  std::vector<Candidate> waited;
  for (const Reached& r : slicer_.before(use, [&](int k) { return is_barrier(at(k)); })) {
    if (is_barrier(at(r.instruction))) continue;
    waited.push_back({r.instruction, load_.waited[slot(r.instruction)]});
  }
  return shared(waited);
}

std::vector<Blamed> Blamer::unit(int use, Stall stall) const {
  std::vector<int> region;
  for (const HotLoop& loop : hot_.hot) {
    if (!loop.loops || !std::binary_search(loop.body.begin(), loop.body.end(), use)) continue;
    if (region.empty() || loop.body.size() < region.size()) region = loop.body;
  }
  if (region.empty()) {
    for (const Reached& r : slicer_.before(use, [&](int k) { return k == use; })) {
      if (region.size() >= kWindow) break;
      region.push_back(r.instruction);
    }
    region.push_back(use);
  }
  std::vector<Candidate> found;
  // One that waits for room is more likely to have others of its kind before it than any other.
  constexpr double kOwnKind = 4;
  for (const int k : region) {
    if (!uses_unit(at(k), at(use), stall)) continue;
    found.push_back({k, issued(k) * (at(k).op == at(use).op ? kOwnKind : 1)});
  }
  return shared(found);
}

std::vector<Blamed> Blamer::blame(int instruction, Stall stall) const {
  switch (stall) {
    case Stall::kLongScoreboard:
      return scoreboard(instruction, true);
    case Stall::kShortScoreboard:
      return scoreboard(instruction, false);
    case Stall::kWait:
      return fixed_latency(instruction);
    case Stall::kGmma:
      // With groups that may stay under way, the one that is waited for lies beyond the last wait.
      return preceding(instruction, is_product,
                       is_product_wait(at(instruction)) && groups_left(at(instruction)) > 0
                           ? never
                           : is_product_wait);
    case Stall::kMembar:
      return preceding(instruction, is_store, is_fence);
    case Stall::kDrain:
      return preceding(instruction, is_store, never);
    case Stall::kBarrier:
    case Stall::kWarpgroupArrive:
      return since_barrier(instruction);
    case Stall::kLgThrottle:
    case Stall::kMioThrottle:
    case Stall::kTexThrottle:
    case Stall::kMathPipeThrottle:
      return unit(instruction, stall);
    default:
      return {};
  }
}

}  // namespace kernelpro
