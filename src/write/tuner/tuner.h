// SPDX-License-Identifier: Apache-2.0
// Proposers that move a source's knobs and write no code.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "core/candidate/knob.h"
#include "core/proposal/proposer.h"

namespace kernelpro {

// As in run/proposers.h, and in the origin of their candidates.
inline constexpr const char* kTunerName = "tuner";
inline constexpr const char* kSweepName = "sweep";

// Moves the knobs that the source declares: the first candidate answers the parent's findings, the
// others are the most promising given all measurements of the source. A source that declares none
// first gets those that its text offers (found_knobs.h).
std::unique_ptr<Proposer> make_tuner();

// Every setting of the start's knobs, once, in a random order drawn from the seed.
std::unique_ptr<Proposer> make_sweep();
// How many settings there are. Fails with kBadInput when there is no knob, or far too many
// settings.
Result<std::size_t> sweep_size(const std::vector<Knob>& knobs);

}  // namespace kernelpro
