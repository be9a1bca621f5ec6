// SPDX-License-Identifier: Apache-2.0
#include "profile/places/slices.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace kernelpro {

namespace {

constexpr int kMostVisited = 20'000;  // instructions of one search
constexpr int kMostFound = 64;

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

template <class Visit>
void each_register(const RegisterSpan& span, Visit visit) {
  for (int r = span.first; r < std::min(span.first + span.count, kRegisterSlots); ++r) visit(r);
}

int issue_cycles(const SassInstruction& i) {
  return i.control.known ? std::max<int>(1, i.control.stall) : 1;
}

}  // namespace

Slicer::Slicer(const SassFunction& function, const ControlFlow& control)
    : f_(function), control_(control) {
  access_.reserve(function.code.size());
  for (const SassInstruction& i : function.code) access_.push_back(access_of(i));
}

bool Slicer::settle(int instruction, Items* wanted, Reached* reached) const {
  const SassInstruction& i = f_.code[slot(instruction)];
  // A result that is written under a condition leaves the older writers possible.
  const bool always = i.guard.empty() || i.guard == "@PT";
  for (const RegisterSpan& span : access_[slot(instruction)].writes) {
    each_register(span, [&](int r) {
      if (!wanted->test(slot(r))) return;
      reached->by_register = true;
      if (always) wanted->reset(slot(r));
    });
  }
  if (!i.control.known) return reached->by_register;
  for (int b = 0; b < kScoreboardItems; ++b) {
    const std::size_t item = slot(kRegisterSlots + b);
    if (!wanted->test(item)) continue;
    reached->by_board = reached->by_board || i.control.written_by == b || i.control.read_by == b;
    // All that set it before are done once an instruction has waited for it.
    if ((i.control.waits >> b & 1) != 0) wanted->reset(item);
  }
  return reached->by_register || reached->by_board;
}

// Walks back from `use`, the shortest paths first, and through each block once per wanted item.
template <class Visit>
void Slicer::walk(int use, const Items& wanted, Visit visit) const {
  struct Step {
    int distance, cycles, from;
    Items wanted;
    bool operator<(const Step& other) const { return distance > other.distance; }
  };
  std::priority_queue<Step> work;
  std::map<int, Items> seen;  // by block
  int visited = 0;
  const auto follow = [&](int from, Step step) {
    const CodeBlock& block = control_.blocks[slot(control_.block_of[slot(std::max(0, from))])];
    for (int k = from; k >= block.first && visited < kMostVisited; --k) {
      ++visited;
      ++step.distance;
      step.cycles += issue_cycles(f_.code[slot(k)]);
      visit(k, step.distance, step.cycles, &step.wanted);
      if (step.wanted.none()) return;
    }
    for (const int before : block.before) {
      step.from = before;
      work.push(step);
    }
  };
  const CodeBlock& first = control_.blocks[slot(control_.block_of[slot(use)])];
  if (use > first.first) {
    follow(use - 1, {0, 0, 0, wanted});
  } else {
    for (const int before : first.before) work.push({0, 0, before, wanted});
  }
  while (!work.empty() && visited < kMostVisited) {
    Step step = work.top();
    work.pop();
    Items& known = seen[step.from];
    step.wanted &= ~known;
    if (step.wanted.none()) continue;
    known |= step.wanted;
    follow(control_.blocks[slot(step.from)].last, step);
  }
}

std::vector<Reached> Slicer::producers(int use) const {
  Items wanted;
  for (const OperandUse& read : access_[slot(use)].reads) {
    each_register(read.registers, [&](int r) { wanted.set(slot(r)); });
  }
  const SassControl& control = f_.code[slot(use)].control;
  for (int b = 0; control.known && b < kScoreboardItems; ++b) {
    if ((control.waits >> b & 1) != 0) wanted.set(slot(kRegisterSlots + b));
  }
  if (wanted.none()) return {};
  std::map<int, Reached> found;
  walk(use, wanted, [&](int k, int distance, int cycles, Items* left) {
    Reached reached{k, distance, cycles};
    if (static_cast<int>(found.size()) >= kMostFound || !settle(k, left, &reached)) return;
    Reached& known = found.try_emplace(k, reached).first->second;
    known.by_register = known.by_register || reached.by_register;
    known.by_board = known.by_board || reached.by_board;
  });
  std::vector<Reached> result;
  for (const auto& [k, reached] : found) result.push_back(reached);
  std::stable_sort(result.begin(), result.end(),
                   [](const Reached& a, const Reached& b) { return a.distance < b.distance; });
  return result;
}

std::vector<Reached> Slicer::before(int use, const std::function<bool(int)>& stops) const {
  Items path;
  path.set(0);
  std::vector<Reached> result;
  walk(use, path, [&](int k, int distance, int cycles, Items* left) {
    result.push_back({k, distance, cycles});
    if (stops(k)) left->reset();
  });
  return result;
}

}  // namespace kernelpro
