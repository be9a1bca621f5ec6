// SPDX-License-Identifier: Apache-2.0
// Searches on a synthetic landscape made of recorded steps of writers (bench/ablation/steps.py):
// what a step from a candidate brings is drawn from recorded steps whose parent was as far behind
// the best, was a start or not, and promised to reach the best or not.
//   bench/ablation/steps.py --rows build/steps.json; bench_steps build/steps.json [SEEDS
//   [WIDENING [KEPT]]]
// Prints for each search and budget the geometric mean of the best over the start, the 95 %
// interval of its ratio to `greedy` over the seeds, and how many seeds came out ahead of `greedy`.
// No limit of the hardware is in it, and a step is worth as much late as early: it compares
// searches and predicts no gains.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "search/searches.h"

namespace kernelpro {
namespace {

struct Step {
  double lag = 1;       // parent's time over the best's
  double gain = 0;      // the best's time over the child's; 0: incorrect
  bool start = false;   // the parent is the run's start
  bool reaches = true;  // the parent's promise reaches the best
  double promised = 1;  // by the child
};

constexpr double kLags[] = {1.02, 1.1, 1.5};  // as CLASSES in steps.py

int distance(double lag) {
  return static_cast<int>(std::ranges::count_if(kLags, [&](double at) { return lag > at; }));
}

using Key = std::tuple<int, bool, bool>;

class Steps {
 public:
  explicit Steps(const Json& rows) {
    for (const Json& row : rows) {
      const JsonReader r(row);
      Step step;
      step.lag = r.real("lag");
      step.gain = r.real("gain");
      step.start = r.flag("start");
      step.reaches = r.real("promise") > step.lag;
      step.promised = r.real("promised");
      const int far = distance(step.lag);
      for (const bool start : {true, false}) {
        for (const bool reaches : {true, false}) {
          if (start == step.start && (far == 0 || reaches == step.reaches)) {
            pools_[{far, start, reaches}].push_back(step);
          }
        }
      }
      any_[far].push_back(step);
    }
  }
  const Step& draw(double lag, bool start, double promise, std::mt19937_64& chance) const {
    const auto pool = pools_.find({distance(lag), start, promise > lag});
    const std::vector<Step>& from =
        pool != pools_.end() && pool->second.size() >= kFew ? pool->second : near(distance(lag));
    return from[chance() % from.size()];
  }

 private:
  // Of that distance, or of the next one below that was recorded.
  const std::vector<Step>& near(int far) const {
    const auto above = any_.upper_bound(far);
    return above == any_.begin() ? above->second : std::prev(above)->second;
  }

  static constexpr std::size_t kFew = 5;  // with fewer, any step of that distance will do
  std::map<Key, std::vector<Step>> pools_;
  std::map<int, std::vector<Step>> any_;
};

struct Node {
  double time = 1;  // 0: incorrect
  double promise = 1;
};

// The best over the start after each evaluation.
std::vector<double> run(const Steps& steps, const std::string& name,
                        const SearchParameters& parameters, int budget, std::uint64_t seed) {
  auto search = make_search(name, parameters, seed);
  if (!search) {
    std::fprintf(stderr, "bench_steps: %s\n", search.error().text().c_str());
    std::exit(2);
  }
  std::mt19937_64 chance(seed);
  std::vector<Node> nodes = {{}, {1, 1.5}};  // from 1
  const auto result = [](const Node& node) {
    return NodeResult{node.time > 0, node.time, false, 0, node.promise, node.promise};
  };
  (*search)->add_root(1, result(nodes[1]));
  double best = 1;
  std::vector<double> gains;
  while (static_cast<int>(gains.size()) < budget) {
    const auto turn = (*search)->start();
    if (!turn) break;
    const Node parent = nodes[static_cast<std::size_t>(turn->parent)];
    const double from = parent.time > 0 ? parent.time : best;
    const Step& step = steps.draw(from / best, turn->parent == 1, parent.promise, chance);
    nodes.push_back({step.gain > 0 ? best / step.gain : 0, step.promised});
    if (nodes.back().time > 0) best = std::min(best, nodes.back().time);
    (*search)->finalize(turn->parent, static_cast<std::int64_t>(nodes.size()) - 1,
                        result(nodes.back()));
    gains.push_back(1 / best);
  }
  while (static_cast<int>(gains.size()) < budget) gains.push_back(1 / best);
  return gains;
}

int compare(const std::string& path, int seeds, const SearchParameters& parameters) {
  const auto text = read_file(path);
  const auto rows = text ? parse_json(*text) : std::nullopt;
  if (!rows || !rows->is_array() || rows->empty()) {
    std::fprintf(stderr,
                 "bench_steps: %s has no steps: bench/ablation/steps.py --rows writes them\n",
                 path.c_str());
    return 2;
  }
  const Steps steps(*rows);
  constexpr int kBudgets[] = {8, 16};
  std::map<std::string, std::vector<std::vector<double>>> gains;
  for (const SearchRow& row : searches()) {
    for (int seed = 1; seed <= seeds; ++seed) {
      gains[std::string(row.name)].push_back(run(steps, std::string(row.name), parameters,
                                                 kBudgets[1], static_cast<std::uint64_t>(seed)));
    }
  }
  std::printf(
      "%zu recorded steps, %d seeds\n\n| search | evaluations | best over the start | over "
      "greedy | 95 %% interval | seeds ahead of greedy |\n|---|---|---|---|---|---|\n",
      rows->size(), seeds);
  for (const SearchRow& row : searches()) {
    const auto& mine = gains[std::string(row.name)];
    for (const int budget : kBudgets) {
      double sum = 0, apart = 0, squares = 0;
      int ahead = 0;
      for (int i = 0; i < seeds; ++i) {
        const auto at = static_cast<std::size_t>(budget - 1);
        const double one = std::log(mine[static_cast<std::size_t>(i)][at]);
        const double d = one - std::log(gains["greedy"][static_cast<std::size_t>(i)][at]);
        sum += one;
        apart += d;
        squares += d * d;
        ahead += d > 0 ? 1 : 0;
      }
      const double mean = apart / seeds;
      const double error = 1.96 * std::sqrt(std::max(0.0, squares / seeds - mean * mean) / seeds);
      std::printf("| %s | %d | %.3fx | %.3fx | %.3f to %.3f | %.0f %% |\n",
                  std::string(row.name).c_str(), budget, std::exp(sum / seeds), std::exp(mean),
                  std::exp(mean - error), std::exp(mean + error), 100.0 * ahead / seeds);
    }
  }
  return 0;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_steps STEPS.json [SEEDS [WIDENING [KEPT]]]\n");
    return 2;
  }
  kernelpro::SearchParameters parameters;
  if (argc > 3) parameters.widening = std::atof(argv[3]);
  if (argc > 4) parameters.kept = std::atof(argv[4]);
  return kernelpro::compare(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 2000, parameters);
}
