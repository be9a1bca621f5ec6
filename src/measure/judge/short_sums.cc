// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/short_sums.h"

#include <algorithm>
#include <cmath>

namespace kernelpro {

namespace {

constexpr std::int64_t kFewestPlaces = 32;
constexpr std::size_t kMostAxes = 4;  // of a tensor
constexpr std::size_t kMostPairs = 8;
constexpr float kMagnified = 0x1p60f;
constexpr unsigned kGone = 127;           // a depth: zero
constexpr unsigned kMoreNegligible = 20;  // depths from where nothing matters
constexpr unsigned kDimmer = 6;           // ... from where all together matter as much as one
constexpr double kEverywhere = 0x1p-30;   // of the largest result: it got large too
constexpr std::uint64_t kAnyKey = 0x5eed;

// Which places a spec leaves as they are.
struct Slabs {
  std::uint64_t key = kAnyKey;
  bool complement = false, shared = false, magnitudes = false;
  float factor = 1;    // of those
  unsigned depth = 0;  // the others are smaller by this power of two
};

kp::ShapeSpec slab_spec(const Shaped& t, int axis, const Slabs& slabs) {
  kp::ShapeSpec spec{};
  spec.shape = kp::kSlabs;
  spec.dtype = static_cast<int>(t.tensor->dtype);
  spec.row = spec.inner = 1;
  spec.count = static_cast<unsigned long long>(std::max<std::int64_t>(t.elements, 1));
  for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < t.shape.size(); ++d) {
    spec.inner *= static_cast<unsigned long long>(t.shape[d]);
  }
  spec.channels = static_cast<unsigned long long>(t.shape[static_cast<std::size_t>(axis)]);
  spec.first = static_cast<long long>(slabs.key);
  spec.sign = slabs.complement ? -1 : 1;
  spec.range = (slabs.shared ? kp::kSharedSlabs : 0) | (slabs.magnitudes ? kp::kMagnitudes : 0);
  spec.factor = slabs.factor;
  spec.depth = slabs.depth;
  spec.period = 1;
  return spec;
}

std::vector<kp::ShapeSpec> unchanged(const std::vector<Shaped>& tensors) {
  std::vector<kp::ShapeSpec> specs(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    specs[i].dtype = static_cast<int>(tensors[i].tensor->dtype);
  }
  return specs;
}

const Shaped& of(const std::vector<Shaped>& tensors, const TensorAxis& at) {
  return tensors[static_cast<std::size_t>(at.tensor)];
}
std::int64_t places(const std::vector<Shaped>& tensors, const TensorAxis& at) {
  return of(tensors, at).shape[static_cast<std::size_t>(at.axis)];
}

// With all factors positive, and half of the axis much larger: whether all results get larger, and
// not only those at the same places of an axis that they have too.
Result<bool> is_summed(const std::vector<Shaped>& tensors, const std::vector<int>& factors,
                       const TensorAxis& at, const LookAt& look) {
  std::vector<kp::ShapeSpec> specs = unchanged(tensors);
  Slabs positive;
  positive.magnitudes = true;
  for (const int factor : factors) {
    specs[static_cast<std::size_t>(factor)] =
        slab_spec(tensors[static_cast<std::size_t>(factor)], 0, positive);
  }
  Slabs larger = positive;
  larger.factor = kMagnified;
  larger.depth = 60;
  specs[static_cast<std::size_t>(at.tensor)] = slab_spec(of(tensors, at), at.axis, larger);
  KP_ASSIGN(const auto looks, look(specs));
  return looks && !looks->empty() &&
         std::all_of(looks->begin(), looks->end(), [](const OutputLook& output) {
           return output.low > kEverywhere * output.high && output.high > 0;
         });
}

// Whether nothing is left where either has its half of the axis.
Result<bool> are_multiplied(const std::vector<Shaped>& tensors, const Contraction& pair,
                            const LookAt& look) {
  std::vector<kp::ShapeSpec> specs = unchanged(tensors);
  Slabs half;
  half.factor = kMagnified;  // beside an addend
  half.depth = kGone;
  specs[static_cast<std::size_t>(pair.a.tensor)] =
      slab_spec(of(tensors, pair.a), pair.a.axis, half);
  half.factor = 1;
  half.complement = true;
  specs[static_cast<std::size_t>(pair.b.tensor)] =
      slab_spec(of(tensors, pair.b), pair.b.axis, half);
  KP_ASSIGN(const auto looks, look(specs));
  return looks && std::all_of(looks->begin(), looks->end(), [](const OutputLook& output) {
           return output.rms < static_cast<double>(kMagnified) * kEverywhere;
         });
}

}  // namespace

Result<std::vector<Contraction>> find_contractions(const std::vector<Shaped>& tensors,
                                                   const std::vector<int>& factors,
                                                   const LookAt& look) {
  std::vector<TensorAxis> summed;
  if (factors.size() < 2) return std::vector<Contraction>();
  for (const int tensor : factors) {
    const auto& shape = tensors[static_cast<std::size_t>(tensor)].shape;
    for (std::size_t axis = 0; axis < std::min(shape.size(), kMostAxes); ++axis) {
      const TensorAxis at{tensor, static_cast<int>(axis)};
      const bool shared = std::any_of(factors.begin(), factors.end(), [&](int other) {
        const auto& extents = tensors[static_cast<std::size_t>(other)].shape;
        return other != tensor &&
               std::find(extents.begin(), extents.end(), shape[axis]) != extents.end();
      });
      if (shape[axis] < kFewestPlaces || !shared) continue;
      KP_ASSIGN(const bool is, is_summed(tensors, factors, at, look));
      if (is) summed.push_back(at);
    }
  }
  std::vector<Contraction> found;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < summed.size(); ++i) {
    for (std::size_t k = i + 1; k < summed.size() && tried < kMostPairs; ++k) {
      const Contraction pair{summed[i], summed[k]};
      if (pair.a.tensor == pair.b.tensor || places(tensors, pair.a) != places(tensors, pair.b)) {
        continue;
      }
      ++tried;
      KP_ASSIGN(const bool are, are_multiplied(tensors, pair, look));
      if (are) found.push_back(pair);
    }
  }
  return found;
}

std::vector<kp::ShapeSpec> short_sum_shapes(const std::vector<Shaped>& tensors,
                                            const std::vector<Contraction>& contractions,
                                            DrawKind kind, std::uint64_t word, bool addend) {
  std::vector<kp::ShapeSpec> specs = unchanged(tensors);
  const Contraction& pair = contractions[(word >> 40) % contractions.size()];
  Slabs slabs;
  slabs.key = kp::shape_word(word, static_cast<unsigned long long>(tensors.size()));
  slabs.shared = true;
  slabs.depth = kp::kNegligibleDepth + static_cast<unsigned>((word >> 8) % kMoreNegligible);
  if (kind == DrawKind::kDimSums) {
    const double all = std::ceil(std::log2(static_cast<double>(places(tensors, pair.a))));
    slabs.depth = static_cast<unsigned>(all) + static_cast<unsigned>((word >> 8) % kDimmer);
    slabs.depth = std::min(slabs.depth, kp::kNegligibleDepth - 1);
  }
  if (addend) slabs.factor = 0x1p20f;
  specs[static_cast<std::size_t>(pair.a.tensor)] =
      slab_spec(of(tensors, pair.a), pair.a.axis, slabs);
  slabs.factor = 1;
  slabs.complement = true;
  specs[static_cast<std::size_t>(pair.b.tensor)] =
      slab_spec(of(tensors, pair.b), pair.b.axis, slabs);
  return specs;
}

}  // namespace kernelpro
