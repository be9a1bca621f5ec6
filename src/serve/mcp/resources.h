// SPDX-License-Identifier: Apache-2.0
// What a client may read of the runs: reports and winning kernels, as MCP resources with addresses
// kernelpro://run/ID/PART.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "serve/runs/runs.h"

namespace kernelpro {

// `part`: "report.html", "report.txt", "report.json" or "kernel".
std::string run_resource(const FoundRun& run, const std::string& part);

// Results of resources/list, resources/templates/list and resources/read. `cursor`: as the page
// before gave it, "" for the first. Reading fails with kBadInput for an unknown address.
Json resources_json(const std::string& folder, const std::string& cursor);
Json resource_templates_json();
Result<Json> read_resource(const std::string& folder, const std::string& uri);

}  // namespace kernelpro
