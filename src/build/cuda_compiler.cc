// SPDX-License-Identifier: Apache-2.0
// The cuda target's compilers: nvcc for the host form (a shared object for the capture process and
// the cubin that the worker loads), NVRTC in a child process for the plan form (a cubin with its
// plan).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "build/cached.h"
#include "build/diagnostics.h"
#include "build/includes.h"
#include "build/nvcc_steps.h"
#include "build/nvrtc_pool.h"
#include "build/plan_form.h"
#include "build/ptxas.h"
#include "core/candidate/knobs.h"
#include "core/machine/architecture.h"
#include "task/load/header.h"

namespace kernelpro {

#if KERNELPRO_HAVE_CUDA

namespace {

// The capture process calls `entry` through this guard, in the candidate's own object, which can
// catch its exceptions and query its last CUDA error. Sets `message` to "" or a text; returns 0, 1
// for an exception, 2 for a CUDA error unrelated to capturing.
std::string guarded_entry(const std::string& entry, const std::string& args) {
  return R"(
#line 1 "kernelpro_call"
#include <cstdio>
#include <exception>
extern "C" int kp_guarded(const void* args, cudaStream_t stream, char* message, size_t size) {
  int status = 0;
  message[0] = 0;
  try {
    )" + entry +
         "(*static_cast<const " + args + R"(*>(args), stream);
  } catch (const std::exception& error) {
    snprintf(message, size, "%s", error.what());
    status = 1;
  } catch (...) {
    snprintf(message, size, "an exception of unknown type");
    status = 1;
  }
  const cudaError_t error = cudaGetLastError();
  if (status == 0 && error != cudaSuccess) {
    snprintf(message, size, "%s: %s", cudaGetErrorName(error), cudaGetErrorString(error));
    status = error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread
                 ? 0
                 : 2;
  }
  return status;
}
)";
}

// Adds what the compiler cannot know: the entry point that the file must define.
std::string explained(const std::string& log, const std::string& file, const std::string& entry) {
  if (contains(log, "undefined reference to `" + entry + "'")) {
    const std::string args = entry == "launch" ? "Args" : "ReferenceArgs";
    return file + " does not define `extern \"C\" void " + entry + "(const " + args +
           "& args, cudaStream_t stream)`\n" + log;
  }
  if (log.starts_with("kernelpro_call(") || contains(log, "linkage specification is not allowed")) {
    return "at the end of " + file +
           " something is still open: a brace, a comment, a string or an #if\n" + log;
  }
  return log;
}

constexpr std::int64_t kMaxMemory = 8LL << 30;  // for nvcc and its children

// cuda_runtime.h includes <cmath>, which since C++17 includes libstdc++'s special functions: a
// third of the text that the three front ends read. This defines their header's include guard.
constexpr const char* kLeanCmath = "-D_GLIBCXX_BITS_SPECFUN_H=1";

// Failures of ptxas and the linker, which the full <cmath> would not change.
bool is_final(const std::string& log) {
  for (const char* sign : {"ptxas fatal", "ptxas error", "; error   :", "undefined reference"}) {
    if (contains(log, sign)) return true;
  }
  return false;
}

// Names of functions that kLeanCmath leaves out.
bool lacks_special_function(const std::string& log) {
  for (const char* name : {"beta", "comp_ellint", "cyl_bessel", "cyl_neumann", "ellint", "expint",
                           "hermite", "laguerre", "legendre", "riemann_zeta", "sph_"}) {
    if (contains(log, name)) return true;
  }
  return false;
}

// In NVRTC's log.
constexpr const char* kNoSuchHeader = "cannot open source file";

constexpr double kLibraryTimes = 3;  // time limit factor for sources that include a library

int pool_size() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
}

Limits limits_of(double seconds) {
  Limits limits;
  limits.wall_seconds = seconds;
  limits.memory_bytes = kMaxMemory;
  return limits;
}

std::string gencode(const std::string& arch) {
  const auto known = Architecture::parse(arch);
  return known ? known->gencode() : "-arch=" + arch;
}

class CudaCompiler : public Compiler {
 public:
  CudaCompiler(CompileSettings settings, std::string nvcc, std::string nvcc_version)
      : settings_(std::move(settings)),
        cache_(settings_.cache_dir),
        includes_(settings_.include_dirs),
        nvcc_(std::move(nvcc)),
        nvcc_version_(std::move(nvcc_version)),
        nvrtc_(cache_, settings_.cuda_arch, pool_size(), settings_.include_dirs) {}

  // Asks NVRTC for its version. Without nvcc and NVRTC there is nothing to compile with.
  Result<void> find_nvrtc() {
    std::string problem;
    nvrtc_version_ = nvrtc_.version(&problem);
    if (!nvrtc_version_.empty() || !nvcc_.empty()) return {};
    return fail(ErrorKind::kEnvironment, "neither nvcc nor NVRTC was found: " + problem,
                "install the CUDA toolkit and set CUDA_HOME, or use --target cpu");
  }

  // Gets nvcc's steps in advance, so that the first candidate does not wait for them.
  void find_steps() {
    if (nvcc_.empty()) return;
    const Result<std::string> folder = cache_.stage();
    if (!folder) return;  // the first compilation reports it
    static_cast<void>(script_for(*folder, "kernel.cu", false));
    cache_.discard(*folder);
  }

  CompileResult compile(const Task& task, const Case& c, const Candidate& candidate) override {
    if (is_plan_form(candidate.source)) {
      // Put first what NVRTC may keep as a precompiled header: the libraries, else task.h.
      const std::vector<std::string> used = includes_.used_by(candidate.source);
      if (!used.empty()) {
        return plan_form(task, c, hoisted(used, apply_knobs(candidate.source, candidate.knobs)));
      }
      return plan_form(
          task, c, {apply_knobs(candidate.source, candidate.knobs, "#pragma nv_hdrstop"), "", 0});
    }
    return host_form(task, c, apply_knobs(candidate.source, candidate.knobs), "kernel.cu", "launch",
                     "Args");
  }

  CompileResult compile_reference(const Task& task, const Case& c) override {
    return host_form(task, c, task.reference_cu, "reference.cu", "reference", "ReferenceArgs");
  }

  std::string describe() const override {
    return (nvcc_.empty() ? "no nvcc" : nvcc_version_) + ", " +
           (nvrtc_version_.empty() ? "no NVRTC" : "NVRTC " + nvrtc_version_) + ", " +
           settings_.cuda_arch;
  }

 private:
  CompileResult host_form(const Task& task, const Case& c, const std::string& source,
                          const std::string& file, const std::string& entry,
                          const std::string& args) {
    if (nvcc_.empty()) {
      return fail(ErrorKind::kEnvironment, "nvcc was not found, but " + file + " needs it",
                  "install the CUDA toolkit and set CUDA_HOME, or write the kernel in plan form");
    }
    const std::string header = task_header(task, c, TargetKind::kCuda);
    const bool library = !includes_.used_by(source).empty();
    const std::string key =
        hash_hex({"cuda-host-5", nvcc_, nvcc_version_, settings_.cuda_arch, header, source, entry,
                  library ? includes_.fingerprint() : ""});
    return cached_build(cache_, key, c.name, [&](const std::string& folder) -> Result<Made> {
      KP_TRY(write_file(join(folder, "task.h"), header));
      KP_TRY(write_file(join(folder, file), source + guarded_entry(entry, args)));
      return run_nvcc(folder, file, entry, library);
    });
  }

  double seconds_for(bool library) const {
    return settings_.timeout_s * (library ? kLibraryTimes : 1);
  }

  Command command_in(const std::string& folder, bool library) const {
    Command command;
    command.cwd = folder;
    command.keep = compiler_variables();
    command.env = {"LC_ALL=C", "TMPDIR=" + folder, "HOME=" + folder, "CCACHE_DISABLE=1"};
    command.limits = limits_of(seconds_for(library));
    command.sandbox = compiler_sandbox(folder, toolchain_roots(), seconds_for(library) + 5);
    return command;
  }

  // Options common to both forms.
  std::vector<std::string> device_argv(bool library) const {
    std::vector<std::string> argv = {
        nvcc_,     "-std=c++20", "-O3", "-lineinfo", gencode(settings_.cuda_arch),
        "-Xptxas", "-v",         "-I."};
    if (library) {
      const std::vector<std::string> options = includes_.options();
      argv.insert(argv.end(), options.begin(), options.end());
      // CuTe calls constexpr host functions.
      argv.emplace_back("--expt-relaxed-constexpr");
    }
    return argv;
  }

  std::vector<std::string> nvcc_argv(const std::string& file, bool library,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv = device_argv(library);
    argv.insert(argv.end(),
                {"-shared",
                 "-nodlink",  // no relocatable device code without -rdc
                 "-Xcompiler", "-fPIC", "-Xcompiler", "-fdiagnostics-color=never", "-Xlinker",
                 "--no-undefined", "--keep", "--keep-dir", ".", "-o", "kernel.so"});
    argv.insert(argv.end(), more.begin(), more.end());
    argv.push_back(file);
    return argv;
  }

  // The script for files of this name, derived from nvcc's listing once; "" = run nvcc itself.
  std::string script_for(const std::string& folder, const std::string& file, bool library) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::string name = file + (library ? " with libraries" : "");
    if (const auto it = scripts_.find(name); it != scripts_.end()) return it->second;
    Command command = command_in(folder, library);
    command.argv = nvcc_argv(file, library, {kLeanCmath, "--dryrun"});
    const Result<Exit> exit = run(command);
    if (!exit || !exit->ok()) return "";  // perhaps out of memory: ask again
    return scripts_[name] = side_by_side(exit->output, folder).value_or("");
  }

  // Runs nvcc's steps in parallel with a lean <cmath>. Falls back to nvcc if the source may need
  // the full <cmath>, or if they fail for a reason that might not affect nvcc.
  Result<Exit> run_steps(const std::string& folder, const std::string& file, bool library) {
    Command command = command_in(folder, library);
    if (const std::string script = script_for(folder, file, library); !script.empty()) {
      command.argv = {"/bin/sh", "-c", script};
      Result<Exit> exit = run(command);
      if (!exit || exit->ok() || exit->kind != Exit::Kind::kExited || is_final(exit->output)) {
        return exit;
      }
      // Most likely the source's fault: not worth another half minute.
      if (library && !lacks_special_function(exit->output)) return exit;
    }
    command.argv = nvcc_argv(file, library);
    return run(command);
  }

  Result<Made> run_nvcc(const std::string& folder, const std::string& file,
                        const std::string& entry, bool library) {
    const std::string stem = file.substr(0, file.rfind('.'));
    KP_ASSIGN(const Exit exit, run_steps(folder, file, library));
    const std::string cubin = join(folder, stem + ".cubin");
    const std::string object = join(folder, "kernel.so");
    const bool made = exit.ok() && exists(object) && exists(cubin);
    const Result<std::string> ptx = read_file(join(folder, stem + ".ptx"));
    sweep(folder, {basename(object), basename(cubin), file, "task.h"});
    std::string log = without_ptxas_info(exit.output);
    if (ptx) log = with_source_lines(log, *ptx);
    log = trim_diagnostics(log, {folder});
    if (!made) {
      log = explained(log, file, entry);
      if (exit.kind != Exit::Kind::kExited)
        log = "nvcc " + exit.describe(limits_of(seconds_for(library))) + "\n" + log;
      return Made{CompileError{std::string(trim(log))}, exit.kind == Exit::Kind::kExited,
                  killed_from_outside(exit)};
    }
    Binary binary;
    binary.form = Binary::Form::kHostForm;
    binary.shared_object = object;
    binary.cubin = cubin;
    binary.resources = parse_ptxas(exit.output);
    binary.warnings = log;
    if (binary.resources.empty()) {
      return Made{CompileError{file + " defines `" + entry + "` but no __global__ function"}, true};
    }
    return Made{std::move(binary), true};
  }

  // nvcc's own toolkit, the host compiler that it finds on PATH or in NVCC_CCBIN, and libraries.
  std::vector<std::string> toolchain_roots() const {
    std::vector<std::string> roots = {program_root(nvcc_), program_root("g++"),
                                      program_root("gcc")};
    const char* chosen = std::getenv("NVCC_CCBIN");
    if (chosen != nullptr && *chosen != '\0') {
      roots.push_back(is_dir(chosen) ? chosen : program_root(chosen));
    }
    roots.insert(roots.end(), includes_.folders().begin(), includes_.folders().end());
    return roots;
  }

  // nvcc leaves its intermediate files behind.
  static void sweep(const std::string& folder, const std::vector<std::string>& keep) {
    for (const std::string& name : list_dir(folder)) {
      if (std::find(keep.begin(), keep.end(), name) == keep.end()) {
        (void)std::remove(join(folder, name).c_str());
      }
    }
  }

  // `source.library` is "" if task.h comes first.
  CompileResult plan_form(const Task& task, const Case& c, const Hoisted& source) {
    if (nvrtc_version_.empty()) {
      return fail(ErrorKind::kEnvironment, "NVRTC was not found, but the plan form needs it",
                  "install the CUDA toolkit (libnvrtc), or write the kernel in host form");
    }
    const std::string header = task_header(task, c, TargetKind::kCuda);
    const std::string key = hash_hex({"cuda-plan-10", nvcc_version_, nvrtc_version_,
                                      settings_.cuda_arch, header, source.text, source.library,
                                      source.library.empty() ? "" : includes_.fingerprint()});
    return cached_build(cache_, key, c.name, [&](const std::string& folder) -> Result<Made> {
      KP_TRY(write_file(join(folder, "task.h"), header));
      KP_TRY(write_file(join(folder, "kernel.cu"), source.text));
      return run_nvrtc(task, c, folder, source, header);
    });
  }

  Result<Made> run_nvrtc(const Task& task, const Case& c, const std::string& folder,
                         const Hoisted& source, const std::string& header) {
    // On a busy machine NVRTC has hung on sources that normally take two seconds; then use nvcc.
    const double seconds = seconds_for(!source.library.empty()) * (nvcc_.empty() ? 1 : 0.5);
    KP_ASSIGN(const auto done,
              nvrtc_.compile(source.text, header, source.library, "kernel.cu", seconds));
    if (!done) {
      const NvrtcLost& lost = done.error();
      if (!nvcc_.empty() && lost.of_the_compiler) return plan_by_nvcc(task, c, folder, source);
      return Made{CompileError{lost.how}, false, lost.from_outside ? lost.how : ""};
    }
    const NvrtcBuild& build = *done;
    if (!build.compiled && !nvcc_.empty() && contains(build.log, kNoSuchHeader)) {
      return plan_by_nvcc(task, c, folder, source);
    }
    if (build.compiled) KP_TRY(write_file(join(folder, "kernel.cubin"), build.cubin));
    return planned(task, c, folder, source, build);
  }

  // NVRTC has no host headers (<cstdint>, <array>), and crashes on a few sources that nvcc
  // compiles. nvcc then makes the same cubin in a second or two.
  Result<Made> plan_by_nvcc(const Task& task, const Case& c, const std::string& folder,
                            const Hoisted& source) {
    const bool library = !source.library.empty();
    if (library) KP_TRY(write_file(join(folder, kLibraryHeader), source.library));
    Command command = command_in(folder, library);
    command.argv = device_argv(library);
    for (const char* word : {"-cubin", "-o", "kernel.cubin"}) command.argv.emplace_back(word);
    command.argv.emplace_back("kernel.cu");
    KP_ASSIGN(const Exit exit, run(command));
    if (exit.kind != Exit::Kind::kExited) {
      const Limits limits = limits_of(seconds_for(library));
      return Made{CompileError{"nvcc " + exit.describe(limits)}, false, killed_from_outside(exit)};
    }
    if (std::string killed = killed_from_outside(exit); !killed.empty()) {
      return Made{CompileError{killed}, false, killed};
    }
    NvrtcBuild build{exit.ok(), exit.output, ""};
    if (build.compiled) {
      KP_ASSIGN(build.cubin, read_file(join(folder, "kernel.cubin")));
    }
    return planned(task, c, folder, source, build);
  }

  // The result of compiling a plan-form source; its cubin is in `folder`.
  Result<Made> planned(const Task& task, const Case& c, const std::string& folder,
                       const Hoisted& source, const NvrtcBuild& build) {
    const std::string log = shifted_back(trim_diagnostics(without_ptxas_info(build.log), {folder}),
                                         "kernel.cu", source.shift);
    if (!build.compiled) return Made{CompileError{std::string(trim(log))}, true};
    auto plan = plan_from_cubin(build.cubin, static_cast<int>(task.tensors.size()),
                                workspace_bytes(task, c) > 0);
    if (!plan) return Made{CompileError{"kernel.cu: " + plan.error()}, true};
    Binary binary;
    binary.form = Binary::Form::kPlanForm;
    binary.cubin = join(folder, "kernel.cubin");
    binary.plan = std::move(*plan);
    binary.resources = parse_ptxas(build.log);
    binary.warnings = log;
    return Made{std::move(binary), true};
  }

  CompileSettings settings_;
  BuildCache cache_;
  IncludeDirs includes_;
  std::string nvcc_;
  std::string nvcc_version_;
  std::string nvrtc_version_;
  std::mutex mutex_;                            // guards scripts_
  std::map<std::string, std::string> scripts_;  // by file
  NvrtcPool nvrtc_;                             // declared after the cache that it uses
};

}  // namespace

Result<std::unique_ptr<Compiler>> make_cuda_compiler(const CompileSettings& settings) {
  const std::string nvcc = find_cuda_tool("nvcc");
  std::string version;
  if (!nvcc.empty()) {
    Command command;
    command.argv = {nvcc, "--version"};
    const Result<Exit> exit = run(command);
    if (exit && exit->ok()) {
      for (const std::string& line : lines(exit->output)) {
        if (contains(line, "release")) version = "nvcc " + std::string(trim(line));
      }
    }
  }
  auto compiler = std::make_unique<CudaCompiler>(settings, version.empty() ? "" : nvcc, version);
  KP_TRY(compiler->find_nvrtc());
  compiler->find_steps();
  return std::unique_ptr<Compiler>(std::move(compiler));
}

#else

Result<std::unique_ptr<Compiler>> make_cuda_compiler(const CompileSettings&) {
  return fail(ErrorKind::kEnvironment, "this KernelPro was built without the cuda target",
              "install the CUDA toolkit's headers, set CUDA_HOME and build again, or use "
              "--target cpu");
}

#endif

}  // namespace kernelpro
