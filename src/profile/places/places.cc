// SPDX-License-Identifier: Apache-2.0
#include "profile/places/places.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/plan/kernel_name.h"
#include "profile/places/blame.h"
#include "profile/places/estimate.h"
#include "profile/places/regions.h"
#include "profile/places/roles.h"
#include "profile/sass/work.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostBlamedWaits = 2000;  // the costliest; the rest has no producers
constexpr std::size_t kMostProducers = 4;       // shown of a place
constexpr int kIssuePlaces = 4;                 // lines that issue most
constexpr std::size_t kMostInstruction = 160;
constexpr double kOneWarp = 1;
constexpr double kFewestToFit = 100;  // samples

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

std::string written(const SassInstruction& i) {
  std::string text = i.guard.empty() ? "" : i.guard + " ";
  text += i.root;
  for (const std::string& modifier : i.modifiers) text += "." + modifier;
  return i.operands.empty() ? text : text + " " + i.operands;
}

// Brings waits at instructions together by line, with their producers.
class Merger {
 public:
  Merger(const SassFunction& f, const HotCode& hot, std::vector<WaitAt> waits, const LineText& text)
      : f_(f),
        hot_(hot),
        control_(control_flow(f, hot.flow)),
        waits_(std::move(waits)),
        text_(text),
        load_{std::vector<double>(f.code.size()), std::vector<double>(f.code.size())} {}

  // `stalls`: samples by reason, of which those outside the code are in no place.
  Places merge(std::map<Stall, StallShare> stalls) {
    Places places;
    double all = 0;
    for (const auto& [stall, share] : stalls) all += share.share;
    if (!(all > 0)) return places;
    for (auto& [stall, share] : stalls) {
      if (share.share > 0) {
        places.stalls.push_back({stall, share.share / all, share.exposed / all});
      }
    }
    std::stable_sort(places.stalls.begin(), places.stalls.end(),
                     [](const StallShare& a, const StallShare& b) { return a.share > b.share; });
    for (const WaitAt& wait : waits_) weigh(wait);
    blame_all();
    places.issued = issued();
    places.regions = issue_regions(f_, control_, load_.issued);
    for (IssueRegion& region : places.regions) add_text(text_, &region.line);
    places.roles = warp_roles(f_, hot_.flow, control_, waits_);
    for (WarpRole& role : places.roles) {
      for (RoleWait& wait : role.waits) add_text(text_, &wait.line);
    }
    places.single_producer = waited_ > 0 ? single_ / waited_ : 0;
    for (auto& [key, group] : groups_) group.place.share /= all, group.place.exposed /= all;
    places.places = chosen();
    return places;
  }

 private:
  // File and line, or the instruction where there is no line.
  using Key = std::pair<int, int>;
  struct Source {
    double weight = 0;
    int instruction = 0;  // the one that weighs most
    double most = -1;
  };
  struct Group {
    Place place;
    int instruction = 0;  // the costliest
    double most = -1;     // its cost
    double cost = 0;      // of all
    std::map<Key, Source> producers;
  };

  // Helpers of the compiler have no lines: the line that calls them stands for theirs.
  const SassInstruction& lined(int k) const {
    const int call = control_.called_from[slot(k)];
    return f_.code[slot(call >= 0 ? call : k)];
  }
  Key key_of(int k) const {
    const SassInstruction& i = lined(k);
    return i.file >= 0 ? Key{i.file, i.line} : Key{-1, k};
  }

  SourceLine source_line(int file, int line) const {
    SourceLine result{f_.files[slot(file)], line, ""};
    add_text(text_, &result);
    return result;
  }

  CodePoint point(int k) const {
    CodePoint at;
    const SassInstruction& i = lined(k);
    if (i.file >= 0 && i.file < static_cast<int>(f_.files.size())) {
      at.line = source_line(i.file, i.line);
      if (i.calls >= 0) {
        for (const auto& [file, line] : f_.calls[slot(i.calls)]) {
          if (at.callers.size() < kMostCallers) at.callers.push_back(source_line(file, line));
        }
      }
    }
    at.offset = static_cast<int>(f_.code[slot(k)].address - f_.code[0].address);
    at.instruction = clip(written(f_.code[slot(k)]), kMostInstruction);
    return at;
  }

  void weigh(const WaitAt& wait) {
    if (wait.stall == Stall::kSelected) load_.issued[slot(wait.instruction)] += wait.all;
    const StallCause cause = stall_row(wait.stall).cause;
    if (cause != StallCause::kNone && cause != StallCause::kOthers) {
      load_.waited[slot(wait.instruction)] += wait.exposed > 0 ? wait.exposed : 1e-3 * wait.all;
    }
  }

  std::vector<WorkShare> issued() const {
    std::array<double, kWorkKinds> by_kind{};
    double all = 0;
    for (std::size_t k = 0; k < f_.code.size(); ++k) {
      by_kind[static_cast<std::size_t>(kind_of_work(f_.code[k]))] += load_.issued[k];
      all += load_.issued[k];
    }
    std::vector<WorkShare> shares;
    for (int kind = 0; kind < kWorkKinds; ++kind) {
      const double weight = by_kind[slot(kind)];
      if (weight > 0) shares.push_back({static_cast<WorkKind>(kind), weight / all});
    }
    std::stable_sort(shares.begin(), shares.end(),
                     [](const WorkShare& a, const WorkShare& b) { return a.share > b.share; });
    return shares;
  }

  void blame_all() {
    std::stable_sort(waits_.begin(), waits_.end(), [](const WaitAt& a, const WaitAt& b) {
      return a.exposed != b.exposed ? a.exposed > b.exposed : a.all > b.all;
    });
    const Blamer blamer(f_, hot_, control_, load_);
    std::size_t blamed = 0;
    for (const WaitAt& wait : waits_) {
      if (wait.stall == Stall::kNotSelected) continue;
      Group& group = groups_[{key_of(wait.instruction), wait.stall}];
      group.place.stall = wait.stall;
      group.place.share += wait.all;
      group.place.exposed += wait.exposed;
      const double cost = wait.exposed > 0 ? wait.exposed : 1e-3 * wait.all;
      group.cost += cost;
      if (cost > group.most) {
        group.most = cost;
        group.instruction = wait.instruction;
      }
      if (wait.stall == Stall::kSelected || blamed++ >= kMostBlamedWaits) continue;
      add_producers(blamer.blame(wait.instruction, wait.stall), wait, cost, &group);
    }
  }

  void add_producers(const std::vector<Blamed>& producers, const WaitAt& wait, double cost,
                     Group* group) {
    std::map<Key, double> lines;
    for (const Blamed& blamed : producers) {
      const Key key = key_of(blamed.instruction);
      lines[key] += blamed.part;
      Source& source = group->producers[key];
      source.weight += cost * blamed.part;
      if (cost * blamed.part <= source.most) continue;
      source.most = cost * blamed.part;
      source.instruction = blamed.instruction;
    }
    if (stall_row(wait.stall).cause != StallCause::kProducer) return;
    waited_ += wait.all;
    if (lines.size() == 1) single_ += wait.all;
  }

  std::vector<Place> chosen() {
    std::vector<const Group*> waits, issues;
    for (const auto& [key, group] : groups_) {
      if (group.place.share <= 0) continue;
      (group.place.stall == Stall::kSelected ? issues : waits).push_back(&group);
    }
    const auto costlier = [](const Group* a, const Group* b) {
      return a->place.exposed != b->place.exposed ? a->place.exposed > b->place.exposed
                                                  : a->place.share > b->place.share;
    };
    std::stable_sort(waits.begin(), waits.end(), costlier);
    std::stable_sort(issues.begin(), issues.end(), costlier);
    issues.resize(std::min(issues.size(), slot(kIssuePlaces)));
    waits.resize(std::min(waits.size(), slot(kMostPlaces) - issues.size()));
    waits.insert(waits.end(), issues.begin(), issues.end());
    std::vector<Place> places;
    for (const Group* group : waits) places.push_back(finished(*group));
    return places;
  }

  Place finished(const Group& group) const {
    Place place = group.place;
    place.at = point(group.instruction);
    for (const auto& [key, source] : group.producers) {
      place.producers.push_back({point(source.instruction), source.weight / group.cost});
    }
    std::stable_sort(place.producers.begin(), place.producers.end(),
                     [](const Producer& a, const Producer& b) { return a.part > b.part; });
    if (place.producers.size() > kMostProducers) place.producers.resize(kMostProducers);
    return place;
  }

  const SassFunction& f_;
  const HotCode& hot_;
  ControlFlow control_;
  std::vector<WaitAt> waits_;
  const LineText& text_;
  CodeLoad load_;
  std::map<std::pair<Key, Stall>, Group> groups_;
  double waited_ = 0;  // for earlier instructions
  double single_ = 0;  // of it, with one producer
};

// The average warps that wait for each reason, per issue; empty: not counted.
std::map<Stall, double> counted_stalls(const Evidence& facts) {
  std::map<Stall, double> counted;
  for (int s = 0; s < kStalls; ++s) {
    const auto stall = static_cast<Stall>(s);
    const auto value = facts.get("smsp__average_warps_issue_stalled_" +
                                 std::string(stall_row(stall).name) + "_per_issue_active.ratio");
    if (value && *value > 0) counted[stall] = *value;
  }
  // Not collected, since whenever a scheduler issues, one warp is selected.
  if (!counted.empty()) counted[Stall::kSelected] = 1;
  return counted;
}

// Where a reason that the model does not know is most likely waited for.
bool may_wait(const SassInstruction& i, Stall stall) {
  switch (stall) {
    case Stall::kBarrier:
      return i.op == Op::kBarrier || i.op == Op::kClusterBarrier;
    case Stall::kBranchResolving:
      return i.op == Op::kBranch || i.op == Op::kCall;
    case Stall::kLgThrottle:
      return i.op == Op::kGlobalLoad || i.op == Op::kGlobalStore || i.op == Op::kGlobalAtomic ||
             i.op == Op::kLocalLoad || i.op == Op::kLocalStore || i.op == Op::kAsyncCopy;
    case Stall::kMioThrottle:
      return i.op == Op::kSharedLoad || i.op == Op::kSharedStore || i.op == Op::kSharedAtomic ||
             i.op == Op::kMatrixLoad || i.op == Op::kSpecial || i.op == Op::kShuffle;
    case Stall::kMathPipeThrottle:
      return i.op == Op::kFp32 || i.op == Op::kFp64 || i.op == Op::kHalf || i.op == Op::kTensor ||
             i.op == Op::kInteger;
    case Stall::kTexThrottle:
      return i.op == Op::kTexture;
    case Stall::kDrain:
      return i.op == Op::kExit;
    case Stall::kMembar:
      return i.op == Op::kFence;
    case Stall::kImcMiss:
      return contains(i.operands, "c[");
    case Stall::kSleeping:
      return i.root == "NANOSLEEP";
    case Stall::kGmma:
      return i.op == Op::kWarpgroup || i.root == "WARPGROUP";
    case Stall::kWarpgroupArrive:
      return i.root == "WARPGROUP";
    default:
      return false;
  }
}

// Gives each reason the part that was counted, spread over its places as the model has them.
void weigh_by_counters(const SassFunction& kernel, const std::map<Stall, double>& counted,
                       std::vector<WaitAt>* waits) {
  std::map<Stall, double> modelled;
  for (const WaitAt& wait : *waits) modelled[wait.stall] += wait.all;
  std::vector<WaitAt> more;
  for (const auto& [stall, value] : counted) {
    if (modelled[stall] > 0) continue;
    for (const WaitAt& wait : *waits) {
      if (wait.stall != Stall::kSelected) continue;
      if (!may_wait(kernel.code[slot(wait.instruction)], stall)) continue;
      more.push_back({wait.instruction, stall, wait.all, wait.all});
      modelled[stall] += wait.all;
    }
  }
  waits->insert(waits->end(), more.begin(), more.end());
  for (WaitAt& wait : *waits) {
    const auto found = counted.find(wait.stall);
    const double factor = found != counted.end() ? found->second / modelled[wait.stall] : 0;
    wait.all *= factor;
  }
  std::erase_if(*waits, [](const WaitAt& wait) { return !(wait.all > 0); });
}

// The part of the cycles in which a scheduler issues.
double busy_part(const Evidence& facts, double issued_part) {
  if (const auto known = facts.get("smsp__issue_active.avg.per_cycle_active")) {
    return std::clamp(*known, 0.0, 1.0);
  }
  constexpr double kWarpsOfScheduler = 16;
  double warps = kOneWarp;
  if (const auto most = facts.get("sm__maximum_warps_per_active_cycle_pct")) {
    warps = std::max(kOneWarp, kWarpsOfScheduler * *most / 100);
  }
  return 1 - std::pow(1 - std::clamp(issued_part, 0.0, 1.0), warps);
}

// Samples of a cycle without an issue are all waits; their part is that of such cycles.
void expose(const Evidence& facts, std::vector<WaitAt>* waits,
            std::map<Stall, StallShare>* stalls) {
  double all = 0, real = 0, issued = 0;
  for (const auto& [stall, share] : *stalls) {
    all += share.share;
    if (stall_row(stall).cause != StallCause::kNone) real += share.share;
    if (stall == Stall::kSelected) issued += share.share;
  }
  if (!(real > 0)) return;
  const double part = std::min(1.0, (1 - busy_part(facts, issued / all)) * all / real);
  for (WaitAt& wait : *waits) {
    wait.exposed = stall_row(wait.stall).cause == StallCause::kNone ? 0 : part * wait.all;
  }
  for (auto& [stall, share] : *stalls) {
    share.exposed = stall_row(stall).cause == StallCause::kNone ? 0 : part * share.share;
  }
}

// Instructions by their bytes from the function's first.
std::map<std::uint64_t, int> by_offset(const SassFunction& kernel) {
  std::map<std::uint64_t, int> index;
  for (std::size_t k = 0; k < kernel.code.size(); ++k) {
    index[kernel.code[k].address - kernel.code[0].address] = static_cast<int>(k);
  }
  return index;
}

}  // namespace

double places_fit(const SassFunction& kernel, const KernelSamples& samples) {
  const auto index = by_offset(kernel);
  double all = 0, fitting = 0;
  for (const PcSamples& pc : samples.pcs) {
    const auto found = index.find(static_cast<std::uint64_t>(pc.offset));
    for (const StallSamples& s : pc.stalls) {
      if (s.stall != Stall::kLongScoreboard && s.stall != Stall::kShortScoreboard) continue;
      if (!std::isfinite(s.all) || !(s.all > 0)) continue;
      if (found == index.end()) {
        all += s.all;
        continue;
      }
      const SassInstruction& at = kernel.code[slot(waiter_of(kernel, found->second, s.stall))];
      if (!at.control.known) continue;
      all += s.all;
      // A wait for asynchronous copies is no part of the control word.
      if (at.control.waits != 0 || at.root == "DEPBAR") fitting += s.all;
    }
  }
  return all >= kFewestToFit ? fitting / all : 1;
}

Places sampled_places(const SassFunction& kernel, const KernelSamples& samples,
                      const LineText& text) {
  const auto index = by_offset(kernel);
  std::vector<WaitAt> waits;
  std::map<Stall, StallShare> stalls;
  double all = 0;
  for (const PcSamples& pc : samples.pcs) {
    const auto found = index.find(static_cast<std::uint64_t>(pc.offset));
    for (const StallSamples& s : pc.stalls) {
      if (!std::isfinite(s.all) || !(s.all > 0)) continue;
      const double exposed = s.exposed > 0 ? std::min(s.exposed, s.all) : 0;
      all += s.all;
      Stall stall = s.stall;
      if (found != index.end()) {
        const int waiter = waiter_of(kernel, found->second, s.stall);
        stall = awaited_at(kernel, waiter, s.stall);
        waits.push_back({waiter, stall, s.all, exposed});
      }
      stalls[stall].share += s.all;
      stalls[stall].exposed += exposed;
    }
  }
  const HotCode hot = find_hot_code(kernel);
  leave_out_idle_warps(kernel, hot.flow, control_flow(kernel, hot.flow), &waits, &stalls);
  Places places = Merger(kernel, hot, std::move(waits), text).merge(std::move(stalls));
  places.basis = Places::Basis::kSampled;
  places.samples = all;
  return places;
}

Places estimated_places(const SassFunction& kernel, const Evidence& facts, const LineText& text) {
  const HotCode hot = find_hot_code(kernel);
  std::vector<WaitAt> waits = estimated_waits(kernel, hot);
  std::map<Stall, StallShare> stalls;
  const std::map<Stall, double> counted = counted_stalls(facts);
  if (counted.empty()) {
    for (const WaitAt& wait : waits) stalls[wait.stall].share += wait.all;
  } else {
    weigh_by_counters(kernel, counted, &waits);
    for (const auto& [stall, value] : counted) stalls[stall].share = value;
  }
  expose(facts, &waits, &stalls);
  Places places = Merger(kernel, hot, std::move(waits), text).merge(std::move(stalls));
  places.basis = Places::Basis::kEstimated;
  places.issued.clear();
  places.regions.clear();
  places.roles.clear();
  return places;
}

void add_places(const std::map<std::string, SassFunction>& functions, const SampleAnswers& samples,
                const LineText& text, std::map<std::string, KernelEvidence>* kernels,
                std::vector<Missing>* missing) {
  for (auto& [name, kernel] : *kernels) {
    const auto code = functions.find(name);
    if (code == functions.end() || code->second.code.empty()) continue;
    const auto found = std::find_if(samples.kernels.begin(), samples.kernels.end(),
                                    [&](const KernelSamples& k) { return k.function == name; });
    Evidence& facts = kernel.facts;
    for (auto& [metric, lines] : facts.lines) {
      for (SourceLine& line : lines.lines) add_text(text, &line);
      for (SourceLine& line : lines.callers) add_text(text, &line);
    }
    if (found != samples.kernels.end() && places_fit(code->second, *found) < kLeastFit) {
      missing->push_back(
          {Family::kSamples,
           "the samples of " + short_kernel_name(kernel.name) +
               " lie at instructions that wait for nothing: they belong to other "
               "code",
           "profile it again with `ncu --section SourceCounters`, with the code that ran, and "
           "import the report",
           {},
           "of that kernel"});
    } else if (found != samples.kernels.end()) {
      Places places = sampled_places(code->second, *found, text);
      if (places.samples > 0) {
        double exposed = 0;
        for (const StallShare& share : places.stalls) exposed += share.exposed;
        facts.set("samples.taken", places.samples, samples.source);
        facts.set("samples.exposed", std::min(1.0, exposed), samples.source);
        facts.set("samples.single_producer", places.single_producer, samples.source);
        facts.places = std::move(places);
        continue;
      }
    }
    if (found == samples.kernels.end() && !samples.kernels.empty() && samples.missing.empty()) {
      missing->push_back({Family::kSamples,
                          "no samples came of " + short_kernel_name(kernel.name),
                          "profile it again",
                          {},
                          "of that kernel"});
    }
    facts.places = estimated_places(code->second, facts, text);
  }
  missing->insert(missing->end(), samples.missing.begin(), samples.missing.end());
}

}  // namespace kernelpro
