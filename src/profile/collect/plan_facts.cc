// SPDX-License-Identifier: Apache-2.0
#include "profile/collect/plan_facts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/statistics/statistics.h"
#include "base/text.h"
#include "core/machine/architecture.h"
#include "core/plan/kernel_name.h"

namespace kernelpro {

namespace {

// Larger graphs are skipped: the analysis is quadratic in the number of nodes.
constexpr std::size_t kMostNodes = 2500;
constexpr std::uint64_t kGranularity = 2ull << 20;
constexpr std::uint64_t kBase = 1ull << 40;
constexpr std::size_t kAddressBytes = sizeof(std::uint64_t);
constexpr double kSummary = 64;  // a buffer's size over that of a summary of it

struct Place {
  std::size_t slot = 0;
  std::uint64_t offset = 0;
  bool operator<(const Place& other) const {
    return slot != other.slot ? slot < other.slot : offset < other.offset;
  }
};

// Bytes [begin, end) of a slot.
struct Access {
  std::size_t slot = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool reads = false;
  bool writes = false;
  bool operator==(const Access&) const = default;
  bool meets(const Access& other) const {
    return slot == other.slot && begin < other.end && other.begin < end;
  }
};

struct Node {
  std::vector<Access> accesses;
  bool opaque = false;  // touches unknown memory
};

// A kernel's parameter types, from its mangled name; empty: unknown (extern "C").
std::vector<std::string> parameter_types(const std::string& function) {
  if (!function.starts_with("_Z")) return {};
  const std::string name = demangled(function);
  if (name == function || name.back() != ')') return {};
  std::vector<std::string> types;
  std::string type;
  int depth = 0;
  for (std::size_t i = name.size() - 1; i-- > 0;) {  // backwards from before the last bracket
    const char c = name[i];
    if (depth == 0 && (c == '(' || c == ',')) {
      std::reverse(type.begin(), type.end());
      types.push_back(std::string(trim(type)));
      type.clear();
      if (c == '(') break;
      continue;
    }
    depth += (c == ')' || c == '>') - (c == '(' || c == '<');
    type += c;
  }
  std::reverse(types.begin(), types.end());
  return types;
}

bool points_to_const(const std::string& type) {
  return type.ends_with(" const*") || type.ends_with(" const* __restrict__");
}

class Memory {
 public:
  Memory(const LaunchPlan& plan, const PlanMemory& memory) : plan_(plan), memory_(memory) {
    for (const PlanNode& node : plan.nodes) {
      for (const PlanParameter& p : node.parameters) note_starts(p);
      note_starts(node.destination);
      note_starts(node.source);
    }
  }

  Node node(const PlanNode& n) const {
    Node result;
    if (n.kind == PlanNode::Kind::kKernel) return kernel(n);
    if (n.kind == PlanNode::Kind::kMemcpy) {
      transfer(n.source, n.width, n, true, &result);
      transfer(n.destination, n.width, n, false, &result);
    }
    if (n.kind == PlanNode::Kind::kMemset) {
      transfer(n.destination, n.width * n.element_bytes, n, false, &result);
    }
    return result;
  }

  bool is_input(std::size_t slot) const {
    return slot < memory_.inputs.size() && memory_.inputs[slot];
  }
  double most_written(const PlanNode& n) const {
    const auto known = memory_.written.find(n.function);
    return known != memory_.written.end() ? known->second : std::numeric_limits<double>::infinity();
  }
  bool is_workspace(std::size_t slot) const {
    return memory_.layout.has_workspace && slot + 1 == memory_.layout.slots.size();
  }

 private:
  std::optional<Place> place_of(std::uint64_t address) const {
    const auto& slots = memory_.layout.slots;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (address >= slots[i].address && address < slots[i].address + slots[i].bytes) {
        return Place{i, address - slots[i].address};
      }
    }
    return std::nullopt;
  }

  // Every address in a parameter: a pointer, a structure with pointers, a tensor map.
  std::vector<Place> places(const PlanParameter& p) const {
    std::vector<Place> found;
    const std::string bytes = parameter_bytes(p, memory_.layout);
    for (std::size_t at = 0; at + kAddressBytes <= bytes.size(); at += kAddressBytes) {
      std::uint64_t address = 0;
      std::memcpy(&address, bytes.data() + at, sizeof address);
      if (const auto place = place_of(address)) found.push_back(*place);
    }
    return found;
  }

  void note_starts(const PlanParameter& p) {
    for (const Place& place : places(p)) starts_.insert(place);
  }

  Access access(const Place& place, bool writes) const {
    Access a;
    a.slot = place.slot;
    a.begin = place.offset;
    a.end = memory_.layout.slots[place.slot].bytes;
    const auto next = starts_.upper_bound(place);
    if (next != starts_.end() && next->slot == place.slot) a.end = next->offset;
    a.reads = true;
    a.writes = writes && !is_input(place.slot);
    return a;
  }

  Node kernel(const PlanNode& n) const {
    Node result;
    std::vector<std::string> types = parameter_types(n.function);
    if (types.size() != n.parameters.size()) types.clear();
    for (std::size_t i = 0; i < n.parameters.size(); ++i) {
      const bool writes = types.empty() || !points_to_const(types[i]);
      for (const Place& place : places(n.parameters[i])) {
        result.accesses.push_back(access(place, writes));
      }
    }
    // It must write somewhere: perhaps to a module variable.
    result.opaque = std::none_of(result.accesses.begin(), result.accesses.end(),
                                 [](const Access& a) { return a.writes; });
    return result;
  }

  void transfer(const PlanParameter& p, std::uint64_t width, const PlanNode& n, bool reads,
                Node* result) const {
    const std::vector<Place> found = places(p);
    if (found.empty()) {
      result->opaque = true;
      return;
    }
    const std::uint64_t pitch = reads ? n.source_pitch : n.destination_pitch;
    const std::uint64_t rows = std::max<std::uint64_t>(1, n.height * n.depth);
    const std::uint64_t most = memory_.layout.slots[found[0].slot].bytes - found[0].offset;
    const double bytes = static_cast<double>(rows) * static_cast<double>(std::max(width, pitch));
    Access a{found[0].slot, found[0].offset, 0, reads, !reads};
    a.end =
        a.begin + (bytes < static_cast<double>(most) ? static_cast<std::uint64_t>(bytes) : most);
    result->accesses.push_back(a);
  }

  const LaunchPlan& plan_;
  const PlanMemory& memory_;
  std::set<Place> starts_;
};

bool depends(const Node& later, const Node& earlier) {
  if (later.opaque || earlier.opaque) return true;
  for (const Access& a : later.accesses) {
    for (const Access& b : earlier.accesses) {
      if ((a.writes || b.writes) && a.meets(b)) return true;
    }
  }
  return false;
}

// Topological order of the nodes. REQUIRES: no cycle.
std::vector<int> order_of(const LaunchPlan& plan) {
  std::vector<int> waits(plan.nodes.size(), 0);
  std::vector<std::vector<int>> next(plan.nodes.size());
  for (const PlanEdge& e : plan.edges) {
    next[static_cast<std::size_t>(e.from)].push_back(e.to);
    ++waits[static_cast<std::size_t>(e.to)];
  }
  std::vector<int> order;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i] == 0) order.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const int to : next[static_cast<std::size_t>(order[i])]) {
      if (--waits[static_cast<std::size_t>(to)] == 0) order.push_back(to);
    }
  }
  return order;
}

double bytes_of(const PlanNode& n, double element) {
  return static_cast<double>(n.width) * element * static_cast<double>(n.height) *
         static_cast<double>(n.depth);
}

class Facts {
 public:
  explicit Facts(const LaunchPlan& plan) : plan_(plan), order_(order_of(plan)) {}

  PlanFacts facts;

  void count() {
    double memcpys = 0, memcpy_bytes = 0, memsets = 0, memset_bytes = 0;
    for (const PlanNode& n : plan_.nodes) {
      if (n.kind == PlanNode::Kind::kKernel) {
        ++facts.kernels[n.function]["kernel.launches"];
        double blocks = 1;
        for (const std::uint32_t d : n.grid) blocks *= d;
        blocks_.push_back(blocks);
      }
      if (n.kind == PlanNode::Kind::kMemcpy) {
        memcpys += 1;
        memcpy_bytes += bytes_of(n, 1);
      }
      if (n.kind == PlanNode::Kind::kMemset) {
        memsets += 1;
        memset_bytes += bytes_of(n, n.element_bytes);
      }
    }
    auto& call = facts.call;
    call["plan.kernels"] = plan_.kernel_count();
    call["plan.memcpys"] = memcpys;
    call["plan.memcpy_bytes"] = memcpy_bytes;
    call["plan.memsets"] = memsets;
    call["plan.memset_bytes"] = memset_bytes;
    call["plan.median_blocks"] = median(blocks_);
  }

  void levels() {
    std::vector<int> level(plan_.nodes.size(), 0);
    std::vector<std::vector<int>> before(plan_.nodes.size());
    for (const PlanEdge& e : plan_.edges) {
      before[static_cast<std::size_t>(e.to)].push_back(e.from);
    }
    int most = 0;
    for (const int i : order_) {
      const auto at = static_cast<std::size_t>(i);
      int longest = 0;
      for (const int from : before[at]) {
        longest = std::max(longest, level[static_cast<std::size_t>(from)]);
      }
      level[at] = longest + (plan_.nodes[at].kind != PlanNode::Kind::kEmpty);
      most = std::max(most, level[at]);
    }
    facts.call["plan.levels"] = most;
  }

  // Kernels that are unordered with respect to some other one.
  void concurrency() {
    const std::size_t n = plan_.nodes.size();
    std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
    std::vector<std::vector<int>> next(n);
    for (const PlanEdge& e : plan_.edges) next[static_cast<std::size_t>(e.from)].push_back(e.to);
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      std::vector<bool>& mine = reaches[static_cast<std::size_t>(*it)];
      for (const int to : next[static_cast<std::size_t>(*it)]) {
        mine[static_cast<std::size_t>(to)] = true;
        const std::vector<bool>& theirs = reaches[static_cast<std::size_t>(to)];
        for (std::size_t k = 0; k < n; ++k) {
          if (theirs[k]) mine[k] = true;
        }
      }
    }
    for (auto& [function, values] : facts.kernels) values["kernel.concurrent"] = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = i + 1; k < n; ++k) {
        const PlanNode &a = plan_.nodes[i], &b = plan_.nodes[k];
        if (a.kind != PlanNode::Kind::kKernel || b.kind != PlanNode::Kind::kKernel) continue;
        if (reaches[i][k] || reaches[k][i]) continue;
        facts.kernels[a.function]["kernel.concurrent"] = 1;
        facts.kernels[b.function]["kernel.concurrent"] = 1;
      }
    }
  }

  void memory(const PlanMemory& memory) {
    const Memory reader(plan_, memory);
    nodes_.clear();
    for (const PlanNode& n : plan_.nodes) nodes_.push_back(reader.node(n));
    data_levels();
    handovers(reader);
  }

 private:
  bool is(int node, PlanNode::Kind kind) const {
    return plan_.nodes[static_cast<std::size_t>(node)].kind == kind;
  }

  // The same kernel again on the same buffers: each launch probably does part of the work, rather
  // than reading what the other wrote.
  bool same_work(int a, int b) const {
    const auto i = static_cast<std::size_t>(a), k = static_cast<std::size_t>(b);
    return plan_.nodes[i].function == plan_.nodes[k].function &&
           nodes_[i].accesses == nodes_[k].accesses;
  }

  void data_levels() {
    std::vector<int> level(plan_.nodes.size(), 0);
    int most = 0;
    for (std::size_t k = 0; k < order_.size(); ++k) {
      if (is(order_[k], PlanNode::Kind::kEmpty)) continue;
      const auto at = static_cast<std::size_t>(order_[k]);
      int longest = 0;
      for (std::size_t i = 0; i < k; ++i) {
        const auto from = static_cast<std::size_t>(order_[i]);
        if (level[from] > longest && !is(order_[i], PlanNode::Kind::kEmpty) &&
            depends(nodes_[at], nodes_[from])) {
          longest = level[from];
        }
      }
      level[at] = longest + 1;
      most = std::max(most, level[at]);
    }
    facts.call["plan.data_levels"] = most;
  }

  // One kernel's result that a later one reads.
  struct Handover {
    int from, to;
    double size, bytes;  // `bytes`: with the write, unless the caller needs it
  };

  // What one kernel writes and a later one reads. Fusing them makes the write unnecessary unless
  // the buffer is a result of the call.
  void handovers(const Memory& reader) {
    std::vector<Handover> all;
    for (std::size_t k = 0; k < order_.size(); ++k) {
      if (!is(order_[k], PlanNode::Kind::kKernel)) continue;
      const double most = reader.most_written(plan_.nodes[static_cast<std::size_t>(order_[k])]);
      for (const Access& written : nodes_[static_cast<std::size_t>(order_[k])].accesses) {
        if (!written.writes) continue;
        const double size = std::min(static_cast<double>(written.end - written.begin), most);
        const std::size_t first = all.size();
        bool needed = !reader.is_workspace(written.slot);  // the caller needs it in memory
        for (std::size_t i = k + 1; i < order_.size(); ++i) {
          if (!is(order_[i], PlanNode::Kind::kKernel) || same_work(order_[k], order_[i])) continue;
          bool reads = false, rewrites = false;
          for (const Access& a : nodes_[static_cast<std::size_t>(order_[i])].accesses) {
            if (!a.meets(written)) continue;
            reads = reads || a.reads;
            rewrites = rewrites || a.writes;
          }
          if (!reads) continue;
          all.push_back({order_[k], order_[i], size, size});
          // From here on the rewriting node hands over its own result.
          if (rewrites) {
            needed = false;
            break;
          }
        }
        if (all.size() > first && !needed) all[first].bytes += size;
      }
    }
    tell(all);
  }

  void tell(const std::vector<Handover>& all) {
    double bytes = 0, largest = 0, in_l2 = 0, summed = 0;
    std::set<int> consumers;
    std::map<int, std::vector<Handover>> by_writer;
    for (const Handover& each : all) by_writer[each.from].push_back(each);
    for (const Handover& each : all) {
      bytes += each.bytes;
      largest = std::max(largest, each.size);
      consumers.insert(each.to);
      auto& kernel = facts.kernels[plan_.nodes[static_cast<std::size_t>(each.to)].function];
      kernel["kernel.handed_bytes"] += each.bytes;
      if (each.size < kKeptInL2) in_l2 += each.bytes;
      if (summed_up(each, by_writer)) summed += each.bytes;
    }
    facts.call["plan.handovers"] = static_cast<double>(all.size());
    facts.call["plan.handover_bytes"] = bytes;
    facts.call["plan.handover_largest"] = largest;
    facts.call["plan.handover_in_l2"] = in_l2;
    facts.call["plan.handover_summed"] = summed;
    facts.call["plan.consumers"] = static_cast<double>(consumers.size());
  }

  // Whether the reader also waits for something much smaller that comes from the same kernel by way
  // of another: a sum, a maximum.
  static bool summed_up(const Handover& each,
                        const std::map<int, std::vector<Handover>>& by_writer) {
    for (const Handover& way : by_writer.at(each.from)) {
      const auto beyond = by_writer.find(way.to);
      if (way.to == each.to || beyond == by_writer.end()) continue;
      for (const Handover& rest : beyond->second) {
        if (rest.to == each.to && kSummary * rest.size < each.size) return true;
      }
    }
    return false;
  }

  const LaunchPlan& plan_;
  std::vector<int> order_;
  std::vector<Node> nodes_;
  std::vector<double> blocks_;
};

}  // namespace

PlanMemory plan_memory(const Task& task, const Case& c) {
  PlanMemory memory;
  std::vector<std::uint64_t> sizes;
  for (const Shaped& tensor : shaped_tensors(task, c)) {
    sizes.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.bytes, 0)));
    memory.inputs.push_back(tensor.tensor->role != Role::kOutput);
  }
  const auto workspace =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, workspace_bytes(task, c)));
  memory.layout = make_layout(sizes, workspace, kGranularity, kBase);
  memory.inputs.resize(memory.layout.slots.size(), false);
  return memory;
}

PlanFacts plan_facts(const LaunchPlan& plan, const PlanMemory& memory) {
  if (!plan.problem().empty() || plan.kernel_count() == 0) return {};
  Facts facts(plan);
  facts.count();
  facts.levels();
  if (plan.nodes.size() <= kMostNodes) {
    facts.concurrency();
    if (!memory.layout.slots.empty()) facts.memory(memory);
  }
  return std::move(facts.facts);
}

}  // namespace kernelpro
