// SPDX-License-Identifier: Apache-2.0
// All searches on the synthetic landscape (src/search/testing/synthetic.h) at equal budgets: the
// best speed-up over the start after 15, 30, 60 and 120 evaluations, over many seeds.
//   bench_search [SEEDS [FIRST [SETTING=VALUE...]]]
// Seeds FIRST, FIRST+1 ...; results/search.md reports 1 to 1000, and settings were chosen on 100001
// and on. With settings (of SearchParameters) only mcts runs, once as it is and once with them.
// Landscapes: the fitted one, and others that differ from it in what their name says.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/statistics/statistics.h"
#include "base/text.h"
#include "search/searches.h"
#include "search/testing/synthetic.h"

namespace {

using namespace kernelpro;
using testing::LandscapeParameters;
using testing::Synthetic;

constexpr int kBudgets[] = {15, 30, 60, 120};

struct Contestant {
  std::string label;
  std::string search;
  SearchParameters parameters;
  bool memory = true;
};

struct Landscape {
  std::string label;
  LandscapeParameters parameters;
};

// ln of the best speed-up after each budget, by seed; and failures that were repeated.
struct Score {
  std::vector<std::vector<double>> logs{std::size(kBudgets)};
  double failed = 0;
  double repeated = 0;
};

Score play(const Landscape& landscape, const Contestant& who, int seeds, std::uint64_t first) {
  Score score;
  for (int i = 0; i < seeds; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    Synthetic writer(landscape.parameters, seed, who.memory);
    auto made = make_search(who.search, who.parameters, seed);
    if (!made) {
      std::fprintf(stderr, "bench_search: %s\n", made.error().text().c_str());
      std::exit(2);
    }
    Search& search = **made;
    search.add_root(1, writer.root());
    double best = writer.root().time_us;
    std::size_t next = 0;
    for (std::int64_t done = 1; next < std::size(kBudgets); ++done) {
      if (const auto parent = search.start()) {
        const NodeResult result = writer.child(*parent);
        search.finalize(*parent, done + 1, result);
        if (result.correct) best = std::min(best, result.time_us);
        score.failed += result.correct ? 0 : 1;
      } else {
        std::fprintf(stderr, "bench_search: %s is exhausted\n", who.label.c_str());
        std::exit(1);
      }
      if (done < kBudgets[next]) continue;
      score.logs[next++].push_back(std::log(writer.root().time_us / best));
    }
    score.repeated += writer.repeated_failures();
  }
  score.failed /= seeds;
  score.repeated /= seeds;
  return score;
}

struct Interval {
  double value, low, high;
};

// Percentiles of 1,000 resamples of the seeds; deterministic.
template <class Statistic>
Interval bootstrap(const std::vector<double>& values, Statistic statistic) {
  std::uint64_t state = 12345;
  std::vector<double> estimates;
  std::vector<double> sample(values.size());
  for (int round = 0; round < 1000; ++round) {
    for (double& value : sample) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      value = values[(state >> 33) % values.size()];
    }
    estimates.push_back(statistic(sample));
  }
  return {statistic(values), quantile(estimates, 0.025), quantile(estimates, 0.975)};
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}
double median_of(const std::vector<double>& values) { return median(values); }

std::string shown(const Interval& log) {
  char text[80];
  std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", std::exp(log.value), std::exp(log.low),
                std::exp(log.high));
  return text;
}

void print_table(const Landscape& landscape, const std::vector<Contestant>& all, int seeds,
                 std::uint64_t first) {
  std::printf("\n### %s\n\nMedian of the best speed-up [95 %% interval].\n\n",
              landscape.label.c_str());
  std::printf(
      "| search | 15 | 30 | 60 | 120 | failed of 120 | repeated "
      "|\n|---|---|---|---|---|---|---|\n");
  std::vector<Score> scores;
  for (const Contestant& who : all) {
    scores.push_back(play(landscape, who, seeds, first));
    const Score& score = scores.back();
    std::printf("| %s |", who.label.c_str());
    for (const auto& logs : score.logs) {
      std::printf(" %s |", shown(bootstrap(logs, median_of)).c_str());
    }
    std::printf(" %.1f | %.1f |\n", score.failed, score.repeated);
    std::fflush(stdout);
  }
  std::printf("\n%s's best over each other's, geometric mean over the seeds [95 %% interval].\n\n",
              all[0].label.c_str());
  std::printf("| against | 15 | 30 | 60 | 120 |\n|---|---|---|---|---|\n");
  for (std::size_t i = 1; i < all.size(); ++i) {
    std::printf("| %s |", all[i].label.c_str());
    for (std::size_t b = 0; b < std::size(kBudgets); ++b) {
      std::vector<double> ratios = scores[0].logs[b];
      for (std::size_t s = 0; s < ratios.size(); ++s) ratios[s] -= scores[i].logs[b][s];
      std::printf(" %s |", shown(bootstrap(ratios, mean_of)).c_str());
    }
    std::printf("\n");
  }
}

std::vector<Landscape> landscapes() {
  const auto text = read_file(KERNELPRO_SOURCE_DIR "/bench/synthetic/landscape.json");
  if (!text) throw Fatal(text.error());
  const auto fitted = testing::landscape_from_json(*text);
  if (!fitted) throw Fatal(fitted.error());
  std::vector<Landscape> all = {{"Fitted", *fitted}};
  LandscapeParameters p = *fitted;
  for (double& rate : p.failure_rates) rate = 0.5;
  all.push_back({"Half of the ideas fail", p});
  p = *fitted;
  p.jump = 0;
  all.push_back({"No jumps", p});
  p = *fitted;
  p.inheritance = 0.8;
  all.push_back({"New designs keep 0.8 of their parent's distance", p});
  p.knows_design = true;
  p.silent = 0.2;
  p.immature = 0.3;
  p.step_mean = 0.05;
  all.push_back({"The same, designs begin 0.3 above their floor, and diagnoses know the floor", p});
  return all;
}

std::vector<Contestant> contestants() {
  SearchParameters blind;
  blind.diagnosis = 0;
  const SearchParameters paper = (*find_preset("paper"))->parameters();
  std::vector<Contestant> all = {{"mcts", "mcts", {}, true},
                                 {"mcts without diagnosis", "mcts", blind, true},
                                 {"mcts, preset paper", "mcts", paper, true}};
  for (const SearchRow& row : searches()) {
    if (row.name != "mcts") all.push_back({std::string(row.name), std::string(row.name), {}, true});
  }
  for (const char* name : {"mcts", "branches", "beam", "greedy", "best-of-n"}) {
    all.push_back({std::string(name) + " without memory", name, {}, false});
  }
  return all;
}

// SETTING=VALUE of those that are worth trying out.
void set(SearchParameters* p, const std::string& text) {
  const std::map<std::string, double*> settings = {
      {"exploration", &p->exploration}, {"best_share", &p->best_share},
      {"widening", &p->widening},       {"exponent", &p->exponent},
      {"quality", &p->quality},         {"prune_factor", &p->prune_factor},
      {"light_share", &p->light_share}, {"diagnosis", &p->diagnosis},
      {"least_scale", &p->least_scale}};
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto found = settings.find(name);
  if (equals == std::string::npos || (found == settings.end() && name != "patience")) {
    std::fprintf(stderr, "bench_search: %s is no setting\n", text.c_str());
    std::exit(2);
  }
  const double value = std::atof(text.c_str() + equals + 1);
  if (name == "patience") {
    p->patience = static_cast<int>(value);
  } else {
    *found->second = value;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 1000;
  const auto first = static_cast<std::uint64_t>(argc > 2 ? std::atoll(argv[2]) : 1);
  if (seeds < 1) {
    std::fprintf(stderr, "usage: bench_search [SEEDS [FIRST [SETTING=VALUE...]]]\n");
    return 2;
  }
  std::vector<Contestant> all = contestants();
  if (argc > 3) {
    Contestant changed = all[0];
    changed.label = "changed";
    for (int i = 3; i < argc; ++i) set(&changed.parameters, argv[i]);
    all = {changed, all[0]};
  }
  std::printf("%d seeds from %llu\n", seeds, static_cast<unsigned long long>(first));
  for (const Landscape& landscape : landscapes()) print_table(landscape, all, seeds, first);
  return 0;
}
