// SPDX-License-Identifier: Apache-2.0
#include "core/plan/captured_call.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "base/json.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kAlignment = 512;  // of what moves into the scratch

Json range_to_json(const CapturedCall::Range& range) { return {range.address, range.bytes}; }

bool read_range(const Json& json, CapturedCall::Range* out) {
  if (json.size() != 2 || !json[0].is_number_unsigned() || !json[1].is_number_unsigned()) {
    return false;
  }
  *out = {json[0].get<std::uint64_t>(), json[1].get<std::uint64_t>()};
  return true;
}

tl::unexpected<Error> differ(const std::string& how) {
  return fail(ErrorKind::kBadInput, "two captures of a call differ: " + how,
              "let forward launch the same kernels in every call");
}

// Everything of a kernel's launch but its parameters.
auto shape_of(const PlanNode& n) {
  return std::tie(n.function, n.image, n.grid, n.block, n.cluster, n.dynamic_shared,
                  n.max_dynamic_shared, n.shared_carveout, n.non_portable_cluster, n.cooperative,
                  n.cluster_policy, n.priority);
}
// Everything of a copy or memset but its addresses.
auto extent_of(const PlanNode& n) {
  return std::tie(n.width, n.height, n.depth, n.destination_pitch, n.destination_height,
                  n.source_pitch, n.source_height, n.value, n.element_bytes);
}
auto edge_of(const PlanEdge& e) { return std::tie(e.from, e.to, e.from_port, e.to_port, e.type); }

std::uint64_t word_at(const std::string& bytes, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

class Pairing {
 public:
  Pairing(const CapturedCall& first, const CapturedCall& second) : first_(first), second_(second) {
    plan_ = first.plan;
    plan_.scratch_bytes = first.scratch.bytes;
    plan_.constants.clear();
  }

  Result<LaunchPlan> plan() {
    const LaunchPlan& other = second_.plan;
    const auto same_edge = [](const PlanEdge& a, const PlanEdge& b) {
      return edge_of(a) == edge_of(b);
    };
    if (plan_.nodes.size() != other.nodes.size()) {
      return differ("one has " + std::to_string(plan_.nodes.size()) + " steps, the other " +
                    std::to_string(other.nodes.size()));
    }
    if (!std::equal(plan_.edges.begin(), plan_.edges.end(), other.edges.begin(), other.edges.end(),
                    same_edge)) {
      return differ("their steps wait for different ones");
    }
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      KP_TRY(pair(plan_.nodes[i], other.nodes[i]));
    }
    for (const auto& [index, moved] : moved_) {
      if (!moved.same) continue;
      const CapturedCall::Held& held = first_.held[index];
      plan_.constants.push_back({moved.offset, held.range.bytes, held.file});
    }
    return std::move(plan_);
  }

 private:
  struct Moved {
    std::uint64_t offset = 0;  // in the scratch
    bool same = true;          // both captures left the same contents
  };

  Result<void> pair(PlanNode& mine, const PlanNode& other) {
    if (mine.kind != other.kind || shape_of(mine) != shape_of(other) ||
        extent_of(mine) != extent_of(other)) {
      return differ(mine.function.empty() ? "a copy or memset" : "the launch of " + mine.function);
    }
    if (mine.kind == PlanNode::Kind::kMemcpy) KP_TRY(pair_address(mine.source, other.source));
    if (mine.kind == PlanNode::Kind::kMemcpy || mine.kind == PlanNode::Kind::kMemset) {
      KP_TRY(pair_address(mine.destination, other.destination));
    }
    if (mine.parameters.size() != other.parameters.size()) {
      return differ("the parameters of " + mine.function);
    }
    for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
      std::string& bytes = mine.parameters[i].bytes;
      const std::string& theirs = other.parameters[i].bytes;
      if (bytes.size() != theirs.size()) return differ("the parameters of " + mine.function);
      for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
        KP_ASSIGN(const std::uint64_t word, paired(word_at(bytes, at), word_at(theirs, at)));
        std::memcpy(bytes.data() + at, &word, sizeof word);
      }
    }
    return {};
  }

  Result<void> pair_address(PlanParameter& mine, const PlanParameter& other) {
    if (mine.bytes.size() != 8 || other.bytes.size() != 8) return differ("a copy or memset");
    const std::uint64_t a = word_at(mine.bytes, 0), b = word_at(other.bytes, 0);
    const bool known = moved_alike(first_.tensors, second_.tensors, a, b) ||
                       moved_alike(first_.scratch, second_.scratch, a, b) ||
                       (held(first_, a) != nullptr && held(second_, b) != nullptr);
    if (!known) return differ("the address of a copy or memset");
    KP_ASSIGN(const std::uint64_t word, paired(a, b));
    std::memcpy(mine.bytes.data(), &word, sizeof word);
    return {};
  }

  static bool moved_alike(const CapturedCall::Range& first, const CapturedCall::Range& second,
                          std::uint64_t a, std::uint64_t b) {
    return first.contains(a) && second.contains(b) && a - first.address == b - second.address;
  }
  static const CapturedCall::Held* held(const CapturedCall& call, std::uint64_t word) {
    for (const CapturedCall::Held& each : call.held) {
      if (each.range.contains(word)) return &each;
    }
    return nullptr;
  }

  // The word that the plan gets. Those of tensors and scratch stay: `first` was captured where the
  // plan will run. So do words that differ and are no addresses: padding is whatever lay there.
  Result<std::uint64_t> paired(std::uint64_t a, std::uint64_t b) {
    const CapturedCall::Held *mine = held(first_, a), *theirs = held(second_, b);
    if (mine == nullptr || theirs == nullptr) return a;
    const std::uint64_t offset = a - mine->range.address;
    if (mine->range.bytes != theirs->range.bytes || offset != b - theirs->range.address) {
      return differ("memory that the module holds");
    }
    const auto index = static_cast<std::size_t>(mine - first_.held.data());
    const auto [place, fresh] = moved_.try_emplace(index);
    if (fresh) {
      place->second.offset = (plan_.scratch_bytes + kAlignment - 1) / kAlignment * kAlignment;
      plan_.scratch_bytes = place->second.offset + mine->range.bytes;
    }
    place->second.same =
        place->second.same && !mine->content.empty() && mine->content == theirs->content;
    return first_.scratch.address + place->second.offset + offset;
  }

  const CapturedCall &first_, &second_;
  LaunchPlan plan_;
  std::map<std::size_t, Moved> moved_;  // by index into first_.held
};

}  // namespace

std::string captured_call_to_json(const CapturedCall& call) {
  Json held = Json::array();
  for (const CapturedCall::Held& each : call.held) {
    held.push_back(
        {{"range", range_to_json(each.range)}, {"content", each.content}, {"file", each.file}});
  }
  return dump_json({{"plan", *parse_json(plan_to_json(call.plan))},
                    {"tensors", range_to_json(call.tensors)},
                    {"scratch", range_to_json(call.scratch)},
                    {"held", held}});
}

std::optional<CapturedCall> captured_call_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  CapturedCall call;
  const auto plan = plan_from_json(dump_json(r.object("plan")));
  if (!plan || !read_range(r.array("tensors"), &call.tensors) ||
      !read_range(r.array("scratch"), &call.scratch)) {
    return std::nullopt;
  }
  call.plan = *plan;
  for (const Json& item : r.array("held")) {
    const JsonReader h(item);
    CapturedCall::Held held{{}, h.text("content"), h.text("file")};
    if (!read_range(h.array("range"), &held.range)) return std::nullopt;
    call.held.push_back(std::move(held));
  }
  return call;
}

Result<LaunchPlan> plan_of_captures(const CapturedCall& first, const CapturedCall& second) {
  if (first.scratch.address != first.tensors.address + kScratchOffset) {
    return fail(ErrorKind::kInternal, "the first capture's scratch lies elsewhere", "");
  }
  return Pairing(first, second).plan();
}

}  // namespace kernelpro
