// SPDX-License-Identifier: Apache-2.0
// task: histogram
// expect: correct
// Sorts a copy of all keys and counts by the lengths of runs: slow, and right whatever they are.
#include <algorithm>
#include <cstring>
#include <vector>

#include "task.h"

extern "C" void launch(const Args& args) {
  std::memset(args.counts, 0, sizeof(*args.counts) * BINS);
  std::vector<int> keys(args.keys, args.keys + N);
  std::sort(keys.begin(), keys.end());
  for (auto at = keys.begin(); at != keys.end();) {
    const auto end = std::upper_bound(at, keys.end(), *at);
    args.counts[*at] = end - at;
    at = end;
  }
  std::transform(args.keys, args.keys + N, args.odd, [](int key) { return (key & 1) != 0; });
}
