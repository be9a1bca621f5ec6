// SPDX-License-Identifier: Apache-2.0
#include "profile/code/loops.h"

#include <algorithm>
#include <utility>

namespace kernelpro {

namespace {

// Work limit per function, in steps; real kernels need far less than a hundredth of it.
constexpr long kMaxWork = 5'000'000;

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

  std::vector<Block> blocks;
  std::vector<int> postorder;  // reachable blocks
  std::vector<int> rank;       // place in postorder, -1: unreachable

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
};

// Strongly connected components, by Tarjan's algorithm without recursion.
class Components {
 public:
  // `inside`: the set of each block.
  Components(Graph& graph, const std::vector<int>& inside, long* work)
      : graph_(graph), inside_(inside), work_(work), marks_(graph.blocks.size()) {}

  // The components among the blocks of set `level`, each ascending. Skips single blocks that do not
  // jump to themselves.
  std::vector<std::vector<int>> find(const std::vector<int>& blocks, int level) {
    level_ = level;
    count_ = 0;
    found_.clear();
    stack_.clear();
    for (const int b : blocks) mark(b) = {};
    for (const int b : blocks) {
      if (mark(b).order < 0) visit(b);
    }
    return std::move(found_);
  }

 private:
  struct Mark {
    int order = -1, low = -1;
    bool on_stack = false;
  };
  struct Step {
    int block;
    std::size_t next = 0;
  };

  Mark& mark(int b) { return marks_[static_cast<std::size_t>(b)]; }

  void open(int b) {
    mark(b) = {count_, count_, true};
    ++count_;
    stack_.push_back(b);
    path_.push_back({b});
  }

  void visit(int root) {
    path_.clear();
    open(root);
    while (!path_.empty() && --*work_ > 0) {
      const int b = path_.back().block;
      const std::vector<int>& next = graph_.at(b).next;
      if (path_.back().next < next.size()) {
        const int to = next[path_.back().next++];
        if (inside_[static_cast<std::size_t>(to)] != level_) continue;
        if (mark(to).order < 0) {
          open(to);
        } else if (mark(to).on_stack) {
          mark(b).low = std::min(mark(b).low, mark(to).order);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) {
        int& low = mark(path_.back().block).low;
        low = std::min(low, mark(b).low);
      }
      if (mark(b).low == mark(b).order) close(b);
    }
  }

  void close(int b) {
    std::vector<int> component;
    for (int top = -1; top != b;) {
      top = stack_.back();
      stack_.pop_back();
      mark(top).on_stack = false;
      component.push_back(top);
    }
    const std::vector<int>& next = graph_.at(b).next;
    if (component.size() == 1 && std::find(next.begin(), next.end(), b) == next.end()) return;
    std::sort(component.begin(), component.end());
    found_.push_back(std::move(component));
  }

  Graph& graph_;
  const std::vector<int>& inside_;
  long* work_;
  std::vector<Mark> marks_;
  int level_ = 0, count_ = 0;
  std::vector<int> stack_;
  std::vector<Step> path_;
  std::vector<std::vector<int>> found_;
};

// The entry blocks of a component, ascending.
std::vector<int> entries_of(Graph& graph, const std::vector<int>& component,
                            const std::vector<int>& inside, int level) {
  std::vector<int> entries;
  for (const int b : component) {
    bool entered = b == 0;
    for (const int p : graph.at(b).previous) {
      entered = entered || (graph.reached(p) && inside[static_cast<std::size_t>(p)] != level);
    }
    if (entered) entries.push_back(b);
  }
  if (entries.empty()) entries.push_back(component.front());
  return entries;
}

// Sets depth, parent and innermost, from which body holds which header. Loops are natural with
// distinct headers: any two are nested or disjoint.
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
  // The set of each block: the whole function, or a loop without its header.
  std::vector<int> inside(graph.blocks.size(), 0);
  std::vector<std::vector<int>> sets{graph.postorder};
  std::reverse(sets[0].begin(), sets[0].end());
  int level = 0;
  std::vector<int> levels{level};
  Components components(graph, inside, &work);
  while (!sets.empty() && work > 0) {
    const std::vector<int> set = std::move(sets.back());
    const int set_level = levels.back();
    sets.pop_back();
    levels.pop_back();
    for (std::vector<int>& component : components.find(set, set_level)) {
      work -= 4 * static_cast<long>(component.size());
      if (work <= 0) break;
      ++level;
      for (const int b : component) inside[static_cast<std::size_t>(b)] = level;
      const std::vector<int> entries = entries_of(graph, component, inside, level);
      Loop loop;
      loop.header = graph.at(entries[0]).first;
      for (const int b : entries) loop.entries.push_back(graph.at(b).first);
      for (const int b : component) {
        for (int i = graph.at(b).first; i <= graph.at(b).last; ++i) loop.body.push_back(i);
        work -= graph.at(b).last - graph.at(b).first + 1;
      }
      loops.push_back(std::move(loop));
      for (const int b : entries) inside[static_cast<std::size_t>(b)] = -1;
      std::erase_if(component, [&](int b) { return inside[static_cast<std::size_t>(b)] < 0; });
      sets.push_back(std::move(component));
      levels.push_back(level);
    }
  }
  std::sort(loops.begin(), loops.end(),
            [](const Loop& a, const Loop& b) { return a.header < b.header; });
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
