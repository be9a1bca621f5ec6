// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/evidence/metrics.h"
#include "core/evidence/target.h"
#include "core/plan/kernel_name.h"
#include "profile/import/csv.h"
#include "profile/import/ncu_details.h"
#include "profile/import/ncu_launch.h"
#include "profile/import/ncu_source.h"
#include "profile/import/ncu_table.h"

namespace kernelpro {

namespace {

constexpr const char* kSource = "ncu";
constexpr const char* kHowToExport =
    "export it on a machine with ncu: ncu --import FILE --page raw --csv --print-units base > "
    "FILE.csv";

// "(256, 1, 1)" -> 256.
double volume(const std::string& text) {
  double product = 1;
  int factors = 0;
  std::string digits;
  for (const char c : text + ",") {
    if (c >= '0' && c <= '9') {
      digits += c;
    } else if (!digits.empty()) {
      product *= std::strtod(digits.c_str(), nullptr);
      digits.clear();
      ++factors;
    }
  }
  return factors == 3 && std::isfinite(product) ? product : 0;
}

// Known before a launch runs, so that no mean over launches is due.
bool is_launch_fact(std::string_view name) { return find_metric(name)->level == Level::kStatic; }

struct Kernel {
  std::string name;
  std::vector<NcuLaunchValues> launches;
  double time_ns = 0;  // of all launches; 0 when any is unknown
};

double merged(const std::string& name, const Kernel& kernel, double calls) {
  double sum = 0, weights = 0;
  int seen = 0;
  for (const NcuLaunchValues& launch : kernel.launches) {
    const auto found = launch.values.find(name);
    if (found == launch.values.end()) continue;
    const double weight = launch.time_ns > 0 ? launch.time_ns : 1;
    sum += !adds_up(name) ? weight * found->second : found->second;
    weights += weight;
    ++seen;
  }
  if (!adds_up(name)) return sum / weights;
  // Launches without the value (it did not fit into a pass) count as the mean of the others.
  return sum / seen * static_cast<double>(kernel.launches.size()) / calls;
}

const NcuLaunchValues& longest(const Kernel& kernel) {
  return *std::max_element(
      kernel.launches.begin(), kernel.launches.end(),
      [](const NcuLaunchValues& a, const NcuLaunchValues& b) { return a.time_ns < b.time_ns; });
}

KernelEvidence evidence_of(const Kernel& kernel, double calls, double all_ns) {
  KernelEvidence result;
  result.name = kernel.name;
  Evidence& e = result.facts;
  std::set<std::string> names;
  for (const NcuLaunchValues& launch : kernel.launches) {
    for (const auto& [name, value] : launch.values) names.insert(name);
  }
  const NcuLaunchValues& typical = longest(kernel);
  for (const std::string& name : names) {
    if (is_launch_fact(name)) continue;
    const double value = merged(name, kernel, calls);
    if (std::isfinite(value)) e.set(name, value, kSource);
  }
  for (const auto& [name, value] : typical.values) {
    if (!is_launch_fact(name)) continue;
    // Without a cluster, ncu reports size 0, we report 1.
    e.set(name, name == "launch__cluster_size" ? std::max(1.0, value) : value, kSource);
  }
  const std::pair<const char*, const std::string*> columns[] = {
      {"launch__block_size", &typical.table->block}, {"launch__grid_size", &typical.table->grid}};
  for (const auto& [name, text] : columns) {
    const double value = volume(*text);
    if (value > 0 && !e.get(name)) e.set(name, value, kSource);
  }
  e.set("kernel.launches", static_cast<double>(kernel.launches.size()) / calls, kSource);
  if (kernel.time_ns > 0 && all_ns > 0) {
    e.set("kernel.share", kernel.time_ns / all_ns, kSource);
  }
  return result;
}

std::vector<Kernel> by_kernel(std::vector<NcuLaunchValues> launches) {
  std::vector<Kernel> kernels;
  std::map<std::string, std::size_t> place;
  for (NcuLaunchValues& launch : launches) {
    const std::string name = demangled(printable(launch.table->kernel));
    const auto [it, fresh] = place.emplace(name, kernels.size());
    if (fresh) kernels.push_back({name, {}, 0});
    kernels[it->second].launches.push_back(std::move(launch));
  }
  for (Kernel& kernel : kernels) {
    for (const NcuLaunchValues& launch : kernel.launches) {
      if (launch.time_ns <= 0) {
        kernel.time_ns = 0;
        break;
      }
      kernel.time_ns += launch.time_ns;
    }
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const Kernel& a, const Kernel& b) { return a.time_ns > b.time_ns; });
  return kernels;
}

tl::unexpected<Error> nothing_in(const NcuTable& table) {
  std::string remarks = join_text(table.said, "; ");
  if (contains(remarks, "ERR_NVGPUCTRPERM")) {
    return fail(ErrorKind::kBadInput,
                "ncu was not allowed to read the counters (ERR_NVGPUCTRPERM), so the file has none",
                "profile as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0");
  }
  if (!remarks.empty()) {
    return fail(ErrorKind::kBadInput, "the file has no launch; ncu said: " + clip(remarks, 400),
                "profile again with what ncu asks for, and export with --page raw --csv");
  }
  return fail(ErrorKind::kBadInput, "the file has no launch with metrics of Nsight Compute",
              kHowToExport);
}

std::string some_of(const std::set<std::string>& names) {
  std::string text;
  int shown = 0;
  for (const std::string& name : names) {
    if (shown == 3) return text + " and " + std::to_string(names.size() - 3) + " more";
    text += (shown == 0 ? "" : ", ") + name;
    ++shown;
  }
  return text;
}

void add_notes(const NcuTable& table, const NcuConverter& converter, const NcuSettings& settings,
               NcuImport* import) {
  auto& notes = import->notes;
  if (table.broken_rows > 0) {
    notes.push_back("The file is cut off or damaged: " + std::to_string(table.broken_rows) +
                    " of its rows are incomplete and were used as far as they go.");
  }
  if (!converter.odd_units().empty()) {
    notes.push_back("Left out, for units that do not fit: " + some_of(converter.odd_units()) + ".");
  }
  if (!converter.without_number().empty()) {
    notes.push_back("Without a number in the report (another GPU or version): " +
                    some_of(converter.without_number()) + ".");
  }
  if (table.display_names) {
    notes.push_back(
        "The file is ncu's details page, which has few of the counters; `ncu --import FILE --page "
        "raw --csv` gives all.");
  }
  if (settings.calls > 1 && import->launches % settings.calls != 0) {
    notes.push_back("The report's " + std::to_string(import->launches) +
                    " launches do not divide into " + std::to_string(settings.calls) + " calls.");
  }
  for (const std::string& remark : table.said) notes.push_back("ncu said: " + remark);
}

// Notes the counters that no kernel has, as one entry.
void note_missing_counters(Evidence* e) {
  std::vector<std::string> absent;
  for (const Metric& metric : metrics_of(Family::kCounters)) {
    const std::string name(metric.name);
    const bool seen = std::any_of(
        e->kernels.begin(), e->kernels.end(),
        [&](const KernelEvidence& kernel) { return kernel.facts.get(name).has_value(); });
    if (!seen) absent.push_back(name);
  }
  if (absent.empty()) return;
  e->note_missing({Family::kCounters, "not in the report",
                   "profile with `ncu --set full`, or name it with --metrics", std::move(absent)});
}

}  // namespace

bool adds_up(std::string_view metric) {
  for (const char* part : {".pct", ".ratio", ".per_second", ".per_cycle", "_pct"}) {
    if (contains(metric, part)) return false;
  }
  return true;
}

bool is_ncu_csv(std::string_view text) {
  const std::string_view head = text.substr(0, 1 << 16);
  return contains(text, "Kernel Name") || contains(head, "==PROF==") || contains(head, "==ERROR==");
}

namespace {

Result<NcuImport> import_table(NcuTable table, const NcuSettings& settings) {
  if (!settings.kernel.empty()) {
    const std::size_t before = table.launches.size();
    std::erase_if(table.launches, [&](const NcuLaunch& launch) {
      return !contains(demangled(launch.kernel), settings.kernel);
    });
    if (table.launches.empty() && before > 0) {
      return fail(ErrorKind::kBadInput,
                  "no kernel in the report has \"" + settings.kernel + "\" in its name",
                  "leave --kernel out to see their names");
    }
  }
  if (table.launches.empty()) return nothing_in(table);
  DecimalVote vote;
  for (const NcuLaunch& launch : table.launches) {
    for (const auto& [name, value] : launch.metrics) vote.look(value.text);
  }
  NcuConverter converter(vote.decide());
  std::vector<NcuLaunchValues> launches;
  for (const NcuLaunch& launch : table.launches) launches.push_back(converter.convert(launch));

  NcuImport import;
  import.launches = static_cast<int>(launches.size());
  import.device = device_of_ncu(table, converter);
  if (import.device.bytes_per_s <= 0) import.device.bytes_per_s = implied_bandwidth(launches);
  const double calls = std::max(1, settings.calls);
  const std::vector<Kernel> kernels = by_kernel(std::move(launches));
  const bool timed = std::all_of(kernels.begin(), kernels.end(),
                                 [](const Kernel& kernel) { return kernel.time_ns > 0; });
  const double all_ns =
      !timed
          ? 0
          : std::accumulate(kernels.begin(), kernels.end(), 0.0,
                            [](double sum, const Kernel& kernel) { return sum + kernel.time_ns; });
  Evidence& e = import.evidence;
  for (const Kernel& kernel : kernels) e.kernels.push_back(evidence_of(kernel, calls, all_ns));
  if (all_ns > 0 && std::isfinite(all_ns)) {
    e.set("timing.median", 1e-3 * all_ns / calls, kSource);
  } else {
    e.note_missing({Family::kTiming, "the report has no gpu__time_duration.sum for every launch",
                    "profile with --metrics gpu__time_duration.sum among others"});
  }
  e.set("plan.kernels", import.launches / calls, kSource);
  if (import.device.multiprocessors > 0) {
    e.set("machine.parallel_units", import.device.multiprocessors, kSource);
  }
  set_evidence_target(TargetKind::kCuda, &e);
  e.texts["profiler"] = "Nsight Compute";
  if (!import.device.arch().empty()) e.texts["arch"] = import.device.arch();
  if (!import.device.name.empty()) e.texts["device"] = import.device.name;
  note_missing_counters(&e);
  add_notes(table, converter, settings, &import);
  import.programs = table.programs;
  return import;
}

// The first with code that is there: absolute paths in ncu's session page, which names the program,
// its folder and its arguments under labels that differ between versions.
std::vector<std::string> paths_in(const std::string& text) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> paths;
  for (const std::string& line : lines(text)) {
    for (std::size_t at = line.find('/'); at != std::string::npos && paths.size() < kMost;) {
      const std::size_t end = std::min(line.find_first_of("\",;|()<> \t\r", at), line.size());
      const std::string path = line.substr(at, end - at);
      const bool begins = at == 0 || contains("\",;|()<> \t=", line.substr(at - 1, 1));
      if (begins && exists(path) && !is_dir(path) &&
          std::find(paths.begin(), paths.end(), path) == paths.end()) {
        paths.push_back(path);
      }
      at = line.find('/', end);
    }
  }
  return paths;
}

void take_source_page(std::string_view text, const NcuSettings& settings, NcuImport* import) {
  NcuSourcePage page = read_ncu_source_page(text);
  std::erase_if(page.samples.kernels, [&](const KernelSamples& kernel) {
    return !contains(demangled(kernel.function), settings.kernel);
  });
  import->samples = std::move(page.samples);
  import->sass = std::move(page.sass);
  for (std::string& note : page.notes) import->notes.push_back(std::move(note));
  for (const Missing& missing : import->samples.missing) import->evidence.note_missing(missing);
}

}  // namespace

Result<NcuImport> import_ncu_csv(std::string_view text, const NcuSettings& settings) {
  return import_table(read_ncu_table(text, is_wanted_of_ncu), settings);
}

Result<NcuImport> import_ncu_details(std::string_view text, const NcuSettings& settings) {
  NcuDetails details = read_ncu_details(text);
  const bool any = std::any_of(details.table.launches.begin(), details.table.launches.end(),
                               [](const NcuLaunch& launch) { return !launch.metrics.empty(); });
  if (!any && !details.table.launches.empty()) {
    return fail(ErrorKind::kBadInput, "none of the text's metrics is known", kHowToExport);
  }
  KP_ASSIGN(NcuImport import, import_table(std::move(details.table), settings));
  if (!details.unknown.empty()) {
    import.notes.push_back("Left out, for KernelPro has no such metric: " +
                           some_of({details.unknown.begin(), details.unknown.end()}) + ".");
  }
  import.programs.insert(import.programs.begin(), details.programs.begin(), details.programs.end());
  return import;
}

Result<NcuImport> import_ncu_source(std::string_view text, const NcuSettings& settings) {
  NcuImport import;
  take_source_page(text, settings, &import);
  if (import.samples.kernels.empty()) {
    return fail(ErrorKind::kBadInput, "the source page has no samples",
                "profile with `ncu --set full`, or --section SourceCounters");
  }
  Evidence& e = import.evidence;
  set_evidence_target(TargetKind::kCuda, &e);
  e.texts["profiler"] = "Nsight Compute";
  for (const KernelSamples& kernel : import.samples.kernels) {
    e.kernels.emplace_back().name = demangled(printable(kernel.function));
  }
  note_missing_counters(&e);
  e.note_missing({Family::kTiming, "the source page has no times", kHowToExport});
  import.notes.push_back(
      "The file is ncu's source page, which has no counters; `ncu --import FILE --page raw --csv` "
      "gives them.");
  return import;
}

namespace {

// What `ncu --import FILE` prints of a page.
Result<Exit> print_page(const std::string& ncu, const std::string& path,
                        std::vector<std::string> page) {
  Command command;
  command.argv = {ncu, "--import", path, "--page"};
  command.argv.insert(command.argv.end(), page.begin(), page.end());
  command.env = {"LC_ALL=C"};
  command.limits = {300, 512LL << 20, 1LL << 30, 0};
  return run(command);
}

// Reports without it, and versions without the options, are no error.
void add_source_page(const std::string& ncu, const std::string& path, const NcuSettings& settings,
                     NcuImport* import) {
  for (const bool mangled : {true, false}) {
    std::vector<std::string> page = {"source", "--csv", "--print-source", "sass"};
    if (mangled) page.insert(page.end(), {"--print-kernel-base", "mangled"});
    const auto exit = print_page(ncu, path, page);
    if (!exit || !exit->ok() || !is_ncu_source_page(exit->output)) continue;
    return take_source_page(exit->output, settings, import);
  }
  import->evidence.note_missing(
      {Family::kSamples, "the report has no source counters, or this ncu does not print them",
       "profile with `ncu --set full`, or --section SourceCounters"});
}

}  // namespace

Result<NcuImport> import_ncu_report(const std::string& path, const NcuSettings& settings) {
  const std::string ncu = find_cuda_tool("ncu");
  if (ncu.empty()) {
    return fail(ErrorKind::kEnvironment,
                "reading " + path + " needs Nsight Compute's ncu, which was not found",
                kHowToExport);
  }
  KP_ASSIGN(Exit exit,
            print_page(ncu, path, {"raw", "--csv", "--print-units", "base", "--print-fp"}));
  if (!exit.ok()) {
    std::string said;
    for (const std::string& line : lines(exit.output)) {
      if (line.rfind("==", 0) == 0) said += (said.empty() ? "" : "; ") + line;
    }
    return fail(ErrorKind::kBadInput,
                "ncu could not read " + path + ": " +
                    clip(said.empty() ? exit.describe(Limits()) : said, 400),
                "an older ncu cannot read newer reports: use the version that wrote it, here or to "
                "export it (--page raw --csv)");
  }
  KP_ASSIGN(NcuImport import, import_ncu_csv(exit.output, settings));
  add_source_page(ncu, path, settings, &import);
  if (const auto session = print_page(ncu, path, {"session"}); session && session->ok()) {
    // The page names ncu itself, too, as the head of the command line.
    std::vector<std::string> paths = paths_in(session->output);
    std::erase_if(paths, [&](const std::string& each) { return basename(each) == basename(ncu); });
    import.programs.insert(import.programs.begin(), paths.begin(), paths.end());
  }
  return import;
}

}  // namespace kernelpro
