// SPDX-License-Identifier: Apache-2.0
#include "diagnose/account/costly.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace kernelpro {

namespace {

// The last one stands for every reason without a row.
constexpr Remedy kRemedies[] = {
    {Stall::kLongScoreboard,
     "the load starts earlier (an iteration or a tile ahead), more loads are in flight, or the "
     "value is reused from shared memory or a register",
     "unroll",
     "Issue the load earlier: load the next items before the present ones are used, or stage the "
     "next tile with `cp.async` or TMA.",
     "registers would spill"},
    {Stall::kShortScoreboard,
     "the value stays in a register, or the access to shared memory or the special function starts "
     "earlier",
     "shared-memory",
     "Keep reused values in registers, read shared memory 128 bits at a time, and move shuffles "
     "and "
     "special functions out of the loop.",
     "registers would spill"},
    {Stall::kBarrier,
     "the warps reach the barrier at the same time, or there are fewer barriers: double buffers, "
     "warp-level exchange",
     "synchronization",
     "Use fewer barriers: two buffers need one per tile, warp shuffles need none.",
     "every warp needs every other warp's result at once"},
    {Stall::kWait, "independent instructions stand between the two", "unroll",
     "Work on several independent items or accumulators per thread.",
     "the order of a sum must stay fixed, or registers would spill"},
    {Stall::kMathPipeThrottle, "there is less arithmetic for this unit, or another unit does it",
     "algorithm",
     "Move work to another unit: matrix instructions, packed arithmetic, fewer "
     "conversions.",
     "the unit does the task's own arithmetic"},
    {Stall::kGmma, "another product is in flight meanwhile", "pipeline",
     "Keep a further group of matrix products in flight, or add a consumer warpgroup.",
     "the matrix units are already busy"},
    {Stall::kWarpgroupArrive, "the warps of a warpgroup arrive together", "synchronization",
     "Keep warps of a warpgroup in step: no divergent work before the product.", ""},
    {Stall::kMioThrottle, "there are fewer or wider accesses to shared memory", "shared-memory",
     "Issue fewer, wider shared-memory accesses; use `ldmatrix` for matrix tiles.", ""},
    {Stall::kLgThrottle, "there are fewer or wider accesses to global memory", "vectorize",
     "Access 128 bits at a time.", "addresses are not 16-byte aligned"},
    {Stall::kDrain, "stores end earlier or are wider", "vectorize",
     "Use wide, contiguous stores, and give each block more work after its first stores.", ""},
    {Stall::kMembar, "the fence is narrower or rarer", "synchronization",
     "Use the narrowest scope, and fence once per block.", ""},
    {Stall::kNoInstruction, "the loop fits the instruction cache", "unroll",
     "Unroll less, so that the hot code stays in the instruction cache.", ""},
    {Stall::kImcMiss, "the constant is in a register", "registers",
     "Load constants before the loop.", "registers would spill"},
    {Stall::kBranchResolving, "the branch goes or covers more work", "divergence",
     "Unroll short loops, and replace short branches with selects.", "the bodies are long"},
    {Stall::kSelected, "fewer instructions do the same work", "algorithm",
     "Execute fewer instructions here: wider accesses, strength-reduced indices, matrix or packed "
     "instructions.",
     "they are the task's own arithmetic"},
    {Stall::kMisc, "other warps have work meanwhile: more warps, or more independent work per warp",
     "block-size", "Keep more warps resident, or give each more independent work.",
     "occupancy is already high"},
};

// A barrier in shared memory is waited for as a load is, by polling.
constexpr Remedy kOfTiles = {
    Stall::kLongScoreboard,
    "what the barrier announces is asked for earlier (more stages), or the warps that fill or free "
    "it are faster",
    "pipeline",
    "Keep more tiles in flight (a deeper ring), or speed up the warps that this barrier waits for.",
    "shared memory has no room for another stage"};
// A store holds its registers until it has read them.
constexpr Remedy kOfStores = {
    Stall::kLongScoreboard,
    "the registers that the stores send are not needed again so soon, or fewer and wider stores "
    "send them",
    "shared-memory",
    "Hand results over through shared memory and bulk or 128-bit stores, or begin the next tile in "
    "other registers.",
    "registers would spill"};

// Of the kernel's time: exposed waits, or the place's part of what is issued.
double time_at(const Places& places, const KernelAccount& account, const Place& place) {
  if (place.stall != Stall::kSelected) return place.exposed;
  double issued = account.warp_issuing, known = 0;
  for (const Place& each : places.places) {
    if (each.stall == Stall::kSelected) known += each.share;
  }
  issued = std::max(issued, known);
  return issued > 0 ? account.issuing * place.share / issued : 0;
}

CostlyPlace costly(const Place& place, double share, double us, double call_us) {
  CostlyPlace result;
  result.line = place.at.line;
  result.offset = place.at.offset;
  result.instruction = place.at.instruction;
  result.stall = place.stall;
  result.share = share;
  result.us = us;
  // Elimination: S = T / (T - B).
  if (call_us > us) result.gain = call_us / (call_us - us);
  if (!place.producers.empty()) result.because = place.producers.front().at;
  result.callers = place.at.callers;
  result.condition = remedy_of(result).condition;
  return result;
}

// Waits for the role that sets the pace are no lost time: they go when that role is faster.
bool idles(const Places& places, const CostlyPlace& place) {
  const WarpRole* pace = pace_setter(places.roles);
  if (pace == nullptr || !at_shared_barrier(place)) return false;
  const auto of_pace = [&](const SourceLine& line) {
    return line.file == pace->file && line.line >= pace->first && line.line <= pace->last;
  };
  return !of_pace(place.line) && std::ranges::none_of(place.callers, of_pace);
}

bool same_line(const CostlyPlace& a, const CostlyPlace& b) {
  const auto same = [](const SourceLine& x, const SourceLine& y) { return x.same_place(y); };
  return !a.line.file.empty() && a.line.same_place(b.line) &&
         std::ranges::equal(a.callers, b.callers, same);
}

// One place for each line, named by what costs most there; `places` have the largest first.
void join_lines(double kernel_us, double call_us, std::vector<CostlyPlace>* places) {
  std::vector<CostlyPlace> lines;
  for (CostlyPlace& place : *places) {
    const auto known = std::ranges::find_if(
        lines, [&](const CostlyPlace& each) { return same_line(each, place); });
    if (known == lines.end()) {
      lines.push_back(std::move(place));
      continue;
    }
    known->also += place.share;
    known->us = std::min(kernel_us, known->us + place.us);
    if (call_us > known->us) known->gain = call_us / (call_us - known->us);
  }
  *places = std::move(lines);
  std::ranges::stable_sort(*places,
                           [](const CostlyPlace& a, const CostlyPlace& b) { return a.us > b.us; });
}

bool names_line(const Finding& finding, const SourceLine& line) {
  return !line.file.empty() &&
         std::any_of(finding.sites.begin(), finding.sites.end(),
                     [&](const FindingSite& site) { return site.line.same_place(line); });
}

}  // namespace

const Remedy& remedy_of(Stall stall) {
  const auto* row = std::find_if(std::begin(kRemedies), std::end(kRemedies) - 1,
                                 [&](const Remedy& each) { return each.stall == stall; });
  return *row;
}

const Remedy& remedy_of(const CostlyPlace& place) {
  if (place.stall != Stall::kLongScoreboard) return remedy_of(place.stall);
  if (at_shared_barrier(place)) return kOfTiles;
  const bool store = place.because && executes(place.because->instruction, "STG");
  return store ? kOfStores : remedy_of(place.stall);
}

void add_costly_places(const Places& places, const BeyondFloor& beyond, double call_us,
                       KernelAccount* account) {
  for (const Place& place : places.places) {
    if (place.stall == Stall::kNotSelected) continue;
    const double part = time_at(places, *account, place);
    const bool issues = place.stall == Stall::kSelected;
    const double us =
        issues ? (account->issuing > 0 ? beyond.issue_us * part / account->issuing : 0)
               : beyond.active_us * part * beyond.waits[static_cast<std::size_t>(place.stall)];
    CostlyPlace each = costly(place, part, std::min(us, account->us), call_us);
    if (!idles(places, each)) account->places.push_back(std::move(each));
  }
  std::stable_sort(account->places.begin(), account->places.end(),
                   [](const CostlyPlace& a, const CostlyPlace& b) {
                     return a.us != b.us ? a.us > b.us : a.share > b.share;
                   });
  join_lines(account->us, call_us, &account->places);
  if (account->places.size() > kCostliest) account->places.resize(kCostliest);
  account->places_level =
      places.basis == Places::Basis::kSampled ? Level::kCounters : Level::kStatic;
}

void place_finding(const Places& places, const KernelAccount& account, double call_us,
                   Finding* finding) {
  if (!finding->places.empty() || finding->sites.empty()) return;
  double share = 0;
  for (const Place& place : places.places) {
    if (!names_line(*finding, place.at.line)) continue;
    const bool issues = place.stall == Stall::kSelected;
    const double most = issues ? account.part(PartKind::kIssue) : account.wait(place.stall);
    const double part = time_at(places, account, place);
    finding->places.push_back(costly(place, part, std::min(most, part * account.us), call_us));
    share += part;
  }
  if (finding->places.empty()) return;
  std::stable_sort(finding->places.begin(), finding->places.end(),
                   [](const CostlyPlace& a, const CostlyPlace& b) { return a.share > b.share; });
  if (finding->places.size() > kCostliest) finding->places.resize(kCostliest);
  if (call_us > 0 && finding->share == 0)
    finding->share = std::min(1.0, share) * std::min(1.0, account.us / call_us);
}

}  // namespace kernelpro
