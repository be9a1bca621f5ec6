// SPDX-License-Identifier: Apache-2.0
#include "measure/station/station.h"

namespace kernelpro {

std::vector<Readiness> prepare_others(const Stations& stations) {
  std::vector<Readiness> ready;
  for (std::size_t i = 1; i < stations.size(); ++i) {
    if (!stations[i]) continue;
    ready.push_back(std::async(std::launch::async, [station = stations[i]->get()] {
                      return station->prepare();
                    }).share());
  }
  return ready;
}

void close_all(Stations* stations) {
  std::vector<std::future<void>> closing;
  for (auto& station : *stations) {
    if (station) closing.push_back(std::async(std::launch::async, [&] { station->reset(); }));
  }
}

}  // namespace kernelpro
