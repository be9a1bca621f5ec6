// SPDX-License-Identifier: Apache-2.0
// The station on this machine: a target, and a workshop that the stations of several GPUs share.
#pragma once

#include <memory>

#include "measure/station/station.h"
#include "measure/station/target.h"

namespace kernelpro {

// Stations on targets that `maker` makes (in parallel where there are several GPUs).
StationMaker local_stations(TargetMaker maker = make_target);

}  // namespace kernelpro
