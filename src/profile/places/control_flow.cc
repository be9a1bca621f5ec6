// SPDX-License-Identifier: Apache-2.0
#include "profile/places/control_flow.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace kernelpro {

namespace {

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

// The instruction that "CALL.REL.NOINC `(name)" leads to; -1: outside the function.
int callee_of(const SassFunction& function, const SassInstruction& i) {
  if (i.root != "CALL") return -1;
  const std::size_t open = i.operands.rfind("`(");
  const std::size_t close = i.operands.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open + 2) return -1;
  const auto label = function.labels.find(i.operands.substr(open + 2, close - open - 2));
  if (label == function.labels.end()) return -1;
  return label->second < static_cast<int>(function.code.size()) ? label->second : -1;
}

class Builder {
 public:
  Builder(const SassFunction& function, const std::vector<Flow>& flow)
      : f_(function), flow_(flow), size_(static_cast<int>(function.code.size())) {}

  ControlFlow build() {
    find_calls();
    cut();
    connect();
    mark_helpers();
    return std::move(result_);
  }

 private:
  void find_calls() {
    callee_.assign(slot(size_), -1);
    for (int i = 0; i < size_; ++i) {
      callee_[slot(i)] = callee_of(f_, f_.code[slot(i)]);
      if (callee_[slot(i)] >= 0) callers_[callee_[slot(i)]].push_back(i);
    }
  }

  void cut() {
    std::vector<bool> leads(slot(size_) + 1, false);
    if (size_ > 0) leads[0] = true;
    for (int i = 0; i < size_; ++i) {
      const Flow& flow = flow_[slot(i)];
      if (flow.target >= 0) leads[slot(flow.target)] = true;
      for (const int target : flow.more) leads[slot(target)] = true;
      if (callee_[slot(i)] >= 0) leads[slot(callee_[slot(i)])] = true;
      const bool ends = flow.target >= 0 || !flow.more.empty() || !flow.falls_through ||
                        callee_[slot(i)] >= 0 || f_.code[slot(i)].root == "RET";
      if (ends) leads[slot(i) + 1] = true;
    }
    result_.block_of.assign(slot(size_), 0);
    for (int i = 0; i < size_; ++i) {
      if (leads[slot(i)]) result_.blocks.push_back({i, i, {}});
      result_.blocks.back().last = i;
      result_.block_of[slot(i)] = static_cast<int>(result_.blocks.size()) - 1;
    }
  }

  void edge(int from, int to_instruction) {
    if (to_instruction < 0 || to_instruction >= size_) return;
    std::vector<int>& before = result_.blocks[slot(result_.block_of[slot(to_instruction)])].before;
    if (std::find(before.begin(), before.end(), from) == before.end()) before.push_back(from);
  }

  void connect() {
    // Returns of each function that is called, by its first instruction.
    for (const auto& [entry, sites] : callers_) returns_[entry] = returns_of(entry);
    for (int b = 0; b < static_cast<int>(result_.blocks.size()); ++b) {
      const int last = result_.blocks[slot(b)].last;
      const Flow& flow = flow_[slot(last)];
      const int callee = callee_[slot(last)];
      if (callee >= 0) {
        edge(b, callee);
        const std::vector<int>& returns = returns_[callee];
        for (const int from : returns) edge(from, last + 1);
        if (returns.empty()) edge(b, last + 1);
        continue;
      }
      if (flow.falls_through) edge(b, last + 1);
      edge(b, flow.target);
      for (const int target : flow.more) edge(b, target);
    }
  }

  // Blocks that return, of those that control reaches from `entry` without leaving the function.
  std::vector<int> returns_of(int entry) const {
    std::vector<int> found, work{result_.block_of[slot(entry)]};
    std::vector<bool> seen(result_.blocks.size(), false);
    const auto visit = [&](int instruction) {
      if (instruction < 0 || instruction >= size_) return;
      const int block = result_.block_of[slot(instruction)];
      if (!seen[slot(block)]) work.push_back(block);
    };
    while (!work.empty()) {
      const int block = work.back();
      work.pop_back();
      if (seen[slot(block)]) continue;
      seen[slot(block)] = true;
      const int last = result_.blocks[slot(block)].last;
      const Flow& flow = flow_[slot(last)];
      if (f_.code[slot(last)].root == "RET") found.push_back(block);
      if (flow.falls_through) visit(last + 1);
      if (callee_[slot(last)] < 0) visit(flow.target);
      for (const int target : flow.more) visit(target);
    }
    return found;
  }

  // Helpers lie behind the kernel's code, from their label to the next function's.
  void mark_helpers() {
    result_.called_from.assign(slot(size_), -1);
    for (const auto& [entry, sites] : callers_) {
      if (!contains(f_.code[slot(sites.front())].operands, "__internal")) continue;
      const auto next = callers_.upper_bound(entry);
      const int end = next != callers_.end() ? next->first : size_;
      for (int i = entry; i < end; ++i) result_.called_from[slot(i)] = sites.front();
    }
  }

  const SassFunction& f_;
  const std::vector<Flow>& flow_;
  int size_;
  std::vector<int> callee_;                  // of each instruction; -1: it calls nothing here
  std::map<int, std::vector<int>> callers_;  // call sites by the callee's first instruction
  std::map<int, std::vector<int>> returns_;
  ControlFlow result_;
};

}  // namespace

ControlFlow control_flow(const SassFunction& function, const std::vector<Flow>& flow) {
  return Builder(function, flow).build();
}

}  // namespace kernelpro
