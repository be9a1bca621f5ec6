// SPDX-License-Identifier: Apache-2.0
#include "run/gather/theory.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "core/evidence/rates.h"
#include "core/machine/architecture.h"
#include "core/plan/kernel_name.h"
#include "core/task/dtype.h"
#include "measure/ceilings/ceilings.h"
#include "profile/import/binary.h"
#include "profile/places/causes.h"
#include "profile/places/definitions.h"
#include "profile/places/line_text.h"
#include "profile/places/places.h"
#include "profile/places/sites.h"
#include "profile/sass/device_code.h"
#include "profile/sass/sass.h"

namespace kernelpro {

namespace {

constexpr const char* kNext =
    "give the work by hand (--bytes, --flops, --dtype), or the task (--task DIR)";

void put(const char* name, double value, const char* source, Evidence* evidence) {
  if (value >= 0) evidence->set(name, value, source);
}

Result<void> from_task(const Theory& theory, Gathered* gathered) {
  OpenSettings open = theory.open;
  open.target = TargetKind::kCuda;
  KP_ASSIGN(auto opened, open_task(theory.task, open));
  const Task& task = opened.task;
  KP_ASSIGN(const auto c, case_of(task, open.target, theory.case_name));
  Evidence& e = gathered->evidence;
  double outputs = 0;
  for (const Shaped& shaped : shaped_tensors(task, *c)) {
    if (shaped.tensor->role == Role::kOutput) outputs += static_cast<double>(shaped.bytes);
  }
  put("task.compulsory_bytes", compulsory_bytes(task, *c), "task", &e);
  put("task.output_bytes", outputs, "task", &e);
  put("task.flops", task_flops(task, *c), "task", &e);
  put("task.matmul_flops", task_matmul_flops(task, *c), "task", &e);
  put("task.half_inputs", has_half_inputs(task) ? 1 : 0, "task", &e);
  if (task.precision == Precision::kTf32) put("task.tf32", 1, "task", &e);
  for (const std::string& note : opened.notes) gathered->notes.push_back(note);
  gathered->notes.push_back("Theory: case " + c->name + " of " + task.name + ".");
  return {};
}

}  // namespace

Result<const Case*> case_of(const Task& task, TargetKind target, const std::string& name) {
  if (name.empty()) {
    if (const Case* largest = largest_timed(task, target)) return largest;
  }
  std::string names;
  for (const Case* c : cases_for(task, target)) {
    if (!name.empty() && c->name == name) return c;
    names += (names.empty() ? "" : ", ") + c->name;
  }
  return fail(ErrorKind::kBadInput,
              name.empty() ? task.name + " has no timed case" : task.name + " has no case " + name,
              "its cases are " + names);
}

Result<void> add_theory(const Theory& theory, Gathered* gathered) {
  Evidence& e = gathered->evidence;
  if (!theory.task.empty()) return from_task(theory, gathered);
  const bool half = theory.dtype == DType::kFp16 || theory.dtype == DType::kBf16;
  if (theory.bytes) put("task.compulsory_bytes", *theory.bytes, "given", &e);
  if (theory.flops) {
    put("task.flops", *theory.flops, "given", &e);
    // Without another figure, half-precision arithmetic is assumed to be matrix products.
    put("task.matmul_flops", theory.matmul_flops.value_or(half ? *theory.flops : 0), "given", &e);
  }
  if (theory.dtype) put("task.half_inputs", half ? 1 : 0, "given", &e);
  if (!e.get("task.compulsory_bytes") && !e.get("task.flops")) {
    gathered->notes.push_back(
        "What the work asks for is not known, so there is no ceiling to compare with: give the "
        "task (--task), or --bytes, --flops and --dtype.");
  }
  std::vector<std::string> unknown;
  for (const char* name :
       {"task.compulsory_bytes", "task.flops", "task.matmul_flops", "task.half_inputs"}) {
    if (!e.get(name)) unknown.emplace_back(name);
  }
  if (!unknown.empty()) {
    e.note_missing({Family::kTask, "what the work asks for is not known", kNext, unknown});
  }
  return {};
}

namespace {

// By names as different tools print them.
bool same_kernel(const std::string& a, const std::string& b) {
  return kernel_key(a) == kernel_key(b);
}

// Whether an earlier file had the kernel's code.
bool has_code(const KernelEvidence& kernel) { return kernel.facts.texts.count("kernel") != 0; }

// Adds what `import` tells of kernels without code. How many those are.
int match_code(const BinaryImport& import, Evidence* e) {
  int count = 0;
  for (KernelEvidence& kernel : e->kernels) {
    if (has_code(kernel)) continue;
    for (const KernelEvidence& theirs : import.evidence.kernels) {
      if (!same_kernel(theirs.name, kernel.name)) continue;
      for (const auto& [name, item] : theirs.facts.items()) {
        // A profiler's figures outrank those that the file declares.
        if (kernel.facts.find(name) == nullptr) {
          kernel.facts.set(name, item.value, item.level, item.source);
        }
      }
      if (!kernel.facts.places) kernel.facts.places = theirs.facts.places;
      kernel.facts.texts.insert(theirs.facts.texts.begin(), theirs.facts.texts.end());
      kernel.facts.lines.insert(theirs.facts.lines.begin(), theirs.facts.lines.end());
      if (kernel.facts.sites.empty()) kernel.facts.sites = theirs.facts.sites;
      ++count;
      break;
    }
  }
  return count;
}

// The text of a line in the first of these folders that has it.
LineText lines_of(const std::vector<std::string>& folders) {
  std::vector<LineText> all;
  for (const std::string& folder : folders) all.push_back(lines_in(folder));
  return [all](const std::string& file, int line) {
    for (const LineText& each : all) {
      if (std::string text = each(file, line); !text.empty()) return text;
    }
    return std::string();
  };
}

// The mix of the loops in which the samples lie.
void mix_again(const SassFunction& function, const KernelSamples& samples, Evidence* facts) {
  const Observation* known = facts->find("sass.instructions");
  const std::string tool = known != nullptr ? known->source : "nvdisasm";
  facts->lines.clear();
  add_sass(hot_mix(function, &samples), tool, facts);
}

constexpr std::int64_t kMostSource = 4 << 20;

// That has launches as C++ writes them.
bool is_native_source(const std::string& name) { return is_source(name) && !name.ends_with(".py"); }

// The first of these folders that has the file.
std::string read_source(const std::vector<std::string>& folders, const std::string& name) {
  if (!is_native_source(name)) return "";
  for (const std::string& folder : folders) {
    if (auto text = read_file(join(folder, name), kMostSource)) return std::move(*text);
  }
  return "";
}

// What the source decides: in the file that defines the kernel, and its launches in others beside
// it.
void add_sites(const SassFunction& function, const std::vector<std::string>& folders,
               const std::string& name, Evidence* facts) {
  constexpr std::size_t kMostFiles = 60;
  const std::string kernel = kernel_base_name(name);
  for (std::size_t i = 0; i < function.files.size() && facts->sites.empty(); ++i) {
    std::vector<std::string> places = folders;
    const std::string own = i < function.folders.size() ? function.folders[i] : "";
    if (!own.empty()) places.insert(places.begin(), own);
    const std::string text = read_source(places, function.files[i]);
    facts->sites = followed(text, kernel_sites(function.files[i], text, kernel));
    const auto launched = [&] {
      return std::any_of(facts->sites.begin(), facts->sites.end(),
                         [](const SourceSite& s) { return s.kind == SiteKind::kLaunch; });
    };
    if (facts->sites.empty() || launched() || own.empty()) continue;
    std::size_t read = 0;
    for (const std::string& file : list_dir(own)) {
      if (launched() || !is_native_source(file) || ++read > kMostFiles) continue;
      const auto more = launch_sites(file, read_source({own}, file), kernel);
      facts->sites.insert(facts->sites.end(), more.begin(), more.end());
    }
  }
}

// What the names on the lines of the facts stand for.
void add_definitions(const std::vector<std::string>& folders, Evidence* facts) {
  std::map<std::string, std::vector<int>> used;  // by file
  for (const auto& [metric, lines] : facts->lines) {
    for (const std::vector<SourceLine>* all : {&lines.lines, &lines.callers}) {
      for (const SourceLine& line : *all) used[line.file].push_back(line.line);
    }
  }
  for (const SourceSite& site : facts->sites) used[site.line.file].push_back(site.line.line);
  for (const auto& [file, lines] : used) {
    const auto more = definition_sites(file, read_source(folders, file), lines);
    facts->sites.insert(facts->sites.end(), more.begin(), more.end());
  }
}

// Where the kernels with code among `functions` wait: from samples, else estimated and weighed by
// what was counted.
void place_kernels(const std::map<std::string, SassFunction>& functions,
                   const std::vector<std::string>& folders, Gathered* gathered) {
  int sampled = 0;
  for (KernelEvidence& kernel : gathered->evidence.kernels) {
    if (!has_code(kernel)) continue;
    const std::string function = kernel.facts.texts.at("kernel");
    if (!functions.contains(function)) continue;
    const SassFunction& code = functions.at(function);
    std::vector<std::string> around = folders;
    for (const std::string& folder : code.folders) {
      if (!folder.empty()) around.push_back(folder);
    }
    const LineText text = lines_of(around);
    for (KernelSamples& samples : gathered->samples.kernels) {
      if (same_kernel(samples.function, kernel.name)) samples.function = function;
    }
    for (const KernelSamples& samples : gathered->samples.kernels) {
      const bool of_it = samples.function == function && places_fit(code, samples) >= kLeastFit;
      if (of_it) mix_again(code, samples, &kernel.facts);
    }
    kernel.facts.lines.merge(cause_lines(code));
    if (kernel.facts.sites.empty()) {
      add_sites(code, around, kernel.name, &kernel.facts);
      add_definitions(around, &kernel.facts);
    }
    std::map<std::string, KernelEvidence> one;
    one[function] = std::move(kernel);
    std::vector<Missing> noted;
    add_places(functions, gathered->samples, text, &one, &noted);
    // What was missing when they were gathered, which comes last, was noted then.
    noted.resize(noted.size() - gathered->samples.missing.size());
    for (Missing& each : noted) gathered->evidence.note_missing(std::move(each));
    kernel = std::move(one[function]);
    const auto& places = kernel.facts.places;
    if (places && places->basis == Places::Basis::kSampled) ++sampled;
  }
  if (sampled == 0) return;
  gathered->basis += ", and samples of " + how_many(sampled, "kernel");
}

}  // namespace

Result<void> add_code(const Theory& theory, const std::vector<std::string>& found,
                      Gathered* gathered, const std::vector<std::string>& sources) {
  Evidence& e = gathered->evidence;
  const bool given = !theory.code.empty();
  const std::vector<std::string> files = given ? std::vector{theory.code} : found;
  if (files.empty() || e.kernels.empty()) return {};
  const auto arch = e.texts.find("arch");
  const std::string wanted = arch == e.texts.end() ? "" : arch->second;
  int count = 0;
  std::optional<Error> failed;
  std::map<std::string, SassFunction> functions;
  std::vector<std::string> folders = sources;
  for (const std::string& file : files) {
    std::vector<std::string> names;
    for (const KernelEvidence& kernel : e.kernels) {
      if (!has_code(kernel)) names.push_back(kernel.name);
    }
    if (names.empty()) break;
    auto import = import_binary(file, wanted, "", names);
    if (import) {
      count += match_code(*import, &e);
      functions.merge(import->functions);
      folders.push_back(dirname(absolute(file)));
      gathered->notes.insert(gathered->notes.end(), import->left_out.begin(),
                             import->left_out.end());
      continue;
    }
    // A file that was guessed need not have any code; one that is given must.
    const bool unfit = import.error().kind == ErrorKind::kBadInput;
    if (given && unfit && import.error().cause == Cause::kNoCode) continue;
    if (given && unfit) return tl::unexpected<Error>(import.error());
    if (!unfit) failed = import.error();
  }
  if (count == 0 && given && !failed) {
    return fail(ErrorKind::kBadInput,
                theory.code + " has none of the kernels of " + gathered->subject,
                "give the file that the profiled program was made of");
  }
  place_kernels(functions, folders, gathered);
  const bool lacks = !std::all_of(e.kernels.begin(), e.kernels.end(), has_code);
  if (failed && lacks) {
    e.note_missing({Family::kSass, failed->message, failed->next});
    gathered->notes.push_back((count == 0 ? "The diagnosis is without machine code: "
                                          : "Part of the machine code was not read: ") +
                              failed->message + ".");
  } else if (count == 0) {
    e.note_missing({Family::kSass,
                    "the kernels' machine code was not found in " + join_text(files, ", "),
                    "name the file that has it: --code FILE"});
  }
  if (count == 0) return {};
  gathered->basis += ", and the machine code of " + how_many(count, "kernel");
  return {};
}

void add_instructions(const std::string& sass, Gathered* gathered) {
  if (sass.empty()) return;
  std::set<std::string> used;
  for (const SassKernel& code : kernel_mixes(sass)) {
    for (KernelEvidence& kernel : gathered->evidence.kernels) {
      if (has_code(kernel) || !same_kernel(code.name, kernel.name)) continue;
      add_sass(code.mix, "ncu", &kernel.facts);
      kernel.facts.texts["kernel"] = code.name;
      used.insert(code.name);
    }
  }
  // Code that the program gave has lines, and stays.
  std::map<std::string, SassFunction> functions;
  for (SassFunction& function : parse_sass(sass)) {
    const std::string name = function.name;
    if (used.contains(name)) functions[name] = std::move(function);
  }
  place_kernels(functions, {}, gathered);
  if (!used.empty()) {
    gathered->basis += ", and the instructions of " + how_many(used.size(), "kernel");
  }
}

void add_machine(const Theory& theory, const DeviceFacts& facts, Gathered* gathered) {
  Evidence& e = gathered->evidence;
  const bool named = !theory.device.empty();
  if (named && !facts.name.empty() && facts.name != theory.device) {
    const Machine asked = nominal_machine(listed_device(theory.device));
    const auto theirs = Architecture::parse(asked.arch), own = Architecture::parse(facts.arch());
    if (theirs && own && (theirs->major != own->major || theirs->minor != own->minor)) {
      gathered->notes.push_back("The report is of " + facts.name + " (" + facts.arch() +
                                "), and --device says " + theory.device + " (" + asked.arch + ").");
    }
  }
  const std::string name = named ? theory.device : facts.name;
  const auto add_kernels = [&](const Machine& machine) {
    for (KernelEvidence& kernel : e.kernels) {
      if (kernel.facts.get("launch__waves_per_multiprocessor")) continue;
      const double shared = kernel.facts.get("launch__shared_mem_per_block_static").value_or(0);
      add_residency(machine, static_cast<std::int64_t>(shared), -1, &kernel.facts);
    }
  };
  if (const auto machine =
          name.empty() ? std::nullopt : remembered_machine(TargetKind::kCuda, name)) {
    add_ceilings(*machine, "ceilings", &e);
    add_kernels(*machine);
    gathered->ceilings = "measured on " + machine->name;
    e.texts.emplace("arch", machine->arch);
    return;
  }
  DeviceFacts known = named ? listed_device(theory.device) : facts;
  const Machine machine = nominal_machine(known);
  add_ceilings(machine, "nominal peaks", &e);
  add_kernels(machine);
  if (!machine.arch.empty()) e.texts.emplace("arch", machine.arch);
  if (machine.ceilings.copy_bytes_per_s > 0) {
    gathered->ceilings = machine.ceilings.how;
    return;
  }
  if (e.get("ceiling.copy_bandwidth")) return;
  if (named) {
    gathered->notes.push_back("The GPU \"" + theory.device + "\" is not listed.");
  }
  e.note_missing({Family::kCeilings, "the GPU is not known",
                  "name it: --device H100, or run `kernelpro doctor` on the machine that has it"});
}

}  // namespace kernelpro
