// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json.h"
#include "core/evidence/missing_json.h"

namespace kernelpro {

namespace {

// {"at": 32, "stalls": {"wait": [7, 3]}}: all samples, then the exposed ones.
Json pc_to_json(const PcSamples& pc) {
  Json stalls = Json::object();
  for (const StallSamples& s : pc.stalls) {
    stalls[std::string(stall_row(s.stall).name)] = {s.all, s.exposed};
  }
  return {{"at", pc.offset}, {"stalls", std::move(stalls)}};
}

// A count; 0 for anything else.
double count_of(const Json& json) {
  const double value = json.is_number() ? json.get<double>() : 0;
  return std::isfinite(value) && value > 0 ? value : 0;
}

std::optional<PcSamples> pc_from_json(const Json& json) {
  const JsonReader r(json);
  const std::int64_t offset = r.integer("at", -1);
  if (offset < 0 || offset > std::numeric_limits<int>::max()) return std::nullopt;
  PcSamples pc;
  pc.offset = static_cast<int>(offset);
  for (const auto& [name, counts] : r.object("stalls").items()) {
    // Reasons unknown to this version are skipped: stores outlive versions.
    const std::optional<Stall> stall = stall_from_name(name);
    if (!stall || !counts.is_array() || counts.size() != 2) continue;
    const double all = count_of(counts[0]);
    pc.stalls.push_back({*stall, all, std::min(all, count_of(counts[1]))});
  }
  return pc;
}

}  // namespace

std::string sample_answers_to_json(const SampleAnswers& answers) {
  Json kernels = Json::array();
  for (const KernelSamples& kernel : answers.kernels) {
    Json pcs = Json::array();
    for (const PcSamples& pc : kernel.pcs) pcs.push_back(pc_to_json(pc));
    kernels.push_back({{"function", kernel.function}, {"pcs", std::move(pcs)}});
  }
  return dump_json({{"source", answers.source},
                    {"period_cycles", answers.period_cycles},
                    {"dropped", answers.dropped},
                    {"kernels", std::move(kernels)},
                    {"missing", missing_to_json(answers.missing)}});
}

std::optional<SampleAnswers> sample_answers_from_json(const std::string& text) {
  const std::optional<Json> json = parse_json(text);
  if (!json || !json->is_object()) return std::nullopt;
  const JsonReader r(*json);
  SampleAnswers answers;
  answers.source = r.text("source");
  answers.period_cycles = std::max(0.0, r.real("period_cycles"));
  answers.dropped = std::max(0.0, r.real("dropped"));
  for (const Json& item : r.array("kernels")) {
    if (!item.is_object()) return std::nullopt;
    const JsonReader kernel_reader(item);
    KernelSamples kernel;
    kernel.function = kernel_reader.text("function");
    for (const Json& each : kernel_reader.array("pcs")) {
      std::optional<PcSamples> pc = pc_from_json(each);
      if (!pc) return std::nullopt;
      kernel.pcs.push_back(std::move(*pc));
    }
    std::stable_sort(kernel.pcs.begin(), kernel.pcs.end(),
                     [](const PcSamples& a, const PcSamples& b) { return a.offset < b.offset; });
    answers.kernels.push_back(std::move(kernel));
  }
  for (const Json& item : r.array("missing")) {
    if (!item.is_object()) return std::nullopt;
    for (Missing& each : missing_from_json(item)) answers.missing.push_back(std::move(each));
  }
  return answers;
}

}  // namespace kernelpro
