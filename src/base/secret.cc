// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <sys/random.h>

#include "base/error.h"

namespace kernelpro {

std::uint64_t secret_word() {
  std::uint64_t word = 0;
  // So few bytes come at once and whole.
  KP_ASSERT(::getrandom(&word, sizeof word, 0) == static_cast<ssize_t>(sizeof word));
  return word;
}

}  // namespace kernelpro
