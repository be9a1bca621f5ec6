// SPDX-License-Identifier: Apache-2.0
#include "build/host_compiler.h"

#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "build/diagnostics.h"
#include "core/candidate/knobs.h"
#include "core/plan/cpu_protocol.h"
#include "task/load/header.h"

namespace kernelpro {

namespace {

// More than any kernel needs; stops template bombs.
constexpr std::int64_t kMaxMemory = 6LL << 30;

// Those that make it a shared object and its messages plain follow those that decide the code.
std::vector<std::string> first_flags() {
  std::vector<std::string> flags = words(kCpuFlags);
  for (const char* flag : {"-fPIC", "-shared", "-pthread", "-g1", "-fdiagnostics-color=never"}) {
    flags.emplace_back(flag);
  }
  return flags;
}

Limits limits_of(double seconds) {
  Limits limits;
  limits.wall_seconds = seconds;
  limits.output_killed = 8 << 20;
  limits.memory_bytes = kMaxMemory;
  return limits;
}

// The compiler sees the system, its toolchain and `readable`, and writes only in `folder`: a source
// cannot include or assemble anything from elsewhere.
Result<Exit> run_limited(std::vector<std::string> argv, const std::string& folder, double seconds,
                         std::vector<std::string> readable = {}) {
  Command command;
  readable.push_back(program_root(argv[0]));
  command.sandbox = compiler_sandbox(folder, readable, seconds + 5);
  command.argv = std::move(argv);
  command.cwd = folder;
  command.keep = compiler_variables();
  command.env = {"LC_ALL=C", "CCACHE_DISABLE=1", "HOME=" + (folder.empty() ? "/" : folder)};
  if (!folder.empty()) command.env.push_back("TMPDIR=" + folder);
  command.limits = limits_of(seconds);
  return run(command);
}

// The worker's entry point (core/plan/cpu_protocol.h). Calls through a volatile pointer, so that
// the kernel is not inlined into it.
std::string call_text(const std::string& entry) {
  const std::string args = entry == "launch" ? "Args" : "ReferenceArgs";
  return "\n#line 1 \"kernelpro_call\"\n"
         "extern \"C\" void " +
         std::string(kCpuEntry) + "(const " + args +
         "& args) noexcept {\n"
         "  void (*volatile entry)(const " +
         args + "&) = " + entry + ";\n  entry(args);\n}\n";
}

// What the compiler may not read must look as if it were not there.
std::string without_refusals(std::string output) {
  constexpr std::string_view kRefused = "Permission denied", kMissing = "No such file or directory";
  for (std::size_t at = 0; (at = output.find(kRefused, at)) != std::string::npos;) {
    output.replace(at, kRefused.size(), kMissing);
    at += kMissing.size();
  }
  return output;
}

// The CPU features behind -march=native: several machines may share a cache.
std::string cpu_features() {
  std::ifstream file("/proc/cpuinfo");
  std::string features;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    if (line.starts_with("model") || line.starts_with("flags") || line.starts_with("Features")) {
      features += line + "\n";
    }
  }
  return hash_hex(features);
}

std::vector<std::string> compiler_names() {
  std::vector<std::string> names;
  if (const char* cxx = std::getenv("CXX"); cxx != nullptr && *cxx != '\0') names.push_back(cxx);
  for (const char* name : {"c++", "g++", "clang++"}) names.emplace_back(name);
  return names;
}

}  // namespace

HostCompiler::HostCompiler(CompileSettings settings, std::string program, std::string version)
    : settings_(std::move(settings)),
      cache_(settings_.cache_dir),
      includes_(settings_.include_dirs),
      program_(std::move(program)),
      version_(std::move(version)),
      native_(cpu_features()),
      flags_(first_flags()) {}

Result<std::unique_ptr<HostCompiler>> HostCompiler::make(const CompileSettings& settings) {
  std::string tried;
  for (const std::string& name : compiler_names()) {
    tried += (tried.empty() ? "" : ", ") + name;
    const std::string program = find_program(name);
    if (program.empty()) continue;
    const Result<Exit> version = run_limited({program, "--version"}, "", 20);
    if (!version || !version->ok()) continue;
    std::unique_ptr<HostCompiler> compiler(
        new HostCompiler(settings, program, first_line(version->output)));
    // Probe the flags instead of inferring them from the compiler's name.
    for (const char* flag : {"-march=native", "-fopenmp", "-fno-semantic-interposition",
                             "-fmax-errors=8", "-ferror-limit=8"}) {
      KP_ASSIGN(const bool works, compiler->supports({flag}));
      if (works) compiler->flags_.emplace_back(flag);
    }
    KP_ASSIGN(const bool works, compiler->supports({}));
    if (works) return compiler;
  }
  return fail(ErrorKind::kEnvironment, "no working C++ compiler was found (tried " + tried + ")",
              "install g++ (apt install g++) or set CXX to a C++20 compiler");
}

// Compiles an empty launch with our flags and these; caches the answer.
Result<bool> HostCompiler::supports(const std::vector<std::string>& flags) const {
  const std::string text =
      "struct Args {};\nextern \"C\" void launch(const Args&);\n"
      "extern \"C\" void launch(const Args&) {}\n";
  const std::string key =
      "probe-" + hash_hex({"3", program_, version_, join_text(flags_, " "), join_text(flags, " ")});
  if (const auto folder = cache_.lookup(key)) {
    if (const auto build = read_build(*folder)) return std::holds_alternative<Binary>(*build);
  }
  KP_ASSIGN(std::string folder, cache_.stage());
  const Source source{text, text, "probe.cpp", "launch", "", flags};
  Result<Made> made = make_unless_killed(
      cache_, &folder, [&](const std::string& in) { return run_compiler(source, in); });
  if (!made) return tl::unexpected<Error>(made.error());
  KP_TRY(write_build(folder, made->build));
  KP_TRY(cache_.publish(folder, key));
  return std::holds_alternative<Binary>(made->build);
}

std::string HostCompiler::describe() const { return version_ + " " + join_text(flags_, " "); }

CompileResult HostCompiler::compile(const Task& task, const Case& c, const Candidate& candidate) {
  return build(task, c,
               {apply_knobs(candidate.source, candidate.knobs),
                candidate.source,
                "kernel.cpp",
                "launch",
                "extern \"C\" void launch(const Args& args)",
                {},
                !includes_.used_by(candidate.source).empty()});
}

CompileResult HostCompiler::compile_reference(const Task& task, const Case& c) {
  return build(task, c,
               {task.reference_cpp,
                task.reference_cpp,
                "reference.cpp",
                "reference",
                "extern \"C\" void reference(const ReferenceArgs& args)",
                {"-ffp-contract=off"}});
}

CompileResult HostCompiler::build(const Task& task, const Case& c, const Source& source) {
  const std::string header = task_header(task, c, TargetKind::kCpu);
  const std::string key = hash_hex({"cpu-4", program_, version_, native_, join_text(flags_, " "),
                                    join_text(source.flags, " "), source.entry, header, source.text,
                                    libraries(source).fingerprint()});
  return cached_build(cache_, key, c.name, [&](const std::string& folder) -> Result<Made> {
    KP_TRY(write_file(join(folder, "task.h"), header));
    return run_compiler(source, folder);
  });
}

// The folders that the source may include from besides the system's.
const IncludeDirs& HostCompiler::libraries(const Source& source) const {
  static const IncludeDirs none({});
  return source.library ? includes_ : none;
}

// Writes the source into `folder` and compiles it there. An Error if the machine is at fault.
Result<Made> HostCompiler::run_compiler(const Source& source, const std::string& folder) const {
  KP_TRY(write_file(join(folder, source.file), source.text + call_text(source.entry)));
  std::vector<std::string> argv = {program_};
  argv.insert(argv.end(), flags_.begin(), flags_.end());
  argv.insert(argv.end(), source.flags.begin(), source.flags.end());
  for (const std::string& option : libraries(source).options()) argv.push_back(option);
  for (const std::string& flag :
       {std::string("-I."), "-ffile-prefix-map=" + folder + "=.", std::string("-Wl,--no-undefined"),
        std::string("-Wl,--require-defined=") + source.entry, std::string("-o"),
        std::string("kernel.so"), std::string(source.file)}) {
    argv.push_back(flag);
  }
  KP_ASSIGN(const Exit exit,
            run_limited(argv, folder, settings_.timeout_s, libraries(source).folders()));
  std::string log = trim_diagnostics(
      with_shown_lines(without_refusals(exit.output), source.file, source.original), {folder});
  const std::string object = join(folder, "kernel.so");
  if (exit.ok() && exists(object)) {
    Binary binary;
    binary.shared_object = object;
    binary.warnings = log;
    return Made{std::move(binary), true};
  }
  if (contains(exit.output, "No space left on device")) {
    return fail(ErrorKind::kStore, "the compiler found no space left on the disk of " + folder,
                "free some space there, or point KERNELPRO_CACHE at another folder");
  }
  if (contains(exit.output, "required symbol")) {
    log = std::string(source.file) + " does not define `" + source.signature + "`\n" + log;
  }
  if (exit.kind != Exit::Kind::kExited) {
    log = "the compiler " + exit.describe(limits_of(settings_.timeout_s)) + "\n" + log;
  } else if (log.empty()) {
    log = "the compiler " + exit.describe({}) + " and printed nothing";
  }
  // If a part of the compiler crashed, it may not crash again.
  const bool crashed = contains(exit.output, "signal terminated program");
  return Made{CompileError{std::string(trim(log))}, exit.kind == Exit::Kind::kExited && !crashed,
              killed_from_outside(exit)};
}

Result<std::unique_ptr<Compiler>> make_cpu_compiler(const CompileSettings& settings) {
  KP_ASSIGN(std::unique_ptr<HostCompiler> compiler, HostCompiler::make(settings));
  return std::unique_ptr<Compiler>(std::move(compiler));
}

}  // namespace kernelpro
