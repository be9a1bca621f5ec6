// SPDX-License-Identifier: Apache-2.0
#include "machine/driver/cupti_sampling.h"

#if KERNELPRO_HAVE_CUPTI

#include <dlfcn.h>

namespace kernelpro {

namespace {

Result<CuptiSampling> load() {
  KP_ASSIGN(const CuptiLibrary* library, cupti_library());
  CuptiSampling table;
#define KP_LOAD(name)                                                                           \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(library->handle, "cupti" #name)); \
  if (table.name == nullptr)                                                                    \
    return fail(ErrorKind::kEnvironment, library->path + " has no cupti" #name,                 \
                "install CUPTI of CUDA 13");
  KP_CUPTI_SAMPLING_FUNCTIONS(KP_LOAD)
#undef KP_LOAD
  return table;
}

}  // namespace

Result<const CuptiSampling*> cupti_sampling() {
  static const Result<CuptiSampling> table = load();
  if (!table) return tl::unexpected<Error>(table.error());
  return &*table;
}

}  // namespace kernelpro

#endif
