// SPDX-License-Identifier: Apache-2.0
// The stations behind one address, as Station. A resident that has ended meanwhile (the machine was
// started anew) opens and prepares them again when the next order comes.
#pragma once

#include <string>

#include "measure/station/station.h"

namespace kernelpro {

// One for each of the settings' GPUs; a single failed one where the address does not answer.
// `task` must outlive them.
Stations remote_stations(const std::string& address, const Task& task,
                         const StationSettings& settings);

}  // namespace kernelpro
