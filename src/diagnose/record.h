// SPDX-License-Identifier: Apache-2.0
// Outcomes of earlier findings: predicted and measured gain per tool. An explicit, versioned input
// to the ranking: the same evidence and record give the same diagnosis. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/finding/finding.h"

namespace kernelpro {

// One tool's history. A step counts for the finding that its proposal named.
struct ToolHistory {
  int tried = 0;            // measured steps
  int hits = 0;             // of those, faster by at least 5 %
  double log_measured = 0;  // sum of ln(measured speed-up), 1 for wrong or slower candidates
  double log_products = 0;  // weighted sum of ln(predicted likely) * ln(measured)
  double log_squares = 0;   // of ln(predicted likely)^2: promises above 1.6 weigh less
  double hit_rate() const { return tried > 0 ? static_cast<double>(hits) / tried : 0; }
  double mean_gain() const;  // geometric; 1 without steps
  // The factor by which ln(likely) was too large or too small: ridge regression through the
  // origin, shrunk toward 1 with the weight of ten steps that promised 1.3x.
  double calibration() const;
};

struct ToolRecord {
  static constexpr int kVersion = 1;
  std::map<std::string, ToolHistory> tools;

  // One measured step. `measured`: the incumbent's time over the candidate's; 0 = not correct.
  void add(const std::string& tool, double predicted_likely, double measured);
  // The likely gain corrected by the record; never above `upper`.
  double calibrated(const std::string& tool, double likely, double upper) const;
  // Hash of the whole record; "" when empty.
  std::string hash() const;
};

std::string record_to_json(const ToolRecord& record);
// nullopt: not a record, or another version.
std::optional<ToolRecord> record_from_json(const std::string& json);

}  // namespace kernelpro
