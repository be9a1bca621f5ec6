// SPDX-License-Identifier: Apache-2.0
// Readable kernel names. Pure.
#pragma once

#include <string>

namespace kernelpro {

// "void axpy<float>(float*, int)" for "_Z4axpyIfEvPT_i"; an unmangled name is returned unchanged,
// and so is one that is no sensible name: 200 characters that refer to themselves can spell out
// gigabytes. Takes well under a millisecond and 40 KiB, whatever the name. Use this one everywhere:
// candidates choose their kernels' names.
std::string demangled(const std::string& name);
// Short form for use in a sentence: no result type, namespaces or parameters, and template
// arguments shortened to fit `width` characters. "axpy<float>".
std::string short_kernel_name(const std::string& name, std::size_t width = 40);
// Equal for a kernel as different tools spell it: `rounds<false, 4u>` of a mangled name is
// `rounds<(bool)0, (unsigned int)4>` to Nsight Compute. Not for every spelling: arguments that are
// lambdas or functions differ. Kernels of different namespaces, or with other parameters, share
// one.
std::string kernel_key(const std::string& name);

}  // namespace kernelpro
