// SPDX-License-Identifier: Apache-2.0
#include "core/machine/architecture.h"

#include <charconv>

namespace kernelpro {

namespace {

constexpr int kKiB = 1024;
constexpr int kFirstSpecific = 9;  // the major number from which "a" exists

struct Row {
  int major, minor;
  unsigned features;
  SmLimits limits;
};

constexpr unsigned of(GpuFeature feature) { return static_cast<unsigned>(feature); }
constexpr unsigned kBulk = of(GpuFeature::kTma);
constexpr unsigned kHopper = kBulk | of(GpuFeature::kWgmma);

// warps, blocks, registers, shared memory (all, a block, reserved, granularity, least), barriers,
// fp32 lanes
constexpr Row kRows[] = {
    {7, 0, 0, {64, 32, 65536, 96 * kKiB, 96 * kKiB, 0, 256, 0, 0, 64}},
    {7, 2, 0, {64, 32, 65536, 96 * kKiB, 96 * kKiB, 0, 256, 0, 0, 64}},
    {7, 5, 0, {32, 16, 65536, 64 * kKiB, 64 * kKiB, 0, 256, 32 * kKiB, 0, 64}},
    {8, 0, 0, {64, 32, 65536, 164 * kKiB, 163 * kKiB, kKiB, 128, 0, 0, 64}},
    {8, 6, 0, {48, 16, 65536, 100 * kKiB, 99 * kKiB, kKiB, 128, 0, 0, 128}},
    {8, 7, 0, {48, 16, 65536, 164 * kKiB, 163 * kKiB, kKiB, 128, 0, 0, 128}},
    {8, 9, 0, {48, 24, 65536, 100 * kKiB, 99 * kKiB, kKiB, 128, 0, 0, 128}},
    {9, 0, kHopper, {64, 32, 65536, 228 * kKiB, 227 * kKiB, kKiB, 128, 0, 64, 128}},
    {10, 0, kBulk, {64, 32, 65536, 228 * kKiB, 227 * kKiB, kKiB, 128, 0, 64, 128}},
    {10, 1, kBulk, {48, 24, 65536, 228 * kKiB, 227 * kKiB, kKiB, 128, 0, 24, 128}},
    {10, 3, kBulk, {64, 32, 65536, 228 * kKiB, 227 * kKiB, kKiB, 128, 0, 64, 128}},
    {11, 0, kBulk, {48, 24, 65536, 228 * kKiB, 227 * kKiB, kKiB, 128, 0, 24, 128}},
    {12, 0, kBulk, {48, 24, 65536, 100 * kKiB, 99 * kKiB, kKiB, 128, 0, 24, 128}},
    {12, 1, kBulk, {48, 24, 65536, 100 * kKiB, 99 * kKiB, kKiB, 128, 0, 24, 128}},
};

const Row* row_of(int major, int minor) {
  for (const Row& row : kRows) {
    if (row.major == major && row.minor == minor) return &row;
  }
  return nullptr;
}

}  // namespace

std::optional<Architecture> Architecture::parse(std::string_view name) {
  constexpr std::string_view kPrefix = "sm_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const begin = name.data() + kPrefix.size();
  const char* const end = name.data() + name.size();
  int number = 0;
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || number < 10 || number > 9999) return std::nullopt;
  if (rest == end) return Architecture{number / 10, number % 10, 0};
  if (rest + 1 != end || (*rest != 'a' && *rest != 'f')) return std::nullopt;
  return Architecture{number / 10, number % 10, *rest};
}

std::string Architecture::name() const {
  std::string text = "sm_" + std::to_string(10 * major + minor);
  if (suffix != 0) text += suffix;
  return text;
}

std::string Architecture::compile_name() const {
  const bool add = suffix == 0 && major >= kFirstSpecific;
  return Architecture{major, minor, add ? 'a' : suffix}.name();
}

std::string Architecture::gencode() const {
  const std::string number = name().substr(3);
  return "-gencode=arch=compute_" + number + ",code=sm_" + number;
}

bool Architecture::has(GpuFeature feature) const {
  const Row* row = row_of(major, minor);
  return row != nullptr && (row->features & of(feature)) != 0;
}

const SmLimits* Architecture::limits() const {
  const Row* row = row_of(major, minor);
  return row != nullptr ? &row->limits : nullptr;
}

}  // namespace kernelpro
