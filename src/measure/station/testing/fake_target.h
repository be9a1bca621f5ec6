// SPDX-License-Identifier: Apache-2.0
// A target without compilers and workers, for tests and for measuring the loop's overhead: the
// "time" of a candidate is a function of its knob values.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/candidate/candidate.h"
#include "core/testing/toy_task.h"
#include "measure/station/local.h"
#include "measure/station/target.h"

namespace kernelpro::testing {

// Microseconds for these knob values; 0: does not compile; negative: a wrong result.
using Landscape = std::function<double(const KnobValues&)>;

struct FakeSettings {
  Landscape landscape;
  std::string log;                        // a file; gets one line per call, the candidate's hash
  std::function<void()> before_evaluate;  // to stop or die at a chosen moment
  // Who killed the process of this evaluation from outside; nullopt: nobody.
  std::function<std::optional<Crashed::By>()> killed;
  std::function<double()> confirm_factor;  // scales the winner's time when it is confirmed
  double confirm_spread = 0.001;           // how far the ratio's interval then goes, either way
  std::vector<std::string> labels;         // of every correct candidate
  std::function<std::vector<std::string>()> confirm_labels;  // of the winner when it is confirmed
  std::string machine = "fake machine";
  double copy_bytes_per_s = 1e10;              // the measured ceiling
  bool quiet = true;                           // whether the machine was quiet then
  std::function<Result<Machine>()> remeasure;  // the ceilings; may be empty
  std::map<std::string, double> observed;      // for every correct candidate
  std::optional<Energy> energy;                // likewise
  std::function<double()> factor;              // of the candidate's time in an evaluation
  bool counters = false;                       // whether hardware counters can be read
  // The machine error, if any, when a candidate is evaluated on this GPU.
  std::function<Result<void>(const std::string& gpu)> fault;
};

class FakeCompiler : public Compiler {
 public:
  explicit FakeCompiler(Landscape landscape) : landscape_(std::move(landscape)) {}
  CompileResult compile(const Task&, const Case& c, const Candidate& candidate) override {
    const double time = landscape_(candidate.knobs);
    if (time == 0) return CompileError{"kernel.cpp:3: static assertion failed"};
    Binary binary;
    binary.case_name = c.name;
    binary.hash = candidate.content_hash();
    binary.shared_object = std::to_string(time);
    return binary;
  }
  CompileResult compile_reference(const Task&, const Case&) override { return Binary{}; }
  std::string describe() const override { return "fake compiler"; }

 private:
  Landscape landscape_;
};

class FakeEvaluator : public Evaluator {
 public:
  explicit FakeEvaluator(const FakeSettings& settings, std::string gpu = "")
      : settings_(settings), gpu_(std::move(gpu)) {}
  Result<void> prepare(const References&) override { return {}; }

  Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) override {
    if (settings_.before_evaluate) settings_.before_evaluate();
    log(subject.hash);
    if (settings_.fault) KP_TRY(settings_.fault(gpu_));
    if (const auto by = settings_.killed ? settings_.killed() : std::nullopt) {
      Evaluation evaluation;
      evaluation.outcome = Crashed{"the process was ended by signal 9 (Killed)", "", *by};
      return evaluation;
    }
    auto judged = judge(subject, incumbent, settings_.factor ? settings_.factor() : 1);
    auto* correct = judged ? std::get_if<Correct>(&judged->outcome) : nullptr;
    const bool behind = correct != nullptr && correct->versus && correct->versus->ratio <= 1;
    if (subject.variant && behind) correct->observed[kScreened] = 1;
    return judged;
  }
  Result<Evaluation> confirm(const Subject& subject, const Subject& incumbent) override {
    auto judged =
        judge(subject, &incumbent, settings_.confirm_factor ? settings_.confirm_factor() : 1);
    auto* correct = judged ? std::get_if<Correct>(&judged->outcome) : nullptr;
    if (correct != nullptr && correct->versus) {
      correct->versus->low = correct->versus->ratio * (1 - settings_.confirm_spread);
      correct->versus->high = correct->versus->ratio * (1 + settings_.confirm_spread);
    }
    if (correct != nullptr && settings_.confirm_labels) {
      correct->labels = settings_.confirm_labels();
    }
    return judged;
  }
  CounterAnswers profile(const Subject&, std::size_t, CounterSet set) override {
    CounterAnswers answers;
    answers.set = set;
    if (settings_.counters) answers.source = "fake counters";
    return answers;
  }

 private:
  static double time_of(const Subject& subject) {
    return std::strtod(subject.binaries.back().shared_object.c_str(), nullptr);
  }
  Result<Evaluation> judge(const Subject& subject, const Subject* incumbent, double factor) const {
    Evaluation evaluation;
    evaluation.trust = "fake";
    const double time = time_of(subject) * factor;
    if (time < 0) {
      evaluation.outcome = WrongResult{"small", "y", "element 3 is off", 0.5, 1e-5};
      return evaluation;
    }
    Correct correct;
    const std::string name = subject.binaries.back().case_name;
    correct.timings.push_back({name, time, time * 0.999, time * 1.001, 20, "calls in turn"});
    if (incumbent != nullptr) {
      const double ratio = time_of(*incumbent) / time;
      correct.versus = Correct::Versus{incumbent->hash, ratio, ratio * 0.999, ratio * 1.001};
    }
    correct.observed = settings_.observed;
    correct.energy = settings_.energy;
    correct.labels = settings_.labels;
    evaluation.outcome = correct;
    return evaluation;
  }
  void log(const std::string& hash) const {
    if (settings_.log.empty()) return;
    if (std::FILE* file = std::fopen(settings_.log.c_str(), "a")) {
      std::fprintf(file, "%s\n", hash.c_str());
      std::fclose(file);
    }
  }

  FakeSettings settings_;
  std::string gpu_;
};

inline TargetMaker fake_target(const FakeSettings& settings) {
  return [settings](const Task&, const StationSettings& run) -> Result<Target> {
    Target target;
    target.machine = std::make_unique<Machine>();
    target.machine->target = "cpu";
    target.machine->name = settings.machine;
    target.machine->ceilings.copy_bytes_per_s = settings.copy_bytes_per_s;
    target.machine->ceilings.quiet = settings.quiet;
    target.remeasure = settings.remeasure;
    target.machine->ceilings.fma_flops_per_s = 1e11;
    target.compiler = std::make_shared<FakeCompiler>(settings.landscape);
    target.evaluator = std::make_unique<FakeEvaluator>(settings, run.gpu);
    target.collect = [](const Task& task, const Case& c, const Machine&, const Binary&,
                        const Evaluation& evaluation, const CallFacts& call) {
      Evidence evidence;
      if (!call.counters.source.empty()) {
        evidence.set("dram__bytes_read.sum", 4096, call.counters.source);
      }
      if (evaluation.correct() != nullptr) {
        evidence.set("timing.median", score_us(evaluation), Level::kTiming, "timing");
      }
      evidence.set("task.compulsory_bytes", compulsory_bytes(task, c), Level::kTiming, "task");
      return evidence;
    };
    return target;
  };
}

inline StationMaker fake_station(const FakeSettings& settings) {
  return local_stations(fake_target(settings));
}

inline double knob(const KnobValues& knobs, const char* name) {
  const auto it = knobs.find(name);
  return it == knobs.end() ? 0 : std::strtod(it->second.c_str(), nullptr);
}

// Five knobs, 1280 settings. Best at V=8 T=4 C=64 S=1 U=2: 100 us, against 1000 and more.
inline double smooth_landscape(const KnobValues& knobs) {
  const auto off = [&](const char* name, double best) {
    return std::abs(std::log2(knob(knobs, name) / best));
  };
  return 100 * std::exp(0.5 * off("V", 8) + 0.5 * off("T", 4) + 0.2 * off("C", 64) +
                        0.2 * off("U", 2) + (knob(knobs, "S") == 1 ? 0 : 0.15));
}

inline Task fake_task() {
  Task task = toy_task();
  task.flops = "N";
  task.reference_cpp = "#include \"task.h\"\n";
  task.kernel_cpp =
      "// @knob V 1 2 4 8 16 : vectorize\n// @knob T 1 2 4 8 : threads\n"
      "// @knob C 16 32 64 128\n// @knob S 0 1 : streaming\n// @knob U 1 2 3 4 : unroll\n"
      "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {}\n";
  return task;
}

}  // namespace kernelpro::testing
