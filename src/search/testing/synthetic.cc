// SPDX-License-Identifier: Apache-2.0
#include "search/testing/synthetic.h"

#include <algorithm>
#include <cmath>

#include "core/json.h"

namespace kernelpro::testing {

namespace {

constexpr double kLeast = 0.005;  // distance: what a measurement tells from the speed of light
constexpr double kLightUs = 100;

// What a number is drawn for; each draws apart from the others.
enum Draw : std::uint64_t {
  kTask,
  kTaskShift,
  kChild,
  kIdea,
  kIdeaFails,
  kKind,
  kFloor,
  kJump,
  kImmature,
  kStep,
  kSilent,
  kTold
};

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(a ^ mix(b)); }

double uniform(std::uint64_t path, std::uint64_t draw) {  // in (0, 1)
  return (static_cast<double>(mix(path, draw) >> 11) + 0.5) / 9007199254740992.0;
}
double normal(std::uint64_t path, std::uint64_t draw) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(uniform(path, draw)));
  return radius * std::cos(2 * 3.14159265358979323846 * uniform(path, draw + 1000));
}

std::vector<double> numbers(const Json& array) {
  std::vector<double> all;
  for (const Json& value : array) {
    if (value.is_number()) all.push_back(value.get<double>());
  }
  return all;
}

}  // namespace

Result<LandscapeParameters> landscape_from_json(const std::string& text) {
  const Json json = parse_json(text).value_or(Json());
  const JsonReader read(JsonReader(json).object("parameters"));
  LandscapeParameters p;
  p.starts = numbers(read.array("starts"));
  p.failure_rates = numbers(read.array("failure_rates"));
  p.new_design = read.real("new_design");
  p.distance_mean = read.real("distance_mean");
  p.distance_sd = read.real("distance_sd");
  p.task_sd = read.real("task_sd");
  p.inheritance = read.real("inheritance");
  p.parent_mean = read.real("parent_mean");
  p.jump = read.real("jump");
  p.jump_size = read.real("jump_size");
  p.immature = read.real("immature");
  p.step_mean = read.real("step_mean");
  p.step_sd = read.real("step_sd");
  p.silent = read.real("silent");
  p.told_mean = read.real("told_mean", 1);
  p.told_sd = read.real("told_sd");
  p.knows_design = read.flag("knows_design");
  p.ideas = static_cast<int>(read.integer("ideas", 8));
  if (p.starts.empty() || p.starts.size() != p.failure_rates.size() || p.ideas < 1 ||
      p.ideas > 64 || p.new_design <= 0) {
    return fail(ErrorKind::kBadInput, "this is not a landscape",
                "make one with bench/synthetic/fit.py, which says how");
  }
  return p;
}

Synthetic::Synthetic(const LandscapeParameters& parameters, std::uint64_t seed, bool remembers)
    : p_(parameters), remembers_(remembers) {
  Node root;
  root.path = mix(seed);
  const auto task =
      static_cast<std::size_t>(uniform(root.path, kTask) * static_cast<double>(p_.starts.size()));
  failure_ = p_.failure_rates[task];
  task_ = p_.task_sd * normal(root.path, kTaskShift);
  root.distance = std::max(kLeast, p_.starts[task]);
  // The start is finished work: it is at its design's floor.
  designs_.push_back({root.path, root.distance, 0});
  nodes_.push_back(root);
}

NodeResult Synthetic::result_of(const Node& node) const {
  NodeResult result;
  result.correct = node.correct;
  if (!node.correct) return result;
  result.time_us = kLightUs * std::exp(node.distance);
  result.fraction = std::exp(-node.distance);
  const double left = p_.knows_design
                          ? node.distance - designs_[static_cast<std::size_t>(node.design)].floor
                          : node.distance;
  if (uniform(node.path, kSilent) < p_.silent) return result;
  const double told = left * (p_.told_mean + p_.told_sd * normal(node.path, kTold));
  result.likely = std::exp(std::clamp(told, 0.0, node.distance));
  result.upper = 1 / result.fraction;
  return result;
}

// Draws an idea; whether it fails belongs to the design.
bool Synthetic::fails(const Node& parent, std::uint64_t path) {
  Design& design = designs_[static_cast<std::size_t>(parent.design)];
  std::vector<int> pool;
  for (int idea = 0; idea < p_.ideas; ++idea) {
    if (!remembers_ || ((design.failed >> idea) & 1) == 0) pool.push_back(idea);
  }
  if (pool.empty()) return true;
  const double at = uniform(path, kIdea) * static_cast<double>(pool.size());
  const int idea = pool[static_cast<std::size_t>(at)];
  if (uniform(mix(design.path, kIdeaFails), static_cast<std::uint64_t>(idea)) >= failure_) {
    return false;
  }
  if (((design.failed >> idea) & 1) != 0) ++repeated_;
  design.failed |= 1ull << idea;
  return true;
}

double Synthetic::new_floor(const Node& parent, std::uint64_t path) const {
  double log_floor = p_.distance_mean + task_ + p_.distance_sd * normal(path, kFloor) +
                     p_.inheritance * (std::log(parent.distance) - p_.parent_mean);
  if (uniform(path, kJump) < p_.jump) log_floor -= p_.jump_size;
  return std::max(kLeast, std::exp(log_floor));
}

NodeResult Synthetic::child(std::int64_t parent) {
  Node& from = nodes_[static_cast<std::size_t>(parent - 1)];
  Node node;
  node.path = mix(from.path, kChild + 100 * static_cast<std::uint64_t>(++from.children));
  node.design = from.design;
  node.correct = from.correct && !fails(from, node.path);
  if (node.correct && uniform(node.path, kKind) < p_.new_design) {
    const double floor = new_floor(from, node.path);
    node.design = static_cast<int>(designs_.size());
    designs_.push_back({node.path, floor, 0});
    node.distance = floor - p_.immature * std::log(uniform(node.path, kImmature));
  } else if (node.correct) {
    const double step = p_.step_mean + p_.step_sd * normal(node.path, kStep);
    const double floor = designs_[static_cast<std::size_t>(node.design)].floor;
    node.distance = std::max(floor, from.distance - step);
  }
  nodes_.push_back(node);
  return result_of(node);
}

}  // namespace kernelpro::testing
