// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/worker_path.h"  // moved; include that
