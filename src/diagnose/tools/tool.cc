// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/tool.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "diagnose/account/make_account.h"
#include "diagnose/roofline/parts.h"

namespace kernelpro {

std::optional<double> Facts::maybe(const std::string& name) const {
  if (kernel_ != nullptr) {
    if (const auto value = kernel_->facts.get(name)) return value;
  }
  return evidence_.get(name);
}

double Facts::operator()(const std::string& name) const {
  const std::optional<double> value = maybe(name);
  KP_ASSERT(value.has_value());
  return *value;
}

std::string Facts::text(const std::string& name) const {
  if (kernel_ != nullptr) {
    const auto found = kernel_->facts.texts.find(name);
    if (found != kernel_->facts.texts.end()) return found->second;
  }
  const auto found = evidence_.texts.find(name);
  return found == evidence_.texts.end() ? "" : found->second;
}

namespace {
// Of the call there is one kernel, or the longest stands for it.
const Evidence& code_of(const Evidence& evidence, const KernelEvidence* kernel) {
  if (kernel != nullptr) return kernel->facts;
  return evidence.kernels.empty() ? evidence : evidence.kernels.front().facts;
}
}  // namespace

const CodeLines* Facts::lines(const std::string& metric) const {
  const auto& lines = code_of(evidence_, kernel_).lines;
  const auto found = lines.find(metric);
  return found == lines.end() ? nullptr : &found->second;
}

const std::vector<SourceSite>& Facts::sites() const { return code_of(evidence_, kernel_).sites; }

const Places* Facts::places() const {
  const auto& places = code_of(evidence_, kernel_).places;
  return places ? &*places : nullptr;
}

const Evidence& Facts::of_kernel() const { return kernel_ != nullptr ? kernel_->facts : evidence_; }

double Facts::fraction_of_light() const {
  if (roofline_.known()) return roofline_.fraction;
  const auto bytes = maybe("trace.allocated_bytes"), rate = maybe("ceiling.copy_bandwidth");
  const auto us = maybe("timing.median");
  if (model_.counted() || !bytes || !rate || !us || *rate <= 0 || *us <= 0) return 1;
  return std::min(1.0, *bytes / *rate * 1e6 / *us);
}

double Facts::products_of_parts() const {
  const double us = maybe("timing.median").value_or(0) * maybe("kernel.share").value_or(1);
  return kernelpro::products_of_parts(evidence_, of_kernel(), us);
}

double Facts::products_of_parts(const KernelEvidence& kernel) const {
  const double share = kernel.facts.get("kernel.share").value_or(0);
  const double us = maybe("timing.median").value_or(0) * share;
  return kernelpro::products_of_parts(evidence_, kernel.facts, us);
}

double Facts::floor_us(const OperatorCall& call) const {
  return operator_floor_us(call, evidence_);
}

bool Facts::has(GpuFeature feature) const {
  const auto arch = Architecture::parse(text("arch"));
  return arch && arch->has(feature);
}

const SmLimits& Facts::limits() const {
  static const SmLimits kUsual = *Architecture{9, 0}.limits();
  const auto arch = Architecture::parse(text("arch"));
  const SmLimits* own = arch ? arch->limits() : nullptr;
  return own != nullptr ? *own : kUsual;
}

std::string percent(double fraction) {
  const double value = fraction * 100;
  return (value < 100 ? number(value, value < 9.95 ? 2 : 3) : std::to_string(std::lround(value))) +
         " %";
}

std::string times(double factor) {
  return (factor < 100 ? number(factor, factor < 9.95 ? 2 : 3)
                       : std::to_string(std::lround(factor))) +
         "x";
}

std::string per_second(double rate, std::string_view unit) {
  constexpr std::array<const char*, 5> prefixes{"", "k", "M", "G", "T"};
  std::size_t i = 0;
  while (rate >= 1000 && i + 1 < prefixes.size()) {
    rate /= 1000;
    ++i;
  }
  return number(rate, 3) + " " + prefixes[i] + std::string(unit) + "/s";
}

double speedup_without(double share) { return 1 / (1 - std::clamp(share, 0.0, 0.95)); }

double middle(double low, double high) { return std::sqrt(low * high); }

}  // namespace kernelpro
