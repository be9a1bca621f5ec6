// SPDX-License-Identifier: Apache-2.0
// Content addresses: XXH3-128 as 32 hexadecimal digits. Not cryptographic.
#pragma once

#include <string>
#include <string_view>

namespace kernelpro {

std::string hash_hex(std::string_view bytes);
// Hash of several parts; ("ab","c") and ("a","bc") differ.
std::string hash_hex(std::initializer_list<std::string_view> parts);

}  // namespace kernelpro
