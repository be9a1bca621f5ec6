// SPDX-License-Identifier: Apache-2.0
// Disassembly from outside with samples at arbitrary offsets: shares stay shares.
#include <cmath>
#include <cstdlib>

#include "profile/places/places.h"
#include "profile/sass/sass.h"

namespace {

void check(const kernelpro::Places& places) {
  for (const kernelpro::Place& place : places.places) {
    double blamed = 0;
    for (const kernelpro::Producer& producer : place.producers) blamed += producer.part;
    if (!(place.share >= 0 && place.share <= 1 + 1e-6 && blamed <= 1 + 1e-6)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kernelpro::KernelSamples samples;
  for (std::size_t k = 0; k < size && k < 400; ++k) {
    const auto stall = static_cast<kernelpro::Stall>(data[k] % kernelpro::kStalls);
    samples.pcs.push_back({static_cast<int>(16 * k), {{stall, 1.0 * data[k], 0.5 * data[k]}}});
  }
  for (const kernelpro::SassFunction& kernel : kernelpro::parse_sass(text)) {
    if (kernel.code.empty()) continue;
    check(kernelpro::sampled_places(kernel, samples, {}));
    check(kernelpro::estimated_places(kernel, {}, {}));
  }
  return 0;
}
