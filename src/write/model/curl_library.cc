// SPDX-License-Identifier: Apache-2.0
#include "write/model/curl_library.h"

#include <dlfcn.h>

#include <string>

namespace kernelpro {
namespace {

struct Loaded {
  CurlLibrary library;
  std::string fault;
};

template <class Function>
void find(void* handle, const char* name, Function* function, std::string* fault) {
  *function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (*function == nullptr && fault->empty()) {
    *fault = std::string("libcurl is too old: it has no ") + name;
  }
}

Loaded load() {
  Loaded result;
  void* handle = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (handle == nullptr) handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    const char* why = ::dlerror();
    result.fault = std::string("libcurl cannot be opened: ") + (why != nullptr ? why : "");
    return result;
  }
  CurlLibrary& curl = result.library;
  decltype(&::curl_global_init) global_init = nullptr;
  find(handle, "curl_global_init", &global_init, &result.fault);
  find(handle, "curl_easy_init", &curl.easy_init, &result.fault);
  find(handle, "curl_easy_cleanup", &curl.easy_cleanup, &result.fault);
  find(handle, "curl_easy_reset", &curl.easy_reset, &result.fault);
  find(handle, "curl_easy_setopt", &curl.easy_setopt, &result.fault);
  find(handle, "curl_easy_getinfo", &curl.easy_getinfo, &result.fault);
  find(handle, "curl_easy_strerror", &curl.easy_strerror, &result.fault);
  find(handle, "curl_slist_append", &curl.slist_append, &result.fault);
  find(handle, "curl_slist_free_all", &curl.slist_free_all, &result.fault);
  find(handle, "curl_multi_init", &curl.multi_init, &result.fault);
  find(handle, "curl_multi_cleanup", &curl.multi_cleanup, &result.fault);
  find(handle, "curl_multi_add_handle", &curl.multi_add_handle, &result.fault);
  find(handle, "curl_multi_remove_handle", &curl.multi_remove_handle, &result.fault);
  find(handle, "curl_multi_perform", &curl.multi_perform, &result.fault);
  find(handle, "curl_multi_poll", &curl.multi_poll, &result.fault);
  find(handle, "curl_multi_info_read", &curl.multi_info_read, &result.fault);
  if (result.fault.empty() && global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    result.fault = "libcurl cannot be set up";
  }
  return result;
}

}  // namespace

Result<const CurlLibrary*> curl_library() {
  static const Loaded loaded = load();
  if (!loaded.fault.empty()) {
    return fail(ErrorKind::kEnvironment, loaded.fault,
                "install libcurl (Debian and Ubuntu: apt-get install libcurl4)");
  }
  return &loaded.library;
}

}  // namespace kernelpro
