// SPDX-License-Identifier: Apache-2.0
#include "profile/import/binary.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/evidence/target.h"
#include "core/machine/architecture.h"
#include "core/plan/kernel_name.h"
#include "profile/code/cubin.h"
#include "profile/code/disassemble.h"
#include "profile/code/hot_loops.h"
#include "profile/places/places.h"
#include "profile/sass/device_code.h"
#include "profile/sass/sass.h"

namespace kernelpro {

namespace {

enum class Kind { kCubin, kHost, kOther };

// By the ELF header: magic, and the machine at offset 18.
Kind kind_of(const std::string& bytes) {
  if (bytes.size() < 64 || bytes.compare(0, 4,
                                         "\x7f"
                                         "ELF") != 0)
    return Kind::kOther;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned machine = byte(18) | byte(19) << 8;
  if (machine == 190) return Kind::kCubin;
  return machine == 62 ? Kind::kHost : Kind::kOther;
}

Result<std::string> output_of(std::vector<std::string> argv, const std::string& folder) {
  Command command;
  command.argv = std::move(argv);
  command.cwd = folder;
  command.env = {"LC_ALL=C"};
  command.limits = {120, 64 << 20, 64 << 20, 0};
  KP_ASSIGN(Exit exit, run(command));
  if (!exit.ok()) {
    return fail(ErrorKind::kBadInput,
                basename(command.argv[0]) + " " + exit.describe(command.limits) + ": " +
                    clip(exit.output, 300),
                "check that the file is whole");
  }
  return std::move(exit.output);
}

// "kernel.2.sm_90a.cubin" -> "sm_90a".
std::string arch_of(const std::string& name) {
  for (const std::string& part : split(name, '.')) {
    if (part.rfind("sm_", 0) == 0) return part;
  }
  return "";
}

// Extracts device code from a host file into `folder`; returns the cubins' paths for one
// architecture.
Result<std::vector<std::string>> extract(const std::string& path, const std::string& arch,
                                         const std::string& folder, std::string* chosen,
                                         bool* none) {
  const std::string cuobjdump = find_cuda_tool("cuobjdump");
  if (cuobjdump.empty()) {
    return fail(ErrorKind::kEnvironment,
                "extracting the device code of " + path + " needs cuobjdump, which was not found",
                "install NVIDIA's cuobjdump (the toolkit's package cuda-cuobjdump), or give the "
                "cubin itself");
  }
  const auto said = output_of({cuobjdump, "-xelf", "all", absolute(path)}, folder);
  // A host file may name the section without having it.
  if (!said && contains(said.error().message, "does not contain device code")) {
    *none = true;
    return std::vector<std::string>();
  }
  if (!said) return tl::unexpected<Error>(said.error());
  std::map<std::string, std::vector<std::string>> by_arch;
  for (const std::string& name : list_dir(folder)) {
    if (name.ends_with(".cubin")) by_arch[arch_of(name)].push_back(join(folder, name));
  }
  if (by_arch.empty()) return std::vector<std::string>();
  const auto newest =
      std::max_element(by_arch.begin(), by_arch.end(), [](const auto& a, const auto& b) {
        return Architecture::parse(a.first) < Architecture::parse(b.first);
      });
  auto found = by_arch.find(arch);
  if (found == by_arch.end()) found = newest;
  *chosen = found->first;
  return found->second;
}

// Registers and memory per kernel from cuobjdump, by mangled name.
struct Usage {
  double registers = 0, stack = 0, shared = 0;
};
std::map<std::string, Usage> resource_usage(const std::string& cubin) {
  std::map<std::string, Usage> result;
  const std::string cuobjdump = find_cuda_tool("cuobjdump");
  if (cuobjdump.empty()) return result;
  const auto said = output_of({cuobjdump, "-res-usage", cubin}, "");
  if (!said) return result;
  std::string function;
  for (const std::string& line : lines(*said)) {
    const std::string text(trim(line));
    if (text.rfind("Function ", 0) == 0 && text.ends_with(":")) {
      function = text.substr(9, text.size() - 10);
    } else if (text.rfind("REG:", 0) == 0 && !function.empty()) {
      Usage usage;
      for (const std::string& word : words(text)) {
        const std::size_t colon = word.find(':');
        if (colon == std::string::npos) continue;
        const double value = std::strtod(word.c_str() + colon + 1, nullptr);
        if (word.rfind("REG:", 0) == 0) usage.registers = value;
        if (word.rfind("STACK:", 0) == 0) usage.stack = value;
        if (word.rfind("SHARED:", 0) == 0) usage.shared = value;
      }
      result[function] = usage;
    }
  }
  return result;
}

struct Found {
  KernelEvidence kernel;
  double weight = 0;
};

void put(Evidence* e, const std::string& name, double value, const std::string& source) {
  if (std::isfinite(value)) e->set(name, value, source);
}

// The ptxas output of the compilation is gone, so spills are unknown.
void add_usage(const Usage& usage, Evidence* e) {
  put(e, "launch__registers_per_thread", usage.registers, "cuobjdump");
  put(e, "ptxas.stack_bytes", usage.stack, "cuobjdump");
  put(e, "ptxas.shared_bytes", usage.shared, "cuobjdump");
  put(e, "launch__shared_mem_per_block_static", usage.shared, "cuobjdump");
}

// Which kernels are asked for.
struct Asked {
  std::string part;             // of the name; "": any
  std::set<std::string> names;  // in short; empty: any

  bool any() const { return part.empty() && names.empty(); }
  bool has(const std::string& mangled) const {
    if (!part.empty() && !contains(demangled(mangled), part)) return false;
    return names.empty() || names.count(kernel_key(mangled)) != 0;
  }
};

// "sm_90a", as nvdisasm prints it before the first function; "" if it does not.
std::string arch_in(const Disassembly& disassembly) {
  for (const SassFunction& function : parse_sass(disassembly.text.substr(0, 1 << 16))) {
    if (!function.arch.empty()) return function.arch;
  }
  return "";
}

// `sources`: the folder with the files that its lines name.
Result<void> read_cubin(const std::string& cubin, const std::string& sources, const Asked& asked,
                        std::string* arch, std::vector<Found>* found,
                        std::map<std::string, SassFunction>* code, int* left_out) {
  std::vector<std::string> only;
  if (!asked.any()) {
    KP_ASSIGN(const std::string image, read_file(cubin, 1LL << 30));
    const std::vector<CubinFunction> functions = cubin_functions(image);
    for (const CubinFunction& function : functions) {
      if (asked.has(function.name)) only.push_back(function.name);
    }
    if (only.empty() && !functions.empty()) return {};
  }
  // Checked here, so that a missing disassembler is an error and not just a note.
  KP_ASSIGN(const Disassembly disassembly, disassemble_cubin(cubin, only));
  *left_out += disassembly.left_out;
  if (arch->empty()) *arch = arch_in(disassembly);
  const std::map<std::string, Usage> usages = resource_usage(cubin);
  Binary binary;
  binary.cubin = cubin;
  Machine machine;
  machine.arch = *arch;
  Evidence remarks;
  CodeFacts facts = device_code(binary, LaunchPlan(), machine, &remarks, only);
  std::vector<Missing> missing;
  add_places(facts.functions, {}, lines_in(sources), &facts.kernels, &missing);
  for (auto& [name, kernel] : facts.kernels) {
    if (!asked.has(name)) continue;
    const auto usage = usages.find(name);
    if (usage != usages.end()) add_usage(usage->second, &kernel.facts);
    found->push_back({std::move(kernel), facts.weights[name]});
  }
  code->merge(facts.functions);
  return {};
}

Result<BinaryImport> host_code(const std::string& path, const std::string& link) {
  KP_ASSIGN(const Disassembly disassembly, disassemble_host(link));
  // Without `launch` we cannot tell which loops belong to a kernel.
  const bool kernel = contains(disassembly.text, "<launch>:");
  const AsmMix mix = kernel ? hot_mix(parse_objdump(disassembly.text)) : AsmMix();
  if (mix.instructions == 0) {
    return fail(ErrorKind::kBadInput,
                path + " has neither device code nor a function `launch` of a CPU kernel",
                "give a cubin, a shared object with kernels in it, or one that exports launch");
  }
  BinaryImport import;
  Evidence& e = import.evidence;
  add_mix(mix, &e);
  for (const Family family : {Family::kTiming, Family::kProcessor}) {
    e.note_missing(
        {family, "only the machine code was examined", "evaluate the kernel with its task"});
  }
  set_evidence_target(TargetKind::kCpu, &e);
  return import;
}

}  // namespace

Result<BinaryImport> import_binary(const std::string& path, const std::string& arch,
                                   const std::string& kernel,
                                   const std::vector<std::string>& names) {
  KP_ASSIGN(const std::string bytes, read_file(path, 1LL << 30));
  const Kind kind = kind_of(bytes);
  if (kind == Kind::kOther) {
    return fail(ErrorKind::kBadInput, path + " is neither a cubin nor an x86-64 ELF file",
                "make a cubin with nvcc -cubin -lineinfo, or a shared object with nvcc -shared");
  }
  BinaryImport import;
  const TempDir folder;
  std::string chosen;
  // Disassemblers leave their texts beside what they read: a link, not the user's file.
  const TempDir beside;
  const std::string link = join(beside.path(), basename(path));
  std::error_code failure;
  std::filesystem::create_symlink(absolute(path), link, failure);
  if (failure) {
    return fail(ErrorKind::kEnvironment,
                "cannot make a link in " + beside.path() + ": " + failure.message(),
                "point TMPDIR at a folder of another file system");
  }
  std::vector<std::string> cubins = {link};
  if (kind == Kind::kHost) {
    // Without one of these sections the file has no device code.
    if (!contains(bytes, ".nv_fatbin") && !contains(bytes, ".nvFatBinSegment")) {
      return host_code(path, link);
    }
    bool none = false;
    KP_ASSIGN(auto extracted, extract(path, arch, folder.path(), &chosen, &none));
    if (none) return host_code(path, link);
    cubins = std::move(extracted);
    if (cubins.empty()) {
      return fail(ErrorKind::kBadInput, path + " holds PTX only, no machine code",
                  "compile it for a GPU: nvcc -arch=sm_90");
    }
    if (!arch.empty() && chosen != arch) {
      import.notes.push_back("The file has no code for " + arch + "; its code for " + chosen +
                             " was examined.");
    }
  }
  std::vector<Found> found;
  Asked asked{kernel, {}};
  for (const std::string& name : names) asked.names.insert(kernel_key(name));
  int left_out = 0;
  std::optional<Error> failed;
  for (const std::string& cubin : cubins) {
    if (auto read = read_cubin(cubin, dirname(absolute(path)), asked, &chosen, &found,
                               &import.functions, &left_out);
        !read) {
      failed = read.error();
    }
  }
  if (failed && found.empty()) return tl::unexpected<Error>(*failed);
  if (failed) import.left_out.push_back("Part of the code was left out: " + failed->message + ".");
  if (left_out > 0) {
    import.left_out.push_back("The file has so much code that its " + std::to_string(left_out) +
                              " smallest functions were left out; --kernel TEXT chooses some.");
  }
  import.notes.insert(import.notes.end(), import.left_out.begin(), import.left_out.end());
  if (found.empty()) {
    return fail(ErrorKind::kBadInput,
                path + " has no kernel" +
                    (!kernel.empty() ? " with \"" + kernel + "\" in its name"
                     : names.empty() ? ""
                                     : " of those that are asked for"),
                !kernel.empty() ? "leave --kernel out to see which kernels it has"
                                : "check that it was compiled with a __global__ function in it",
                Cause::kNoCode);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.weight > b.weight; });
  for (Found& one : found) import.evidence.kernels.push_back(std::move(one.kernel));
  set_evidence_target(TargetKind::kCuda, &import.evidence);
  if (!chosen.empty()) import.evidence.texts["arch"] = chosen;
  for (const Family family : {Family::kTiming, Family::kPlan, Family::kLaunch, Family::kCounters}) {
    import.evidence.note_missing({family, "only the machine code was examined",
                                  "evaluate the kernel with its task on a GPU"});
  }
  import.evidence.note_missing({Family::kResources,
                                "a binary does not contain ptxas's report of spills",
                                "give the source with its task instead",
                                { "ptxas.spill_store_bytes",
                                  "ptxas.spill_load_bytes" }});
  import.notes.push_back(
      "Only the machine code was examined: how often it runs, and for how long, is unknown.");
  return import;
}

}  // namespace kernelpro
