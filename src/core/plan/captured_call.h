// SPDX-License-Identifier: Apache-2.0
// From two captures of one PyTorch call to its launch plan. Pure.
//
// A kernel's parameters are bytes: nothing says which of them are addresses, and PyTorch hides many
// in structs. So the call is captured twice, with all buffers elsewhere the second time. A word
// that moved as far as a buffer did is an address in it; a word that stayed is a number, whatever
// it looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/plan/launch_plan.h"

namespace kernelpro {

struct CapturedCall {
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    bool contains(std::uint64_t word) const { return word - address < bytes; }
  };
  // Memory that existed before the call, and in which an 8-byte word of the launches lies: buffers
  // and tables of the module, workspaces of libraries.
  struct Held {
    Range range;
    std::string content;  // hash of its bytes after the capture; "": not read, it is too large
    std::string file;     // name of the file with these bytes
  };
  LaunchPlan plan;         // with the addresses of this capture
  Range tensors;           // the case's layout
  Range scratch;           // what the call allocated
  std::vector<Held> held;  // in order of address
};

std::string captured_call_to_json(const CapturedCall& call);
// nullopt when the text is not one. Safe on any bytes.
std::optional<CapturedCall> captured_call_from_json(const std::string& json);

// The plan, at the addresses of `first`, whose scratch must start kScratchOffset from its layout.
// Memory that the call held before moves to the end of the scratch: with its contents where both
// captures, made with different inputs and parameters, left the same ones; otherwise without them.
// (A module whose results depend on the latter will be found wrong.) Fails with kBadInput when the
// captures differ in more than addresses: then the launches depend on more than the task.
Result<LaunchPlan> plan_of_captures(const CapturedCall& first, const CapturedCall& second);

}  // namespace kernelpro
