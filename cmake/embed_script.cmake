# SPDX-License-Identifier: Apache-2.0
# Run by kernelpro_embed: writes SOURCE as an array of bytes.
file(READ ${SOURCE} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${OUT}.h
"// generated from ${SOURCE}
#pragma once
#include <string_view>
namespace kernelpro::embedded {
extern const std::string_view ${NAME};
}
")
file(WRITE ${OUT}.cc
"// generated from ${SOURCE}
#include \"embedded/${NAME}.h\"
namespace kernelpro::embedded {
namespace {
constexpr unsigned char ${NAME}_bytes[] = {${bytes}0};
}
const std::string_view ${NAME}{reinterpret_cast<const char*>(${NAME}_bytes), sizeof ${NAME}_bytes - 1};
}
")
