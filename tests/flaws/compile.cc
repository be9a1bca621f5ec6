// SPDX-License-Identifier: Apache-2.0
// Opens every task of the planted-flaw suite and builds its reference and its kernels as an
// evaluation would, without a GPU (README.md).
//   flaw_compile [--flaws DIR] [--only NAME]... [--keep DIR] [--jobs N] [-v]
// NAME is a task's folder, or its beginning and a star. --keep copies the timed cases' cubins to
// DIR, as TASK-FLAW-flawed.cubin. Exits 1 when something does not build.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "build/build.h"
#include "measure/station/target.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

constexpr double kCompileTimeout = 120;  // seconds
constexpr const char* kArch = "sm_90a";

struct Options {
  std::string flaws = KERNELPRO_SOURCE_DIR "/tests/flaws";
  std::vector<std::string> only;
  std::string keep;
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool verbose = false;
};

struct Source {
  std::string name;  // "transpose/square_tile/flawed.cu"
  std::string task;
  std::string problem;  // "" it builds
};

bool named(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& each) {
           return each.ends_with("*") ? name.starts_with(each.substr(0, each.size() - 1))
                                      : each == name;
         });
}

// "transpose-square_tile-flawed.cubin"
std::string flat_name(std::string name) {
  return replace_all(name.substr(0, name.size() - 3), "/", "-") + ".cubin";
}

class Compile {
 public:
  explicit Compile(Options options) : options_(std::move(options)) {}

  int run() {
    if (!open_tasks()) return 2;
    if (!options_.keep.empty()) {
      if (const auto made = make_dirs(options_.keep); !made) {
        std::fprintf(stderr, "%s\n", made.error().text().c_str());
        return 2;
      }
    }
    CompileSettings settings;
    settings.timeout_s = kCompileTimeout;
    settings.cuda_arch = kArch;
    auto compiler = make_cuda_compiler(settings);
    if (!compiler) {
      std::fprintf(stderr, "%s\n", compiler.error().text().c_str());
      return 2;
    }
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < sources_.size(); i = next++) {
        Source& source = sources_[i];
        source.problem = problem_of(source, **compiler);
        if (options_.verbose || !source.problem.empty()) {
          std::fprintf(stderr, "%s: %s\n", source.name.c_str(),
                       source.problem.empty() ? "builds" : source.problem.c_str());
        }
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < options_.jobs; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    const auto built = std::count_if(sources_.begin(), sources_.end(),
                                     [](const Source& s) { return s.problem.empty(); });
    std::printf("%zu tasks; %td of %zu sources build\n", tasks_.size(), built, sources_.size());
    return built == static_cast<std::ptrdiff_t>(sources_.size()) && built > 0 ? 0 : 1;
  }

 private:
  bool open_tasks() {
    for (const std::string& name : list_dir(options_.flaws)) {
      const std::string folder = join(options_.flaws, name);
      if (!exists(join(folder, "task.toml")) || !named(options_.only, name)) continue;
      OpenSettings settings;
      settings.target = TargetKind::kCuda;
      auto opened = open_task(folder, settings);
      if (!opened) {
        std::fprintf(stderr, "%s: %s\n", name.c_str(), opened.error().text().c_str());
        return false;
      }
      tasks_.emplace(name, std::move(opened->task));
      for (const std::string& entry : list_dir(folder)) {
        if (entry.ends_with(".cu")) sources_.push_back({name + "/" + entry, name, ""});
        for (const char* which : {"flawed.cu", "mended.cu"}) {
          const std::string inner = name + "/" + entry + "/" + which;
          if (exists(join(options_.flaws, inner))) sources_.push_back({inner, name, ""});
        }
      }
    }
    return true;
  }

  std::string problem_of(const Source& source, Compiler& compiler) {
    const Task& task = tasks_.at(source.task);
    if (source.name.ends_with("/reference.cu")) {
      for (const Case* c : cases_for(task, TargetKind::kCuda)) {
        const auto made = compiler.compile_reference(task, *c);
        if (!made) return made.error().text();
        if (const auto* error = std::get_if<CompileError>(&*made)) return error->log;
      }
      return "";
    }
    const auto text = read_file(join(options_.flaws, source.name));
    if (!text) return text.error().text();
    Candidate candidate;
    candidate.language = Language::kCuda;
    candidate.source = *text;
    double compile_ms = 0;
    const BuildResult built = build(task, TargetKind::kCuda, compiler, candidate, &compile_ms);
    if (!built) return built.error().text();
    if (const auto* error = std::get_if<CompileError>(&*built)) return error->log;
    return keep(source, std::get<Subject>(*built));
  }

  std::string keep(const Source& source, const Subject& subject) {
    if (options_.keep.empty() || subject.binaries.empty()) return "";
    const auto cubin = read_file(subject.binaries.back().cubin);
    if (!cubin) return cubin.error().text();
    const auto written = write_file(join(options_.keep, flat_name(source.name)), *cubin);
    return written ? "" : written.error().text();
  }

  Options options_;
  std::map<std::string, Task> tasks_;
  std::vector<Source> sources_;
};

int main_of_compile(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool more = i + 1 < argc;
    if (flag == "-v") {
      options.verbose = true;
    } else if (flag == "--flaws" && more) {
      options.flaws = absolute(argv[++i]);
    } else if (flag == "--only" && more) {
      options.only.emplace_back(argv[++i]);
    } else if (flag == "--keep" && more) {
      options.keep = absolute(argv[++i]);
    } else if (flag == "--jobs" && more) {
      options.jobs = std::clamp(std::atoi(argv[++i]), 1, 64);
    } else {
      std::fprintf(stderr,
                   "usage: flaw_compile [--flaws DIR] [--only NAME]... [--keep DIR] [--jobs N] "
                   "[-v]\n");
      return 2;
    }
  }
  return Compile(std::move(options)).run();
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) { return kernelpro::main_of_compile(argc, argv); }
