// SPDX-License-Identifier: Apache-2.0
#include "profile/places/roles.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr double kLeastRole = 0.02;   // of all samples: a single warp among many
constexpr double kCovered = 0.7;      // of the samples: what roles must explain
constexpr double kInLoops = 0.5;      // of a role's samples
constexpr double kLeastLine = 0.01;   // of a role's samples: belongs to its range
constexpr int kMostBranches = 400;    // looked at, in code order: roles part early
constexpr std::size_t kPolling = 16;  // instructions of a loop that does nothing but look again

// What a loop that only looks again does not do.
constexpr Op kWork[] = {Op::kGlobalStore, Op::kGlobalAtomic, Op::kSharedStore, Op::kFp32,
                        Op::kFp64,        Op::kHalf,         Op::kTensor,      Op::kWarpgroup,
                        Op::kAsyncCopy,   Op::kBulkCopy};

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

using Blocks = std::vector<char>;  // which of them

bool looks_at_barrier(const SassInstruction& i) { return i.root == "SYNCS" && i.has("PHASECHK"); }

class Roles {
 public:
  Roles(const SassFunction& f, const std::vector<Flow>& flow, const ControlFlow& control,
        const std::vector<WaitAt>& samples)
      : f_(f), flow_(flow), control_(control), samples_(samples) {
    after_.resize(control.blocks.size());
    before_.resize(control.blocks.size());
    weight_.assign(control.blocks.size(), 0);
    for (std::size_t b = 0; b < control.blocks.size(); ++b) {
      const int last = control.blocks[b].last;
      const Flow& at = flow[slot(last)];
      if (at.falls_through) edge(b, last + 1);
      edge(b, at.target);
      for (const int target : at.more) edge(b, target);
    }
    for (const WaitAt& each : samples) {
      weight_[slot(control.block_of[slot(each.instruction)])] += each.all;
      all_ += each.all;
    }
  }

  std::vector<WarpRole> found() {
    if (f_.code.empty() || !(all_ > 0)) return {};
    split(Blocks(after_.size(), 1));
    if (parts_.size() < 2 || parts_.size() > kMostRoles) return {};
    mark_waits();
    std::vector<WarpRole> roles;
    for (const Blocks& part : parts_) roles.push_back(described(part));
    // Without lines they have no names.
    if (std::ranges::any_of(roles, [](const WarpRole& role) { return role.file.empty(); }))
      return {};
    std::stable_sort(roles.begin(), roles.end(),
                     [](const WarpRole& a, const WarpRole& b) { return a.first < b.first; });
    return roles;
  }

 private:
  void edge(std::size_t from, int to) {
    if (to < 0 || slot(to) >= f_.code.size()) return;
    const int block = control_.block_of[slot(to)];
    std::vector<int>& all = after_[from];
    if (std::find(all.begin(), all.end(), block) != all.end()) return;
    all.push_back(block);
    before_[slot(block)].push_back(static_cast<int>(from));
  }

  Blocks reached(int from, const Blocks& within) const {
    Blocks seen(within.size(), 0);
    std::vector<int> work{from};
    while (!work.empty()) {
      const int b = work.back();
      work.pop_back();
      if (seen[slot(b)] != 0 || within[slot(b)] == 0) continue;
      seen[slot(b)] = 1;
      work.insert(work.end(), after_[slot(b)].begin(), after_[slot(b)].end());
    }
    return seen;
  }

  double weight(const Blocks& blocks) const {
    double sum = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) sum += blocks[b] != 0 ? weight_[b] : 0;
    return sum;
  }

  // Takes away what lies before or behind all loops.
  Blocks loops_of(Blocks blocks) const {
    std::vector<int> in(blocks.size(), 0), out(blocks.size(), 0), work;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b] == 0) continue;
      for (const int to : after_[b]) {
        if (blocks[slot(to)] != 0) ++in[slot(to)], ++out[b];
      }
    }
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b] != 0 && (in[b] == 0 || out[b] == 0)) work.push_back(static_cast<int>(b));
    }
    while (!work.empty()) {
      const std::size_t b = slot(work.back());
      work.pop_back();
      if (blocks[b] == 0) continue;
      blocks[b] = 0;
      for (const int to : after_[b]) {
        if (blocks[slot(to)] != 0 && --in[slot(to)] == 0) work.push_back(to);
      }
      for (const int from : before_[b]) {
        if (blocks[slot(from)] != 0 && --out[slot(from)] == 0) work.push_back(from);
      }
    }
    return blocks;
  }

  bool is_role(const Blocks& blocks) const {
    const double mine = weight(blocks);
    return mine >= kLeastRole * all_ && weight(loops_of(blocks)) >= kInLoops * mine;
  }

  static Blocks without(Blocks some, const Blocks& others) {
    for (std::size_t b = 0; b < some.size(); ++b) {
      if (others[b] != 0) some[b] = 0;
    }
    return some;
  }

  // A branch whose two ways never meet again in code that matters parts warps for good.
  void split(const Blocks& within) {
    double most = kCovered * weight(within);
    std::optional<std::pair<Blocks, Blocks>> best;
    int looked = 0;
    for (std::size_t b = 0; b < within.size() && looked < kMostBranches; ++b) {
      if (within[b] == 0 || after_[b].size() != 2) continue;
      ++looked;
      const Blocks one = reached(after_[b][0], within), other = reached(after_[b][1], within);
      Blocks first = without(one, other), second = without(other, one);
      const double covered = weight(first) + weight(second);
      if (covered <= most || !is_role(first) || !is_role(second)) continue;
      most = covered;
      best = {std::move(first), std::move(second)};
    }
    if (!best || parts_.size() > kMostRoles) {
      parts_.push_back(within);
      return;
    }
    split(best->first);
    split(best->second);
  }

  // Who needs the answer of a look at a barrier in shared memory waits for other warps, or for
  // copies; so does all that a loop does which only looks again.
  void mark_waits() {
    const int size = static_cast<int>(f_.code.size());
    awaits_.assign(f_.code.size(), 0);
    polls_.assign(f_.code.size(), 0);
    for (int k = 0; k < size; ++k) {
      const SassInstruction& i = f_.code[slot(k)];
      if (!looks_at_barrier(i)) continue;
      const std::string answer = i.operands.substr(0, i.operands.find(','));
      const int end = control_.blocks[slot(control_.block_of[slot(k)])].last;
      for (int user = k + 1; user <= end; ++user) {
        const SassInstruction& at = f_.code[slot(user)];
        const bool guarded = at.guard == "@" + answer || at.guard == "@!" + answer;
        if (guarded) awaits_[slot(user)] = 1;
        if (guarded || at.operands.starts_with(answer + ",")) break;
      }
    }
    for (const Loop& loop : find_loops(flow_)) {
      if (!loop.innermost || loop.body.size() > kPolling) continue;
      const auto any = [&](auto is) {
        return std::ranges::any_of(loop.body, [&](int k) { return is(f_.code[slot(k)]); });
      };
      const bool looks = any([](const SassInstruction& i) {
        return looks_at_barrier(i) || i.root == "NANOSLEEP" ||
               (i.op == Op::kGlobalLoad && i.has("STRONG"));
      });
      const bool works = any([](const SassInstruction& i) {
        return std::ranges::find(kWork, i.op) != std::end(kWork);
      });
      if (!looks || works) continue;
      for (const int k : loop.body) polls_[slot(k)] = 1;
    }
    for (int k = 0; k < size; ++k) {
      const SassInstruction& i = f_.code[slot(k)];
      if (i.root != "BAR") continue;
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        if (parts_[p][slot(control_.block_of[slot(k)])] == 0) continue;
        barriers_[i.operands.substr(0, i.operands.find(','))].insert(p);
      }
    }
  }

  // Whether the barrier at or before an instruction, within its block, is one that warps of another
  // role take part in, too. One that a register names is taken to be the role's own.
  bool meets_others(int k) const {
    const int first = control_.blocks[slot(control_.block_of[slot(k)])].first;
    for (int at = k; at >= first; --at) {
      const SassInstruction& i = f_.code[slot(at)];
      if (i.root != "BAR") continue;
      const std::string name = i.operands.substr(0, i.operands.find(','));
      const auto found = barriers_.find(name);
      return name.starts_with("0x") && found != barriers_.end() && found->second.size() > 1;
    }
    return false;
  }

  // The kernel's own line, where a function was inlined.
  std::pair<int, int> line_of(int k) const {
    const int call = control_.called_from[slot(k)];
    const SassInstruction& i = f_.code[slot(call >= 0 ? call : k)];
    if (i.calls >= 0 && !f_.calls[slot(i.calls)].empty()) return f_.calls[slot(i.calls)].back();
    return {i.file, i.line};
  }

  WarpRole described(const Blocks& part) const {
    WarpRole role;
    double all = 0, awaits = 0, ready = 0;
    std::map<std::pair<int, int>, double> lines;
    std::map<Stall, std::map<std::pair<int, int>, double>> waits;
    for (const WaitAt& each : samples_) {
      const std::size_t k = slot(each.instruction);
      if (part[slot(control_.block_of[k])] == 0) continue;
      all += each.all;
      const std::pair<int, int> line = line_of(each.instruction);
      lines[line] += each.all;
      const bool could = each.stall == Stall::kSelected || each.stall == Stall::kNotSelected;
      const bool at_barrier = each.stall == Stall::kBarrier && meets_others(each.instruction);
      if (polls_[k] != 0 || (awaits_[k] != 0 && !could) || at_barrier) {
        awaits += each.all;
      } else if (could) {
        ready += each.all;
      } else {
        waits[each.stall][line] += each.all;
      }
    }
    role.share = all / all_;
    role.awaits = awaits / all;
    role.ready = ready / all;
    add_range(lines, all, &role);
    for (const auto& [stall, places] : waits) {
      double sum = 0;
      for (const auto& [at, weight] : places) sum += weight;
      const auto most =
          std::ranges::max_element(places, {}, [](const auto& each) { return each.second; });
      if (sum < kLeastRoleWait * all) continue;
      const auto [file, number] = most->first;
      const SourceLine at =
          known(file) ? SourceLine{f_.files[slot(file)], number, ""} : SourceLine();
      role.waits.push_back({stall, sum / all, at, most->second / all});
    }
    std::stable_sort(role.waits.begin(), role.waits.end(),
                     [](const RoleWait& a, const RoleWait& b) { return a.share > b.share; });
    if (role.waits.size() > kMostRoleWaits) role.waits.resize(kMostRoleWaits);
    return role;
  }

  bool known(int file) const { return file >= 0 && slot(file) < f_.files.size(); }

  void add_range(const std::map<std::pair<int, int>, double>& lines, double all,
                 WarpRole* role) const {
    std::map<int, double> files;
    for (const auto& [line, weight] : lines) {
      if (known(line.first)) files[line.first] += weight;
    }
    if (files.empty()) return;
    const int file =
        std::ranges::max_element(files, {}, [](const auto& f) { return f.second; })->first;
    role->file = f_.files[slot(file)];
    for (const auto& [line, weight] : lines) {
      if (line.first != file || weight < kLeastLine * all) continue;
      if (role->first == 0) role->first = line.second;
      role->last = line.second;
    }
    if (role->first > 0) return;
    const auto heaviest = std::ranges::max_element(
        lines, {}, [&](const auto& each) { return each.first.first == file ? each.second : -1; });
    role->first = role->last = heaviest->first.second;
  }

  const SassFunction& f_;
  const std::vector<Flow>& flow_;
  const ControlFlow& control_;
  const std::vector<WaitAt>& samples_;
  std::vector<std::vector<int>> after_, before_;  // blocks
  std::vector<double> weight_;                    // of each block
  double all_ = 0;
  std::vector<Blocks> parts_;
  std::vector<char> awaits_, polls_;                       // of each instruction
  std::map<std::string, std::set<std::size_t>> barriers_;  // by operand: parts that name them
};

}  // namespace

std::vector<WarpRole> warp_roles(const SassFunction& function, const std::vector<Flow>& flow,
                                 const ControlFlow& control, const std::vector<WaitAt>& samples) {
  return Roles(function, flow, control, samples).found();
}

namespace {

// Instructions from which no loop and no work can be reached.
std::vector<char> behind_work(const SassFunction& function, const std::vector<Flow>& flow) {
  std::vector<std::vector<int>> before(flow.size());
  const auto edge = [&](std::size_t from, int to) {
    if (to >= 0 && slot(to) < flow.size()) before[slot(to)].push_back(static_cast<int>(from));
  };
  for (std::size_t k = 0; k < flow.size(); ++k) {
    if (flow[k].falls_through) edge(k, static_cast<int>(k) + 1);
    edge(k, flow[k].target);
    for (const int target : flow[k].more) edge(k, target);
  }
  std::vector<int> work;
  for (const Loop& loop : find_loops(flow)) {
    if (loop.body.size() > kPolling) work.insert(work.end(), loop.body.begin(), loop.body.end());
  }
  for (std::size_t k = 0; k < flow.size(); ++k) {
    const bool works = std::ranges::find(kWork, function.code[k].op) != std::end(kWork);
    if (works) work.push_back(static_cast<int>(k));
  }
  std::vector<char> behind(flow.size(), 1);
  while (!work.empty()) {
    const int k = work.back();
    work.pop_back();
    if (behind[slot(k)] == 0) continue;
    behind[slot(k)] = 0;
    work.insert(work.end(), before[slot(k)].begin(), before[slot(k)].end());
  }
  return behind;
}

}  // namespace

void leave_out_idle_warps(const SassFunction& function, const std::vector<Flow>& flow,
                          const ControlFlow& control, std::vector<WaitAt>* samples,
                          std::map<Stall, StallShare>* stalls) {
  if (warp_roles(function, flow, control, *samples).empty()) return;
  const std::vector<char> behind = behind_work(function, flow);
  const auto idle = [&](const WaitAt& each) {
    return each.stall == Stall::kBarrier && behind[slot(each.instruction)] != 0;
  };
  double all = 0, exposed = 0, left_all = 0, left_exposed = 0;
  for (const auto& [stall, share] : *stalls) all += share.share, exposed += share.exposed;
  left_all = all, left_exposed = exposed;
  for (const WaitAt& each : *samples) {
    if (idle(each)) left_all -= each.all, left_exposed -= each.exposed;
  }
  if (!(left_all > 0) || !(left_exposed > 0) || left_all >= all) return;
  for (const WaitAt& each : *samples) {
    if (!idle(each)) continue;
    StallShare& barrier = stalls->at(Stall::kBarrier);
    barrier.share = std::max(0.0, barrier.share - each.all);
    barrier.exposed = std::max(0.0, barrier.exposed - each.exposed);
  }
  std::erase_if(*samples, idle);
  // The part of the cycles without an issue stays what it was.
  const double factor = exposed * left_all / all / left_exposed;
  for (WaitAt& each : *samples) each.exposed = std::min(each.all, each.exposed * factor);
  for (auto& [stall, share] : *stalls)
    share.exposed = std::min(share.share, share.exposed * factor);
}

}  // namespace kernelpro
