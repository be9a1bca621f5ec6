// SPDX-License-Identifier: Apache-2.0
#include "core/proposal/event.h"

#include <cstddef>
#include <iterator>

#include "base/error.h"
#include "base/rows.h"

namespace kernelpro {

namespace {

struct EventRow {
  Event event;
  std::string_view name;
};

constexpr EventRow kRows[] = {
    {Event::kPrepared, "prepared"},
    {Event::kEvaluated, "evaluated"},
    {Event::kBest, "best"},
    {Event::kBusy, "busy"},
    {Event::kWaiting, "waiting"},
    {Event::kModel, "model"},
    {Event::kRefused, "refused"},
    {Event::kNote, "note"},
    {Event::kStopped, "stopped"},
    {Event::kConfirmed, "confirmed"},
    {Event::kUnconfirmed, "unconfirmed"},
};

static_assert(rows_are_in_order(kRows, &EventRow::event));

}  // namespace

std::string_view event_name(Event event) {
  const auto at = static_cast<std::size_t>(event);
  KP_ASSERT(at < std::size(kRows));
  return kRows[at].name;
}

}  // namespace kernelpro
