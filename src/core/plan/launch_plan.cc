// SPDX-License-Identifier: Apache-2.0
#include "core/plan/launch_plan.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>

#include "base/json.h"
#include "core/task/inputs.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxNodes = 100'000;
// Each is built anew with every load. A call whose nodes wait for all before them has half as many
// as the square of the nodes.
constexpr std::size_t kMaxEdges = 4096, kMaxEdgesEach = 16;
constexpr std::size_t kMaxParameterBytes = 32'764;  // per kernel launch, CUDA 12.1 and later
constexpr int kMaxImages = 4096;
constexpr std::uint64_t kMaxScratch = 1ull << 40;
constexpr std::string_view kNodeKinds[] = {"kernel", "memcpy", "memset", "empty"};
constexpr std::string_view kParameterKinds[] = {"bytes", "tensor", "workspace"};

std::string to_hex(const std::string& bytes) {
  static const char* const digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const unsigned char b : bytes) {
    hex += digits[b >> 4];
    hex += digits[b & 15];
  }
  return hex;
}

std::optional<std::string> from_hex(const std::string& hex) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (hex.size() % 2 != 0 || hex.size() > 2 * kMaxParameterBytes) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

Json parameter_to_json(const PlanParameter& p) {
  if (p.kind == PlanParameter::Kind::kBytes) return {{"bytes", to_hex(p.bytes)}};
  Json json = {{"kind", kParameterKinds[static_cast<int>(p.kind)]},
               {"index", p.index},
               {"offset", p.offset}};
  if (p.map) {
    json["map"] = {{"type", p.map->type},       {"rank", p.map->rank}, {"sizes", p.map->sizes},
                   {"strides", p.map->strides}, {"box", p.map->box},   {"swizzle", p.map->swizzle}};
  }
  return json;
}

template <class T>
bool read_five(const Json& json, std::array<T, 5>* out) {
  if (json.size() != out->size()) return false;
  for (std::size_t i = 0; i < out->size(); ++i) {
    if (!json[i].is_number_integer()) return false;
    const std::int64_t value = json[i].get<std::int64_t>();
    if (value < 0 || value > std::numeric_limits<T>::max()) return false;
    (*out)[i] = static_cast<T>(value);
  }
  return true;
}

std::optional<PlanTensorMap> tensor_map_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const JsonReader r(json);
  PlanTensorMap map;
  map.type = static_cast<int>(r.integer("type"));
  map.rank = static_cast<int>(r.integer("rank"));
  map.swizzle = static_cast<int>(r.integer("swizzle"));
  const bool read = read_five(r.array("sizes"), &map.sizes) &&
                    read_five(r.array("strides"), &map.strides) &&
                    read_five(r.array("box"), &map.box);
  if (!read || !map.problem().empty()) return std::nullopt;
  return map;
}

std::optional<PlanParameter> parameter_from_json(const Json& json) {
  const JsonReader r(json);
  PlanParameter p;
  if (r.member("bytes") != nullptr) {
    const auto bytes = from_hex(r.text("bytes"));
    if (!bytes) return std::nullopt;
    p.bytes = *bytes;
    return p;
  }
  const std::string kind = r.text("kind");
  if (kind == kParameterKinds[1]) {
    p.kind = PlanParameter::Kind::kTensor;
  } else if (kind == kParameterKinds[2]) {
    p.kind = PlanParameter::Kind::kWorkspace;
  } else {
    return std::nullopt;
  }
  p.index = static_cast<int>(r.integer("index"));
  p.offset = r.integer("offset");
  if (const Json* map = r.member("map")) {
    p.map = tensor_map_from_json(*map);
    if (!p.map) return std::nullopt;
  }
  return p;
}

Json dims_to_json(const std::array<std::uint32_t, 3>& d) { return {d[0], d[1], d[2]}; }

bool read_dims(const Json& json, std::array<std::uint32_t, 3>* out) {
  if (json.size() != 3) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!json[i].is_number_unsigned() || json[i].get<std::uint64_t>() > UINT32_MAX) return false;
    (*out)[i] = json[i].get<std::uint32_t>();
  }
  return true;
}

Json kernel_to_json(const PlanNode& n) {
  Json parameters = Json::array();
  for (const PlanParameter& p : n.parameters) parameters.push_back(parameter_to_json(p));
  return {{"kind", "kernel"},
          {"function", n.function},
          {"image", n.image},
          {"grid", dims_to_json(n.grid)},
          {"block", dims_to_json(n.block)},
          {"cluster", dims_to_json(n.cluster)},
          {"dynamic_shared", n.dynamic_shared},
          {"max_dynamic_shared", n.max_dynamic_shared},
          {"shared_carveout", n.shared_carveout},
          {"non_portable_cluster", n.non_portable_cluster},
          {"cooperative", n.cooperative},
          {"cluster_policy", n.cluster_policy},
          {"priority", n.priority},
          {"parameters", parameters}};
}

bool read_kernel(const JsonReader& r, PlanNode* n) {
  n->function = r.text("function");
  n->image = static_cast<int>(r.integer("image"));
  if (!read_dims(r.array("grid"), &n->grid) || !read_dims(r.array("block"), &n->block) ||
      !read_dims(r.array("cluster"), &n->cluster)) {
    return false;
  }
  n->dynamic_shared = static_cast<std::uint32_t>(r.natural("dynamic_shared"));
  n->max_dynamic_shared = static_cast<std::int32_t>(r.integer("max_dynamic_shared", -1));
  n->shared_carveout = static_cast<std::int32_t>(r.integer("shared_carveout", -1));
  n->non_portable_cluster = r.flag("non_portable_cluster");
  n->cooperative = r.flag("cooperative");
  n->cluster_policy = static_cast<std::int32_t>(r.integer("cluster_policy", -1));
  n->priority = static_cast<std::int32_t>(r.integer("priority"));
  for (const Json& p : r.array("parameters")) {
    const auto parameter = parameter_from_json(p);
    if (!parameter) return false;
    n->parameters.push_back(*parameter);
  }
  return true;
}

Json transfer_to_json(const PlanNode& n) {
  return {{"kind", kNodeKinds[static_cast<int>(n.kind)]},
          {"destination", parameter_to_json(n.destination)},
          {"source", parameter_to_json(n.source)},
          {"width", n.width},
          {"height", n.height},
          {"depth", n.depth},
          {"destination_pitch", n.destination_pitch},
          {"destination_height", n.destination_height},
          {"source_pitch", n.source_pitch},
          {"source_height", n.source_height},
          {"value", n.value},
          {"element_bytes", n.element_bytes}};
}

bool read_transfer(const JsonReader& r, PlanNode* n) {
  const auto destination = parameter_from_json(r.object("destination"));
  const auto source = parameter_from_json(r.object("source"));
  if (!destination || !source) return false;
  n->destination = *destination;
  n->source = *source;
  n->width = r.natural("width");
  n->height = r.natural("height", 1);
  n->depth = r.natural("depth", 1);
  n->destination_pitch = r.natural("destination_pitch");
  n->destination_height = r.natural("destination_height");
  n->source_pitch = r.natural("source_pitch");
  n->source_height = r.natural("source_height");
  n->value = static_cast<std::uint32_t>(r.natural("value"));
  n->element_bytes = static_cast<std::uint32_t>(r.natural("element_bytes", 1));
  return true;
}

std::string kernel_problem(const PlanNode& n) {
  const auto volume = [](const std::array<std::uint32_t, 3>& d) {
    return static_cast<double>(d[0]) * d[1] * d[2];
  };
  if (n.function.empty() || n.function.size() > 4096) return "a kernel without a usable name";
  if (n.image < 0 || n.image >= kMaxImages) return n.function + ": no such image";
  if (volume(n.grid) < 1) return n.function + ": an empty grid";
  if (volume(n.block) < 1 || volume(n.block) > 1024) {
    return n.function + ": a block must have 1 to 1024 threads";
  }
  if (volume(n.cluster) > 16) return n.function + ": a cluster has at most 16 blocks";
  std::size_t bytes = 0;
  for (const PlanParameter& p : n.parameters) {
    bytes += p.map ? kTensorMapBytes : p.kind == PlanParameter::Kind::kBytes ? p.bytes.size() : 8;
    if (!p.map) continue;
    const std::string problem = p.map->problem();
    if (!problem.empty()) return n.function + ": a tensor map " + problem;
  }
  if (bytes > kMaxParameterBytes) return n.function + ": more than 32764 bytes of parameters";
  return "";
}

}  // namespace

// CUDA driver API, cuTensorMapEncodeTiled.
std::string PlanTensorMap::problem() const {
  constexpr int kTypeBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (type < 0 || type >= static_cast<int>(std::size(kTypeBytes))) {
    return "of elements that are not 1, 2, 4 or 8 bytes";
  }
  if (rank < 1 || rank > 5) return "of " + std::to_string(rank) + " dimensions (1 to 5)";
  const std::int64_t element = kTypeBytes[type];
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string which = " in dimension " + std::to_string(i);
    if (sizes[at] < 1 || sizes[at] > (1LL << 32)) return "with an impossible size" + which;
    if (box[at] < 1 || box[at] > 256) return "with a box that is not 1 to 256" + which;
    if (i + 1 < rank && (strides[at] % 16 != 0 || strides[at] < 1 || strides[at] >= (1LL << 40))) {
      return "with a stride that is not a multiple of 16 bytes after" + which.substr(3);
    }
  }
  if (box[0] * element % 16 != 0) return "with a box whose rows are not a multiple of 16 bytes";
  if (swizzle < 0 || swizzle > 3) return "with an unknown swizzle";
  const std::int64_t span = 16LL << swizzle;
  if (swizzle > 0 && box[0] * element > span) {
    return "with rows of " + std::to_string(box[0] * element) +
           " bytes in its box, more than the " + std::to_string(span) + " bytes of its swizzle";
  }
  return "";
}

int LaunchPlan::kernel_count() const {
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [](const PlanNode& n) {
    return n.kind == PlanNode::Kind::kKernel;
  }));
}

bool LaunchPlan::one_after_another() const {
  if (edges.size() + 1 != nodes.size()) return false;
  std::map<int, int> before, after;
  for (const PlanEdge& e : edges) {
    const bool whole = e.type == 0 && e.from_port == 0 && e.to_port == 0;
    if (!whole || ++before[e.to] > 1 || ++after[e.from] > 1) return false;
  }
  // n - 1 edges, at most one into and out of each node: without cycles (`problem`), a path.
  return true;
}

std::string LaunchPlan::problem() const {
  if (nodes.size() > kMaxNodes) return "more than 100000 nodes";
  if (kernel_count() == 0) return "no kernel launch";
  if (edges.size() > kMaxEdges + kMaxEdgesEach * nodes.size()) {
    return std::to_string(edges.size()) + " dependencies between " + std::to_string(nodes.size()) +
           " nodes, more than 4096 and 16 for each";
  }
  for (const PlanNode& n : nodes) {
    if (n.kind == PlanNode::Kind::kKernel) {
      const std::string problem = kernel_problem(n);
      if (!problem.empty()) return problem;
    }
    if (n.kind == PlanNode::Kind::kMemset && n.element_bytes != 1 && n.element_bytes != 2 &&
        n.element_bytes != 4) {
      return "a memset of elements of " + std::to_string(n.element_bytes) + " bytes";
    }
  }
  if (scratch_bytes > kMaxScratch) return "more than a terabyte of scratch";
  for (const PlanConstant& c : constants) {
    if (c.offset > scratch_bytes || c.bytes > scratch_bytes - c.offset) {
      return "a constant outside its scratch";
    }
  }
  // Kahn's algorithm: nodes that cannot be ordered are on a cycle.
  std::vector<int> waiting(nodes.size(), 0);
  std::vector<std::vector<int>> after(nodes.size());
  const int count = static_cast<int>(nodes.size());
  for (const PlanEdge& e : edges) {
    if (e.from < 0 || e.to < 0 || e.from >= count || e.to >= count) return "an edge to nowhere";
    ++waiting[static_cast<std::size_t>(e.to)];
    after[static_cast<std::size_t>(e.from)].push_back(e.to);
  }
  std::vector<int> ready;
  for (int i = 0; i < count; ++i) {
    if (waiting[static_cast<std::size_t>(i)] == 0) ready.push_back(i);
  }
  int ordered = 0;
  while (!ready.empty()) {
    const int node = ready.back();
    ready.pop_back();
    ++ordered;
    for (const int next : after[static_cast<std::size_t>(node)]) {
      if (--waiting[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
    }
  }
  return ordered == count ? "" : "a cycle of dependencies";
}

std::string plan_to_json(const LaunchPlan& plan) {
  Json nodes = Json::array();
  for (const PlanNode& n : plan.nodes) {
    switch (n.kind) {
      case PlanNode::Kind::kKernel:
        nodes.push_back(kernel_to_json(n));
        break;
      case PlanNode::Kind::kMemcpy:
      case PlanNode::Kind::kMemset:
        nodes.push_back(transfer_to_json(n));
        break;
      case PlanNode::Kind::kEmpty:
        nodes.push_back({{"kind", "empty"}});
    }
  }
  Json edges = Json::array();
  for (const PlanEdge& e : plan.edges)
    edges.push_back({e.from, e.to, e.from_port, e.to_port, e.type});
  Json constants = Json::array();
  for (const PlanConstant& c : plan.constants) {
    constants.push_back({{"offset", c.offset}, {"bytes", c.bytes}, {"file", c.file}});
  }
  return dump_json({{"nodes", nodes},
                    {"edges", edges},
                    {"scratch_bytes", plan.scratch_bytes},
                    {"constants", constants}});
}

std::optional<LaunchPlan> plan_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  LaunchPlan plan;
  for (const Json& node : r.array("nodes")) {
    const JsonReader nr(node);
    const std::string kind = nr.text("kind");
    PlanNode n;
    bool known = false;
    for (int i = 0; i < 4; ++i) {
      if (kNodeKinds[i] != kind) continue;
      n.kind = static_cast<PlanNode::Kind>(i);
      known = true;
    }
    if (!known) return std::nullopt;
    if (n.kind == PlanNode::Kind::kKernel && !read_kernel(nr, &n)) return std::nullopt;
    const bool transfer = n.kind == PlanNode::Kind::kMemcpy || n.kind == PlanNode::Kind::kMemset;
    if (transfer && !read_transfer(nr, &n)) return std::nullopt;
    plan.nodes.push_back(std::move(n));
  }
  for (const Json& edge : r.array("edges")) {
    if (!edge.is_array() || edge.size() != 5) return std::nullopt;
    int v[5];
    for (std::size_t i = 0; i < 5; ++i) {
      if (!edge[i].is_number_integer()) return std::nullopt;
      const std::int64_t value = edge[i].get<std::int64_t>();
      if (value < -1 || value > static_cast<std::int64_t>(kMaxNodes)) return std::nullopt;
      v[i] = static_cast<int>(value);
    }
    plan.edges.push_back({v[0], v[1], v[2], v[3], v[4]});
  }
  plan.scratch_bytes = r.natural("scratch_bytes");
  for (const Json& constant : r.array("constants")) {
    const JsonReader c(constant);
    plan.constants.push_back({c.natural("offset"), c.natural("bytes"), c.text("file")});
  }
  return plan;
}

namespace {

// Measured: the driver places smaller reservations at other addresses than requested.
constexpr std::uint64_t kReserveStep = 64ull << 20;

std::uint64_t next_multiple(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

AddressLayout make_layout(const std::vector<std::uint64_t>& sizes, std::uint64_t workspace,
                          std::uint64_t granularity, std::uint64_t base) {
  constexpr std::uint64_t kAlignment = 256;
  AddressLayout layout;
  layout.base = base;
  layout.has_workspace = workspace > 0;
  std::uint64_t at = base + granularity;  // unmapped on both sides of every slot
  std::vector<std::uint64_t> all = sizes;
  if (workspace > 0) all.push_back(workspace);
  for (const std::uint64_t bytes : all) {
    AddressLayout::Slot slot;
    slot.bytes = bytes;
    slot.mapping = at;
    slot.mapping_bytes = next_multiple(std::max<std::uint64_t>(bytes, 1), granularity);
    slot.address =
        at + slot.mapping_bytes - next_multiple(std::max<std::uint64_t>(bytes, 1), kAlignment);
    layout.slots.push_back(slot);
    at += slot.mapping_bytes + granularity;
  }
  layout.reserve_bytes = next_multiple(at - base, kReserveStep);
  return layout;
}

AddressLayout placed(const AddressLayout& layout, std::uint64_t place) {
  if (place == 0 || layout.slots.empty()) return layout;
  constexpr std::uint64_t kBases = 1ull << 16;  // of 64 MiB: 4 TiB, of the 16 before the scratch
  constexpr std::uint64_t kGaps = 256;
  // What every gap is at least, and a multiple of the granularity.
  const std::uint64_t gap = layout.slots[0].mapping - layout.base;
  AddressLayout moved = layout;
  moved.base += kp::mix64(place) % kBases * kReserveStep;
  std::uint64_t at = moved.base, draw = kp::mix64(place ^ layout.reserve_bytes);
  for (AddressLayout::Slot& slot : moved.slots) {
    draw = kp::mix64(draw);
    at += gap * (1 + draw % kGaps);
    slot.address = at + (slot.address - slot.mapping);
    slot.mapping = at;
    at += slot.mapping_bytes;
  }
  moved.reserve_bytes = next_multiple(at + gap - moved.base, kReserveStep);
  return moved;
}

std::string parameter_bytes(const PlanParameter& parameter, const AddressLayout& layout) {
  if (parameter.kind == PlanParameter::Kind::kBytes) return parameter.bytes;
  const std::size_t slot = parameter.kind == PlanParameter::Kind::kWorkspace
                               ? layout.slots.size() - 1
                               : static_cast<std::size_t>(parameter.index);
  const bool known =
      parameter.kind == PlanParameter::Kind::kWorkspace
          ? layout.has_workspace
          : parameter.index >= 0 && slot < layout.slots.size() - (layout.has_workspace ? 1 : 0);
  const std::uint64_t address =
      known ? layout.slots[slot].address + static_cast<std::uint64_t>(parameter.offset) : 0;
  std::string bytes(sizeof address, '\0');
  std::memcpy(bytes.data(), &address, sizeof address);
  return bytes;
}

}  // namespace kernelpro
