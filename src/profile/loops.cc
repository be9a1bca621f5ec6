// SPDX-License-Identifier: Apache-2.0
#include "profile/loops.h"

#include <algorithm>
#include <map>

namespace kernelpro {

namespace {

// Steps of work that one function may cost; real kernels need far below a hundredth of it.
constexpr long kMaxWork = 20'000'000;

struct Block {
  int first = 0, last = 0;  // instructions, inclusive
  std::vector<int> next, previous;
};

class Graph {
 public:
  explicit Graph(const std::vector<Flow>& code) {
    const int n = static_cast<int>(code.size());
    std::vector<bool> leads(code.size() + 1, false);
    if (n > 0) leads[0] = true;
    for (int i = 0; i < n; ++i) {
      const Flow& flow = code[static_cast<std::size_t>(i)];
      if (flow.target >= 0 && flow.target < n) leads[static_cast<std::size_t>(flow.target)] = true;
      for (const int target : flow.more) {
        if (target >= 0 && target < n) leads[static_cast<std::size_t>(target)] = true;
      }
      if (flow.target >= 0 || !flow.more.empty() || !flow.falls_through)
        leads[static_cast<std::size_t>(i) + 1] = true;
    }
    std::vector<int> block_of(code.size(), 0);
    for (int i = 0; i < n; ++i) {
      if (leads[static_cast<std::size_t>(i)]) blocks.push_back({i, i, {}, {}});
      blocks.back().last = i;
      block_of[static_cast<std::size_t>(i)] = static_cast<int>(blocks.size()) - 1;
    }
    for (int b = 0; b < size(); ++b) {
      const int last = at(b).last;
      const Flow& flow = code[static_cast<std::size_t>(last)];
      if (flow.target >= 0 && flow.target < n) {
        connect(b, block_of[static_cast<std::size_t>(flow.target)]);
      }
      for (const int target : flow.more) {
        if (target >= 0 && target < n) connect(b, block_of[static_cast<std::size_t>(target)]);
      }
      if (flow.falls_through && last + 1 < n) connect(b, b + 1);
    }
    order_blocks();
  }

  int size() const { return static_cast<int>(blocks.size()); }
  Block& at(int b) { return blocks[static_cast<std::size_t>(b)]; }
  bool reached(int b) const { return rank[static_cast<std::size_t>(b)] >= 0; }

  // Immediate dominators by block; false when the work ran out.
  bool dominate(long* work) {
    dominator.assign(blocks.size(), -1);
    if (postorder.empty()) return true;
    dominator[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto it = postorder.rbegin(); it != postorder.rend(); ++it) {
        if (*it == 0) continue;
        int found = -1;
        for (const int p : at(*it).previous) {
          if (--*work < 0) return false;
          if (!reached(p) || dominator[static_cast<std::size_t>(p)] < 0) continue;
          found = found < 0 ? p : meet(p, found, work);
          if (found < 0) return false;
        }
        int& mine = dominator[static_cast<std::size_t>(*it)];
        if (found != mine) {
          mine = found;
          changed = true;
        }
      }
    }
    return true;
  }

  bool dominates(int a, int b, long* work) const {
    while (b != a && b != 0) {
      if (--*work < 0) return false;
      // A dominator has a higher rank than what it dominates.
      if (rank[static_cast<std::size_t>(b)] > rank[static_cast<std::size_t>(a)]) return false;
      b = dominator[static_cast<std::size_t>(b)];
    }
    return b == a;
  }

  std::vector<Block> blocks;
  std::vector<int> postorder;  // reachable blocks
  std::vector<int> rank;       // place in postorder, -1: unreachable
  std::vector<int> dominator;

 private:
  void connect(int from, int to) {
    at(from).next.push_back(to);
    at(to).previous.push_back(from);
  }

  void order_blocks() {
    rank.assign(blocks.size(), -1);
    if (blocks.empty()) return;
    std::vector<bool> seen(blocks.size(), false);
    std::vector<std::pair<int, std::size_t>> stack{{0, 0}};
    seen[0] = true;
    while (!stack.empty()) {
      const int b = stack.back().first;
      if (stack.back().second < at(b).next.size()) {
        const int to = at(b).next[stack.back().second++];
        if (!seen[static_cast<std::size_t>(to)]) {
          seen[static_cast<std::size_t>(to)] = true;
          stack.push_back({to, 0});
        }
      } else {
        rank[static_cast<std::size_t>(b)] = static_cast<int>(postorder.size());
        postorder.push_back(b);
        stack.pop_back();
      }
    }
  }

  int meet(int a, int b, long* work) const {
    while (a != b) {
      if (--*work < 0) return -1;
      int& lower = rank[static_cast<std::size_t>(a)] < rank[static_cast<std::size_t>(b)] ? a : b;
      lower = dominator[static_cast<std::size_t>(lower)];
    }
    return a;
  }
};

// Blocks of the loop at `header` with these back-edge sources, ascending.
std::vector<int> loop_blocks(Graph& graph, int header, const std::vector<int>& sources,
                             long* work) {
  std::vector<bool> inside(graph.blocks.size(), false);
  std::vector<int> stack, found{header};
  inside[static_cast<std::size_t>(header)] = true;
  *work -= graph.size() / 64;
  const auto visit = [&](int b) {
    if (inside[static_cast<std::size_t>(b)] || !graph.reached(b)) return;
    inside[static_cast<std::size_t>(b)] = true;
    found.push_back(b);
    stack.push_back(b);
  };
  for (const int source : sources) visit(source);
  while (!stack.empty() && *work > 0) {
    const int b = stack.back();
    stack.pop_back();
    for (const int p : graph.at(b).previous) {
      --*work;
      visit(p);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Depth, parent and innermost, from which body holds which header. Loops are natural and of
// different headers: two of them are nested or apart.
void nest(std::vector<Loop>* loops, long* work) {
  for (std::size_t i = 0; i < loops->size(); ++i) {
    Loop& inner = (*loops)[i];
    std::size_t smallest = 0;
    for (std::size_t j = 0; j < loops->size(); ++j) {
      if (i == j || --*work < 0) continue;
      Loop& outer = (*loops)[j];
      if (!std::binary_search(outer.body.begin(), outer.body.end(), inner.header)) continue;
      ++inner.depth;
      outer.innermost = false;
      if (inner.parent < 0 || outer.body.size() < smallest) {
        inner.parent = static_cast<int>(j);
        smallest = outer.body.size();
      }
    }
  }
}

}  // namespace

std::vector<Loop> find_loops(const std::vector<Flow>& code) {
  std::vector<Loop> loops;
  Graph graph(code);
  long work = kMaxWork;
  if (!graph.dominate(&work)) return loops;

  std::map<int, std::vector<int>> sources;  // of back edges, by header
  for (const int b : graph.postorder) {
    for (const int to : graph.at(b).next) {
      if (graph.dominates(to, b, &work)) sources[to].push_back(b);
    }
  }
  for (const auto& [header, from] : sources) {
    Loop loop;
    loop.header = graph.at(header).first;
    for (const int b : loop_blocks(graph, header, from, &work)) {
      for (int i = graph.at(b).first; i <= graph.at(b).last; ++i) loop.body.push_back(i);
      work -= graph.at(b).last - graph.at(b).first;
    }
    if (work <= 0) break;
    loops.push_back(std::move(loop));
  }
  nest(&loops, &work);
  return loops;
}

std::vector<int> reachable(const std::vector<Flow>& code) {
  Graph graph(code);
  std::vector<int> result;
  for (int b = 0; b < graph.size(); ++b) {
    if (!graph.reached(b)) continue;
    for (int i = graph.at(b).first; i <= graph.at(b).last; ++i) result.push_back(i);
  }
  return result;
}

}  // namespace kernelpro
