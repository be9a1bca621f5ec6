// SPDX-License-Identifier: Apache-2.0
// Names of kernels for people. Pure.
#pragma once

#include <string>

namespace kernelpro {

// "void axpy<float>(float*, int)" of "_Z4axpyIfEvPT_i"; a name that is not mangled stays as it is.
std::string demangled(const std::string& name);
// What tells kernels apart in a sentence: without result type, namespaces and parameters, template
// arguments shortened to fit into `width` characters. "axpy<float>".
std::string short_kernel_name(const std::string& name, std::size_t width = 40);

}  // namespace kernelpro
