// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "core/candidate/language.h"
#include "core/plan/kernel_name.h"
#include "report/diagnosis.h"
#include "report/moves.h"
#include "report/not_seen.h"
#include "report/page.h"
#include "report/pareto.h"
#include "write/calls.h"

namespace kernelpro {

namespace {

Json parts_json(const std::vector<AccountPart>& parts) {
  Json list = Json::array();
  for (const AccountPart& part : parts) {
    list.push_back({{"kind", part_row(part.kind).name},
                    {"words", part_words(part)},
                    {"us", part.us},
                    {"level", level_words(part.level)},
                    {"how", part.how}});
  }
  return list;
}

Json place_page(const CostlyPlace& place) {
  return {{"where", place_words(place)},
          {"why", (place.also > 0 ? ", most of which " : " ") + place_cause(place)},
          {"share", place.share + place.also},
          {"gain", place.gain},
          {"condition", place.condition}};
}

Json account_page(const Account& account) {
  Json json = {{"us", account.us},
               {"parts", parts_json(account.parts)},
               {"kernels", Json::array()},
               {"operators", Json::array()}};
  for (const KernelAccount& kernel : account.kernels) {
    Json one = {{"name", kernel.kernel.empty() ? "its kernel" : short_kernel_name(kernel.kernel)},
                {"launched_by", kernel.launched_by},
                {"us", kernel.us},
                {"parts", parts_json(kernel.parts)},
                {"roles", roles_words(kernel.roles)},
                {"mix", mix_words(kernel)},
                {"places", Json::array()}};
    for (const CostlyPlace& place : kernel.places) one["places"].push_back(place_page(place));
    json["kernels"].push_back(std::move(one));
  }
  for (const OperatorCost& each : account.operators) {
    json["operators"].push_back({operator_words(each.name, each.where), each.us, each.floor_us});
  }
  return json;
}

Json finding_page(const Finding& finding) {
  Json json = {{"tool", finding.tool},
               {"severity", severity_name(finding.severity)},
               {"cause", finding.cause},
               {"level", level_words(finding.level)},
               {"steps", Json::array()}};
  if (!finding.kernel.empty()) json["kernel"] = short_kernel_name(finding.kernel);
  if (!finding.sites.empty()) json["sites"] = sites_text(finding.sites);
  if (finding.stop) {
    json["stop"] = true;
  } else {
    json["likely"] = finding.likely_speedup;
    json["upper"] = finding.upper_speedup;
  }
  for (const Prescription& p : finding.prescriptions) {
    json["steps"].push_back({p.tag, p.text, p.not_when});
  }
  return json;
}

void put_change(const WhatChanged& change, Json* json) {
  Json moved = Json::array();
  for (const MovedPart& part : change.moved) {
    moved.push_back({part_words(part.kind, part.stall), part.before_us, part.after_us});
  }
  (*json)["change"] = {{"before_us", change.before_us},
                       {"after_us", change.after_us},
                       {"answers", change.answers.text()},
                       {"promised", change.promised},
                       {"moved", std::move(moved)}};
}

Json timings_json(const Correct& correct) {
  Json list = Json::array();
  for (const Timing& t : correct.timings) {
    list.push_back({t.case_name, t.median_us, t.low_us, t.high_us, t.samples, t.method});
  }
  return list;
}

// What the kernels moved, where counters were read.
double dram_bytes(const Evidence& evidence) {
  double bytes = 0;
  for (const KernelEvidence& kernel : evidence.kernels) {
    const double launches = kernel.facts.get("kernel.launches").value_or(1);
    for (const char* name : {"dram__bytes_read.sum", "dram__bytes_write.sum"}) {
      bytes += launches * kernel.facts.get(name).value_or(0);
    }
  }
  return bytes;
}

void put_diagnosis(const Diagnosis& diagnosis, Json* json) {
  if (diagnosis.account.known()) (*json)["account"] = account_page(diagnosis.account);
  if (diagnosis.findings.empty()) (*json)["nothing"] = nothing_found(diagnosis);
  (*json)["findings"] = Json::array();
  for (const Finding& each : diagnosis.findings) {
    (*json)["findings"].push_back(finding_page(each));
  }
  (*json)["tools"] = Json::array();
  for (const ToolRun& run : diagnosis.tools) {
    (*json)["tools"].push_back({run.tool, state_words(run.state), run.reason});
  }
  if (!diagnosis.record.empty()) (*json)["record"] = diagnosis.record;
}

}  // namespace

Json page_candidate(const StoredCandidate& candidate, const StoredCandidate* parent) {
  const Known& known = candidate.known;
  Json json = {{"id", known.id},
               {"language", language_name(known.candidate.language)},
               {"knobs", known.candidate.knobs},
               {"source", known.candidate.source}};
  if (known.candidate.origin.repairs > 0) json["repairs"] = known.candidate.origin.repairs;
  if (!candidate.evaluated) return json;
  json["summary"] = known.diagnosis.summary;
  const Correct* correct = known.evaluation.correct();
  if (correct == nullptr) {
    json["message"] = clip(outcome_summary(known.evaluation.outcome), 4000);
    return json;
  }
  json["timings"] = timings_json(*correct);
  json["max_error"] = correct->max_error;
  json["labels"] = correct->labels;
  if (const Energy* energy = energy_of(candidate)) {
    json["energy"] = {{"mj", energy->millijoules},
                      {"low", energy->low},
                      {"high", energy->high},
                      {"busy_w", energy->busy_w},
                      {"idle_w", energy->idle_w}};
  }
  if (const double bytes = dram_bytes(candidate.evidence); bytes > 0) json["dram_bytes"] = bytes;
  put_diagnosis(known.diagnosis, &json);
  if (parent == nullptr) return json;
  if (const auto change = change_of(candidate, *parent)) put_change(*change, &json);
  return json;
}

Json page_diagnosis(const Diagnosis& diagnosis, const Evidence& evidence) {
  Json json = {{"summary", diagnosis.summary}, {"missing", Json::array()}};
  put_diagnosis(diagnosis, &json);
  for (const NotSeen& each : not_seen(evidence)) {
    json["missing"].push_back({join_text(each.names, ", "), each.reason, each.next});
  }
  json["numbers"] = numbers_text(evidence);
  return json;
}

void put_writing(const Writing& writing, Json* candidate) {
  (*candidate)["writing"] = {{"request", writing.request},
                             {"writer", writing.writer},
                             {"prompt", writing.prompt},
                             {"reply", writing.reply},
                             {"usage", parse_json(writing.usage).value_or(Json())}};
}

Json page_call(const ModelCall& call) {
  return {{"request", call.request},
          {"role", model_role_name(call.role)},
          {"model", call.model},
          {"parent", call.parent},
          {"repairs", call.repairs},
          {"idea", call.idea},
          {"outcome", call_outcome_name(call.outcome)},
          {"prompt", call.prompt},
          {"tools", call.tools},
          {"reply", call.reply},
          {"usage", parse_json(call.usage).value_or(Json())},
          {"gave", call.gave}};
}

}  // namespace kernelpro
