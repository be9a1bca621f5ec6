// SPDX-License-Identifier: Apache-2.0
#include "base/input.h"

#include <array>
#include <iostream>

#include "base/text.h"

namespace kernelpro {

Result<std::string> read_input(std::int64_t max_bytes, const std::string& next) {
  std::string text;
  std::array<char, 1 << 16> part;
  while (std::cin.read(part.data(), part.size()).gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() <= static_cast<std::size_t>(max_bytes)) continue;
    return fail(ErrorKind::kBadInput,
                "standard input has more than " + human_bytes(static_cast<double>(max_bytes)),
                "write it to a file, and name the part that matters");
  }
  if (trim(text).empty()) return fail(ErrorKind::kBadInput, "standard input is empty", next);
  return text;
}

}  // namespace kernelpro
