// SPDX-License-Identifier: Apache-2.0
// The results of a run: one self-contained HTML file (no network, no external scripts), a short
// text for the terminal, and JSON. Pure functions of the store's contents.
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
