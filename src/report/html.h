// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kernelpro {

// Safe inside HTML elements; unprintable bytes become '?'.
std::string escape(std::string_view text);

}  // namespace kernelpro
