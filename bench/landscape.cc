// SPDX-License-Identifier: Apache-2.0
// Searches on recorded landscapes (bench/landscapes/export.py): how many evaluations each needs to
// get within 5 % of the fastest variant. Each seed starts from a random correct variant. Nothing is
// built or run: an evaluation is a look-up.
//   bench_landscape [--seeds N] [--first N] [--budget N] [--arms A,B...] [--out FOLDER]
//                   LANDSCAPE.json.gz...
// Seeds FIRST, FIRST+1 ...; results/search.md reports 1 to 1000; the tuner was developed on seeds
// from 100001.
// An arm is a search with the embedded tuner as proposer, `NAME` without the recorded diagnoses and
// `NAME+diagnosis` with them, or `any`: random search over the whole space without repeats.
// With --out, writes every seed's count to FOLDER/<landscape>.kernelpro.json, for compare.py.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/statistics/statistics.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/candidate/requirements.h"
#include "core/task/inputs.h"
#include "search/searches.h"
#include "write/proposer.h"
#include "write/tuner/tuner.h"

namespace kernelpro {
namespace {

constexpr double kClose = 1.05;  // times the fastest

struct Landscape {
  std::string name;
  std::vector<Known> variants;           // without ids and parents
  std::map<KnobValues, std::size_t> at;  // into variants
  std::vector<std::size_t> correct;      // possible starts
  double fastest_us = 0;
  const Known& look_up(const KnobValues& values) const { return variants[at.at(values)]; }
};

struct Settings {
  int seeds = 1000;
  std::uint64_t first = 1;
  int budget = 0;  // evaluations; 0: the number of variants
  std::vector<std::string> arms;
  std::string out;
};

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "bench_landscape: %s\n", message.c_str());
  std::exit(2);
}

std::string unpacked(const std::string& path) {
  Command command;
  command.argv = {"gzip", "-dc", path};
  command.limits.wall_seconds = 60;
  command.limits.output_kept = command.limits.output_killed = 256 << 20;
  const auto done = run(command);
  if (!done || !done->ok()) give_up(path + " cannot be unpacked; make it with export.py");
  return done->output;
}

// The part of a source that the tuner reads: the @knob and @require lines.
std::string knob_lines(const std::string& source) {
  std::string lines;
  for (const std::string& line : split(source, '\n')) {
    const bool knob = line.find("// @knob ") != std::string::npos;
    if (knob || line.find("// @require ") != std::string::npos) lines += line + "\n";
  }
  return lines;
}

Diagnosis diagnosis_of(const Json& variant) {
  Diagnosis diagnosis;
  const JsonReader r(variant);
  diagnosis.floor_us = r.real("floor_us");
  diagnosis.fraction_of_ceiling = r.real("fraction");
  for (const Json& each : r.array("findings")) {
    Finding finding;
    finding.tool = each.at(0).get<std::string>();
    for (const Json& tag : each.at(1)) {
      finding.prescriptions.push_back({tag.get<std::string>(), "", ""});
    }
    finding.likely_speedup = each.at(2).get<double>();
    finding.upper_speedup = each.at(3).get<double>();
    finding.stop = each.at(4).get<bool>();
    diagnosis.findings.push_back(std::move(finding));
  }
  return diagnosis;
}

std::size_t allowed_settings(const std::vector<Knob>& knobs, const Requirements& requirements) {
  std::size_t space = 1, allowed = 0;
  for (const Knob& knob : knobs) space *= knob.values.size();
  for (std::size_t i = 0; i < space; ++i) {
    std::vector<std::uint16_t> at;
    std::size_t rest = i;
    for (const Knob& knob : knobs) {
      at.push_back(static_cast<std::uint16_t>(rest % knob.values.size()));
      rest /= knob.values.size();
    }
    if (requirements.hold(at)) ++allowed;
  }
  return allowed;
}

Landscape load(const std::string& path) {
  const auto json = parse_json(unpacked(path));
  if (!json) give_up(path + " is no landscape; make it with export.py");
  const JsonReader r(*json);
  Landscape landscape;
  landscape.name = path.substr(path.rfind('/') + 1);
  landscape.name.resize(std::min(landscape.name.size(), landscape.name.find('.')));
  const std::string source = knob_lines(r.text("source"));
  const auto knobs = parse_knobs(source);
  if (!knobs) give_up(path + ": " + knobs.error().message);
  const auto requirements = Requirements::parse(source, *knobs);
  if (!requirements) give_up(path + ": " + requirements.error().message);
  const std::size_t space = allowed_settings(*knobs, *requirements);
  for (const Json& each : r.array("variants")) {
    const JsonReader v(each);
    Known known;
    known.candidate.source = source;
    const Json& setting = v.array("setting");
    for (std::size_t k = 0; k < knobs->size(); ++k) {
      known.candidate.knobs[(*knobs)[k].name] = (*knobs)[k].values.at(setting.at(k).get<int>());
    }
    const double us = v.real("us");
    if (us > 0) {
      Correct correct;
      correct.timings.push_back({"recorded", us, v.real("low"), v.real("high"), 1, ""});
      known.evaluation.outcome = correct;
      known.diagnosis = diagnosis_of(each);
      landscape.correct.push_back(landscape.variants.size());
      if (landscape.fastest_us == 0 || us < landscape.fastest_us) landscape.fastest_us = us;
    } else {
      known.evaluation.outcome = CompileError{v.text("why")};
    }
    landscape.at[known.candidate.knobs] = landscape.variants.size();
    landscape.variants.push_back(std::move(known));
  }
  if (landscape.at.size() != space || landscape.correct.empty()) {
    give_up(path + " has " + std::to_string(landscape.at.size()) + " of " + std::to_string(space) +
            " settings: let `kernelpro resume` finish its sweep");
  }
  return landscape;
}

// The result as run/loop.cc reports it to a search.
NodeResult node_result(const Known& known) {
  NodeResult result;
  result.correct = known.evaluation.correct() != nullptr;
  result.time_us = score_us(known.evaluation);
  result.fraction = known.diagnosis.fraction_of_ceiling;
  for (const Finding& finding : known.diagnosis.findings) {
    result.stop |= finding.stop;
    if (finding.prescriptions.empty()) continue;
    result.likely = std::max(result.likely, finding.likely_speedup);
    result.upper = std::max(result.upper, finding.upper_speedup);
  }
  return result;
}

// One search from one start.
class Trial {
 public:
  Trial(const Landscape& landscape, const std::string& arm, std::uint64_t seed, int budget)
      : landscape_(landscape), seed_(seed), budget_(budget) {
    const std::size_t plus = arm.find("+diagnosis");
    diagnosed_ = plus != std::string::npos;
    name_ = arm.substr(0, plus);
  }

  // Evaluations, including the start; 0: it ended without getting close.
  int run() {
    const std::size_t start = kp::mix64(seed_ * 0x9e37 + 1) % landscape_.correct.size();
    const Known& first = landscape_.variants[landscape_.correct[start]];
    if (evaluate(first.candidate.knobs, 0)) return 1;
    return name_ == "any" ? blindly(first) : by_search();
  }

 private:
  // True when the variant is close to the fastest.
  bool evaluate(const KnobValues& values, std::int64_t parent) {
    auto known = std::make_shared<Known>(landscape_.look_up(values));
    known->id = static_cast<std::int64_t>(history_.size()) + 1;
    known->candidate.origin.parent = parent;
    if (!diagnosed_) known->diagnosis = Diagnosis();
    const double us = score_us(known->evaluation);
    history_.push_back(std::move(known));
    return us > 0 && us <= kClose * landscape_.fastest_us;
  }

  int blindly(const Known& first) {
    std::vector<std::size_t> order(landscape_.variants.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[kp::mix64(seed_ * 0x10001 + i) % i]);
    }
    int count = 1;
    for (const std::size_t at : order) {
      const Known& known = landscape_.variants[at];
      if (&known == &first) continue;
      if (++count > budget_) return 0;
      const double us = score_us(known.evaluation);
      if (us > 0 && us <= kClose * landscape_.fastest_us) return count;
    }
    return 0;
  }

  int by_search() {
    auto search = make_search(name_, SearchParameters(), seed_);
    if (!search) give_up(search.error().text());
    const auto tuner = make_tuner();
    (*search)->add_root(1, node_result(*history_[0]));
    while (static_cast<int>(history_.size()) < budget_) {
      const auto turn = (*search)->start();
      if (!turn) return 0;
      const std::int64_t parent = turn->parent;
      ProposalRequest request;
      request.parent = history_[static_cast<std::size_t>(parent - 1)];
      request.history = history_;
      request.seed = seed_;
      request.wanted = std::max(1, turn->wanted);
      std::vector<Proposal> proposals;
      const auto written = tuner->propose(request, [&](WriterEvent event) {
        proposals.push_back(std::get<Proposal>(std::move(event)));
      });
      if (!written) give_up(written.error().text());
      if (proposals.empty()) {
        (*search)->cancel(parent);
        (*search)->close(parent);
        continue;
      }
      bool first = true;
      for (const Proposal& proposal : proposals) {
        if (static_cast<int>(history_.size()) >= budget_) return 0;
        if (evaluate(proposal.candidate.knobs, parent)) return static_cast<int>(history_.size());
        const Known& known = *history_.back();
        if (first) {
          (*search)->finalize(parent, known.id, node_result(known));
        } else {
          (*search)->restore(parent, known.id, node_result(known));
        }
        first = false;
      }
    }
    return 0;
  }

  const Landscape& landscape_;
  std::uint64_t seed_;
  int budget_;
  std::string name_;
  bool diagnosed_ = false;
  History history_;
};

std::vector<int> all_seeds(const Landscape& landscape, const std::string& arm,
                           const Settings& settings, int budget) {
  const int seeds = settings.seeds;
  std::vector<int> counts(static_cast<std::size_t>(seeds));
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (int seed = next++; seed < seeds; seed = next++) {
        Trial trial(landscape, arm, settings.first + static_cast<std::uint64_t>(seed), budget);
        counts[static_cast<std::size_t>(seed)] = trial.run();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return counts;
}

// A seed that never got close counts as the whole budget.
void print_row(const std::string& arm, const std::vector<int>& counts, int budget, double seconds) {
  std::vector<double> needed;
  double sum = 0;
  std::size_t reached = 0;
  for (const int count : counts) {
    reached += count > 0 ? 1 : 0;
    needed.push_back(count > 0 ? count : budget);
    sum += needed.back();
  }
  std::printf("| %s | %.0f | %.1f | %.0f | %.0f | %.0f | %.1f %% | %.2f |\n", arm.c_str(),
              median(needed), sum / static_cast<double>(needed.size()), quantile(needed, 0.25),
              quantile(needed, 0.75), quantile(needed, 0.9),
              100.0 * static_cast<double>(reached) / static_cast<double>(counts.size()),
              1e3 * seconds / static_cast<double>(counts.size()));
  std::fflush(stdout);
}

void measure(const Landscape& landscape, const Settings& settings) {
  const int space = static_cast<int>(landscape.variants.size());
  const int budget = settings.budget > 0 ? std::min(settings.budget, space) : space;
  std::size_t close = 0;
  for (const std::size_t at : landscape.correct) {
    close += score_us(landscape.variants[at].evaluation) <= kClose * landscape.fastest_us ? 1 : 0;
  }
  std::printf(
      "\n%s: %d variants, %zu correct, fastest %.6g us, %zu within 5 %% of it; budget %d\n\n",
      landscape.name.c_str(), space, landscape.correct.size(), landscape.fastest_us, close, budget);
  std::printf("| search | median | mean | 25 %% | 75 %% | 90 %% | reached | ms a seed |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  Json arms = Json::object();
  for (const std::string& arm : settings.arms) {
    const double from = real_clock().now_s();
    const std::vector<int> counts = all_seeds(landscape, arm, settings, budget);
    print_row(arm, counts, budget, real_clock().now_s() - from);
    arms[arm] = counts;
  }
  if (settings.out.empty()) return;
  const Json json = {{"landscape", landscape.name},
                     {"budget", budget},
                     {"within", kClose},
                     {"seeds", settings.seeds},
                     {"searches", arms}};
  const auto written =
      write_file(join(settings.out, landscape.name + ".kernelpro.json"), dump_json(json) + "\n");
  if (!written) give_up(written.error().text());
}

int landscape_main(int argc, char** argv) {
  Settings settings;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--seeds" && i + 1 < argc) {
      settings.seeds = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--first" && i + 1 < argc) {
      settings.first = static_cast<std::uint64_t>(std::atoll(argv[++i]));
    } else if (word == "--budget" && i + 1 < argc) {
      settings.budget = std::atoi(argv[++i]);
    } else if (word == "--arms" && i + 1 < argc) {
      settings.arms = split(argv[++i], ',');
    } else if (word == "--out" && i + 1 < argc) {
      settings.out = argv[++i];
    } else {
      paths.push_back(word);
    }
  }
  if (paths.empty()) give_up("name a landscape: bench/landscapes/NAME.json.gz");
  if (settings.arms.empty()) {
    settings.arms = {"any"};
    for (const SearchRow& row : searches()) {
      settings.arms.push_back(std::string(row.name) + "+diagnosis");
      settings.arms.push_back(std::string(row.name));
    }
  }
  for (const std::string& path : paths) measure(load(path), settings);
  return 0;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) { return kernelpro::landscape_main(argc, argv); }
