// SPDX-License-Identifier: Apache-2.0
// What a run found, for people: one self-contained HTML file (no network, no scripts from
// elsewhere), and a short text for the terminal. Pure functions of what the store holds.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

// Reads the run's store (it may be live) and renders report.html.
Result<std::string> html_report(const std::string& run_directory);
// The same as text for `kernelpro show`.
Result<std::string> text_report(const std::string& run_directory);
Result<std::string> json_report(const std::string& run_directory);

}  // namespace kernelpro
