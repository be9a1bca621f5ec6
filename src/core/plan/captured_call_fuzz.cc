// SPDX-License-Identifier: Apache-2.0
// Any bytes as a captured call: what can be read survives its own JSON, and pairs with itself to a
// plan that is either faulted or keeps its constants inside its scratch.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/plan/captured_call.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kernelpro;
  const auto call = captured_call_from_json({reinterpret_cast<const char*>(data), size});
  if (!call) return 0;
  const std::string json = captured_call_to_json(*call);
  const auto again = captured_call_from_json(json);
  if (!again || captured_call_to_json(*again) != json) std::abort();
  const auto plan = plan_of_captures(*call, *again);
  if (!plan || !plan->problem().empty()) return 0;
  for (const PlanConstant& constant : plan->constants) {
    if (constant.offset + constant.bytes > plan->scratch_bytes) std::abort();
  }
  return 0;
}
