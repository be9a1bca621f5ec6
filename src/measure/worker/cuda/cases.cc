// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/cases.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>

#include "core/plan/protocol.h"

namespace kernelpro {

namespace {
constexpr std::int64_t kMostSets = 64;
}  // namespace

Result<Json> OpenCases::open(const WorkerCommand& command) {
  range_ = AddressRange();
  cases_.clear();
  bound_.clear();
  bound_case_ = nullptr;
  protect_ = !JsonReader(command.json).flag("writable");
  std::uint64_t base = 0, bytes = 0;
  for (const Json& item : JsonReader(command.json).array("cases")) {
    const JsonReader r(item);
    const auto layout = layout_from_json(dump_json(r.object("layout")));
    if (!layout || (base != 0 && layout->base != base)) {
      return fail(ErrorKind::kInternal, "the layout cannot be read", "");
    }
    base = layout->base;
    bytes = std::max(bytes, layout->reserve_bytes);
    OpenCase& opened = cases_[r.text("case")];
    opened.name = r.text("case");
    opened.layout = *layout;
    for (const Json& input : r.array("inputs")) {
      opened.inputs.push_back(input.is_boolean() && input.get<bool>());
    }
    opened.sets.resize(
        static_cast<std::size_t>(std::clamp<std::int64_t>(r.integer("sets"), 1, kMostSets)));
    for (auto& set : opened.sets) set.resize(layout->slots.size());
  }
  if (cases_.empty()) return fail(ErrorKind::kInternal, "no case is named", "");
  KP_ASSIGN(range_, AddressRange::reserve(cu_, base, bytes));
  return Json::object();
}

Result<const OpenCase*> OpenCases::of(const WorkerCommand& command) const {
  const auto it = cases_.find(command.text("case"));
  if (it == cases_.end()) return fail(ErrorKind::kInternal, "no such case", "");
  return &it->second;
}

Result<Json> OpenCases::memory(const WorkerCommand& command) {
  const auto it = cases_.find(command.text("case"));
  if (it == cases_.end()) return fail(ErrorKind::kInternal, "no such case", "");
  OpenCase& c = it->second;
  const auto set = static_cast<std::size_t>(command.natural("set"));
  const Json& slots = JsonReader(command.json).array("slots");
  if (set >= c.sets.size() || command.fds.size() != slots.size()) {
    return fail(ErrorKind::kInternal, "descriptors and slots differ in number", "");
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto slot = slots[i].is_number_unsigned() ? slots[i].get<std::size_t>() : SIZE_MAX;
    if (slot >= c.layout.slots.size()) return fail(ErrorKind::kInternal, "no such slot", "");
    KP_ASSIGN(PhysicalMemory memory, PhysicalMemory::import(cu_, command.fds[i].get(),
                                                            c.layout.slots[slot].mapping_bytes));
    std::shared_ptr<PhysicalMemory>& place = c.sets[set][slot];
    // What is mapped is known by its address, which new memory may get again.
    if (place && bound_case_ == &c && bound_[slot] == place.get()) {
      range_.unmap(c.layout.slots[slot].mapping);
      bound_[slot] = nullptr;
    }
    place = std::make_shared<PhysicalMemory>(std::move(memory));
  }
  return Json::object();
}

bool OpenCases::bound(const OpenCase& c) const {
  return bound_case_ == &c && std::find(bound_.begin(), bound_.end(), nullptr) == bound_.end();
}

Result<void> OpenCases::bind(const OpenCase& c, std::int64_t set) {
  if (set < 0 || set >= static_cast<std::int64_t>(c.sets.size())) {
    return fail(ErrorKind::kInternal, "no such set", "");
  }
  if (bound_case_ != &c) {
    range_.unmap_all();
    bound_.assign(c.layout.slots.size(), nullptr);
    bound_case_ = &c;
  }
  for (std::size_t i = 0; i < c.layout.slots.size(); ++i) {
    const auto& own = c.sets[static_cast<std::size_t>(set)][i];
    const auto& memory = own ? own : c.sets[0][i];
    if (!memory) return fail(ErrorKind::kInternal, "a slot has no memory", "");
    if (bound_[i] == memory.get()) continue;
    const AddressLayout::Slot& slot = c.layout.slots[i];
    if (bound_[i] != nullptr) range_.unmap(slot.mapping);
    bound_[i] = nullptr;
    KP_TRY(map(c, i, *memory));
    bound_[i] = memory.get();
  }
  return {};
}

Result<void> OpenCases::map(const OpenCase& c, std::size_t slot, const PhysicalMemory& memory) {
  const AddressLayout::Slot& at = c.layout.slots[slot];
  if (!protect_ || slot >= c.inputs.size() || !c.inputs[slot]) {
    return range_.map(device_, at.mapping, at.mapping_bytes, memory.handle());
  }
  KP_ASSIGN(protect_, range_.map_read_only(device_, at.mapping, at.mapping_bytes, memory.handle()));
  return {};
}

}  // namespace kernelpro

#endif
