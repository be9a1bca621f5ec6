// SPDX-License-Identifier: Apache-2.0
// The exploit suite: evaluates every kernel of exploits/ and honest/ and compares its verdict with
// the expected one in its first lines (expectation.h).
//   exploit_suite [--tests DIR] [--target cpu|cuda] [--only NAME]... [--without NAME]...
//                 [--compile] [--jobs N] [-v]
// NAME is a folder's name, or a prefix and a star ("module_*"). Without a GPU, PyTorch candidates
// are skipped and kernels of the cuda target are only compiled: those that must fail to compile,
// or all with --compile. Exits 1 on an unexpected verdict.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "build/build.h"
#include "expectation.h"
#include "measure/ceilings/ceilings.h"
#include "measure/station/target.h"
#include "run/evaluate_one.h"
#include "run/store/settings.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

constexpr int kAgain = 4;                // extra evaluations when noise hides the answer
constexpr int kUnclear = 2;              // most attacks without an answer in the whole suite
constexpr double kHangTimeout = 2.5;     // seconds per call of attacks that may hang: each costs it
constexpr double kCallTimeout = 60;      // of all others, which need milliseconds
constexpr double kCompileTimeout = 240;  // seconds; the compilers stop the suite's bombs themselves

struct Options {
  std::string tests = KERNELPRO_SOURCE_DIR "/tests";
  std::vector<std::string> only, without;
  std::string target;  // "" both
  bool holes = false;
  std::optional<bool> timed;  // only kernels whose verdict rests on a time; only the others
  bool compile = false;
  bool verbose = false;
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

struct Kernel {
  std::string name;  // "exploits/input_mutation/kernel.cu"
  bool honest = false;
  TargetKind target = TargetKind::kCpu;
  SuiteHeader header;
  Candidate candidate;
  // Results of the run:
  BuildResult built = fail(ErrorKind::kInternal, "not built", "");
  std::string got;     // "" not run
  std::string detail;  // one line
  double seconds = 0;
  Expectation::Answer ok = Expectation::Answer::kNo;
};

// A file that no candidate may read: its name replaces @DECOY@ in the sources. It is open here, as
// a shell may leave files open for the programs that it starts.
class Decoy {
 public:
  Decoy() {
    const char* home = std::getenv("HOME");
    path_ = join(home != nullptr ? home : ".", ".kernelpro-decoy-" + std::to_string(::getpid()));
    static_cast<void>(write_file(path_, "// decoy\n"));
    inherited_ = ::open(path_.c_str(), O_RDONLY);
    ::setenv("KERNELPRO_API_KEY", "decoy", 1);
  }
  ~Decoy() {
    ::close(inherited_);
    ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  bool there() const { return inherited_ >= 0; }

 private:
  std::string path_;
  int inherited_ = -1;
};

class Suite {
 public:
  explicit Suite(Options options) : options_(std::move(options)) {}

  int run() {
    if (!decoy_.there()) {  // attacks that look for it would pass as caught
      std::fprintf(
          stderr,
          "exploit_suite: cannot write %s\n  next: set HOME to a folder that can be written\n",
          decoy_.path().c_str());
      return 2;
    }
    const std::vector<std::string> kinds = options_.holes
                                               ? std::vector<std::string>{"holes"}
                                               : std::vector<std::string>{"exploits", "honest"};
    for (const std::string& kind : kinds) {
      if (!read_kernels(kind)) return 2;
    }
    run_target(TargetKind::kCpu);
    run_target(TargetKind::kCuda);
    return report();
  }

 private:
  using Kernels = std::vector<Kernel*>;

  static bool named(const std::vector<std::string>& names, const std::string& name) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& each) {
      return each.ends_with("*") ? name.starts_with(each.substr(0, each.size() - 1)) : each == name;
    });
  }

  bool read_kernels(const std::string& kind) {
    const std::string folder = join(options_.tests, kind);
    for (const std::string& name : list_dir(folder)) {
      if (!options_.only.empty() && !named(options_.only, name)) continue;
      if (named(options_.without, name)) continue;
      for (const Language language : {Language::kCpp, Language::kCuda, Language::kPython}) {
        const char* const files[] = {"kernel.cpp", "kernel.cu", "kernel.py"};
        const std::string file = files[static_cast<int>(language)];
        const std::string path = join(join(folder, name), file);
        if (!exists(path)) continue;
        const Result<std::string> source = read_file(path);
        const auto header = source ? read_header(*source) : std::nullopt;
        if (!header) {
          std::fprintf(stderr, "%s: its first lines do not name task and verdict\n", path.c_str());
          return false;
        }
        if (options_.timed.value_or(header->expectation.names("slow")) !=
            header->expectation.names("slow")) {
          continue;
        }
        Kernel kernel;
        kernel.name = join(join(kind, name), file);
        kernel.honest = kind == "honest";
        kernel.header = *header;
        kernel.target = language == Language::kCpp ? TargetKind::kCpu : TargetKind::kCuda;
        kernel.candidate.language = language;
        kernel.candidate.source = replace_all(*source, "@DECOY@", decoy_.path());
        kernels_.push_back(std::move(kernel));
      }
    }
    return true;
  }

  void run_target(TargetKind target) {
    if (!options_.target.empty() && options_.target != target_name(target)) return;
    Kernels all;
    for (Kernel& kernel : kernels_) {
      if (kernel.target == target) all.push_back(&kernel);
    }
    if (all.empty()) return;
    const bool cpu = target == TargetKind::kCpu;
    const Result<Machine> machine = cpu ? describe_cpu_machine() : describe_cuda_machine();
    CompileSettings settings;
    settings.timeout_s = kCompileTimeout;
    settings.cuda_arch = machine && !cpu ? machine->arch : "sm_90a";
    auto compiler = cpu ? make_cpu_compiler(settings) : make_cuda_compiler(settings);
    if (!compiler) {
      note(std::string(target_name(target)) + ": " + compiler.error().text());
      return;
    }
    if (!machine) {
      note(std::string(target_name(target)) + ": compiled only, for " + machine.error().message);
      std::erase_if(all, [&](const Kernel* kernel) {
        const bool wanted = options_.compile || kernel->header.expectation.only("compile-error");
        return kernel->candidate.language == Language::kPython || !wanted;
      });
    }
    for (const Kernel* kernel : all) open(kernel->header.task, target);
    compile(all, target, **compiler);
    if (!machine) return judge_builds(all);
    std::map<std::pair<std::string, bool>, Kernels> groups;  // by task, and whether they may hang
    for (Kernel* kernel : all) {
      groups[{kernel->header.task, kernel->header.expectation.names("timed-out")}].push_back(
          kernel);
    }
    for (auto each = groups.begin(); each != groups.end(); ++each) {
      const std::string& name = each->first.first;
      evaluate(name, each->first.second ? kHangTimeout : kCallTimeout, each->second, target,
               **compiler);
      const auto next = std::next(each);
      const bool last = next == groups.end() || next->first.first != name;
      if (last) module_.reset();
    }
  }

  // A task folder, or a PyTorch file next to it.
  void open(const std::string& name, TargetKind target) {
    const auto key = std::pair(target, name);
    if (tasks_.count(key) != 0) return;
    const std::string path = join(join(options_.tests, "tasks"), name);
    OpenSettings settings;
    settings.target = target;
    tasks_.emplace(key, open_task(exists(path + ".py") ? path + ".py" : path, settings));
  }
  Result<OpenedTask>& task_of(const std::string& name, TargetKind target) {
    return tasks_.at(std::pair(target, name));
  }

  void compile(const Kernels& kernels, TargetKind target, Compiler& compiler) {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < kernels.size(); i = next++) {
        Kernel& kernel = *kernels[i];
        const Result<OpenedTask>& opened = task_of(kernel.header.task, target);
        if (!opened) continue;
        double compile_ms = 0;
        kernel.built = build(opened->task, target, compiler, kernel.candidate, &compile_ms);
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < std::min(options_.jobs, 16); ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
  }

  // For kernels that cannot be run here: judges only whether they compile.
  void judge_builds(const Kernels& kernels) {
    for (Kernel* kernel : kernels) {
      if (!kernel->built) {
        finish(*kernel, "error", kernel->built.error().text(), Expectation::Answer::kNo);
      } else if (const auto* error = std::get_if<CompileError>(&*kernel->built)) {
        judge(*kernel, *error);
      } else {
        finish(*kernel, "compiles", "",
               kernel->header.expectation.only("compile-error") ? Expectation::Answer::kNo
                                                                : Expectation::Answer::kYes);
      }
    }
  }

  void evaluate(const std::string& name, double call_timeout_s, const Kernels& kernels,
                TargetKind kind, Compiler& compiler) {
    const auto give_up = [&](const Error& error) {
      for (Kernel* kernel : kernels) {
        if (kernel->got.empty()) finish(*kernel, "error", error.text(), Expectation::Answer::kNo);
      }
    };
    Result<OpenedTask>& opened = task_of(name, kind);
    if (!opened) return give_up(opened.error());
    const Task& task = opened->task;
    if (opened->module) module_ = std::move(opened->module);
    const BuildResult yardstick = build_yardstick(task, kind, compiler);
    if (!yardstick) return give_up(yardstick.error());
    if (const auto* error = std::get_if<CompileError>(&*yardstick)) {
      return give_up({ErrorKind::kTask, "the task's kernel does not compile: " + error->log, ""});
    }
    RunSettings settings;
    settings.target = kind;
    settings.timeout_s = call_timeout_s;
    for (const Kernel* kernel : kernels) {
      if (kernel->candidate.language == Language::kPython) ++settings.modules_ahead;
    }
    Result<Target> target = fail(ErrorKind::kInternal, "no target", "");
    for (Kernel* kernel : kernels) {
      if (kernel->built && std::holds_alternative<CompileError>(*kernel->built)) {
        judge(*kernel, std::get<CompileError>(*kernel->built));
        continue;
      }
      if (!kernel->built) {
        finish(*kernel, "error", kernel->built.error().text(), Expectation::Answer::kNo);
        continue;
      }
      if (!target) {  // the first kernel, or the previous one broke the target
        target = make_target(task, settings, module_);
        if (!target) return give_up(target.error());
        const Result<void> prepared = prepare_target(task, kind, *target);
        if (!prepared) return give_up(prepared.error());
      }
      // Kernels expected to be slow are timed against the task's kernel.
      const Subject* against =
          kernel->header.expectation.names("slow") ? &std::get<Subject>(*yardstick) : nullptr;
      const double begin = real_clock().now_s();
      auto evaluation = target->evaluator->evaluate(std::get<Subject>(*kernel->built), against);
      bool declared = false;
      for (int again = 0;
           again < kAgain && evaluation && open(*kernel, evaluation->outcome, declared); ++again) {
        evaluation = target->evaluator->evaluate(std::get<Subject>(*kernel->built), against);
      }
      kernel->seconds = real_clock().now_s() - begin;
      if (evaluation) {
        judge(*kernel, evaluation->outcome);
      } else {  // a candidate that makes the evaluator fail would end a run
        finish(*kernel, "error", evaluation.error().text(), Expectation::Answer::kNo);
        target = fail(ErrorKind::kInternal, "no target", "");
      }
    }
  }

  // The yardstick for "slow": the task's kernel, or X_new.py next to X.py.
  static BuildResult build_yardstick(const Task& task, TargetKind kind, Compiler& compiler) {
    Candidate start;
    if (task.module) {
      const std::string& path = task.module->path;
      auto source = read_file(path.substr(0, path.size() - 3) + "_new.py");
      if (!source) return tl::unexpected<Error>(source.error());
      start.language = Language::kPython;
      start.source = std::move(*source);
    } else {
      start.language = kind == TargetKind::kCpu ? Language::kCpp : Language::kCuda;
      start.source = kind == TargetKind::kCpu ? task.kernel_cpp : task.kernel_cu;
    }
    double compile_ms = 0;
    return build(task, kind, compiler, start, &compile_ms);
  }

  // Whether the kernel must be measured again: its verdict decides nothing, or it is a win that no
  // second measurement has confirmed. One in fifty contests of equals declares a difference
  // (EvaluateSettings::alpha). `declared`: whether the measurement before was a win.
  static bool open(const Kernel& kernel, const Outcome& outcome, bool& declared) {
    const Expectation& expectation = kernel.header.expectation;
    const Expectation::Answer answer = expectation.holds(outcome);
    const bool win = answer == Expectation::Answer::kNo && expectation.names("slow") &&
                     std::holds_alternative<Correct>(outcome);
    const bool confirmed = win && std::exchange(declared, win);
    return answer == Expectation::Answer::kUnclear || (win && !confirmed);
  }

  void judge(Kernel& kernel, const Outcome& outcome) {
    const auto* crashed = std::get_if<Crashed>(&outcome);
    finish(
        kernel, verdict_text(outcome),
        outcome_summary(outcome) + (crashed != nullptr ? " " + crashed->output : "") + why(outcome),
        kernel.header.expectation.holds(outcome));
  }

  // The notes of a verdict with labels.
  static std::string why(const Outcome& outcome) {
    const auto* correct = std::get_if<Correct>(&outcome);
    if (correct == nullptr || correct->labels.empty()) return "";
    return "; " + join_text(correct->notes, "; ");
  }

  void finish(Kernel& kernel, std::string got, const std::string& detail, Expectation::Answer ok) {
    kernel.got = std::move(got);
    kernel.detail = replace_all(detail.substr(0, 300), "\n", " ");
    kernel.ok = ok;
    if (options_.verbose) {
      std::fprintf(stderr, "%6.2f s  %-44s %s: %s\n", kernel.seconds, kernel.name.c_str(),
                   kernel.got.c_str(), kernel.detail.c_str());
    }
  }

  void note(const std::string& text) { notes_.push_back(text); }

  int report() const {
    using Answer = Expectation::Answer;
    int tried[2] = {}, good[2] = {}, unclear = 0, left_out = 0;
    std::printf("| kernel | expected | got | ok |\n|---|---|---|---|\n");
    for (const Kernel& kernel : kernels_) {
      if (kernel.got.empty()) {
        ++left_out;
        continue;
      }
      if (kernel.ok == Answer::kUnclear) {
        ++unclear;
      } else {
        ++tried[kernel.honest];
        good[kernel.honest] += kernel.ok == Answer::kYes;
      }
      std::printf("| %s | %s | %s | %s |\n", kernel.name.c_str(), wanted(kernel).c_str(),
                  kernel.got.c_str(),
                  kernel.ok == Answer::kYes  ? "yes"
                  : kernel.ok == Answer::kNo ? "**NO**"
                                             : "inconclusive");
    }
    std::printf("\n");
    for (const Kernel& kernel : kernels_) {
      if (!kernel.got.empty() && kernel.ok != Answer::kYes) {
        std::printf("%s: %s: %s\n", kernel.ok == Answer::kNo ? "missed" : "inconclusive",
                    kernel.name.c_str(), kernel.detail.c_str());
      }
    }
    for (const std::string& text : notes_) std::printf("%s\n", text.c_str());
    if (left_out > 0) std::printf("%d kernels left out here\n", left_out);
    if (unclear > 0) {
      std::printf("%d inconclusive: the machine is too busy to time them; at most %d may be\n",
                  unclear, kUnclear);
    }
    std::printf("exploits caught %d/%d, honest accepted %d/%d\n", good[0], tried[0], good[1],
                tried[1]);
    const bool all = good[0] == tried[0] && good[1] == tried[1] && tried[0] + tried[1] > 0;
    return all && unclear <= kUnclear ? 0 : 1;
  }

  static std::string wanted(const Kernel& kernel) {
    std::vector<std::string> parts;
    for (const Expectation::Alternative& each : kernel.header.expectation.alternatives) {
      parts.push_back(each.detail.empty() ? each.outcome : each.outcome + " " + each.detail);
    }
    return join_text(parts, " or ");
  }

  Options options_;
  Decoy decoy_;
  std::vector<Kernel> kernels_;
  std::map<std::pair<TargetKind, std::string>, Result<OpenedTask>> tasks_;
  std::shared_ptr<ModuleReference> module_;  // of the current task
  std::vector<std::string> notes_;
};

int main_of_suite(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool more = i + 1 < argc;
    if (flag == "--compile") {
      options.compile = true;
    } else if (flag == "--timed" || flag == "--untimed") {
      options.timed = flag == "--timed";
    } else if (flag == "--holes") {
      options.holes = true;
    } else if (flag == "-v") {
      options.verbose = true;
    } else if (flag == "--tests" && more) {
      options.tests = absolute(argv[++i]);
    } else if (flag == "--target" && more) {
      options.target = argv[++i];
    } else if (flag == "--only" && more) {
      options.only.emplace_back(argv[++i]);
    } else if (flag == "--without" && more) {
      options.without.emplace_back(argv[++i]);
    } else if (flag == "--jobs" && more) {
      options.jobs = std::max(1, std::atoi(argv[++i]));
    } else {
      std::fprintf(
          stderr,
          "usage: exploit_suite [--tests DIR] [--target cpu|cuda] [--only NAME]... "
          "[--without NAME]... [--timed|--untimed] [--holes] [--compile] [--jobs N] [-v]\n");
      return 2;
    }
  }
  return Suite(std::move(options)).run();
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // print each row at once
  return kernelpro::main_of_suite(argc, argv);
}
