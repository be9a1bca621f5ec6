// SPDX-License-Identifier: Apache-2.0
// Diagnoses per second on one core from saved evidence: all recordings in src/diagnose/fixtures,
// repeated for S seconds, parsing the JSON each time.
//   bench_diagnose [S]
#include "diagnose/diagnose.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"

namespace kernelpro {
namespace {

struct Recording {
  std::string evidence;  // JSON
  int kernels = 1;
};

std::vector<Recording> recordings() {
  const std::string folder = std::string(KERNELPRO_SOURCE_DIR) + "/src/diagnose/fixtures";
  std::vector<Recording> all;
  for (const std::string& name : list_dir(folder)) {
    const auto text = name.ends_with(".json") ? read_file(join(folder, name)) : std::string();
    const auto json = text ? parse_json(*text) : std::nullopt;
    if (!json || !json->contains("evidence")) continue;
    Recording each;
    each.evidence = dump_json(json->at("evidence"));
    if (const auto evidence = evidence_from_json(each.evidence)) {
      each.kernels = std::max<int>(1, static_cast<int>(evidence->kernels.size()));
      all.push_back(std::move(each));
    }
  }
  return all;
}

int measure(double seconds) {
  const std::vector<Recording> all = recordings();
  if (all.empty()) {
    std::fprintf(stderr, "no recordings were found: run it in a checkout\n");
    return 1;
  }
  double reading = 0, diagnosing = 0;
  long calls = 0, kernels = 0, findings = 0;
  const double begin = real_clock().now_s();
  while (real_clock().now_s() - begin < seconds) {
    for (const Recording& each : all) {
      const double from = real_clock().now_s();
      const auto evidence = evidence_from_json(each.evidence);
      const double read = real_clock().now_s();
      findings += static_cast<long>(diagnose(*evidence).findings.size());
      reading += read - from;
      diagnosing += real_clock().now_s() - read;
      ++calls;
      kernels += each.kernels;
    }
  }
  std::printf("%zu recordings, %ld calls, %ld kernels, %ld findings\n", all.size(), calls, kernels,
              findings);
  std::printf("kernels a second: %.0f (%.0f without reading the JSON)\n",
              static_cast<double>(kernels) / (reading + diagnosing),
              static_cast<double>(kernels) / diagnosing);
  return 0;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) { return kernelpro::measure(argc > 1 ? std::atof(argv[1]) : 5); }
