// SPDX-License-Identifier: Apache-2.0
#include "run/gather/gather.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/files.h"
#include "base/input.h"
#include "base/json.h"
#include "base/text.h"
#include "core/evidence/target.h"
#include "core/plan/kernel_name.h"
#include "measure/ceilings/ceilings.h"
#include "profile/import/binary.h"
#include "profile/import/ncu_details.h"
#include "profile/import/ncu_run.h"
#include "profile/import/ncu_source.h"
#include "profile/import/nsys.h"
#include "profile/trace/program.h"
#include "run/gather/theory.h"
#include "run/store/store.h"
#include "run/store/winner.h"

namespace kernelpro {

namespace {

Result<const StoredCandidate*> chosen(const RunHeader& header,
                                      const std::vector<StoredCandidate>& all,
                                      const std::optional<StoredConfirmation>& confirmation,
                                      std::int64_t id, const std::string& directory) {
  for (const StoredCandidate& each : all) {
    if (id > 0 && each.known.id == id) {
      if (each.evaluated) return &each;
      return fail(ErrorKind::kBadInput,
                  "candidate " + std::to_string(id) + " of " + directory + " waits to be evaluated",
                  "continue it with: kernelpro resume " + directory);
    }
  }
  if (id > 0) {
    return fail(ErrorKind::kBadInput, directory + " has no candidate " + std::to_string(id),
                "its candidates are 1 to " + std::to_string(all.size()));
  }
  const RankedRun run(header, all);
  const StoredCandidate* best = winner_of(run, confirmation ? &*confirmation : nullptr).candidate;
  if (best == nullptr) {
    return fail(ErrorKind::kBadInput, directory + " has no correct candidate yet",
                "name one to see why it failed: kernelpro show " + directory);
  }
  return best;
}

// Exports can be gigabytes; the first bytes identify their kind.
std::string first_bytes(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes(4096, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return bytes;
}

Gathered from_trace(const NsysImport& import, const std::string& file, const Theory& theory) {
  Gathered gathered;
  gathered.subject = file;
  gathered.basis = "a trace of Nsight Systems";
  gathered.notes = import.notes;
  const TraceWindow window = select_window(import.trace, theory.range);
  if (!window.chosen.empty()) gathered.notes.push_back("Looked at: " + window.chosen + ".");
  summarize(import.trace, window, &gathered.evidence);
  gathered.notes.insert(gathered.notes.end(), import.trace.notes.begin(), import.trace.notes.end());
  set_evidence_target(TargetKind::kCuda, &gathered.evidence);
  gathered.evidence.texts["profiler"] = "Nsight Systems";
  if (!import.device.arch().empty()) gathered.evidence.texts["arch"] = import.device.arch();
  if (!import.device.name.empty()) gathered.evidence.texts["device"] = import.device.name;
  return gathered;
}

// A program's part rarely has a known theory, and then it is not reported as missing.
Result<Gathered> with_theory(Gathered gathered, const Theory& theory, const DeviceFacts& device,
                             const std::vector<std::string>& code = {},
                             const std::vector<std::string>& sources = {}) {
  if (!theory.task.empty() || theory.bytes || theory.flops) KP_TRY(add_theory(theory, &gathered));
  KP_TRY(add_code(theory, code, &gathered, sources));
  add_machine(theory, device, &gathered);
  return gathered;
}

// Files that may have the report's machine code: those that it names, on a machine that has them.
std::vector<std::string> programs_of(const NcuImport& import, const std::string& report) {
  std::vector<std::string> programs;
  for (const std::string& path : import.programs) {
    // Beside the report, for one that was moved together with its program.
    for (const std::string& place : {path, join(dirname(report), basename(path))}) {
      const std::string whole = absolute(place);
      const bool known = std::find(programs.begin(), programs.end(), whole) != programs.end();
      if (!known && exists(whole) && !is_dir(whole)) programs.push_back(whole);
    }
  }
  return programs;
}

Result<Gathered> gather_ncu(Result<NcuImport> import, const std::string& file,
                            const Theory& theory) {
  if (!import) return tl::unexpected<Error>(std::move(import.error()));
  Gathered gathered;
  gathered.subject = file;
  gathered.basis = "hardware counters of Nsight Compute, " + std::to_string(import->launches) +
                   (import->launches == 1 ? " launch" : " launches");
  if (import->launches == 0) gathered.basis = "program-counter samples of Nsight Compute";
  gathered.samples = std::move(import->samples);
  gathered.evidence = std::move(import->evidence);
  gathered.notes = std::move(import->notes);
  gathered.notes.push_back(
      "Nsight Compute runs kernels one by one, by default at the base clock and with cold caches: "
      "their times are longer than in the program.");
  KP_TRY(add_theory(theory, &gathered));
  KP_TRY(add_code(theory, programs_of(*import, file), &gathered, {dirname(absolute(file)), "."}));
  add_instructions(import->sass, &gathered);
  add_machine(theory, import->device, &gathered);
  return gathered;
}

// Evidence as JSON: bare, inside a verdict of `kernelpro evaluate --json`, a fixture, or the output
// of `kernelpro diagnose --json`.
Result<Gathered> gather_saved(const std::string& text, const std::string& file,
                              const Theory& theory) {
  const std::optional<Json> root = parse_json(text);
  if (!root || !root->is_object()) {
    return fail(ErrorKind::kBadInput, file + " is not a JSON object, or it is cut off",
                "save evidence with: kernelpro diagnose ... --evidence FILE");
  }
  const JsonReader r(*root);
  const bool wrapped = r.member("evidence") != nullptr;
  const Json& holder = wrapped ? r.object("evidence") : *root;
  auto evidence = evidence_from_json(dump_json(holder));
  if (!evidence || (evidence->items().empty() && evidence->kernels.empty())) {
    return fail(ErrorKind::kBadInput, file + " holds no evidence",
                "save evidence with: kernelpro diagnose ... --evidence FILE");
  }
  Gathered gathered;
  gathered.subject = file;
  gathered.basis = "saved evidence";
  gathered.evidence = std::move(*evidence);
  KP_TRY(add_theory(theory, &gathered));
  if (!theory.device.empty() || !gathered.evidence.get("ceiling.copy_bandwidth")) {
    DeviceFacts facts;
    const auto device = gathered.evidence.texts.find("device");
    if (device != gathered.evidence.texts.end()) facts = listed_device(device->second);
    add_machine(theory, facts, &gathered);
  }
  return gathered;
}

bool begins_with(const std::string& text, std::string_view head) {
  return text.compare(0, head.size(), head) == 0;
}

}  // namespace

Result<Gathered> gather_run(const std::string& directory, std::int64_t id) {
  KP_ASSIGN(auto store, Store::open(directory, Store::Mode::kRead));
  KP_ASSIGN(auto all, store->candidates(false));
  KP_ASSIGN(auto confirmation, store->confirmation());
  KP_ASSIGN(auto header, store->header());
  KP_ASSIGN(const auto candidate, chosen(header, all, confirmation, id, directory));
  const Known& known = candidate->known;
  if (known.evaluation.correct() == nullptr) {
    return fail(ErrorKind::kBadInput,
                "candidate " + std::to_string(known.id) + " is not correct (" +
                    outcome_summary(known.evaluation.outcome) + "), so nothing was measured",
                "diagnose a correct one: kernelpro show " + directory + " lists them");
  }
  Gathered gathered;
  gathered.subject = "candidate " + std::to_string(known.id) + " of " + directory;
  gathered.basis = "what the run measured on " + header.machine.name;
  gathered.ceilings = "measured";
  KP_ASSIGN(auto whole, store->candidate(known.id, true));
  gathered.evidence = std::move(whole.evidence);
  if (gathered.evidence.items().empty()) {
    gathered.notes.push_back(
        "The run holds no evidence about it: PyTorch candidates bring no code.");
  }
  return gathered;
}

Result<Gathered> gather_binary(const std::string& file, const Theory& theory) {
  const DeviceFacts facts = listed_device(theory.device);
  KP_ASSIGN(auto import, import_binary(file, facts.arch(), theory.kernel));
  Gathered gathered;
  gathered.subject = file;
  gathered.basis = "machine code alone";
  gathered.evidence = std::move(import.evidence);
  gathered.notes = std::move(import.notes);
  KP_TRY(add_theory(theory, &gathered));
  add_machine(theory, facts, &gathered);
  return gathered;
}

Result<Gathered> gather_text(const std::string& text, const std::string& file,
                             const Theory& theory) {
  const NcuSettings ncu{theory.calls, theory.kernel};
  if (begins_with(std::string(trim(text.substr(0, 64))), "{")) {
    return gather_saved(text, file, theory);
  }
  if (is_nsys_csv(text)) {
    KP_ASSIGN(auto import, import_nsys_csv(text));
    return with_theory(from_trace(import, file, theory), theory, import.device);
  }
  if (is_ncu_source_page(text)) return gather_ncu(import_ncu_source(text, ncu), file, theory);
  if (is_ncu_details(text)) return gather_ncu(import_ncu_details(text, ncu), file, theory);
  if (is_ncu_csv(text)) return gather_ncu(import_ncu_csv(text, ncu), file, theory);
  return fail(ErrorKind::kBadInput, file + " is nothing that can be diagnosed",
              "give a run, a kernel, a cubin, a report of ncu or nsys or its export, or evidence "
              "that was saved; `kernelpro diagnose --help` lists them");
}

namespace {

Result<Gathered> gather_input(const Theory& theory) {
  KP_ASSIGN(const std::string text,
            read_input(1 << 30, "pipe a report into it: ncu PROGRAM | kernelpro diagnose -"));
  return gather_text(text, "standard input", theory);
}

}  // namespace

Result<Gathered> gather_file(const std::string& file, const Theory& theory) {
  if (file == "-") return gather_input(theory);
  const std::string head = first_bytes(file);
  if (head.empty()) {
    return fail(ErrorKind::kBadInput,
                exists(file) ? file + " is empty" : "there is no file " + file, "check the path");
  }
  if (file.ends_with(".ncu-rep")) {
    return gather_ncu(import_ncu_report(file, {theory.calls, theory.kernel}), file, theory);
  }
  if (begins_with(head, "SQLite format 3")) {
    KP_ASSIGN(auto import, import_nsys_sqlite(file));
    return with_theory(from_trace(import, file, theory), theory, import.device);
  }
  if (file.ends_with(".nsys-rep") || file.ends_with(".qdrep")) {
    KP_ASSIGN(auto import, import_nsys_report(file));
    return with_theory(from_trace(import, file, theory), theory, import.device);
  }
  if (begins_with(head,
                  "\x7f"
                  "ELF"))
    return gather_binary(file, theory);
  KP_ASSIGN(const std::string text, read_file(file, 1LL << 30));
  return gather_text(text, file, theory);
}

namespace {

// Adds ncu counters for the longest kernels, if ncu is installed.
void add_counters_of_program(const std::vector<std::string>& argv, const Trace& trace,
                             double timeout_s, Gathered* gathered) {
  constexpr std::size_t kMost = 4;
  std::map<std::string, std::string> mangled;
  for (const Trace::Kernel& each : trace.kernels) mangled[demangled(each.name)] = each.name;
  std::vector<NcuKernel> kernels;
  for (const KernelEvidence& kernel : gathered->evidence.kernels) {
    if (kernels.size() == kMost || kernel.facts.get("kernel.share").value_or(1) < 0.05) break;
    const auto name = mangled.find(kernel.name);
    if (name == mangled.end()) continue;
    kernels.push_back({name->second, kernel.facts.get("kernel.launches").value_or(1) >= 2});
  }
  if (kernels.empty()) return;
  const auto import = run_under_ncu(argv, kernels, timeout_s);
  if (!import) {
    gathered->evidence.note_missing(
        {Family::kCounters, import.error().message, import.error().next});
    return;
  }
  const int count = add_ncu_counters(*import, &gathered->evidence);
  gathered->basis += ", and Nsight Compute's counters for " + how_many(count, "kernel");
  gathered->notes.insert(gathered->notes.end(), import->notes.begin(), import->notes.end());
}

// Where kernels are loaded when they are first used, samples of several are misplaced
// (docs/diagnosis.md). Libraries take long to load whole. Whatever the variable was: containers set
// it to LAZY for their users.
void load_at_once(const std::vector<std::string>& code, TraceOptions* options) {
  constexpr std::uintmax_t kMostBytes = 64 << 20;
  std::uintmax_t bytes = 0;
  for (const std::string& file : code) {
    std::error_code failed;
    bytes += std::filesystem::file_size(file, failed);
    if (failed) return;
  }
  if (bytes == 0 || bytes > kMostBytes) return;
  options->env.push_back("CUDA_MODULE_LOADING=EAGER");
}

// Adds samples of where the kernels wait, of a third run.
void add_samples_of_program(const std::vector<std::string>& argv, TraceOptions options,
                            const TracedProgram& traced, Gathered* gathered) {
  const Trace& trace = traced.trace;
  if (trace.kernels.empty()) return;
  load_at_once(traced.code, &options);
  auto answers = sample_program(argv, options, sampling_period_of(trace));
  if (!answers) {
    gathered->evidence.note_missing(
        {Family::kSamples, answers.error().message, answers.error().next});
    return;
  }
  gathered->samples = std::move(*answers);
  for (const Missing& missing : gathered->samples.missing) {
    gathered->evidence.note_missing(missing);
  }
}

}  // namespace

Result<Gathered> gather_program(const std::vector<std::string>& argv, const Theory& theory,
                                double timeout_s, bool counters) {
  TraceOptions options;
  options.timeout_s = timeout_s;
  KP_ASSIGN(auto traced, trace_program(argv, options));
  Gathered gathered;
  gathered.subject = join_text(argv, " ");
  gathered.basis = "a trace of the program";
  const TraceWindow window = select_window(traced.trace, theory.range);
  if (!window.chosen.empty()) gathered.notes.push_back("Looked at: " + window.chosen + ".");
  summarize(traced.trace, window, &gathered.evidence);
  set_evidence_target(TargetKind::kCuda, &gathered.evidence);
  for (const std::string& note : traced.trace.notes) gathered.notes.push_back(note);
  if (!traced.exit.ok()) {
    gathered.notes.push_back("The program " + traced.exit.describe({}) +
                             "; the diagnosis covers what it did until then.");
  }
  if (counters) add_counters_of_program(argv, traced.trace, timeout_s, &gathered);
  if (counters) add_samples_of_program(argv, options, traced, &gathered);
  DeviceFacts facts;
  if (const auto machine = describe_cuda_machine()) facts.name = machine->name;
  std::vector<std::string> code = traced.code;
  std::vector<std::string> sources = {"."};
  // What CUPTI did not show may lie in the program's file.
  if (const std::string program = find_program(argv.front()); !program.empty()) {
    code.push_back(program);
    sources.push_back(dirname(absolute(program)));
  }
  return with_theory(std::move(gathered), theory, facts, code, sources);
}

}  // namespace kernelpro
